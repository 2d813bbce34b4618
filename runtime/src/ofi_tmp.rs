#![allow(missing_docs, dead_code, unsafe_code)]
use transom_transport::*;
#[derive(Debug)]
pub enum Ofi {}
impl Ofi {
    pub fn new(_: transom_ofi::Options) -> TransportResult<Self> {
        Err(TransportError::Unavailable { transport: "ofi", reason: "stub".into() })
    }
}
impl Transport for Ofi {
    fn name(&self) -> &'static str {
        match *self {}
    }
    fn capabilities(&self) -> &Capabilities {
        match *self {}
    }
    fn address(&self) -> Vec<u8> {
        match *self {}
    }
    fn reaches(&self, _: &[u8]) -> bool {
        match *self {}
    }
    fn connect(&self, _: usize, _: &[u8]) -> TransportResult<()> {
        match *self {}
    }
    fn allocate(&self, _: usize) -> TransportResult<Option<Span>> {
        match *self {}
    }
    fn register(&self, _: &Span) -> TransportResult<Box<dyn Region>> {
        match *self {}
    }
    fn attach(&self, _: usize, _: &RegionKey) -> TransportResult<Remote> {
        match *self {}
    }
    unsafe fn put(&self, _: &Remote, _: usize, _: *const u8, _: usize, _: u64) -> TransportResult<Posted> {
        match *self {}
    }
    unsafe fn get(&self, _: &Remote, _: usize, _: *mut u8, _: usize, _: u64) -> TransportResult<Posted> {
        match *self {}
    }
    fn message(&self, _: usize, _: &[u8], _: &[u8]) -> TransportResult<Posted> {
        match *self {}
    }
    fn progress(&self, _: &mut dyn FnMut(Event<'_>)) -> TransportResult<usize> {
        match *self {}
    }
    fn abandon(&self) {
        match *self {}
    }
    fn wait_fd(&self) -> WaitFd {
        match *self {}
    }
    fn arm(&self) -> TransportResult<Armed> {
        match *self {}
    }
    fn disarm(&self, _: bool) {
        match *self {}
    }
}
