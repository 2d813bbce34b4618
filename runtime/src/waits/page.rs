//! Where notes are in a rank's page: each in an area of its own, as JSON behind its length.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use nix::sys::resource::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use transom_transport::limits;

use super::{Notes, Wait};

/// Bytes of a rank's page.
pub const PAGE_BYTES: u64 = 4 * AREA;
const AREA: u64 = 4096;
/// Threads of a rank that can note what they wait for, at the same time.
pub(super) const WAITS: u64 = 3;
const LENGTH: usize = size_of::<u32>();
/// How often a note that changes while it is read is read again.
const ATTEMPTS: usize = 8;

/// The page of a host's rank number `local`.
#[derive(Debug)]
pub struct Page<'a> {
    file: &'a File,
    start: u64,
}

impl<'a> Page<'a> {
    /// In the memory file of the rank's host.
    pub fn new(file: &'a File, local: u64) -> Self {
        Self { file, start: local * PAGE_BYTES }
    }

    /// What the rank says of itself, if it has said anything.
    pub fn notes(&self) -> Option<Notes> {
        self.read(0)
    }

    /// The calls that block.
    pub fn waits(&self) -> Vec<Wait> {
        (1..=WAITS).filter_map(|area| self.read(area)).collect()
    }

    pub(super) fn write_notes(&self, notes: &Notes) {
        // Who cannot say it is not to fail for that.
        let _ = self.write(0, notes);
    }

    pub(super) fn write_wait(&self, slot: u64, wait: &Wait) {
        let _ = self.write(1 + slot, wait);
    }

    pub(super) fn clear_wait(&self, slot: u64) {
        let _ = self.write_at(&[0; LENGTH], 1 + slot);
    }

    fn write(&self, area: u64, note: &impl Serialize) -> io::Result<()> {
        let text = serde_json::to_vec(note)?;
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        let bytes = [&length.to_ne_bytes()[..], &text].concat();
        if bytes.len() as u64 > AREA {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.write_at(&bytes, area)
    }

    fn write_at(&self, bytes: &[u8], area: u64) -> io::Result<()> {
        // Files in memory are files to that limit, and who writes behind it is ended (setrlimit(2)).
        if limits::soft(Resource::RLIMIT_FSIZE).is_some_and(|limit| (limit as u64) < self.start + PAGE_BYTES)
        {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.file.write_all_at(bytes, self.start + area * AREA)
    }

    /// A note, read twice alike: its writer does not wait for readers.
    fn read<T: DeserializeOwned>(&self, area: u64) -> Option<T> {
        let mut before = None;
        for _ in 0..ATTEMPTS {
            let bytes = self.bytes(area)?;
            if before.as_ref() == Some(&bytes) {
                return serde_json::from_slice(&bytes).ok();
            }
            before = Some(bytes);
        }
        None
    }

    fn bytes(&self, area: u64) -> Option<Vec<u8>> {
        let start = self.start + area * AREA;
        let mut length = [0; LENGTH];
        self.file.read_exact_at(&mut length, start).ok()?;
        let length = u64::from(u32::from_ne_bytes(length));
        if length == 0 || length > AREA - LENGTH as u64 {
            return None;
        }
        let mut bytes = vec![0; usize::try_from(length).ok()?];
        self.file.read_exact_at(&mut bytes, start + LENGTH as u64).ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::{Held, LISTED, LONGEST, Subject, Traffic, Way};

    fn file() -> File {
        let fd = nix::sys::memfd::memfd_create(c"test", nix::sys::memfd::MFdFlags::empty()).unwrap();
        let file = File::from(fd);
        file.set_len(2 * PAGE_BYTES).unwrap();
        file
    }

    #[test]
    fn what_is_noted_is_read_and_what_is_not_is_nothing() {
        let file = file();
        let (page, other) = (Page::new(&file, 1), Page::new(&file, 0));
        assert!(page.notes().is_none() && page.waits().is_empty());
        let lock =
            Subject::Lock { owner: u32::MAX, window: u32::MAX, exclusive: true, ticket: Some(u32::MAX) };
        // The longest note there is has room.
        let wait = Wait {
            thread: i32::MIN,
            call: "neighbour allgather".into(),
            what: "\"".repeat(LONGEST),
            since_ms: u64::MAX,
            on: vec![u32::MAX; LISTED],
            subject: lock,
        };
        page.write_wait(2, &wait);
        page.write_wait(0, &Wait { thread: 1, ..wait.clone() });
        assert_eq!(page.waits(), [Wait { thread: 1, ..wait.clone() }, wait.clone()]);
        page.clear_wait(0);
        assert_eq!(page.waits(), [wait]);
        let held = Held { owner: u32::MAX, window: u32::MAX, exclusive: false };
        let traffic = Traffic { path: "verbs zero-copy".into(), operations: u64::MAX, bytes: u64::MAX };
        let notes = Notes {
            at_ms: 1,
            pid: 2,
            thread: 3,
            pid_namespace: u64::MAX,
            held: vec![held; LISTED],
            left: true,
            ways: ["shm", "verbs", "ofi", "tcp"]
                .map(|name| Way { transport: name.into(), ranks: u32::MAX })
                .into(),
            traffic: Some(vec![traffic; LISTED]),
        };
        page.write_notes(&notes);
        assert_eq!(page.notes(), Some(notes));
        assert!(other.notes().is_none() && other.waits().is_empty());
    }

    #[test]
    fn what_anybody_writes_is_a_note_or_nothing() {
        let file = file();
        let page = Page::new(&file, 0);
        for bytes in [&[0xff; 64][..], &[4, 0, 0, 0, b'n', b'u', b'l', b'l'], &[2, 0, 0, 0, b'{', b'}'], &[1]]
        {
            file.write_all_at(bytes, 0).unwrap();
            assert!(page.notes().is_none(), "{bytes:?}");
        }
        file.set_len(100).unwrap();
        assert!(page.notes().is_none() && page.waits().is_empty());
    }
}
