//! What is measured is shown next to this: a raw TCP socket, which both ends read without sleeping.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// Connects to the target's port.
pub fn connect(port: u16) -> Outcome<TcpStream> {
    without_delay(TcpStream::connect(("127.0.0.1", port))?)
}

/// Sends 8 bytes, and reads them again.
pub fn round_trip(stream: &mut TcpStream) -> Outcome<()> {
    let mut bytes = [1; 8];
    stream.write_all(&bytes)?;
    spin_read(stream, &mut bytes).map(drop)
}

/// The target: prints its port, and sends back what comes until the stream ends.
pub fn echo() -> Outcome<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    let mut stream = without_delay(listener.accept()?.0)?;
    let mut bytes = [0; 8];
    while spin_read(&mut stream, &mut bytes)? {
        stream.write_all(&bytes)?;
    }
    Ok(())
}

fn without_delay(stream: TcpStream) -> Outcome<TcpStream> {
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

/// Reads without sleeping; `false` at the end of the stream.
fn spin_read(stream: &mut TcpStream, bytes: &mut [u8]) -> Outcome<bool> {
    let mut filled = 0;
    while filled < bytes.len() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(true)
}
