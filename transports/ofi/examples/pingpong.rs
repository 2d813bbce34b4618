//! Latency and bandwidth of the transport between two processes of this host, next to a raw TCP socket in the same run.
//!
//! ```text
//! cargo run --release -p transom-ofi --example pingpong -- [provider [rounds]]
//! ```
//!
//! Both sides poll without pause, the origin on core 0 and the target on core 1. The program starts itself a second
//! time as the target; the two exchange what they must know over its standard input and output. `TRANSOM_LIBFABRIC`
//! chooses the library.

#[path = "../../../ffi/libfabric/examples/peer/mod.rs"]
mod peer;

use std::env;
use std::error::Error;
use std::io;
use std::time::Instant;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use peer::{Peer, from_hex, tcp, to_hex};
use transom_ofi::{Ofi, Options};
use transom_transport::{Event, Posted, RegionKey, Remote, Span, Transfer, Transport};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The runtime's header goes in front of every message.
const HEADER: [u8; 64] = [1; 64];
const WINDOW: usize = 1 << 20;
/// Ends the target.
const QUIT: u8 = 255;

fn main() -> Outcome<()> {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    let is_target = arguments.last().is_some_and(|last| last == "target");
    if is_target {
        arguments.pop();
    }
    let provider = arguments.first().filter(|name| *name != "any").cloned();
    let rounds = arguments.get(1).map_or(Ok(20_000), |text| text.parse())?;
    pin(usize::from(is_target))?;
    let start = Instant::now();
    let ofi =
        Ofi::new(Options { ranks: 2, provider, loopback: true, patience: Some(transom_ofi::PATIENCE) })?;
    if is_target {
        return target(&ofi);
    }
    println!("{}, opened in {:?}", ofi.capabilities().provider, start.elapsed());
    origin(&ofi, rounds)
}

fn pin(core: usize) -> Outcome<()> {
    let mut set = CpuSet::new();
    set.set(core)?;
    Ok(sched_setaffinity(Pid::from_raw(0), &set)?)
}

fn origin(ofi: &Ofi, rounds: u32) -> Outcome<()> {
    let mut peer = Peer::start()?;
    let mut stream = tcp::connect(peer.line()?.parse()?)?;
    let tcp = measure("TCP round trip, 8 B", rounds, None, || tcp::round_trip(&mut stream))?;
    drop(stream);

    peer.tell(&to_hex(&ofi.address()))?;
    ofi.connect(1, &from_hex(&peer.line()?)?)?;
    let remote = ofi.attach(1, &RegionKey(from_hex(&peer.line()?)?))?;
    let mut data = vec![7_u8; WINDOW];

    let base = Some(tcp);
    measure("message round trip, 64 + 8 B", rounds, base, || round_trip(ofi, &[2; 8]))?;
    measure("message round trip, 64 + 1 KiB", rounds, base, || round_trip(ofi, &[2; 1024]))?;
    for (size, rounds) in [(8, rounds), (4096, rounds / 4), (WINDOW, 200)] {
        measure(&format!("get, {size} B"), rounds, base, || {
            transfer(ofi, &remote, &mut data[..size], false)
        })?;
        measure(&format!("put and completion, {size} B"), rounds, base, || {
            transfer(ofi, &remote, &mut data[..size], true)
        })?;
    }
    measure("1 MiB in messages, and an answer", 200, base, || stream_of_messages(ofi, &data))?;
    let start = Instant::now();
    for _ in 0..100_000 {
        ofi.progress(&mut |_| ())?;
    }
    println!("{:34}{:9.3}", "progress with nothing there", start.elapsed().as_secs_f64() * 10.0);
    send(ofi, 1, &[QUIT; 64], &[])?;
    peer.process.wait()?;
    Ok(())
}

/// Writes to, or reads from, the target, and waits for the completion.
fn transfer(ofi: &Ofi, remote: &Remote, data: &mut [u8], put: bool) -> Outcome<()> {
    loop {
        let transfer = Transfer { remote, offset: 0, local: data.as_mut_ptr(), len: data.len(), context: 1 };
        // SAFETY: the data outlives the wait for the completion below, and is not used in it.
        let posted = unsafe { if put { ofi.put(&transfer) } else { ofi.get(&transfer) }? };
        if posted != Posted::Again {
            break;
        }
        ofi.progress(&mut |_| ())?;
    }
    let mut result = None;
    while result.is_none() {
        ofi.progress(&mut |event| {
            if let Event::Complete(completion) = event {
                result = Some(completion.result);
            }
        })?;
    }
    Ok(result.transpose().map(drop)?)
}

fn round_trip(ofi: &Ofi, payload: &[u8]) -> Outcome<()> {
    send(ofi, 1, &HEADER, payload)?;
    wait_for_message(ofi)
}

fn wait_for_message(ofi: &Ofi) -> Outcome<()> {
    let mut messages = 0;
    while messages == 0 {
        messages += ofi.progress(&mut |_| ())?;
    }
    Ok(())
}

/// The target answers only what is not as long as it can be.
fn stream_of_messages(ofi: &Ofi, data: &[u8]) -> Outcome<()> {
    for part in data.chunks(ofi.capabilities().max_message - HEADER.len()) {
        send(ofi, 1, &HEADER, part)?;
    }
    wait_for_message(ofi)
}

fn send(ofi: &Ofi, peer: usize, header: &[u8], payload: &[u8]) -> Outcome<()> {
    while ofi.message(peer, header, payload)? == Posted::Again {
        ofi.progress(&mut |_| ())?;
    }
    Ok(())
}

fn target(ofi: &Ofi) -> Outcome<()> {
    tcp::echo()?;

    let mut address = String::new();
    io::stdin().read_line(&mut address)?;
    ofi.connect(0, &from_hex(address.trim())?)?;
    let region = ofi.register(&Span::anonymous(WINDOW)?)?;
    println!("{}\n{}", to_hex(&ofi.address()), to_hex(&region.key().0));
    let full = ofi.capabilities().max_message;
    let mut quit = false;
    while !quit {
        let mut answer = None;
        ofi.progress(&mut |event| {
            if let Event::Message(message) = event {
                quit |= message[0] == QUIT;
                answer = (message.len() < full).then(|| message.to_vec());
            }
        })?;
        if let Some(message) = answer {
            send(ofi, 0, &HEADER, &message[64..])?;
        }
    }
    Ok(())
}

/// Prints times in microseconds, and their relation to `base`, and returns the median; the first tenth of the rounds is
/// not counted.
fn measure(
    name: &str,
    rounds: u32,
    base: Option<f64>,
    mut operation: impl FnMut() -> Outcome<()>,
) -> Outcome<f64> {
    let mut times = Vec::new();
    for round in 0..rounds {
        let start = Instant::now();
        operation()?;
        if round >= rounds / 10 {
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
    }
    times.sort_by(f64::total_cmp);
    let at = |percent: usize| times[(times.len() - 1) * percent / 100];
    let ratio = base.map_or(1.0, |base| at(50) / base);
    println!("{name:34}{:9.2} p50{:9.2} p10{:9.2} p99{ratio:8.2} of TCP", at(50), at(10), at(99));
    Ok(at(50))
}
