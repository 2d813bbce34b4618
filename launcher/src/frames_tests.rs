//! Frames out and in again, whole, in pieces and broken.

use super::*;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap().block_on(future)
}

fn read_all(bytes: &[u8], skip: bool) -> io::Result<Vec<Frame<ToAgent>>> {
    let (theirs, ours) = UnixStream::pair().unwrap();
    let bytes = bytes.to_owned();
    let writer = std::thread::spawn(move || {
        use std::io::Write;
        for piece in bytes.chunks(7) {
            let _ = (&theirs).write_all(piece);
        }
    });
    let frames = block_on(async {
        let mut reader = FrameReader::new(Nonblocking::new(OwnedFd::from(ours))?);
        if skip {
            assert!(reader.skip_to_magic(&mut Vec::new()).await?);
        }
        let mut frames = Vec::new();
        while let Some(frame) = reader.next().await? {
            frames.push(frame);
        }
        Ok(frames)
    });
    writer.join().unwrap();
    frames
}

#[test]
fn frames_come_out_as_they_went_in() {
    let mut buffer = BytesMut::new();
    buffer.put_slice(b"Welcome to n1!\n");
    buffer.put_slice(MAGIC);
    let data = Bytes::from_static(b"\0\n\xff");
    encode(&Frame::Message(ToAgent::Signal(15)), &mut buffer).unwrap();
    encode(&Frame::<ToAgent>::Data { rank: 7, stream: Stream::Err, bytes: data.clone() }, &mut buffer)
        .unwrap();
    encode(&Frame::Message(ToAgent::Fence(vec![("k".into(), "v\n".into())])), &mut buffer).unwrap();
    assert_eq!(buffer.last(), Some(&b'\n'));
    let frames = read_all(&buffer, true).unwrap();
    assert!(matches!(&frames[0], Frame::Message(ToAgent::Signal(15))));
    assert!(matches!(&frames[1], Frame::Data { rank: 7, stream: Stream::Err, bytes } if *bytes == data));
    assert!(matches!(&frames[2], Frame::Message(ToAgent::Fence(pairs)) if pairs[0].1 == "v\n"));
}

#[test]
fn broken_frames_are_errors() {
    for bytes in [
        &b"\xff\xff\xff\xff"[..],
        b"\0\0\0\x02\x09\n",
        b"\0\0\0\x01\n",
        b"\0\0\0\x05\x01{\"x\n",
        b"\0\0\0\x04\x02ab\n",
        b"\0\0\0\0",
    ] {
        assert!(read_all(bytes, false).is_err(), "{bytes:?}");
    }
}

#[test]
fn what_hosts_say_of_themselves_overflows_nothing() {
    let liar = Started { hosts: u32::MAX, depth: u32::MAX, memory_kib: u64::MAX, children: u32::MAX };
    let own = Started { hosts: 1, depth: 1, memory_kib: 4000, children: 2 };
    assert_eq!(own.beside(liar), liar);
    assert_eq!(own.join([liar, liar].into_iter()), liar);
}
