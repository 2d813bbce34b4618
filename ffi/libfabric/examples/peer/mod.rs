//! The second process of an example, and what it says and hears as lines of text.

pub mod tcp;

use std::env;
use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The second process, as the first sees it.
pub struct Peer {
    pub process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// This program again, as the target.
    pub fn start() -> Outcome<Peer> {
        let mut process = Command::new(env::current_exe()?)
            .args(env::args().skip(1))
            .arg("target")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let input = process.stdin.take().ok_or("no pipe")?;
        let output = BufReader::new(process.stdout.take().ok_or("no pipe")?);
        Ok(Peer { process, input, output })
    }

    /// Writes a line to its standard input.
    pub fn tell(&mut self, line: &str) -> Outcome<()> {
        Ok(writeln!(self.input, "{line}")?)
    }

    /// The next line of its standard output.
    pub fn line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        match self.output.read_line(&mut line)? {
            0 => Err("the target ended".into()),
            _ => Ok(line.trim().to_owned()),
        }
    }
}

/// Bytes as text.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What [`to_hex`] has made text of.
pub fn from_hex(text: &str) -> Outcome<Vec<u8>> {
    let digits = (0..text.len()).step_by(2).map(|at| text.get(at..at + 2).unwrap_or_default());
    Ok(digits.map(|pair| u8::from_str_radix(pair, 16)).collect::<Result<_, _>>()?)
}
