//! The wire format: one command a line, `cmd=NAME key=value …`, ended by a newline.
//!
//! Both sides of a connection may be hostile or broken, so that reading never panics and never keeps more than
//! one line of [`MAX_LINE`] bytes.

/// Longest line that is read, without its newline. (MPICH's own limit is 1,024.)
pub const MAX_LINE: usize = 16 * 1024;

/// Why a line cannot be read or written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// More than [`MAX_LINE`] bytes without a newline.
    #[error("longer than {MAX_LINE} bytes")]
    TooLong,
    /// Not text.
    #[error("not UTF-8")]
    NotText,
    /// The line does not start with `cmd=` or `mcmd=`.
    #[error("no command in {0:?}")]
    NoCommand(String),
    /// A field that would not come out of the line as it went in.
    #[error("field {0:?} has a blank, `=` or a line end where there must be none")]
    Field(String),
}

/// One command with its fields, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    cmd: String,
    multi_line: bool,
    fields: Vec<(String, String)>,
}

impl Message {
    /// A command without fields.
    pub fn new(cmd: &str) -> Self {
        Self { cmd: cmd.to_owned(), multi_line: false, fields: Vec::new() }
    }

    /// The same with one more field. `value` goes last: it alone may hold blanks.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl ToString) -> Self {
        self.fields.push((key.to_owned(), value.to_string()));
        self
    }

    /// The command's name.
    pub fn cmd(&self) -> &str {
        &self.cmd
    }

    /// Whether this opens a command of several lines (`mcmd=spawn`), which a line `endcmd` closes.
    pub fn is_multi_line(&self) -> bool {
        self.multi_line
    }

    /// The first field of that name.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Reads a line (with or without its newline). Words without `=` are ignored, as are unknown fields later.
    pub fn parse(line: &[u8]) -> Result<Self, WireError> {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        if line.len() > MAX_LINE {
            return Err(WireError::TooLong);
        }
        let line = std::str::from_utf8(line).map_err(|_| WireError::NotText)?.trim_start();
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        let (multi_line, cmd) = match (first.strip_prefix("cmd="), first.strip_prefix("mcmd=")) {
            (Some(cmd), _) if !cmd.is_empty() => (false, cmd),
            (_, Some(cmd)) if !cmd.is_empty() => (true, cmd),
            _ => return Err(WireError::NoCommand(line.chars().take(80).collect())),
        };
        Ok(Self { cmd: cmd.to_owned(), multi_line, fields: parse_fields(rest) })
    }

    /// The line, with its newline.
    pub fn to_line(&self) -> Result<String, WireError> {
        let mut line = format!("cmd={}", self.cmd);
        check(&self.cmd, &self.cmd, false)?;
        for (index, (key, value)) in self.fields.iter().enumerate() {
            let may_hold_blanks = key == "value" && index + 1 == self.fields.len();
            check(key, key, false)?;
            check(key, value, may_hold_blanks)?;
            line.push(' ');
            line.push_str(key);
            line.push('=');
            line.push_str(value);
        }
        if line.len() > MAX_LINE {
            return Err(WireError::TooLong);
        }
        line.push('\n');
        Ok(line)
    }
}

fn parse_fields(mut rest: &str) -> Vec<(String, String)> {
    let mut fields = Vec::new();
    loop {
        rest = rest.trim_start_matches(' ');
        if rest.is_empty() {
            return fields;
        }
        if let Some(value) = rest.strip_prefix("value=") {
            fields.push(("value".to_owned(), value.to_owned()));
            return fields;
        }
        let (word, tail) = rest.split_once(' ').unwrap_or((rest, ""));
        if let Some((key, value)) = word.split_once('=').filter(|(key, _)| !key.is_empty()) {
            fields.push((key.to_owned(), value.to_owned()));
        }
        rest = tail;
    }
}

fn check(field: &str, text: &str, blanks: bool) -> Result<(), WireError> {
    let is_name = std::ptr::eq(field, text);
    let bad = |c: char| c == '\n' || (c == ' ' && !blanks) || (c == '=' && is_name);
    if (is_name && text.is_empty()) || text.contains(bad) {
        return Err(WireError::Field(field.chars().take(80).collect()));
    }
    Ok(())
}

/// Cuts a stream of bytes into lines, keeping at most one line of [`MAX_LINE`] bytes.
#[derive(Debug, Default)]
pub struct LineBuffer {
    bytes: Vec<u8>,
    /// Up to here there is no newline in `bytes`.
    searched: usize,
    /// The rest of a line that was too long is being thrown away.
    skipping: bool,
}

impl LineBuffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes as they came from the peer. Take all lines out before adding more.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line without its newline. A line that is too long is reported once and skipped.
    pub fn next_line(&mut self) -> Option<Result<Vec<u8>, WireError>> {
        loop {
            let found = self.bytes[self.searched..].iter().position(|&b| b == b'\n');
            let Some(end) = found.map(|offset| self.searched + offset) else {
                return self.no_newline();
            };
            let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
            line.pop();
            self.searched = 0;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            return Some(if line.len() > MAX_LINE { Err(WireError::TooLong) } else { Ok(line) });
        }
    }

    fn no_newline(&mut self) -> Option<Result<Vec<u8>, WireError>> {
        self.searched = self.bytes.len();
        if self.skipping || self.bytes.len() > MAX_LINE {
            self.bytes.clear();
            self.searched = 0;
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Err(WireError::TooLong));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(line: &str) -> Message {
        Message::parse(line.as_bytes()).unwrap()
    }

    #[test]
    fn reads_what_real_launchers_write() {
        let slurm = parsed("cmd=get_result rc=0 value=a=b c\n");
        assert_eq!(
            (slurm.cmd(), slurm.get("rc"), slurm.get("value")),
            ("get_result", Some("0"), Some("a=b c"))
        );
        let maxes = parsed("cmd=maxes kvsname_max=256  keylen_max=64 vallen_max=1024 ");
        assert_eq!(maxes.get("vallen_max"), Some("1024"));
        assert!(parsed("mcmd=spawn").is_multi_line());
        assert_eq!(parsed("cmd=barrier_out").get("rc"), None);
    }

    #[test]
    fn refuses_what_is_not_a_command() {
        for line in ["", "\n", "cmd", "cmd=", "hello cmd=init", "=cmd", "mcmd= x=y", "\u{0}"] {
            assert!(matches!(Message::parse(line.as_bytes()), Err(WireError::NoCommand(_))), "{line:?}");
        }
        assert_eq!(Message::parse(b"cmd=\xff\xfe"), Err(WireError::NotText));
        assert_eq!(Message::parse(&vec![b'x'; MAX_LINE + 1]), Err(WireError::TooLong));
    }

    #[test]
    fn refuses_to_write_a_line_that_would_read_differently() {
        let bad = [
            Message::new(""),
            Message::new("a b"),
            Message::new("put").with("key", "a b"),
            Message::new("put").with("value", "a b").with("key", "k"),
            Message::new("put").with("value", "a\ncmd=abort"),
            Message::new("put").with("k=", "v"),
            Message::new("put").with("", "v"),
        ];
        for message in bad {
            assert!(matches!(message.to_line(), Err(WireError::Field(_))), "{message:?}");
        }
        assert_eq!(
            Message::new("put").with("value", "x".repeat(MAX_LINE)).to_line(),
            Err(WireError::TooLong)
        );
    }

    #[test]
    fn long_lines_are_reported_once_and_skipped() {
        let mut buffer = LineBuffer::new();
        for _ in 0..100 {
            buffer.push(&[b'x'; 1024]);
            match buffer.next_line() {
                None => assert!(buffer.bytes.len() <= MAX_LINE),
                Some(line) => assert_eq!(line, Err(WireError::TooLong)),
            }
        }
        buffer.push(b"tail\ncmd=ok\n");
        assert_eq!(buffer.next_line(), Some(Ok(b"cmd=ok".to_vec())));
        assert_eq!(buffer.next_line(), None);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_do_no_harm(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..64), 0..32)) {
            let mut buffer = LineBuffer::new();
            let mut lines = Vec::new();
            for piece in &pieces {
                buffer.push(piece);
                while let Some(line) = buffer.next_line() {
                    lines.push(line.unwrap());
                }
            }
            let all = pieces.concat();
            let whole: Vec<&[u8]> = all.split(|&b| b == b'\n').collect();
            prop_assert_eq!(&lines, &whole[..whole.len() - 1]);
            for line in lines {
                let _ = Message::parse(&line);
            }
        }

        #[test]
        fn what_is_written_reads_the_same(cmd in "[a-z_]{1,20}", keys in prop::collection::vec("[a-uw-z]{1,8}", 0..5), value in "[!-~]{0,40}", last in "[ -~]{0,40}") {
            let mut message = Message::new(&cmd);
            for key in keys {
                message = message.with(&key, &value);
            }
            let message = message.with("value", &last);
            let line = message.to_line().unwrap();
            prop_assert_eq!(Message::parse(line.as_bytes()).unwrap(), message);
        }
    }
}
