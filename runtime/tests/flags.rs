//! Puts of 8 bytes, each followed by a flush and a flag: who sees the flag sees the put. `TRANSOM_TEST_PUTS` is their number.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "common/child.rs"]
#[allow(dead_code, reason = "one of its two ways is enough here")]
mod child;

#[path = "common/listener.rs"]
mod listener;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use listener::Listener;
use transom::{Job, Result};

const LIMIT: Duration = Duration::from_secs(1500);
/// Words of the window: what is put, and the flag.
const DATA: usize = 0;
const FLAG: usize = 1;

fn puts() -> u64 {
    std::env::var("TRANSOM_TEST_PUTS").map_or(5_000, |puts| puts.parse().unwrap())
}

/// With the flush method `flush`.
fn run(transport: &str, flush: &str, test: &str) {
    child::run_with(&[("TRANSOM_TRANSPORT", transport), ("TRANSOM_FLUSH", flush)], test, LIMIT, || {
        let start = Instant::now();
        let seen: u64 = transom::local(2, |job| flags(&job)).unwrap().into_iter().sum();
        eprintln!(
            "{} puts over {transport}, {seen} flags seen, no stale value, {:?}",
            puts(),
            start.elapsed()
        );
        assert!(seen > 0);
    });
}

/// Rank 0 puts numbers and flags; rank 1 makes no call, and looks. Returns how many flags it saw.
fn flags(job: &Job) -> Result<u64> {
    let window = job.allocate::<u64>(2)?;
    let (mut seen, mut last) = (0, 0);
    // An emulated device works on the same cores: whoever looks without rest keeps it from that.
    let emulated = job.transport(1 - job.rank()).is_some_and(|(transport, _)| transport == "verbs");
    if job.rank() == 0 {
        window.lock_all(|epoch| {
            (1..=puts()).try_for_each(|number| {
                epoch.put_value(1, DATA, number)?;
                epoch.flush(1)?;
                epoch.put_value(1, FLAG, number)?;
                epoch.flush(1)
            })
        })?;
    } else {
        while last < puts() {
            let flag = window.local().get(FLAG)?;
            if flag == last {
                match emulated {
                    true => std::thread::sleep(Duration::from_micros(1)),
                    false => std::thread::yield_now(),
                }
                continue;
            }
            let data = window.local().get(DATA)?;
            assert!(data >= flag, "flag {flag} is there, and of the put only {data}");
            (seen, last) = (seen + 1, flag);
        }
    }
    job.barrier()?;
    window.free()?;
    Ok(seen)
}

/// `name: transport, flush method;` makes a test.
macro_rules! tests {
    ($($name:ident: $transport:literal, $flush:literal;)*) => { $(
        #[test]
        fn $name() {
            run($transport, $flush, stringify!($name));
        }
    )* };
}

tests! {
    flags_over_shm: "shm", "delivery";
    flags_over_ofi: "ofi", "delivery";
    flags_over_ofi_by_reading_back: "ofi", "read";
    flags_over_ofi_by_messages: "ofi", "message";
    flags_over_tcp: "tcp", "delivery";
    flags_over_tcp_by_reading_back: "tcp", "read";
    flags_over_tcp_by_messages: "tcp", "message";
    flags_over_verbs: "verbs", "delivery";
    flags_over_verbs_by_reading_back: "verbs", "read";
    flags_over_verbs_by_messages: "verbs", "message";
}

/// Every flush asks as it is told to, and only then.
#[test]
fn flushes_ask_by_the_method_that_is_set() {
    const TEST: &str = "flushes_ask_by_the_method_that_is_set";
    for flush in ["delivery", "read", "message"] {
        child::run_with(&[("TRANSOM_TRANSPORT", "ofi"), ("TRANSOM_FLUSH", flush)], TEST, LIMIT, || {
            let events: Arc<Mutex<Vec<String>>> = Arc::default();
            tracing::subscriber::set_global_default(Listener("transom::flush", events.clone())).unwrap();
            transom::local(2, |job| flags(&job)).unwrap();
            let count = |by: &str| events.lock().unwrap().iter().filter(|event| event.contains(by)).count();
            let asked = (count("a get asks"), count("a message asks"));
            // The body is of the first of these: what was set says which child this is.
            match std::env::var("TRANSOM_FLUSH").unwrap().as_str() {
                "delivery" => assert_eq!(asked, (0, 0)),
                "read" => assert!(asked.0 as u64 >= 2 * puts() && asked.1 == 0, "{asked:?}"),
                _ => assert!(asked.1 as u64 >= 2 * puts() && asked.0 == 0, "{asked:?}"),
            }
        });
    }
}
