//! The few structures and constants of `pmix_common.h`, by hand: the same in every release since 3.0 (PMIx Standard 4.1, §3.2
//! to §3.4). the test below compares them with the header where that is installed.

use std::ffi::{c_char, c_int};

/// `pmix_status_t`.
pub(crate) type Status = c_int;
/// `PMIX_SUCCESS`.
pub(crate) const SUCCESS: Status = 0;
/// `PMIX_ERR_NOT_FOUND`.
pub(crate) const ERR_NOT_FOUND: Status = -46;

/// `PMIX_MAX_NSLEN`, with the zero byte.
pub(crate) const NSPACE_BYTES: usize = 256;
/// `PMIX_MAX_KEYLEN`, with the zero byte.
pub(crate) const KEY_BYTES: usize = 512;
/// `PMIX_RANK_WILDCARD`: of the job, not of one of its ranks.
pub(crate) const RANK_WILDCARD: u32 = u32::MAX - 1;

/// `PMIX_BOOL`.
pub(crate) const BOOL: u16 = 1;
/// `PMIX_UINT32`.
pub(crate) const UINT32: u16 = 14;
/// `PMIX_BYTE_OBJECT`.
pub(crate) const BYTE_OBJECT: u16 = 27;

/// `PMIX_GLOBAL`, a `pmix_scope_t`: for all ranks, on this host and others.
pub(crate) const GLOBAL: u8 = 3;

/// `PMIX_JOB_SIZE`: number of ranks of a job, `PMIX_UINT32`.
pub(crate) const JOB_SIZE: &str = "pmix.job.size";
/// `PMIX_APPNUM`: number of a rank's program in its job, `PMIX_UINT32`.
pub(crate) const APPNUM: &str = "pmix.appnum";
/// `PMIX_COLLECT_DATA`: a fence brings what all ranks put.
pub(crate) const COLLECT_DATA: &str = "pmix.collect";
/// `PMIX_IMMEDIATE`: ask the server, and do not wait for what it has not.
pub(crate) const IMMEDIATE: &str = "pmix.immediate";

/// `pmix_proc_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proc {
    pub nspace: [c_char; NSPACE_BYTES],
    pub rank: u32,
}

/// `pmix_byte_object_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ByteObject {
    pub bytes: *mut c_char,
    pub size: usize,
}

/// `pmix_envar_t`: the largest member of the union, which nothing here uses.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envar {
    envar: *mut c_char,
    value: *mut c_char,
    separator: c_char,
}

/// `data` of `pmix_value_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) union Data {
    pub flag: bool,
    pub uint32: u32,
    pub bo: ByteObject,
    pub envar: Envar,
}

/// `pmix_value_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Value {
    pub kind: u16,
    pub data: Data,
}

/// `pmix_info_t`.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Info {
    pub key: [c_char; KEY_BYTES],
    pub flags: u32,
    pub value: Value,
}

impl Info {
    /// A key that is to be true.
    pub fn flag(key: &str) -> Self {
        let mut info = Self {
            key: [0; KEY_BYTES],
            flags: 0,
            value: Value {
                kind: BOOL,
                data: Data {
                    envar: Envar { envar: std::ptr::null_mut(), value: std::ptr::null_mut(), separator: 0 },
                },
            },
        };
        info.value.data.flag = true;
        // The last byte stays zero.
        for (to, from) in info.key[..KEY_BYTES - 1].iter_mut().zip(key.bytes()) {
            *to = from as c_char;
        }
        info
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::{offset_of, size_of};
    use std::path::Path;
    use std::process::Command;

    /// Where Debian, and the installation that `PMIX_PREFIX` names, have the header.
    fn header_folder() -> Option<std::path::PathBuf> {
        let named = std::env::var_os("TRANSOM_TEST_PMIX_INCLUDE").map(Into::into);
        let prefix = std::env::var_os("PMIX_PREFIX").map(|prefix| Path::new(&prefix).join("include"));
        let debian =
            ["/usr/lib/x86_64-linux-gnu/pmix2/include", "/usr/include", "/usr/local/include"].map(Into::into);
        named.into_iter().chain(prefix).chain(debian).find(|folder| folder.join("pmix_common.h").exists())
    }

    /// What a C compiler makes of the header, against the layouts above.
    #[test]
    fn layouts_are_those_of_the_header() {
        let Some(include) = header_folder() else {
            println!(
                "skipped: no pmix_common.h (apt install libpmix-dev, or TRANSOM_TEST_PMIX_INCLUDE=FOLDER)"
            );
            return;
        };
        let ours: &[(&str, usize)] = &[
            ("sizeof(pmix_proc_t)", size_of::<Proc>()),
            ("offsetof(pmix_proc_t, rank)", offset_of!(Proc, rank)),
            ("sizeof(pmix_byte_object_t)", size_of::<ByteObject>()),
            ("offsetof(pmix_byte_object_t, size)", offset_of!(ByteObject, size)),
            ("sizeof(pmix_value_t)", size_of::<Value>()),
            ("offsetof(pmix_value_t, data)", offset_of!(Value, data)),
            ("sizeof(((pmix_value_t*)0)->type)", size_of::<u16>()),
            ("sizeof(((pmix_value_t*)0)->data.uint32)", size_of::<u32>()),
            ("sizeof(pmix_info_t)", size_of::<Info>()),
            ("offsetof(pmix_info_t, flags)", offset_of!(Info, flags)),
            ("offsetof(pmix_info_t, value)", offset_of!(Info, value)),
            ("sizeof(pmix_status_t)", size_of::<Status>()),
            ("sizeof(pmix_scope_t)", size_of::<u8>()),
            ("PMIX_GLOBAL", GLOBAL.into()),
            ("PMIX_BOOL", BOOL.into()),
            ("PMIX_UINT32", UINT32.into()),
            ("PMIX_BYTE_OBJECT", BYTE_OBJECT.into()),
            ("-(PMIX_ERR_NOT_FOUND)", ERR_NOT_FOUND.unsigned_abs() as usize),
            ("PMIX_SUCCESS", SUCCESS as usize),
            ("(size_t)(uint32_t)(PMIX_RANK_WILDCARD)", RANK_WILDCARD as usize),
        ];
        let keys = [
            ("PMIX_JOB_SIZE", JOB_SIZE),
            ("PMIX_APPNUM", APPNUM),
            ("PMIX_COLLECT_DATA", COLLECT_DATA),
            ("PMIX_IMMEDIATE", IMMEDIATE),
        ];
        let mut source = String::from("#include <pmix_common.h>\n#include <stddef.h>\n");
        for (text, number) in ours {
            source += &format!("_Static_assert({text} == {number}, \"{}\");\n", text.replace('"', ""));
        }
        for (name, key) in keys {
            source += &format!(
                "_Static_assert(sizeof({name}) == {} && __builtin_strcmp({name}, \"{key}\") == 0, \"{name}\");\n",
                key.len() + 1
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("layout.c");
        std::fs::write(&file, source).unwrap();
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        let output =
            Command::new(compiler).arg("-fsyntax-only").arg("-I").arg(&include).arg(&file).output().unwrap();
        assert!(
            output.status.success(),
            "{}: {}",
            include.display(),
            String::from_utf8_lossy(&output.stderr)
        );
    }

    #[test]
    fn a_long_key_keeps_its_end() {
        let info = Info::flag(&"x".repeat(KEY_BYTES));
        assert_eq!(info.key[KEY_BYTES - 1], 0);
        assert_eq!(info.key[KEY_BYTES - 2], b'x' as c_char);
    }
}
