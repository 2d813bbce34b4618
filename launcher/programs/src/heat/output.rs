//! What rank 0 makes of the field: a picture, a file of numbers, a checksum.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use image::codecs::png::PngEncoder;
use image::{ExtendedColorType, ImageEncoder, ImageError};
use transom::{Job, Result as RuntimeResult};

use super::Plate;
use super::target::{Target, Writing};
use crate::failure::{Failure, agree, io_message};

/// Files that can be written, at rank 0.
#[derive(Debug)]
pub struct Outputs {
    picture: PathBuf,
    field: Option<PathBuf>,
    files: Option<(Target, Option<Target>)>,
}

impl Outputs {
    /// Opens the files on rank 0, before anything is computed in vain. Collective.
    ///
    /// # Errors
    /// They cannot be written: the same error on all ranks.
    pub fn open(job: &Job, picture: PathBuf, field: Option<PathBuf>) -> Result<Self, Failure> {
        let own = if job.rank() == 0 { open(&picture, field.as_deref()).map(Some) } else { Ok(None) };
        Ok(Self { files: agree(job, own)?, picture, field })
    }

    /// Gathers the field at rank 0, row by row, and writes it there. Returns its checksum. Collective.
    ///
    /// # Errors
    /// A file cannot be written: the same error on all ranks; errors of the runtime.
    pub fn write(self, job: &Job, plate: Plate, field: Vec<f64>) -> Result<u32, Failure> {
        let window = job.create(field)?;
        let own = match self.files {
            None => Ok(0),
            Some((picture, raw)) => {
                let raw_path = self.field.unwrap_or_default();
                let begin = |raw: Target| raw.begin().map_err(|error| io_message("write", &raw_path, &error));
                match raw.map(begin).transpose() {
                    // The others wait for the window's end.
                    Err(refusal) => Err(refusal),
                    Ok(raw) => {
                        let mut painter =
                            Painter::new(plate, raw.map(|file| (BufWriter::new(file), raw_path)));
                        gather(job, plate, &window, &mut painter)?;
                        painter.finish(plate, picture, &self.picture)
                    }
                }
            }
        };
        window.free()?;
        agree(job, own)
    }
}

/// Reads all rows from the ranks that have them.
fn gather(
    job: &Job,
    plate: Plate,
    window: &transom::Window<f64>,
    painter: &mut Painter,
) -> RuntimeResult<()> {
    let mut row = vec![0.0; plate.width];
    window.lock_all(|epoch| {
        for rank in 0..job.size() {
            for y in 0..plate.rows(rank, job.size()).len() {
                epoch.read(rank, y * plate.width, &mut row)?;
                painter.add(&row);
            }
        }
        Ok(())
    })
}

fn open(picture: &Path, field: Option<&Path>) -> Result<(Target, Option<Target>), String> {
    // What is there is kept until there is something better.
    let open = |path: &Path| Target::open(path).map_err(|error| io_message("write", path, &error));
    let files = (open(picture)?, field.map(open).transpose()?);
    let same = field.is_some_and(
        |field| matches!((picture.canonicalize(), field.canonicalize()), (Ok(a), Ok(b)) if a == b),
    );
    if same {
        Err(format!("the picture and the field cannot be the same file {}", picture.display()))
    } else {
        Ok(files)
    }
}

/// Takes rows one by one.
struct Painter {
    pixels: Vec<u8>,
    raw: Option<(BufWriter<Writing>, PathBuf)>,
    checksum: crc32fast::Hasher,
    bytes: Vec<u8>,
    failed: Option<io::Error>,
}

impl Painter {
    fn new(plate: Plate, raw: Option<(BufWriter<Writing>, PathBuf)>) -> Self {
        let pixels = Vec::with_capacity(plate.cells() * 3);
        Self { pixels, raw, checksum: crc32fast::Hasher::new(), bytes: Vec::new(), failed: None }
    }

    fn add(&mut self, row: &[f64]) {
        self.bytes.clear();
        self.bytes.extend(row.iter().flat_map(|cell| cell.to_le_bytes()));
        self.checksum.update(&self.bytes);
        self.pixels.extend(row.iter().flat_map(|cell| colorous::INFERNO.eval_continuous(*cell).as_array()));
        if let (Some((raw, _)), None) = (&mut self.raw, &self.failed) {
            self.failed = raw.write_all(&self.bytes).err();
        }
    }

    /// Writes what is left, and returns the checksum.
    fn finish(self, plate: Plate, picture: Target, path: &Path) -> Result<u32, String> {
        if let Some((raw, path)) = self.raw {
            let ended = self.failed.map_or_else(|| end(raw, plate.cells() as u64 * 8), Err);
            ended.map_err(|error| io_message("write", &path, &error))?;
        }
        let failed = |error: &io::Error| io_message("write", path, error);
        let mut png = Vec::new();
        let (width, height) = (plate.width as u32, plate.height as u32);
        let encoded =
            PngEncoder::new(&mut png).write_image(&self.pixels, width, height, ExtendedColorType::Rgb8);
        encoded.map_err(|error| match error {
            ImageError::IoError(error) => failed(&error),
            error => format!("cannot draw {}: {error}", path.display()),
        })?;
        let write = |mut picture: Writing| {
            picture.write_all(&png)?;
            picture.end(png.len() as u64)
        };
        picture.begin().and_then(write).map_err(|error| failed(&error))?;
        Ok(self.checksum.finalize())
    }
}

/// Writes out what is buffered.
fn end(writer: BufWriter<Writing>, len: u64) -> io::Result<()> {
    writer.into_inner().map_err(io::IntoInnerError::into_error)?.end(len)
}

/// The checksum of a whole field, as [`Outputs::write`] gives it: CRC-32 of its numbers, little-endian.
pub fn checksum(field: &[f64]) -> u32 {
    let bytes: Vec<u8> = field.iter().flat_map(|cell| cell.to_le_bytes()).collect();
    crc32fast::hash(&bytes)
}
