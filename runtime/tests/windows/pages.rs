//! The pages of memory that windows allocate.

use transom::{Class, Job, Result, WindowOptions};

/// Elements of a page of any kind, and of the window: some huge pages and a bit.
const PAGE: usize = 4096 / 8;
const LEN: usize = (7 << 20) / 8 + 3;

/// Whatever pages a window has, its bytes are zero at first, all of them can be written by others, and nothing of them is left.
pub fn any_pages(job: &Job) -> Result<()> {
    let (rank, size) = (job.rank(), job.size());
    for pages in ["huge", "small", "auto", "huge"] {
        let options = WindowOptions::default().with("transom_pages", pages);
        let window = job.allocate_with::<u64>(LEN, &options)?;
        let info = window.info();
        assert_eq!(info.get("transom_pages"), Some(if pages == "auto" { "small" } else { pages }));
        let became = info.get("transom_pages_as");
        assert_eq!(became.is_some(), pages == "huge", "{became:?}");
        assert!(
            became.is_none_or(|text| text.starts_with("huge: ") || text.starts_with("small: ")),
            "{became:?}"
        );
        let next = (rank + 1) % size;
        window.lock_all(|epoch| {
            for at in (0..LEN).step_by(PAGE) {
                assert_eq!(epoch.get_value(next, at)?, 0, "{pages}: element {at}");
            }
            Ok(())
        })?;
        job.barrier()?;
        window.lock_all(|epoch| {
            (0..LEN).step_by(PAGE).try_for_each(|at| epoch.put_value(next, at, (at + rank) as u64))
        })?;
        job.barrier()?;
        let before = (rank + size - 1) % size;
        window.lock_all(|epoch| {
            for at in (0..LEN).step_by(PAGE) {
                assert_eq!(epoch.get_value(rank, at)?, (at + before) as u64, "{pages}: element {at}");
            }
            Ok(())
        })?;
        window.free()?;
    }
    let error =
        job.allocate_with::<u64>(1, &WindowOptions::default().with("transom_pages", "giant")).unwrap_err();
    assert_eq!(error.class(), Class::Info);
    assert!(error.message().contains("auto, small or huge"), "{error}");
    Ok(())
}

pub fn of_shared_windows(job: &Job) -> Result<()> {
    let options = WindowOptions::default().with("transom_pages", "huge");
    let window = match job.allocate_shared_with::<u64>(LEN, &options) {
        Ok(window) => window,
        // Ranks of several hosts.
        Err(error) => {
            assert_eq!(error.class(), Class::RmaShared);
            return Ok(());
        }
    };
    assert!(window.info().get("transom_pages_as").is_some());
    let next = window.shared((job.rank() + 1) % job.size())?;
    for at in (0..LEN).step_by(PAGE) {
        assert_eq!(next.get(at)?, 0);
        next.set(at, at as u64)?;
    }
    window.fence(|_| Ok(()))?;
    let own = window.shared(job.rank())?;
    for at in (0..LEN).step_by(PAGE) {
        assert_eq!(own.get(at)?, at as u64);
    }
    window.free()
}
