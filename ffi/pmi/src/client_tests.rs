//! The client against a launcher that answers from a script.

use super::*;
use std::io::{BufRead, BufReader};
use std::thread::{JoinHandle, spawn};

const HANDSHAKE: [&str; 3] = [
    "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n",
    "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n",
    "cmd=my_kvsname kvsname=job_1\n",
];

/// A launcher that answers each line with the next of `answers`, then closes; gives back what it was sent.
fn launcher(answers: Vec<String>) -> (UnixStream, JoinHandle<Vec<String>>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let server = spawn(move || {
        let mut lines = BufReader::new(theirs.try_clone().unwrap()).lines();
        let mut seen = Vec::new();
        for answer in answers {
            match lines.next() {
                Some(Ok(line)) => seen.push(line),
                _ => break,
            }
            if (&theirs).write_all(answer.as_bytes()).is_err() {
                break;
            }
        }
        seen
    });
    (ours, server)
}

fn after_handshake(answers: &[&str]) -> (Result<Client>, JoinHandle<Vec<String>>) {
    let all = HANDSHAKE.iter().chain(answers).map(|line| (*line).to_owned()).collect();
    let (stream, server) = launcher(all);
    (Client::over(stream, 0, 2), server)
}

#[test]
fn a_whole_life() {
    let (client, server) = after_handshake(&[
        "cmd=put_result rc=0\n",
        "cmd=barrier_out\n",
        "cmd=get_result rc=0 msg=success value=x=y\n",
        "cmd=get_result rc=-1 msg=key_not_found\n",
        "cmd=finalize_ack rc=0\n",
    ]);
    let mut client = client.unwrap();
    client.put("k", "v").unwrap();
    client.fence().unwrap();
    assert_eq!(client.get("other").unwrap().as_deref(), Some("x=y"));
    assert_eq!(client.get("missing").unwrap(), None);
    client.finalize().unwrap();
    let seen = server.join().unwrap();
    assert_eq!(seen[0], "cmd=init pmi_version=1 pmi_subversion=1");
    assert_eq!(seen[3], "cmd=put kvsname=job_1 key=k value=v");
    assert_eq!(
        seen[4..7],
        ["cmd=barrier_in", "cmd=get kvsname=job_1 key=other", "cmd=get kvsname=job_1 key=missing"]
    );
}

/// Values that fit into two lines, and one that nobody has put.
#[test]
fn many_values_by_few_questions() {
    let mut answers = HANDSHAKE.map(str::to_owned);
    answers[1].insert_str(answers[1].len() - 1, " transom_each=1");
    let values = [
        "cmd=transom_each rc=0 value=a b=1\n",
        "cmd=transom_each rc=0 value=c\n",
        "cmd=transom_each rc=0 value=\n",
        "cmd=get_result rc=-1 msg=key_not_found\n",
        "cmd=transom_each rc=0 value=e f\n",
    ];
    let (stream, server) = launcher(answers.into_iter().chain(values.map(str::to_owned)).collect());
    let found = Client::over(stream, 0, 5).unwrap().get_each("card-", "", 5).unwrap();
    assert_eq!(
        found,
        [Some("a"), Some("b=1"), Some("c"), None, Some("e")].map(|value| value.map(str::to_owned))
    );
    let seen = server.join().unwrap();
    assert_eq!(seen[3], "cmd=transom_each kvsname=job_1 prefix=card- suffix= from=0 to=5");
    assert!(seen[4].ends_with("from=2 to=5") && seen[5].ends_with("from=3 to=5"), "{seen:?}");
    assert_eq!(seen[6], "cmd=get kvsname=job_1 key=card-3");
    assert!(seen[7].ends_with("from=4 to=5") && seen.len() == 8, "{seen:?}");
}

/// A launcher that has announced nothing.
#[test]
fn many_values_one_by_one() {
    let (client, server) = after_handshake(&[
        "cmd=get_result rc=0 msg=success value=a\n",
        "cmd=get_result rc=-1 msg=key_not_found\n",
    ]);
    assert_eq!(client.unwrap().get_each("k", "-0", 2).unwrap(), [Some("a".to_owned()), None]);
    assert_eq!(
        server.join().unwrap()[3..],
        ["cmd=get kvsname=job_1 key=k0-0", "cmd=get kvsname=job_1 key=k1-0"]
    );
}

#[test]
fn what_cannot_travel_is_not_sent() {
    let (client, server) = after_handshake(&["cmd=put_result rc=0\n"]);
    let mut client = client.unwrap();
    let long = "x".repeat(MAX_VALUE);
    for (key, value) in [
        ("k", long.as_str()),
        ("k", ""),
        ("k", "a b"),
        ("k", "a\nb"),
        ("k", "é"),
        ("", "v"),
        ("a=b", "v"),
        (&long, "v"),
    ] {
        assert!(matches!(client.put(key, value), Err(Error::Unsendable { .. })), "{key:?} {value:?}");
    }
    client.put("k", &long[1..]).unwrap();
    drop(client);
    assert_eq!(server.join().unwrap().len(), 4);
}

#[test]
fn a_launcher_that_misbehaves_is_an_error() {
    let (client, _server) = after_handshake(&["cmd=put_result rc=7\n", "cmd=barrier_out\n"]);
    let mut client = client.unwrap();
    assert!(matches!(client.put("k", "v"), Err(Error::Refused { request: "put", .. })));
    assert!(matches!(client.get("k"), Err(Error::Unexpected { expected: "get_result", .. })));
    assert!(matches!(client.fence(), Err(Error::Closed(_) | Error::Io(_))));

    let huge = "x".repeat(100_000);
    for answer in [huge.as_str(), "hello\n", "\u{0}\u{1}\n", "cmd=\n", ""] {
        let (stream, _server) = launcher(vec![answer.to_owned()]);
        assert!(Client::over(stream, 0, 1).is_err(), "{answer:?}");
    }
    let (stream, _server) = launcher(vec!["cmd=response_to_init rc=1\n".into()]);
    assert!(matches!(Client::over(stream, 0, 1), Err(Error::Refused { request: "init", .. })));
}

#[test]
fn answers_may_come_in_pieces() {
    let (ours, mut theirs) = UnixStream::pair().unwrap();
    let server = spawn(move || {
        for byte in HANDSHAKE.concat().bytes() {
            theirs.write_all(&[byte]).unwrap();
        }
        theirs
    });
    assert_eq!(Client::over(ours, 1, 2).unwrap().rank(), 1);
    drop(server.join().unwrap());
}

#[test]
fn a_silent_launcher_is_a_timeout() {
    let (client, _server) = after_handshake(&["", "cmd=barrier_out\n"]);
    let mut client = client.unwrap();
    client.set_timeout(Some(Duration::from_millis(20)));
    assert!(matches!(client.fence(), Err(Error::Timeout { .. })));
}

#[test]
fn rank_and_size_come_over_a_port() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = spawn(move || {
        let mut stream = listener.accept().unwrap().0;
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
        let id = lines.next().unwrap().unwrap();
        let sets = "cmd=initack rc=0\ncmd=set size=3\ncmd=set rank=2\ncmd=set debug=0\n";
        stream.write_all(sets.as_bytes()).unwrap();
        stream.write_all(HANDSHAKE.concat().as_bytes()).unwrap();
        lines.take(3).for_each(drop);
        id
    });
    let client = Client::connect(Environment::Port { address, id: 2 }).unwrap();
    assert_eq!((client.rank(), client.size()), (2, 3));
    assert_eq!(server.join().unwrap(), "cmd=initack pmiid=2");
    let closed = Client::connect(Environment::Port { address: "127.0.0.1:1".into(), id: 0 });
    assert!(matches!(closed, Err(Error::Environment { variable: "PMI_PORT", .. })));
}

/// What is told of an agreement.
fn told() -> (crate::Answered, std::sync::mpsc::Receiver<Result<crate::Agreement>>) {
    let (send, receive) = std::sync::mpsc::channel();
    (Box::new(move |agreement| send.send(agreement).unwrap()), receive)
}

fn contribution(key: &str) -> crate::Contribution<'_> {
    crate::Contribution { key, members: "0-1", flags: 5, acknowledged: "" }
}

#[test]
fn agreements_come_while_other_questions_are_asked() {
    let reached = "cmd=transom_agree_result rc=0 key=b flags=4 number=9 gone=1 acknowledged=1\n";
    let both = format!("{reached}cmd=get_result rc=0 value=v\n");
    let late = "cmd=transom_agree_result rc=0 key=a flags=1 number=10 gone=- acknowledged=0\n";
    let (client, server) = after_handshake(&["", "", &both, late]);
    let mut client = client.unwrap();
    let (answered, a) = told();
    client.start_agreement(contribution("a"), answered).unwrap();
    let (answered, b) = told();
    let own = crate::Contribution { acknowledged: "1-1", ..contribution("b") };
    client.start_agreement(own, answered).unwrap();
    assert_eq!(client.get("k").unwrap().as_deref(), Some("v"));
    let agreed = b.try_recv().unwrap().unwrap();
    assert_eq!((agreed.flags, agreed.number, &*agreed.gone, agreed.acknowledged), (4, 9, "1", true));
    assert!(a.try_recv().is_err());
    client.send(&Message::new("anything")).unwrap();
    while client.take_agreements() {
        std::thread::yield_now();
    }
    assert_eq!(a.try_recv().unwrap().unwrap().gone, "-");
    drop(client);
    let seen = server.join().unwrap();
    assert_eq!(seen[3], "cmd=transom_agree key=a members=0-1 flags=5 acknowledged=-");
    assert_eq!(seen[4], "cmd=transom_agree key=b members=0-1 flags=5 acknowledged=1-1");
}

#[test]
fn agreements_that_are_refused_or_lost_are_told_of() {
    for answer in ["cmd=transom_agree_result rc=-1 msg=unknown_command\n", "cmd=put_result rc=0\n", ""] {
        let (client, server) = after_handshake(&[answer]);
        let mut client = client.unwrap();
        let (answered, receive) = told();
        client.start_agreement(contribution("a"), answered).unwrap();
        while client.take_agreements() {
            std::thread::yield_now();
        }
        let error = receive.try_recv().unwrap().unwrap_err();
        let expected = match answer {
            "" => "the job's launcher closed",
            answer if answer.contains("put") => "got \"put_result\"",
            _ => "refused transom_agree: rc=-1",
        };
        assert!(error.to_string().contains(expected), "{error}");
        server.join().unwrap();
    }
}
