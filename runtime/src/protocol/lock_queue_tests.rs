//! Three participants and the target's agent under a model checker: ranks that see the lock and sleep on it, ranks that
//! the agent represents, and one that gives up. A lost wake-up is a deadlock, which the checker reports.

use shuttle::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard};
use shuttle::thread;

use super::*;

/// A word with a futex's guarantee: between the check of the word and the sleep no wake-up is lost.
#[derive(Default)]
struct Futex {
    word: AtomicU32,
    bucket: Mutex<()>,
    wake: Condvar,
}

impl Word for Futex {
    fn add_one(&self) -> u32 {
        self.word.fetch_add(1, Ordering::SeqCst)
    }

    fn read(&self) -> u32 {
        self.word.load(Ordering::SeqCst)
    }

    fn write(&self, value: u32) {
        self.word.store(value, Ordering::SeqCst);
    }
}

impl Sleep for Futex {
    fn take_one(&self) {
        self.word.fetch_sub(1, Ordering::SeqCst);
    }

    fn sleep_on(&self, seen: u32) {
        let bucket = self.bucket.lock().unwrap();
        if self.read() == seen {
            drop(self.wake.wait(bucket).unwrap());
        }
    }

    fn wake_all(&self) {
        let _bucket = self.bucket.lock().unwrap();
        self.wake.notify_all();
    }
}

/// What a participant is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    /// It maps the lock, on the target's node.
    Near,
    /// The target itself: it acts for its agent, too.
    Target,
    /// The agent represents it.
    Far,
    /// The agent represents it, and does for it what the lock is for.
    Passes,
    /// As [`Role::Far`] and [`Role::Passes`], but it does not wait.
    Withdraws,
    WithdrawsPass,
    /// As [`Role::Near`], but it does not wait.
    GivesUp,
}

use LockKind::{Exclusive, Shared};
use Role::{Far, GivesUp, Near, Passes, Target, Withdraws, WithdrawsPass};

enum Message {
    Lock(Waiter, LockKind),
    Withdraw(usize),
    Unlock(Ticket),
    Wake,
    Abandon(Ticket),
    End,
}

/// A rank that the agent represents: whether it keeps the lock when it has it.
#[derive(Debug, Clone, Copy)]
struct Waiter {
    rank: usize,
    keeps: bool,
}

/// A reply: the ticket of a lock that was granted; none if the rank had withdrawn before.
type Reply = Option<Ticket>;

#[derive(Default)]
struct Model {
    words: [Futex; 5],
    held: Mutex<Vec<AgentTicket<Waiter>>>,
    replies: [(Mutex<Option<Reply>>, Condvar); 3],
    readers: AtomicUsize,
    writers: AtomicUsize,
}

impl Model {
    fn queue(&self) -> LockQueue<'_, Futex> {
        let [next, read, write, sleepers, agent_tickets] = &self.words;
        LockQueue { lock: TicketLock { next, read, write }, sleepers, agent_tickets }
    }

    fn held(&self) -> MutexGuard<'_, Vec<AgentTicket<Waiter>>> {
        self.held.lock().unwrap()
    }

    fn reply(&self, rank: usize, reply: Reply) {
        *self.replies[rank].0.lock().unwrap() = Some(reply);
        self.replies[rank].1.notify_all();
    }

    /// The agent has the lock for a rank; whether that keeps it.
    fn tell(&self, ticket: Ticket, Waiter { rank, keeps }: Waiter) -> bool {
        if !keeps {
            self.hold(ticket.kind);
        }
        self.reply(rank, Some(ticket));
        keeps
    }

    /// What the agent does at a change of the lock.
    fn recheck(&self) {
        self.queue().grant(|| self.held(), |ticket, waiter| self.tell(ticket, waiter));
    }

    fn agent(&self, messages: &Receiver<Message>) {
        let queue = self.queue();
        loop {
            match messages.recv().unwrap() {
                Message::Lock(waiter, kind) => {
                    queue.admit(kind, || self.held(), |ticket| self.tell(ticket, waiter), || waiter);
                }
                Message::Withdraw(rank) => {
                    if withdraw(&mut self.held(), |waiter| waiter.rank == rank).is_some() {
                        self.reply(rank, None);
                    }
                }
                Message::Unlock(ticket) => {
                    queue.lock.release(ticket);
                    queue.changed();
                }
                Message::Abandon(ticket) => queue.enqueue_for(&mut self.held(), ticket, None),
                Message::Wake => {}
                Message::End => return,
            }
            self.recheck();
        }
    }

    fn changed(&self, role: Role, agent: &Sender<Message>) {
        if self.queue().changed() {
            match role {
                Target => self.recheck(),
                _ => agent.send(Message::Wake).unwrap(),
            }
        }
    }

    fn acquire(&self, me: usize, role: Role, kind: LockKind, agent: &Sender<Message>) -> Option<Ticket> {
        if matches!(role, Far | Passes | Withdraws | WithdrawsPass) {
            let keeps = matches!(role, Far | Withdraws);
            agent.send(Message::Lock(Waiter { rank: me, keeps }, kind)).unwrap();
            if matches!(role, Withdraws | WithdrawsPass) {
                agent.send(Message::Withdraw(me)).unwrap();
            }
            let (reply, there) = &self.replies[me];
            let mut reply = reply.lock().unwrap();
            loop {
                match reply.take() {
                    Some(granted) => return granted.filter(|_| keeps),
                    None => reply = there.wait(reply).unwrap(),
                }
            }
        }
        let queue = self.queue();
        let ticket = queue.lock.draw(kind);
        let give_up = || if role == GivesUp { Err(()) } else { Ok(()) };
        if !queue.lock.try_enter(ticket) && queue.sleep_until(ticket, give_up).is_err() {
            agent.send(Message::Abandon(ticket)).unwrap();
            return None;
        }
        if kind == Shared {
            self.changed(role, agent);
        }
        Some(ticket)
    }

    fn hold(&self, kind: LockKind) {
        let (own, most_writers) = if kind == Exclusive { (&self.writers, 1) } else { (&self.readers, 0) };
        own.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.writers.load(Ordering::SeqCst), most_writers);
        assert!(kind == Shared || self.readers.load(Ordering::SeqCst) == 0);
        own.fetch_sub(1, Ordering::SeqCst);
    }

    fn participate(&self, me: usize, (role, kind): (Role, LockKind), agent: &Sender<Message>) {
        let Some(ticket) = self.acquire(me, role, kind, agent) else { return };
        self.hold(kind);
        if matches!(role, Far | Withdraws) {
            agent.send(Message::Unlock(ticket)).unwrap();
        } else {
            self.queue().lock.release(ticket);
            self.changed(role, agent);
        }
    }
}

fn model(participants: [(Role, LockKind); 3]) {
    let run = move || {
        let model = Arc::new(Model::default());
        let (send, receive) = channel();
        let agent = thread::spawn({
            let model = model.clone();
            move || model.agent(&receive)
        });
        let ranks: Vec<_> = participants
            .into_iter()
            .enumerate()
            .map(|(me, participant)| {
                let (model, send) = (model.clone(), send.clone());
                thread::spawn(move || model.participate(me, participant, &send))
            })
            .collect();
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        send.send(Message::End).unwrap();
        agent.join().unwrap();
        // All tickets have been served: the next would enter.
        assert!(model.held().is_empty());
        assert_eq!(model.words.each_ref().map(Futex::read), [3, 3, 3, 0, 0]);
    };
    shuttle::check_random(run, 1_500);
    shuttle::check_pct(run, 1_500, 3);
}

#[test]
fn shuttle_writers_near_and_far() {
    model([(Near, Exclusive), (Far, Exclusive), (Far, Exclusive)]);
    model([(Near, Exclusive), (Near, Exclusive), (Far, Exclusive)]);
}

#[test]
fn shuttle_readers_and_writers_near_and_far() {
    model([(Near, Shared), (Far, Exclusive), (Far, Shared)]);
    model([(Near, Exclusive), (Near, Shared), (Far, Shared)]);
    model([(Near, Shared), (Near, Shared), (Near, Exclusive)]);
}

#[test]
fn shuttle_the_target_acts_for_its_agent() {
    model([(Target, Exclusive), (Far, Exclusive), (Far, Exclusive)]);
    model([(Target, Shared), (Near, Exclusive), (Far, Shared)]);
}

#[test]
fn shuttle_who_gives_up_is_passed_over() {
    model([(Near, Exclusive), (GivesUp, Exclusive), (Far, Exclusive)]);
    model([(Near, Shared), (GivesUp, Exclusive), (Near, Shared)]);
    model([(Near, Exclusive), (GivesUp, Shared), (GivesUp, Exclusive)]);
}

#[test]
fn shuttle_epochs_of_one_message_wait_their_turn() {
    model([(Near, Exclusive), (Passes, Exclusive), (Far, Exclusive)]);
    model([(Target, Exclusive), (Passes, Shared), (Passes, Exclusive)]);
    model([(Near, Shared), (Passes, Shared), (Passes, Exclusive)]);
}

#[test]
fn shuttle_who_withdraws_is_passed_over() {
    model([(Near, Exclusive), (Withdraws, Exclusive), (Passes, Exclusive)]);
    model([(Far, Exclusive), (WithdrawsPass, Shared), (Withdraws, Shared)]);
}
