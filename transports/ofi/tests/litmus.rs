//! What completions, order and atomics mean with libfabric, over loopback. `TRANSOM_OFI_PROVIDER` chooses the provider.

mod support;

use transom_conformance::litmus::pair;
use transom_conformance::litmus_tests;
use transom_litmus::Memory;

litmus_tests!(pair(&support::OFI, Memory::Allocated));
