//! The launcher's half of PMI-1 for the ranks of one host: lines in, lines out, no sockets.

use std::collections::HashMap;

use transom_pmi::wire::{Message, WireError};
use transom_pmi::{EACH, Each};

use crate::agree::Contribution;
use crate::frames::Pairs;

const MAX_KEY: usize = 256;
const MAX_VALUE: usize = 1024;
/// Bytes of keys and values that one fence may carry from one host: a program in a loop must not fill memory.
const MAX_FRESH: usize = 32 << 20;

/// What a line asks for besides an answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    None,
    /// A rank is in the fence.
    Fence,
    /// A rank wants the job to end.
    Abort(i32),
    /// A rank contributes to an agreement.
    Agree(Contribution),
}

#[derive(Debug, Default, Clone)]
struct Peer {
    /// Number of its program among those of the job.
    program: usize,
    begun: bool,
    finalized: bool,
    in_fence: bool,
    gone: bool,
    multi_line: bool,
}

/// State of PMI for the ranks of one host.
#[derive(Debug)]
pub struct Server {
    size: u32,
    kvs: String,
    pairs: HashMap<String, String>,
    fresh: Pairs,
    fresh_bytes: usize,
    peers: Vec<Peer>,
}

impl Server {
    /// For `count` ranks here of `size` in all.
    pub fn new(size: u32, count: u32, kvs: &str, mapping: &str) -> Self {
        let pairs = HashMap::from([("PMI_process_mapping".to_owned(), mapping.to_owned())]);
        let peers = (0..count).map(|_| Peer::default()).collect();
        Self { size, kvs: kvs.to_owned(), pairs, fresh: Pairs::new(), fresh_bytes: 0, peers }
    }

    /// Which of the job's programs each rank of this host is.
    pub fn of_programs(&mut self, programs: impl Iterator<Item = usize>) {
        self.peers.iter_mut().zip(programs).for_each(|(peer, program)| peer.program = program);
    }

    /// Handles a line of the host's rank number `local`; gives the answer and what else is to be done.
    pub fn handle(&mut self, local: usize, line: &Result<Vec<u8>, WireError>) -> (Option<String>, Effect) {
        let Some(peer) = self.peers.get_mut(local) else { return (None, Effect::None) };
        if peer.multi_line {
            let ended = matches!(line, Ok(line) if line.trim_ascii() == b"endcmd");
            peer.multi_line = !ended;
            return (ended.then(|| refuse("spawn_result", "not_supported")), Effect::None);
        }
        match line.as_ref().map_err(Clone::clone).and_then(|line| Message::parse(line)) {
            Ok(message) if message.is_multi_line() => {
                peer.multi_line = true;
                (None, Effect::None)
            }
            Ok(message) => self.command(local, &message),
            Err(_) => (Some(refuse("error", "malformed_line")), Effect::None),
        }
    }

    fn command(&mut self, local: usize, message: &Message) -> (Option<String>, Effect) {
        let answer = match message.cmd() {
            "barrier_in" => {
                self.peers[local].in_fence = true;
                return (None, Effect::Fence);
            }
            "abort" => {
                let code = message.get("exitcode").and_then(|code| code.parse().ok()).unwrap_or(1);
                return (None, Effect::Abort(code));
            }
            "init" => self.init(local, message),
            "transom_agree" => {
                return match Contribution::of(message, self.size) {
                    Some(contribution) => (None, Effect::Agree(contribution)),
                    None => (Some(refuse("transom_agree_result", "malformed")), Effect::None),
                };
            }
            "get_maxes" => Message::new("maxes")
                .with("kvsname_max", 256)
                .with("keylen_max", MAX_KEY)
                .with("vallen_max", MAX_VALUE)
                .with(EACH, 1),
            "get_my_kvsname" => Message::new("my_kvsname").with("kvsname", &self.kvs),
            "get_appnum" => Message::new("appnum").with("appnum", self.peers[local].program),
            "get_universe_size" => Message::new("universe_size").with("size", self.size),
            "put" => return (Some(self.put(message)), Effect::None),
            "get" => return (Some(self.get(message)), Effect::None),
            EACH => match Each::of(message) {
                Some(each) => each.answer(|key| self.pairs.get(key).map(String::as_str)),
                None => return (Some(refuse(EACH, "malformed")), Effect::None),
            },
            "finalize" => {
                self.peers[local].finalized = true;
                Message::new("finalize_ack").with("rc", 0)
            }
            other => return (Some(refuse(&format!("{other}_result"), "unknown_command")), Effect::None),
        };
        (Some(line_of(&answer)), Effect::None)
    }

    fn init(&mut self, local: usize, message: &Message) -> Message {
        self.peers[local].begun = true;
        let rc = if message.get("pmi_version") == Some("1") { 0 } else { -1 };
        Message::new("response_to_init").with("pmi_version", 1).with("pmi_subversion", 1).with("rc", rc)
    }

    fn put(&mut self, message: &Message) -> String {
        let (Some(key), Some(value)) = (message.get("key"), message.get("value")) else {
            return refuse("put_result", "key_or_value_missing");
        };
        let bytes = key.len() + value.len();
        if key.is_empty() || key.len() > MAX_KEY || value.len() > MAX_VALUE {
            return refuse("put_result", "key_or_value_too_long");
        }
        if self.fresh_bytes + bytes > MAX_FRESH {
            return refuse("put_result", "too_many_values");
        }
        self.fresh_bytes += bytes;
        self.fresh.push((key.to_owned(), value.to_owned()));
        // A rank of this host may read it before the fence; no harm, and MPICH does so.
        self.pairs.insert(key.to_owned(), value.to_owned());
        line_of(&Message::new("put_result").with("rc", 0).with("msg", "success"))
    }

    fn get(&self, message: &Message) -> String {
        match message.get("key").and_then(|key| self.pairs.get(key)) {
            Some(value) => {
                line_of(&Message::new("get_result").with("rc", 0).with("msg", "success").with("value", value))
            }
            None => line_of(
                &Message::new("get_result")
                    .with("rc", -1)
                    .with("msg", "key_not_found")
                    .with("value", "unknown"),
            ),
        }
    }

    /// What was put since the last fence, once every rank of this host is in it.
    pub fn fence_ready(&mut self) -> Option<Pairs> {
        self.peers.iter().all(|peer| peer.in_fence).then(|| {
            self.fresh_bytes = 0;
            std::mem::take(&mut self.fresh)
        })
    }

    /// Every rank of the job is in the fence: takes what all put. Gives the line for every rank.
    pub fn fence_done(&mut self, pairs: Pairs) -> String {
        self.pairs.extend(pairs);
        self.peers.iter_mut().for_each(|peer| peer.in_fence = false);
        line_of(&Message::new("barrier_out").with("rc", 0))
    }

    /// Whether a rank waits in the fence.
    pub fn is_in_fence(&self, local: usize) -> bool {
        self.peers.get(local).is_some_and(|peer| peer.in_fence)
    }

    /// A rank has ended; says whether it had begun to use PMI and not said goodbye.
    pub fn gone(&mut self, local: usize) -> bool {
        self.peers.get_mut(local).is_some_and(|peer| {
            peer.gone = true;
            peer.begun && !peer.finalized
        })
    }

    /// A rank that has ended, if others here wait in a fence that can therefore never end.
    pub fn fence_broken(&self) -> Option<usize> {
        let waiting = self.peers.iter().any(|peer| peer.in_fence && !peer.gone);
        self.peers.iter().position(|peer| peer.gone).filter(|_| waiting)
    }
}

fn refuse(answer: &str, why: &str) -> String {
    line_of(&Message::new(answer).with("rc", -1).with("msg", why))
}

/// A message as a line. What cannot be a line is answered all the same, or the rank would wait for ever.
fn line_of(message: &Message) -> String {
    message.to_line().unwrap_or_else(|_| "cmd=error rc=-1\n".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(server: &mut Server, local: usize, line: &str) -> (String, Effect) {
        let (answer, effect) = server.handle(local, &Ok(line.as_bytes().to_vec()));
        (answer.unwrap_or_default(), effect)
    }

    fn answer(server: &mut Server, line: &str) -> String {
        ask(server, 0, line).0
    }

    #[test]
    fn the_usual_questions() {
        let mut s = Server::new(4, 2, "job", "(vector,(0,2,2))");
        assert!(answer(&mut s, "cmd=init pmi_version=1 pmi_subversion=1").contains(" rc=0"));
        assert!(answer(&mut s, "cmd=init pmi_version=2 pmi_subversion=0").contains(" rc=-1"));
        assert_eq!(answer(&mut s, "cmd=get_my_kvsname"), "cmd=my_kvsname kvsname=job\n");
        assert_eq!(answer(&mut s, "cmd=get_universe_size"), "cmd=universe_size size=4\n");
        assert!(
            answer(&mut s, "cmd=get kvsname=job key=PMI_process_mapping")
                .ends_with("value=(vector,(0,2,2))\n")
        );
        assert!(answer(&mut s, "cmd=get kvsname=job key=nothing").contains(" rc=-1"));
        assert!(answer(&mut s, "cmd=put kvsname=job key=k value=a b=c").contains(" rc=0"));
        assert!(answer(&mut s, "cmd=get kvsname=job key=k").ends_with("value=a b=c\n"));
        assert_eq!(ask(&mut s, 1, "cmd=abort exitcode=5"), (String::new(), Effect::Abort(5)));
        assert_eq!(ask(&mut s, 1, "cmd=abort"), (String::new(), Effect::Abort(1)));
    }

    #[test]
    fn a_fence_collects_and_spreads() {
        let mut s = Server::new(2, 2, "job", "");
        answer(&mut s, "cmd=put key=a value=1");
        assert_eq!(ask(&mut s, 0, "cmd=barrier_in").1, Effect::Fence);
        assert_eq!(s.fence_ready(), None);
        assert_eq!(ask(&mut s, 1, "cmd=barrier_in").1, Effect::Fence);
        assert_eq!(s.fence_ready(), Some(vec![("a".into(), "1".into())]));
        assert!(s.fence_done(vec![("b".into(), "2".into())]).starts_with("cmd=barrier_out"));
        assert!(answer(&mut s, "cmd=get key=b").contains("value=2"));
        assert_eq!(s.fence_ready(), None);
    }

    #[test]
    fn values_of_all_ranks_by_one_question() {
        let mut s = Server::new(2, 2, "job", "");
        assert!(answer(&mut s, "cmd=get_maxes").contains(" transom_each=1"));
        answer(&mut s, "cmd=put key=card-0 value=1");
        answer(&mut s, "cmd=put key=card-1 value=2");
        let asked = "cmd=transom_each kvsname=job prefix=card- suffix= from=0 to=3";
        assert_eq!(answer(&mut s, asked), "cmd=transom_each rc=0 value=1 2\n");
    }

    #[test]
    fn who_is_gone_and_how() {
        let mut s = Server::new(3, 3, "job", "");
        answer(&mut s, "cmd=init pmi_version=1 pmi_subversion=1");
        assert_eq!(s.fence_broken(), None);
        ask(&mut s, 2, "cmd=barrier_in");
        assert!(!s.gone(1), "never used PMI");
        assert_eq!(s.fence_broken(), Some(1));
        assert!(s.gone(0), "did not say goodbye");
    }

    #[test]
    fn whatever_a_rank_sends_is_answered_and_harmless() {
        let mut s = Server::new(1, 1, "job", "");
        for line in [
            "",
            "hello",
            "cmd=",
            "cmd==",
            "cmd=a=b",
            "cmd=spawn",
            "cmd=publish_name x",
            "cmd=put",
            "cmd=put key= value=",
            "cmd=get",
            "cmd=transom_each",
            "cmd=transom_each prefix=a suffix=b from=0 to=x",
            "cmd=transom_agree",
            "cmd=transom_agree key=a members=0-9 flags=1",
            "cmd=transom_agree key=a members=x flags=1",
        ] {
            let (answer, effect) = ask(&mut s, 0, line);
            assert!(
                answer.contains("rc=-1") && answer.ends_with('\n') && effect == Effect::None,
                "{line:?}: {answer:?}"
            );
        }
        assert!(s.handle(0, &Err(WireError::TooLong)).0.is_some());
        assert!(s.handle(0, &Ok(vec![0xff; 9])).0.is_some());
        assert!(s.handle(7, &Ok(vec![])).0.is_none());
        assert_eq!(answer(&mut s, "mcmd=spawn"), "");
        assert_eq!(answer(&mut s, "nprocs=2"), "");
        assert!(answer(&mut s, "endcmd").starts_with("cmd=spawn_result rc=-1"));
        let long = format!("cmd=put key=k value={}", "x".repeat(MAX_VALUE + 1));
        assert!(answer(&mut s, &long).contains("rc=-1"));
    }
}
