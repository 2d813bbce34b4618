//! A job from `transom run` to its end.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};

use super::{Grain, Measure};
use crate::machine;
use crate::repeat::Recorder;
use crate::suite::row::Head;
use crate::suite::stage::Stage;

/// Rank 0 starts jobs of as many ranks on its host, which do nothing but begin and end.
#[derive(Debug)]
pub struct StartUp {
    head: Head,
    /// At rank 0.
    launcher: Option<PathBuf>,
}

impl StartUp {
    /// Jobs by this launcher.
    pub fn new(head: Head, launcher: Option<PathBuf>) -> Self {
        Self { head, launcher }
    }

    /// The launcher: beside this program, where packages have it, or on the PATH.
    pub fn launcher() -> Option<PathBuf> {
        let exe = std::env::current_exe().ok()?;
        let folder = exe.parent()?;
        let packaged = folder.join("../../../bin");
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = [folder.to_owned(), packaged].into_iter().chain(std::env::split_paths(&path));
        folders.map(|folder| folder.join("transom")).find(|file| file.is_file())
    }
}

impl Measure for StartUp {
    fn head(&self) -> Head {
        self.head.clone()
    }

    fn grain(&self) -> Grain {
        Grain::Single
    }

    fn round(&mut self, stage: &mut Stage<'_>, recorder: &mut Recorder) -> anyhow::Result<()> {
        stage.job.barrier()?;
        if let Some(launcher) = &self.launcher {
            let exe = std::env::current_exe().context("this program's own file")?;
            let (ranks, samples) = (stage.job.size(), recorder.schedule().samples);
            // In a thread that is not bound to this rank's core: what it starts would be.
            let times = std::thread::scope(|scope| {
                let jobs = scope.spawn(|| {
                    machine::unbind().context("leaving the core that this rank is bound to")?;
                    (0..samples).map(|_| start(launcher, &exe, ranks)).collect::<anyhow::Result<Vec<f64>>>()
                });
                jobs.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })?;
            times.into_iter().for_each(|time| recorder.push(time, false));
        }
        Ok(stage.job.barrier()?)
    }
}

/// Nanoseconds of one job.
fn start(launcher: &Path, program: &Path, ranks: usize) -> anyhow::Result<f64> {
    let mut job = Command::new(launcher);
    job.args(["run", "--hosts", "localhost", "--timeout", "60", "-n", &ranks.to_string()]);
    job.arg(program).arg("--list").stdin(Stdio::null()).stdout(Stdio::null());
    let begin = Instant::now();
    let output = job.output().with_context(|| format!("starting {}", launcher.display()))?;
    let time = begin.elapsed();
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{} run -n {ranks}: {}: {}", launcher.display(), output.status, said.trim());
    }
    Ok(time.as_secs_f64() * 1e9)
}
