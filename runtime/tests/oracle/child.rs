//! The process that runs programs, and the one that watches it.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use transom::ReduceOp;

use crate::cut::Cut;
use crate::programs::model::{self, Expected};
use crate::programs::program::Program;
use crate::programs::{generate, run};

/// What the child is to do: first seed, number of seeds, ranks, repetitions.
pub const ORDER: &str = "TRANSOM_TEST_ORACLE";
pub const CUT: &str = "TRANSOM_TEST_CUT";
/// The operation that the model is to get wrong.
pub const FAULT: &str = "TRANSOM_TEST_FAULT";
/// Programs that one job runs.
const BATCH: usize = 250;
/// Without progress for so long, a child hangs where no deadline helps.
const LIMIT: Duration = Duration::from_secs(120);

/// The ranks that the program of a seed runs on.
pub fn ranks_of(seed: u64) -> usize {
    2 + (seed % 3) as usize
}

/// A program that went wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    pub seed: u64,
    pub what: String,
}

static PROGRESS: AtomicU64 = AtomicU64::new(0);

/// Does what the environment says; ends the process if a program fails.
pub fn work() {
    let Ok(order) = std::env::var(ORDER) else { return };
    let numbers: Vec<u64> = order.split(':').map(|number| number.parse().unwrap()).collect();
    let (first, count, ranks, repeat) = (numbers[0], numbers[1], numbers[2] as usize, numbers[3] as usize);
    let cut = std::env::var(CUT).map(|text| Cut::decode(&text)).unwrap_or_default();
    let fault = std::env::var(FAULT).ok();
    let fault = fault.and_then(|name| ReduceOp::ALL.into_iter().find(|op| format!("{op:?}") == name));
    std::thread::spawn(watch);
    let seeds: Vec<u64> = (first..first + count).filter(|seed| ranks_of(*seed) == ranks).collect();
    for seeds in seeds.chunks(BATCH) {
        let made = seeds.iter().filter_map(|seed| cut.apply(generate::program(*seed, ranks)));
        let programs: Vec<(Program, Expected)> =
            made.filter_map(|program| expect(program, &cut, fault)).collect();
        let programs: Vec<_> = programs.iter().flat_map(|program| vec![program; repeat]).collect();
        let Some((first, _)) = programs.first() else { continue };
        if let Some(failure) = batch(first.ranks, &programs) {
            fail(&failure);
        }
    }
    println!("PASSED {}", seeds.len());
}

/// The program with its results. A cut may leave one that has no defined result: nothing to run. A generated one has.
fn expect(program: Program, cut: &Cut, fault: Option<ReduceOp>) -> Option<(Program, Expected)> {
    match model::expect(&program, fault) {
        Ok(expected) => Some((program, expected)),
        Err(_) if *cut != Cut::default() => None,
        Err(e) => fail(&Failure { seed: program.seed, what: format!("not a valid program: {e}") }),
    }
}

/// Says which program went wrong, and ends the process.
fn fail(failure: &Failure) -> ! {
    println!("FAILED {}\n{}", failure.seed, failure.what);
    std::process::exit(1)
}

/// Runs programs as one job.
fn batch(ranks: usize, programs: &[&(Program, Expected)]) -> Option<Failure> {
    let failed: Mutex<Option<Failure>> = Mutex::default();
    let current: Vec<AtomicU64> = (0..ranks).map(|_| AtomicU64::new(0)).collect();
    let fail = |seed, what| {
        failed.lock().unwrap_or_else(|e| e.into_inner()).get_or_insert(Failure { seed, what });
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        transom::local(ranks, |job| {
            for (program, expected) in programs {
                current[job.rank()].store(program.seed, Ordering::Relaxed);
                PROGRESS.fetch_add(1, Ordering::Relaxed);
                if job.rank() == 0 {
                    // Should a signal end this process, the last of these is known.
                    println!("AT {}", program.seed);
                }
                let wrong = run::program(&job, program, expected);
                let wrong = wrong.inspect_err(|e| fail(program.seed, format!("rank {}: {e}", job.rank())))?;
                if let Some(wrong) = wrong {
                    fail(program.seed, wrong);
                    break;
                }
            }
            Ok(())
        })
    }));
    // A rank that panics is where the others wait for it.
    let seed = current.iter().map(|seed| seed.load(Ordering::Relaxed)).min().unwrap_or(0);
    match ran {
        Err(_) => fail(seed, "a rank panicked".into()),
        Ok(Err(error)) => fail(seed, error.to_string()),
        Ok(Ok(_)) => {}
    }
    failed.into_inner().unwrap_or_else(|e| e.into_inner())
}

/// Ends a process that no deadline ends.
fn watch() {
    let mut last = (PROGRESS.load(Ordering::Relaxed), Instant::now());
    loop {
        std::thread::sleep(Duration::from_secs(1));
        let now = PROGRESS.load(Ordering::Relaxed);
        if now != last.0 {
            last = (now, Instant::now());
        } else if last.1.elapsed() > LIMIT {
            println!("FAILED ?\nno end");
            std::process::exit(2);
        }
    }
}

/// How a child is started.
#[derive(Debug, Clone)]
pub struct Setting {
    pub transport: &'static str,
    pub fault: Option<&'static str>,
    /// Seconds.
    pub deadline: u64,
}

impl Setting {
    /// Runs the programs of some seeds that are for so many ranks, in a process of its own. Returns the first that fails.
    pub fn run(&self, seeds: (u64, u64), ranks: usize, repeat: usize, cut: &Cut) -> Option<Failure> {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "child", "--nocapture"])
            .env(ORDER, format!("{}:{}:{ranks}:{repeat}", seeds.0, seeds.1))
            .env(CUT, cut.encode())
            .env("TRANSOM_TRANSPORT", self.transport)
            .envs(
                crate::devices::devices()
                    .filter(|_| self.transport == "verbs")
                    .map(|list| ("TRANSOM_VERBS_DEVICE", list)),
            )
            .env("TRANSOM_DEADLINE", self.deadline.to_string())
            .stdout(Stdio::piped())
            .stderr(if self.deadline > 10 { Stdio::inherit() } else { Stdio::null() });
        if let Some(fault) = self.fault {
            command.env(FAULT, fault);
        }
        let mut child = command.spawn().unwrap();
        let mut output = String::new();
        // The child's own watchdog ends it.
        child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
        let status = child.wait().unwrap();
        if status.success() && output.contains("PASSED") {
            return None;
        }
        let last = output.lines().filter_map(|line| line.strip_prefix("AT ")?.parse().ok()).next_back();
        let last = last.unwrap_or(seeds.0);
        let failed = output.split("FAILED ").nth(1).and_then(|rest| rest.split_once('\n'));
        Some(match failed {
            Some((seed, what)) => Failure { seed: seed.parse().unwrap_or(last), what: what.into() },
            None => Failure { seed: last, what: status.to_string() },
        })
    }
}
