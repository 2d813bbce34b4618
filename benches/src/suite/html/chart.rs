//! Diagrams as inline SVG: figures over sizes or numbers of ranks, on logarithmic axes; but parts of a whole from 0 to 100 %.

use std::error::Error;

use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;

use super::escaped;
use crate::report::{Unit, number};
use crate::suite::row::Row;
use crate::suite::sizes;
use crate::suite::statistics::quantile;
use crate::suite::table::time;

/// Drawn so small that a telephone need not make its text smaller.
const SIZE: (u32, u32) = (400, 290);
/// What becomes the page's colour of text, and of lines of the grid.
const TEXT: RGBColor = RGBColor(1, 2, 3);
const GRID: RGBColor = RGBColor(4, 5, 6);
/// Seen on light and on dark.
const COLOURS: [RGBColor; 4] =
    [RGBColor(37, 111, 219), RGBColor(214, 104, 20), RGBColor(190, 50, 110), RGBColor(20, 150, 110)];

/// A line of a diagram.
struct Line {
    name: String,
    /// What the diagram is of.
    is_first: bool,
    points: Vec<(f64, f64)>,
    is_limit: bool,
}

/// A diagram of rows that differ in one thing: in size, else in the number of ranks.
pub fn draw(rows: &[&Row]) -> Option<String> {
    let by_size = rows.iter().any(|row| row.head.bytes != rows[0].head.bytes);
    let x = |row: &Row| if by_size { row.head.bytes as f64 } else { row.head.ranks as f64 };
    let lines = lines(rows, x);
    // One place on an axis has no scale.
    let points = lines.first().filter(|line| !line.is_limit).map_or(&[][..], |line| &line.points);
    if points.first().map(|point| point.0) == points.last().map(|point| point.0) {
        return None;
    }
    let svg = svg(&lines, by_size, rows[0].head.unit).ok()?;
    Some(legend(&lines) + &for_page(&svg))
}

fn lines(rows: &[&Row], x: impl Fn(&Row) -> f64) -> Vec<Line> {
    let unit = rows[0].head.unit;
    let mut libraries: Vec<&str> = Vec::new();
    rows.iter().for_each(|row| {
        if !libraries.contains(&row.library.as_str()) {
            libraries.push(&row.library);
        }
    });
    let line = |name: &str, is_limit, y: &dyn Fn(&Row) -> Option<f64>| {
        let point = |row: &&Row| Some((x(row), shown(row.head.unit, y(row)?)));
        let good = |(_, y): &(f64, f64)| y.is_finite() && (*y > 0.0 || unit == Unit::Percent);
        Line {
            name: name.to_owned(),
            is_first: false,
            points: rows.iter().filter_map(point).filter(good).collect(),
            is_limit,
        }
    };
    let of = |library: &str| {
        let name = if library.is_empty() { "median" } else { library };
        line(name, false, &|row| (row.library == library).then(|| row.median()))
    };
    let mut lines: Vec<Line> = libraries.iter().map(|library| of(library)).collect();
    lines[0].is_first = true;
    if unit == Unit::Time && libraries == [""] {
        lines.push(line("p99", false, &|row| Some(quantile(&row.sorted(), 0.99))));
        lines.push(line("p99.9", false, &|row| Some(quantile(&row.sorted(), 0.999))));
    }
    // With the size, the limit may become another.
    let mut names: Vec<&str> =
        rows.iter().filter_map(|row| Some(row.limit.as_ref()?.name.as_str())).collect();
    names.dedup();
    lines.push(line(&format!("limit: {}", names.join(", ")), true, &Row::bound));
    lines.retain(|line| !line.points.is_empty());
    lines
}

/// What the axis gives of a time: nanoseconds, bytes or operations a second, hundredths.
fn shown(unit: Unit, time: f64) -> f64 {
    match unit {
        Unit::Time | Unit::Percent => time,
        Unit::Rate(count) => count as f64 / time * 1e9,
        Unit::Bandwidth(bytes) => bytes as f64 / time * 1e9,
    }
}

/// A figure of [`shown`] for people.
fn label(unit: Unit, value: f64) -> String {
    let scaled = |suffix: &str| match value {
        v if v >= 1e9 => format!("{} G{suffix}", number(v / 1e9)),
        v if v >= 1e6 => format!("{} M{suffix}", number(v / 1e6)),
        v if v >= 1e3 => format!("{} k{suffix}", number(v / 1e3)),
        v => format!("{} {suffix}", number(v)),
    };
    match unit {
        Unit::Time => time(value),
        Unit::Percent => format!("{} %", number(value)),
        Unit::Rate(_) => scaled("/s"),
        Unit::Bandwidth(_) => scaled("B/s"),
    }
}

/// The least and the greatest, a little apart.
fn range(values: impl Iterator<Item = f64>) -> std::ops::Range<f64> {
    let (least, most) = values.fold((f64::INFINITY, 0.0_f64), |(a, b), v| (a.min(v), b.max(v)));
    least * 0.8..most * 1.3
}

/// The same, with two powers of ten in it at least: those have labels.
fn labelled(range: std::ops::Range<f64>) -> std::ops::Range<f64> {
    let (below, above) = (range.start.log10().floor(), range.end.log10().ceil());
    let within = above - below - 1.0;
    let (to_below, to_above) = (range.start.log10() - below, above - range.end.log10());
    match within {
        2.0.. => range,
        1.0.. if to_below < to_above => 10_f64.powf(below)..range.end,
        1.0.. => range.start..10_f64.powf(above),
        _ => 10_f64.powf(below)..10_f64.powf(above),
    }
}

fn svg(lines: &[Line], by_size: bool, unit: Unit) -> Result<String, Box<dyn Error>> {
    match unit {
        Unit::Percent => svg_along(lines, by_size, unit, 0.0..100.0),
        _ => {
            let values = lines.iter().flat_map(|line| &line.points).map(|point| point.1);
            svg_along(lines, by_size, unit, labelled(range(values)).log_scale())
        }
    }
}

/// With that axis of values.
fn svg_along<Y>(lines: &[Line], by_size: bool, unit: Unit, values: Y) -> Result<String, Box<dyn Error>>
where
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: ValueFormatter<f64>,
{
    let mut svg = String::new();
    let places = lines.iter().flat_map(|line| &line.points).map(|point| point.0);
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin(8)
            .margin_right(20)
            .x_label_area_size(32)
            .y_label_area_size(80)
            .build_cartesian_2d(range(places).log_scale().base(2.0), values)?;
        let text = ("sans-serif", 17).into_font().color(&TEXT);
        chart
            .configure_mesh()
            .x_labels(5)
            .y_labels(7)
            .x_label_formatter(&|x| if by_size { sizes::show(*x as usize) } else { format!("{x:.0}") })
            .y_label_formatter(&|y| label(unit, *y))
            .label_style(text)
            .axis_style(TEXT)
            .bold_line_style(GRID)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (line, colour) in coloured(lines) {
            let style = colour.stroke_width(if line.is_first { 3 } else { 1 });
            let points = line.points.iter().copied();
            if line.is_limit {
                chart.draw_series(DashedLineSeries::new(points, 5, 4, style))?;
            } else {
                chart.draw_series(LineSeries::new(points, style).point_size(2))?;
            }
        }
        root.present()?;
    }
    Ok(svg)
}

fn coloured(lines: &[Line]) -> impl Iterator<Item = (&Line, RGBColor)> {
    let colour = |(line, colour): (&'_ Line, &RGBColor)| if line.is_limit { TEXT } else { *colour };
    lines.iter().zip(COLOURS.iter().cycle()).map(move |both| (both.0, colour(both)))
}

/// What the lines are, above the diagram: there it is in nobody's way.
fn legend(lines: &[Line]) -> String {
    let entry = |(line, RGBColor(r, g, b)): (&Line, RGBColor)| match line.is_limit {
        true => format!("<span>┅ {}</span> ", escaped(&line.name)),
        false => format!("<span style=\"color:rgb({r} {g} {b})\">━ {}</span> ", escaped(&line.name)),
    };
    format!("<div class=\"legend\">{}</div>", coloured(lines).map(entry).collect::<String>())
}

/// With the page's own colours, and of the width that there is.
fn for_page(svg: &str) -> String {
    let hex = |RGBColor(r, g, b): RGBColor| format!("\"#{r:02X}{g:02X}{b:02X}\"");
    let (text, grid) = (hex(TEXT), hex(GRID));
    let drawn = svg.find("<svg").map_or(svg, |at| &svg[at..]);
    let head = drawn.find('>').map_or(0, |at| at + 1);
    let (width, height) = SIZE;
    let own = format!("<svg viewBox=\"0 0 {width} {height}\" role=\"img\">");
    let body = drawn[head..].replace(&format!("stroke={grid}"), "class=\"grid\"");
    own + &body.replace(&text, "\"currentColor\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::files::tests::row;

    #[test]
    fn lines_in_the_colours_of_the_page() {
        let rows = [8, 4096, 1 << 20].map(|bytes| row(bytes, vec![vec![100.0 + bytes as f64; 5]]));
        let svg = draw(&rows.iter().collect::<Vec<_>>()).unwrap();
        assert!(svg.contains("<svg viewBox") && svg.trim_end().ends_with("</svg>"), "{svg}");
        assert!(svg.contains("class=\"grid\"") && svg.contains("currentColor") && !svg.contains("http"));
        for name in ["median", "p99.9", "limit"] {
            assert!(svg.contains(name), "{name}");
        }
        assert!(!svg.contains("#010203") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn two_powers_of_ten_have_labels() {
        for (least, most) in
            [(8.8e2, 4.5e3), (150.0, 8e3), (11.0, 80.0), (2.0, 3.0), (0.2, 0.9), (7.0, 5e5), (10.0, 100.0)]
        {
            let range = labelled(least..most);
            let within =
                (-3..9).filter(|power| (range.start..=range.end).contains(&10_f64.powi(*power))).count();
            assert!(within >= 2, "{least} to {most}: {range:?}");
            assert!(
                range.start <= least
                    && range.end >= most
                    && range.end / range.start <= (most / least).max(1.0) * 100.0
            );
        }
    }

    #[test]
    fn parts_of_a_whole_begin_at_nothing() {
        let rows = [8, 4096].map(|bytes| {
            let mut row = row(bytes, vec![vec![0.0; 5]]);
            (row.head.unit, row.limit) = (Unit::Percent, None);
            row
        });
        let svg = draw(&rows.iter().collect::<Vec<_>>()).unwrap();
        assert!(svg.contains("100 %") && svg.contains("0 %"), "{svg}");
    }

    #[test]
    fn one_size_has_no_diagram() {
        let one = row(8, vec![vec![1.0]]);
        assert!(draw(&[&one]).is_none());
        assert!(draw(&[&row(8, vec![vec![]]), &row(16, vec![vec![]])]).is_none());
    }
}
