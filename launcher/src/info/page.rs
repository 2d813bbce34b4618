//! The page that `transom info` prints: headings, facts, tables, as wide as the terminal.

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

/// Width when nothing says how wide the reader's screen is.
const WIDTH: u16 = 100;

/// Text under construction.
pub struct Page {
    /// The text so far.
    pub text: String,
    width: u16,
}

impl Page {
    /// An empty page, as wide as the terminal, or as `COLUMNS` says.
    pub fn new() -> Self {
        Self { text: String::new(), width: width() }
    }

    /// Begins a section.
    pub fn heading(&mut self, title: &str) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        self.text.push_str(title);
        self.text.push('\n');
    }

    /// Names and values.
    pub fn facts<N: Into<String>>(&mut self, facts: Vec<(N, String)>) {
        let mut table = self.table();
        // One width in all sections whose names are not longer, so that the values stand in one line down the page.
        let mut width = 25;
        for (name, value) in facts {
            let name = name.into();
            width = width.max(name.chars().count() as u16 + 2);
            table.add_row([name, value]);
        }
        if let Some(column) = table.column_mut(0) {
            column.set_constraint(comfy_table::ColumnConstraint::Absolute(comfy_table::Width::Fixed(width)));
        }
        self.add(&table);
    }

    /// A paragraph.
    pub fn paragraph(&mut self, text: &str) {
        let mut table = self.table();
        table.add_row([text]);
        self.add(&table);
    }

    /// A table to be filled: no lines, two blanks before a column.
    pub fn table(&self) -> Table {
        let mut table = Table::new();
        table
            .load_preset(presets::NOTHING)
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.width);
        table
    }

    /// Adds a filled table.
    pub fn add(&mut self, table: &Table) {
        let mut table = table.clone();
        for column in table.column_iter_mut() {
            column.set_padding((2, 0)).set_cell_alignment(CellAlignment::Left);
        }
        for line in table.lines() {
            self.text.push_str(line.trim_end());
            self.text.push('\n');
        }
    }
}

fn width() -> u16 {
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok();
    let terminal = terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| width.0);
    terminal.or_else(columns).unwrap_or(WIDTH).clamp(60, 160)
}
