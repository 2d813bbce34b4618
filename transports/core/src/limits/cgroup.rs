//! What the control groups of this process say, of version 2 or 1 (cgroups(7)).

use std::path::{Path, PathBuf};

/// What a cgroup limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of memory.
    Memory,
    /// Processes and threads.
    Processes,
}

impl Limit {
    /// The controller, and its file's name in version 2 and in version 1.
    fn names(self) -> (&'static str, [&'static str; 2]) {
        match self {
            Self::Memory => ("memory", ["memory.max", "memory.limit_in_bytes"]),
            Self::Processes => ("pids", ["pids.max", "pids.max"]),
        }
    }
}

/// The lowest limit of this process's cgroup and those above it, if there is any.
pub fn lowest(limit: Limit) -> Option<u64> {
    let (controller, names) = limit.names();
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    folders(&own, controller)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .filter_map(|file| std::fs::read_to_string(file).ok()?.trim().parse().ok())
        // What version 1 says where there is none: the largest multiple of a page.
        .filter(|limit: &u64| *limit < u64::MAX / 4)
        .min()
}

/// How often a process was ended for lack of memory, in this process's cgroup, if that is known.
pub fn memory_kills() -> Option<u64> {
    let own = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    folders(&own, "memory").find_map(|folder| {
        let read = |name| std::fs::read_to_string(folder.join(name)).ok();
        kills(&read("memory.events").or_else(|| read("memory.oom_control"))?)
    })
}

/// The number behind `oom_kill` in a list of events.
pub(super) fn kills(events: &str) -> Option<u64> {
    events.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}

/// The folders of a process's cgroup and those above it; in version 2 first. `own`: what /proc/PID/cgroup says. Where the process's
/// view does not begin at the root, as in containers, some of them are not there.
fn folders(own: &str, controller: &str) -> impl Iterator<Item = PathBuf> {
    let mut found = Vec::new();
    let roots = [
        ("/sys/fs/cgroup".to_owned(), path(own, "")),
        ("/sys/fs/cgroup/unified".to_owned(), path(own, "")),
        (format!("/sys/fs/cgroup/{controller}"), path(own, controller)),
    ];
    for (root, own) in roots {
        let Some(own) = own else { continue };
        let folder = Path::new(&root).join(own.trim_start_matches('/'));
        found.extend(folder.ancestors().take_while(|folder| folder.starts_with(&root)).map(Path::to_owned));
    }
    found.into_iter()
}

/// The path of the cgroup of a controller, which is the empty one in version 2.
fn path<'a>(own: &'a str, controller: &str) -> Option<&'a str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(',').any(|one| one == controller).then_some(path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read() {
        let own = "4:memory:/a/b\n3:cpu,pids:/p\n0::/x\n";
        assert_eq!(
            (path(own, ""), path(own, "memory"), path(own, "pids")),
            (Some("/x"), Some("/a/b"), Some("/p"))
        );
        let found: Vec<_> = folders(own, "memory").map(|folder| folder.display().to_string()).collect();
        let of_memory = "/sys/fs/cgroup/memory";
        assert_eq!(found[..2], ["/sys/fs/cgroup/x", "/sys/fs/cgroup"]);
        assert_eq!(found[4..], [format!("{of_memory}/a/b"), format!("{of_memory}/a"), of_memory.to_owned()]);
        assert_eq!(kills("low 0\noom 3\noom_kill 2\noom_group_kill 0\n"), Some(2));
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 7\n"), Some(7));
    }
}
