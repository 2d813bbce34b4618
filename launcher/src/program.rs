//! Where a program is: as given, beside `transom`, or in PATH.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, access};

/// Why there is nothing to start, with the exit code that shells give for it.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// No such file.
    #[error("no program {0:?} (looked {1})")]
    NotFound(OsString, String),
    /// There is one that cannot be executed.
    #[error("{0:?} is not executable: {1}")]
    NotExecutable(PathBuf, &'static str),
}

impl ProgramError {
    /// 127 or 126.
    pub fn code(&self) -> i32 {
        match self {
            Self::NotFound(..) => 127,
            Self::NotExecutable(..) => 126,
        }
    }
}

/// Finds a program. Names with a slash are paths, relative to `cwd`.
pub fn find(
    name: &OsStr,
    cwd: &Path,
    beside: Option<&Path>,
    path: Option<&OsStr>,
) -> Result<PathBuf, ProgramError> {
    if name.as_bytes().contains(&b'/') {
        let file = cwd.join(name);
        return check(&file)?
            .ok_or_else(|| ProgramError::NotFound(name.into(), format!("in {}", cwd.display())));
    }
    let mut refused = None;
    let searched = path.map(std::env::split_paths).into_iter().flatten();
    let directories = beside.map(Path::to_path_buf).into_iter().chain(searched);
    for directory in directories.filter(|_| !name.is_empty()) {
        match check(&cwd.join(directory).join(name)) {
            Ok(Some(file)) => return Ok(file),
            Ok(None) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    let looked = "beside transom, then in PATH; give a path with a slash for another place";
    Err(refused.unwrap_or_else(|| ProgramError::NotFound(name.into(), looked.into())))
}

/// Whether PATH has a command of this name.
pub(crate) fn in_path(name: &str) -> bool {
    let path = std::env::var_os("PATH");
    find(OsStr::new(name), Path::new("/"), None, path.as_deref()).is_ok()
}

fn check(file: &Path) -> Result<Option<PathBuf>, ProgramError> {
    let not_executable = |why| Err(ProgramError::NotExecutable(file.to_path_buf(), why));
    match std::fs::metadata(file) {
        Err(_) => Ok(None),
        Ok(data) if data.is_dir() => not_executable("it is a directory"),
        Ok(_) if access(file, AccessFlags::X_OK).is_err() => not_executable("no permission"),
        Ok(_) => Ok(Some(file.to_path_buf())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_places() {
        let (a, b) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for (dir, name, mode) in
            [(&a, "both", 0o755), (&b, "both", 0o755), (&b, "only-b", 0o755), (&b, "plain", 0o644)]
        {
            let file = dir.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
        }
        let find = |name: &str| find(OsStr::new(name), b.path(), Some(a.path()), Some(b.path().as_os_str()));
        assert_eq!(find("both"), Ok(a.path().join("both")));
        assert_eq!(find("only-b"), Ok(b.path().join("only-b")));
        assert_eq!(find("./both"), Ok(b.path().join("./both")));
        for (name, code) in
            [("nothing", 127), ("", 127), ("./nothing", 127), ("/", 126), ("plain", 126), ("./plain", 126)]
        {
            assert_eq!(find(name).unwrap_err().code(), code, "{name}");
        }
    }
}
