//! A file that is to be written whole or not at all: what was there stays until the new one is complete.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use nix::sys::resource::{Resource, getrlimit};
use tempfile::NamedTempFile;

/// A file that can be written, as far as that can be told before there is anything to write.
#[derive(Debug)]
pub struct Target {
    path: PathBuf,
    file: File,
    /// It was not there before.
    is_new: bool,
}

impl Target {
    /// Opens it, and leaves what is there.
    pub fn open(path: &Path) -> io::Result<Self> {
        let open = |create| OpenOptions::new().write(true).create_new(create).open(path);
        let (file, is_new) = match open(false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => (open(true)?, true),
            opened => (opened?, false),
        };
        Ok(Self { path: path.to_owned(), file, is_new })
    }

    /// Begins to write: beside it where it is a file (and its directory lets us), else straight to it.
    pub fn begin(self) -> io::Result<Writing> {
        let was = self.file.metadata()?;
        // A link stays one.
        let place = self.path.canonicalize().ok().filter(|_| was.is_file());
        let beside = place.and_then(|place| {
            let mut file = tempfile::Builder::new();
            let made = file.prefix(".heat-").permissions(was.permissions()).tempfile_in(place.parent()?);
            made.ok().map(|file| (file, place))
        });
        let to = beside.map_or(To::Straight(self.file), |(file, place)| To::Beside(file, place));
        let remove = (self.is_new && was.is_file()).then_some(self.path);
        Ok(Writing { to, remove, is_file: was.is_file(), written: 0 })
    }
}

/// What is being written. Without [`Writing::end`] nothing is left of it, where that is possible.
#[derive(Debug)]
pub struct Writing {
    to: To,
    /// What was made for it, and is of no use without it.
    remove: Option<PathBuf>,
    /// It has a length, which may be limited.
    is_file: bool,
    written: u64,
}

#[derive(Debug)]
enum To {
    Straight(File),
    Beside(NamedTempFile, PathBuf),
}

impl Writing {
    /// All `len` bytes have been written: it is there from now on.
    pub fn end(mut self, len: u64) -> io::Result<()> {
        match std::mem::replace(&mut self.to, To::Straight(File::open("/dev/null")?)) {
            // What a longer file had before is cut off. Pipes and devices have no length.
            To::Straight(file) if file.metadata()?.is_file() => file.set_len(len)?,
            To::Straight(_) => {}
            To::Beside(file, place) => drop(file.persist(place)?),
        }
        self.remove = None;
        Ok(())
    }
}

impl Write for Writing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.is_file {
            let (limit, _) = getrlimit(Resource::RLIMIT_FSIZE)?;
            allow(self.written.saturating_add(bytes.len() as u64), limit)?;
        }
        let written = match &mut self.to {
            To::Straight(file) => file.write(bytes),
            To::Beside(file, _) => file.write(bytes),
        }?;
        self.written += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether a file may be so long. To be asked before: the system sends a signal that ends the process (setrlimit(2)), and what was
/// begun is left behind.
fn allow(len: u64, limit: u64) -> io::Result<()> {
    if len <= limit {
        return Ok(());
    }
    let reason = format!("the limit on the size of files is {} KiB (ulimit -f): raise it", limit >> 10);
    Err(io::Error::new(io::ErrorKind::FileTooLarge, reason))
}

impl Drop for Writing {
    fn drop(&mut self) {
        if let Some(path) = &self.remove {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_stays_until_the_new_one_is_complete() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("picture");
        let names = || std::fs::read_dir(dir.path()).unwrap().count();
        drop(Target::open(&path).unwrap().begin().unwrap().write_all(b"half"));
        assert_eq!(names(), 0);
        let mut writing = Target::open(&path).unwrap().begin().unwrap();
        writing.write_all(b"whole").unwrap();
        writing.end(5).unwrap();
        drop(Target::open(&path).unwrap().begin().unwrap().write_all(b"half"));
        assert_eq!((names(), std::fs::read(&path).unwrap().as_slice()), (1, b"whole".as_slice()));
    }

    #[test]
    fn a_limit_is_named() {
        assert!(allow(1024, 1024).is_ok());
        let error = allow(1025, 1024).unwrap_err().to_string();
        assert!(error.contains("size of files is 1 KiB (ulimit -f)"), "{error}");
    }

    #[test]
    fn links_and_devices_stay_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        std::fs::write(&path, b"longer than it").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut writing = Target::open(&link).unwrap().begin().unwrap();
        writing.write_all(b"new").unwrap();
        writing.end(3).unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        let mut writing = Target::open(Path::new("/dev/full")).unwrap().begin().unwrap();
        assert!(writing.write_all(b"new").is_err());
        drop(writing);
        assert!(Path::new("/dev/full").exists());
    }
}
