//! Two endpoints in one process, over loopback.

use std::env;
use std::sync::Arc;
use std::time::{Duration, Instant};

use libfabric::{
    Address, AddressVector, Completion, CompletionQueue, Domain, Endpoint, EndpointOptions, Fabric, Hints,
    Info, Library, Posted, QueueOptions, Wait,
};

/// The library; or nothing, and the test is skipped, unless `TRANSOM_CI_REQUIRE_OFI` is set.
pub fn library() -> Option<&'static Library> {
    match Library::open() {
        Ok(library) => Some(library),
        Err(error) if env::var_os("TRANSOM_CI_REQUIRE_OFI").is_none() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The provider that every test of data transfer uses, on loopback.
pub fn loopback(caps: u64) -> Hints {
    Hints {
        provider: Some("tcp;ofi_rxm".into()),
        caps,
        source_node: Some("127.0.0.1".into()),
        ..Hints::default()
    }
}

/// The first offer; or nothing, as for the library.
pub fn offer(library: &'static Library, hints: &Hints) -> Option<Info> {
    let first = hints.query(library).unwrap().into_iter().next();
    if first.is_none() {
        assert!(env::var_os("TRANSOM_CI_REQUIRE_OFI").is_none(), "nobody offers {hints:?}");
        println!("skipped: {} does not offer {:?}", library.path().display(), hints.provider);
    }
    first
}

/// An endpoint that knows its peer.
pub struct Side {
    pub endpoint: Endpoint,
    pub queue: Arc<CompletionQueue>,
    pub domain: Arc<Domain>,
    pub fabric: Arc<Fabric>,
    pub peer: Address,
}

/// Two of them, each with a domain of its own.
pub fn pair(info: &Info) -> [Side; 2] {
    let open = || {
        let fabric = Fabric::open(info).unwrap();
        let domain = Domain::open(&fabric, info).unwrap();
        let queue = CompletionQueue::open(&domain, &QueueOptions { size: 64, wait: Wait::Fd }).unwrap();
        let peers = AddressVector::open(&domain, info, 2).unwrap();
        let options = EndpointOptions { min_multi_recv: Some(64), ..EndpointOptions::default() };
        let endpoint = Endpoint::open(&domain, info, &peers, &queue, &queue, &options).unwrap();
        Side { endpoint, queue, domain, fabric, peer: Address::ANY }
    };
    let (mut a, mut b) = (open(), open());
    a.peer = a.endpoint.addresses().insert(&b.endpoint.name().unwrap()).unwrap();
    b.peer = b.endpoint.addresses().insert(&a.endpoint.name().unwrap()).unwrap();
    [a, b]
}

const TIMEOUT: Duration = Duration::from_secs(20);

impl Side {
    /// One completion, while the other side makes progress; whatever that side completes must be none.
    pub fn completion(&self, other: &Side) -> Completion {
        let start = Instant::now();
        let mut one = [Completion::EMPTY];
        loop {
            match self.queue.read(&mut one) {
                Ok(0) => {}
                Ok(_) => return one[0],
                Err(error) if error.is_error_available() => panic!("{:?}", self.queue.read_error()),
                Err(error) => panic!("{error}"),
            }
            assert_eq!(other.queue.read(&mut []).unwrap(), 0);
            assert!(start.elapsed() < TIMEOUT, "no completion");
        }
    }

    /// Posts until it is taken. Nothing may complete here in the meantime.
    pub fn post(
        &self,
        other: &Side,
        mut operation: impl FnMut(&Endpoint) -> Result<Posted, libfabric::FabricError>,
    ) {
        let start = Instant::now();
        while operation(&self.endpoint).unwrap() == Posted::Again {
            assert_eq!(self.queue.read(&mut []).unwrap(), 0);
            assert_eq!(other.queue.read(&mut []).unwrap(), 0);
            assert!(start.elapsed() < TIMEOUT, "never taken");
        }
    }
}
