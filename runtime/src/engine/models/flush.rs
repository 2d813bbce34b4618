//! Threads issue operations to one target and flush, all at once: a flush that returns has everything complete that was
//! issued before it began.

use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread;
use transom_transport::Completion;

use super::check;
use super::pending::{Pending, Pendings};
use super::sync::{Arc, AtomicBool, Ordering};
use super::targets::Target;

const THREADS: usize = 3;

enum Message {
    /// An accumulate of a thread, and the number by which it is to be confirmed.
    Apply(usize, Option<u64>),
    /// A piece of one that follows.
    Piece,
    /// A flush, with the number that is to be confirmed.
    Flush(u64),
    End,
}

struct Rank {
    state: Target,
    pendings: Pendings,
    /// Applied at the target: each thread's put, and its accumulate.
    put: [AtomicBool; THREADS],
    applied: [AtomicBool; THREADS],
    /// Whether what follows the put's end is done: its request is complete.
    acted: [AtomicBool; THREADS],
}

impl Default for Rank {
    fn default() -> Self {
        let pendings = Pendings::default();
        Self {
            state: pendings.target(),
            pendings,
            put: Default::default(),
            applied: Default::default(),
            acted: Default::default(),
        }
    }
}

fn until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}

impl Rank {
    /// As `operation::start_complete` and `operation::complete`.
    fn flush(&self, messages: &Sender<Message>) {
        let asked = self.state.messages.ask(|number| messages.send(Message::Flush(number))).unwrap();
        until(|| self.state.is_idle());
        if let Some(number) = asked {
            until(|| self.state.messages.is_confirmed(number));
        }
    }

    fn issue(&self, me: usize, messages: &Sender<Message>, puts: &Sender<(usize, u64)>) {
        // One thread's put is a plain one.
        let context = if me == 0 {
            self.pendings.begin_plain(&self.state)
        } else {
            let target = self.state.share();
            self.pendings.begin(Pending { target, buffer: None, done: None, pull: None, value: None })
        };
        puts.send((me, context)).unwrap();
        let apply = |number| messages.send(Message::Apply(me, number));
        match me {
            // Of a piece and the rest, the last is confirmed.
            2 => self.state.messages.send_several(2, true, |number| {
                messages.send(Message::Piece)?;
                apply(number)
            }),
            _ => self.state.messages.send(me == 0, apply),
        }
        .unwrap();
    }

    fn target(&self, messages: &Receiver<Message>) {
        loop {
            match messages.recv().unwrap() {
                Message::Apply(thread, number) => {
                    self.applied[thread].store(true, Ordering::SeqCst);
                    number.into_iter().for_each(|number| self.confirm(number));
                }
                Message::Piece => {}
                Message::Flush(number) => self.confirm(number),
                Message::End => return,
            }
        }
    }

    fn confirm(&self, number: u64) {
        self.pendings.confirmed(self.state.number().unwrap(), number, None);
    }

    /// The transport, which completes the latest put first: in no order.
    fn transport(&self, puts: &Receiver<(usize, u64)>) {
        let mut under_way = Vec::new();
        while let Ok(put) = puts.recv() {
            under_way.push(put);
            under_way.extend(puts.try_iter());
            while let Some((thread, context)) = under_way.pop() {
                self.put[thread].store(true, Ordering::SeqCst);
                // Nothing follows the end of a plain put.
                self.acted[thread].store(thread == 0, Ordering::SeqCst);
                let ended = self.pendings.complete(Completion { context, value: 0, result: Ok(()) });
                assert!(ended.pull.is_none());
                self.acted[thread].store(true, Ordering::SeqCst);
                drop(ended);
            }
        }
    }
}

#[test]
fn shuttle_a_flush_completes_all_that_was_issued_before_it() {
    check(|| {
        let rank = Arc::new(Rank::default());
        let (messages, at_target) = channel();
        let (puts, at_transport) = channel();
        let target = thread::spawn({
            let rank = rank.clone();
            move || rank.target(&at_target)
        });
        let transport = thread::spawn({
            let rank = rank.clone();
            move || rank.transport(&at_transport)
        });
        let threads: Vec<_> = (0..THREADS)
            .map(|me| {
                let (rank, messages, puts) = (rank.clone(), messages.clone(), puts.clone());
                thread::spawn(move || {
                    rank.issue(me, &messages, &puts);
                    rank.flush(&messages);
                    assert!(rank.put[me].load(Ordering::SeqCst), "a put is not complete");
                    assert!(rank.acted[me].load(Ordering::SeqCst), "a put's request is not complete");
                    assert!(rank.applied[me].load(Ordering::SeqCst), "an accumulate is not applied");
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert!(rank.state.is_idle() && rank.state.messages.unconfirmed().is_none());
        drop(puts);
        transport.join().unwrap();
        messages.send(Message::End).unwrap();
        target.join().unwrap();
    });
}
