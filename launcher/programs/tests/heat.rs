//! The field does not depend on the number of ranks.

#![allow(clippy::unwrap_used, reason = "tests")]

use transom_programs::heat::{Outputs, Plate, checksum, compute};

/// The whole field, from the rows of all ranks.
fn field(ranks: usize, plate: Plate, steps: u64) -> Vec<f64> {
    transom::local(ranks, |job| Ok(compute(&job, plate, steps, None).unwrap().0)).unwrap().concat()
}

/// The scheme written down plainly.
fn plainly(plate: Plate, steps: u64) -> Vec<f64> {
    let start = field(1, plate, 0);
    let Plate { width, height } = plate;
    let mut now = start.clone();
    for _ in 0..steps {
        let mut next = now.clone();
        for y in 1..height.saturating_sub(1) {
            for x in 1..width.saturating_sub(1) {
                let i = y * width + x;
                // Held cells are hot, all others are cold at first.
                if start[i] == 0.0 {
                    let around = (now[i - width] + now[i + width]) + (now[i - 1] + now[i + 1]);
                    next[i] = now[i] + 0.24 * (around - 4.0 * now[i]);
                }
            }
        }
        now = next;
    }
    now
}

fn bits(field: &[f64]) -> Vec<u64> {
    field.iter().map(|cell| cell.to_bits()).collect()
}

#[test]
fn the_same_bits_on_any_number_of_ranks() {
    for (width, height, steps) in [(40, 30, 25), (17, 5, 12), (3, 3, 4), (8, 1, 3), (1, 6, 3), (64, 64, 0)] {
        let plate = Plate { width, height };
        let expected = bits(&plainly(plate, steps));
        for ranks in [1, 2, 3, 4, 7] {
            assert!(bits(&field(ranks, plate, steps)) == expected, "{plate:?}, {steps} steps, {ranks} ranks");
        }
    }
}

#[test]
fn files() {
    let dir = tempfile::tempdir().unwrap();
    let plate = Plate { width: 50, height: 33 };
    let expected = field(1, plate, 9);
    assert!(expected.iter().any(|cell| *cell > 0.5));
    let (picture, raw) = (dir.path().join("p.png"), dir.path().join("f.raw"));
    std::fs::write(&raw, vec![1; 100_000]).unwrap();
    let sums = transom::local(4, |job| {
        let outputs = Outputs::open(&job, picture.clone(), Some(raw.clone())).unwrap();
        let (field, _) = compute(&job, plate, 9, None).unwrap();
        Ok(outputs.write(&job, plate, field).unwrap())
    })
    .unwrap();
    assert_eq!(sums[0], checksum(&expected));
    let bytes: Vec<u8> = expected.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    assert!(std::fs::read(&raw).unwrap() == bytes);
    let image = image::open(&picture).unwrap().to_rgb8();
    assert_eq!(image.dimensions(), (50, 33));
}
