//! What is told when windows go.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use transom::{Result, WindowOptions};

use super::expected::counted;
use super::listener::Listener;
use super::tests::child;

const LIMIT: Duration = Duration::from_secs(60);

/// A file of rank `rank`.
fn file(rank: usize) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("explain-lines.{rank}"))
}

/// A job whose ranks put to each other in two windows, made with `options`.
fn job(options: &WindowOptions) -> Result<()> {
    transom::local(2, |job| {
        for name in ["first", "the \"second\""] {
            let window = job.allocate_with::<u64>(8, options)?;
            window.set_name(name);
            window.lock_all(|epoch| {
                (0..3).try_for_each(|_| epoch.put_value(1 - job.rank(), 0, 1))?;
                epoch.fetch_add(1 - job.rank(), 1, 1).map(drop)
            })?;
            window.free()?;
        }
        Ok(())
    })?;
    Ok(())
}

pub fn lines(test: &str) {
    let name = file(0).with_extension("");
    let settings = [("TRANSOM_TRANSPORT", "shm"), ("TRANSOM_EXPLAIN", name.to_str().unwrap())];
    child::run_with(&settings, test, LIMIT, || {
        for rank in 0..2 {
            let _ = std::fs::remove_file(file(rank));
        }
        // Without a hint: the setting is enough.
        job(&WindowOptions::default()).unwrap();
        for rank in 0..2 {
            check_lines(rank, &std::fs::read_to_string(file(rank)).unwrap());
            std::fs::remove_file(file(rank)).unwrap();
        }
    });
}

fn check_lines(rank: usize, text: &str) {
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4, "{text}");
    for (line, name) in lines.iter().zip(["first", "first", "the \"second\"", "the \"second\""]) {
        assert_eq!((line["rank"].as_u64(), line["name"].as_str()), (Some(rank as u64), Some(name)));
        assert_eq!(line["reason"], "mapped");
    }
    for (line, what) in lines.iter().zip([("put", "direct", 3), ("fetch_and_op", "cpu", 1)].iter().cycle()) {
        let told = (line["operation"].as_str(), line["path"].as_str());
        assert_eq!(told, (Some(what.0), Some(what.1)));
        assert_eq!((line["operations"].as_u64(), line["bytes"].as_u64()), (Some(what.2), Some(8 * what.2)));
    }
}

pub fn events(test: &str) {
    child::run("shm", test, LIMIT, || {
        let events: Arc<Mutex<Vec<String>>> = Arc::default();
        // Of all ranks' threads: the child runs this test only.
        tracing::subscriber::set_global_default(Listener("transom::explain", events.clone())).unwrap();
        job(&WindowOptions::default()).unwrap();
        assert!(events.lock().unwrap().is_empty(), "nothing is told of what is not counted");
        job(&counted()).unwrap();
        let events = events.lock().unwrap();
        assert_eq!(events.len(), 8, "{events:?}");
        for rank in 0..2 {
            let row = format!(
                "rank={rank} window=0 name=\"first\" operation=\"put\" path=\"direct\" reason=\"mapped\" operations=3 bytes=24 "
            );
            assert_eq!(events.iter().filter(|event| **event == row).count(), 1, "{row} in {events:?}");
        }
    });
}
