//! Memory that its owner detaches while two peers access it, one of them through the owner's agent: after `detach` no rank
//! accesses it, also where other memory is attached at the same address meanwhile.

use shuttle::sync::mpsc::{Receiver, Sender, channel};
use shuttle::thread;
use transom_transport::{Remote, Span};

use super::check;
use super::regions::{Attached, CachedRegion, Regions};
use super::sync::{Arc, AtomicBool, AtomicU64, Mutex, Ordering, RwLock};

const OWNER: usize = 0;
const ADDRESS: usize = 64;
const BYTES: usize = 8;

/// Which of two regions: as its key says.
type Key = u8;

enum ToOwner {
    /// A peer asks for the region.
    Find(Sender<ToPeer>),
    /// A peer has the agent access it.
    Access,
    End,
}

enum ToPeer {
    Found(Option<Key>),
    Forget(Sender<()>),
    End,
}

#[derive(Default)]
struct Model {
    regions: Regions,
    /// The memory of each region, which is there until it has been detached.
    there: [AtomicBool; 2],
    peer: Regions,
    /// As `Exposure::revoked` at the peer.
    revoked: RwLock<()>,
    answered: AtomicU64,
    answer: Mutex<Option<Key>>,
}

fn attach(model: &Model, key: Key) {
    model.there[usize::from(key)].store(true, Ordering::SeqCst);
    let memory = Span::anonymous(BYTES).unwrap();
    let keys = vec![("model".to_owned(), vec![key])];
    model.regions.attach(Attached { address: ADDRESS, memory, keys, known_to: Mutex::default() });
}

fn access(model: &Model, key: Key) {
    for _ in 0..2 {
        assert!(model.there[usize::from(key)].load(Ordering::SeqCst), "access to memory that is gone");
    }
}

/// As `Window::detach`.
fn detach(model: &Model, key: Key, peer: &Sender<ToPeer>) {
    let mut region = model.regions.detach(ADDRESS, None).unwrap();
    for rank in Regions::known_to(&region) {
        assert_eq!(rank, 1);
        let (told, reply) = channel();
        peer.send(ToPeer::Forget(told)).unwrap();
        reply.recv().unwrap();
    }
    while Arc::get_mut(&mut region).is_none() {
        thread::yield_now();
    }
    model.there[usize::from(key)].store(false, Ordering::SeqCst);
}

fn owners_agent(model: &Model, messages: &Receiver<ToOwner>) {
    loop {
        match messages.recv().unwrap() {
            ToOwner::Find(peer) => {
                let found = model.regions.find_for(1, ADDRESS, BYTES).map(|region| region.keys[0].1[0]);
                peer.send(ToPeer::Found(found)).unwrap();
            }
            ToOwner::Access => {
                if let Some((region, _)) = model.regions.find(ADDRESS, BYTES) {
                    access(model, region.keys[0].1[0]);
                }
            }
            ToOwner::End => return,
        }
    }
}

fn peers_agent(model: &Model, messages: &Receiver<ToPeer>) {
    loop {
        match messages.recv().unwrap() {
            ToPeer::Found(key) => {
                *model.answer.lock() = key;
                model.answered.fetch_add(1, Ordering::SeqCst);
            }
            ToPeer::Forget(told) => {
                // Waits for an access under way to end.
                let _revoking = model.revoked.write();
                model.peer.forget(OWNER, ADDRESS);
                drop(_revoking);
                told.send(()).unwrap();
            }
            ToPeer::End => return,
        }
    }
}

/// As `Core::resolve_attached`, then the access of `transfer::post`. Nothing if nothing is attached.
fn put(model: &Model, owner: &Sender<ToOwner>, own: &Sender<ToPeer>) {
    let region = loop {
        if let Some((region, _)) = model.peer.find_known(OWNER, ADDRESS, BYTES) {
            break region;
        }
        let forgotten = model.peer.forgotten();
        let seen = model.answered.load(Ordering::SeqCst);
        owner.send(ToOwner::Find(own.clone())).unwrap();
        while model.answered.load(Ordering::SeqCst) == seen {
            thread::yield_now();
        }
        let Some(key) = model.answer.lock().take() else { return };
        let remote = Remote { peer: OWNER, len: BYTES, direct: None, base: 0, key: key.into() };
        let known =
            CachedRegion { address: ADDRESS, remote, left: false, gone: AtomicBool::new(false), _own: None };
        model.peer.learn(OWNER, known, forgotten);
    };
    let _revoked = model.revoked.read();
    if !region.gone.load(Ordering::SeqCst) {
        access(model, region.remote.key as Key);
    }
}

#[test]
fn shuttle_nobody_accesses_what_was_detached() {
    check(|| {
        let model = Arc::new(Model::default());
        attach(&model, 0);
        let (owner, at_owner) = channel();
        let (peer, at_peer) = channel();
        let spawn = |program: Box<dyn FnOnce(&Model) + Send>| {
            let model = model.clone();
            thread::spawn(move || program(&model))
        };
        let agents = [
            spawn(Box::new(move |model| owners_agent(model, &at_owner))),
            spawn(Box::new(move |model| peers_agent(model, &at_peer))),
        ];
        let ranks = [
            spawn({
                let (owner, peer) = (owner.clone(), peer.clone());
                Box::new(move |model| (0..2).for_each(|_| put(model, &owner, &peer)))
            }),
            spawn({
                let owner = owner.clone();
                Box::new(move |_| (0..2).for_each(|_| owner.send(ToOwner::Access).unwrap()))
            }),
        ];
        detach(&model, 0, &peer);
        attach(&model, 1);
        detach(&model, 1, &peer);
        ranks.into_iter().for_each(|rank| rank.join().unwrap());
        owner.send(ToOwner::End).unwrap();
        peer.send(ToPeer::End).unwrap();
        agents.into_iter().for_each(|agent| agent.join().unwrap());
    });
}
