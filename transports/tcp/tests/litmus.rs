//! What completions and order mean with TCP, over loopback.

mod support;

use transom_conformance::litmus::pair;
use transom_conformance::litmus_tests;
use transom_litmus::Memory;

litmus_tests!(pair(&support::TCP, Memory::Allocated));
