//! A file for each stream of each rank (`--output-dir`).

use std::fs::{File, OpenOptions, create_dir_all};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::frames::Stream;

/// The files of a job. They are opened for each piece of output: there may be more of them than a process can have open.
#[derive(Debug)]
pub struct Files {
    folder: PathBuf,
    width: usize,
}

impl Files {
    /// Makes the folder and empty files in it, in place of what has their names; says why it cannot.
    pub fn create(folder: &Path, size: u32) -> Result<Self, String> {
        let failed = |path: &Path, e: io::Error| format!("--output-dir: {}: {e}", path.display());
        create_dir_all(folder).map_err(|e| failed(folder, e))?;
        let files = Self { folder: folder.to_owned(), width: size.saturating_sub(1).to_string().len() };
        for rank in 0..size {
            for stream in [Stream::Out, Stream::Err] {
                let path = files.path(rank, stream);
                File::create(&path).map_err(|e| failed(&path, e))?;
            }
        }
        Ok(files)
    }

    fn path(&self, rank: u32, stream: Stream) -> PathBuf {
        let end = if stream == Stream::Err { "err" } else { "out" };
        self.folder.join(format!("rank-{rank:0width$}.{end}", width = self.width))
    }

    /// Appends what a rank wrote. The error names the file.
    pub fn append(&self, rank: u32, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(rank, stream);
        let file = OpenOptions::new().append(true).open(&path);
        file.and_then(|mut file| file.write_all(bytes))
            .map_err(|e| io::Error::other(format!("{} (--output-dir): {e}", path.display())))
    }
}
