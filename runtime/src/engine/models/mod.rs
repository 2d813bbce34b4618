//! The engine's tables under a model checker: the same source files, compiled with its locks and atomics.

#![allow(clippy::duplicate_mod, reason = "the point of it")]
#![allow(dead_code, unreachable_pub, reason = "a model uses a part of each table")]

#[path = "../awaited.rs"]
mod awaited;
mod awaiting;
#[path = "../claims.rs"]
mod claims;
mod copying;
mod detach;
mod flush;
mod grant;
mod masking;
mod receiving;
mod sync;

#[path = "../mask.rs"]
mod mask;
#[path = "../pending.rs"]
mod pending;
#[path = "../receive_slots.rs"]
mod receive_slots;
#[path = "../regions.rs"]
mod regions;
#[path = "../requests.rs"]
mod requests;
#[path = "../sent.rs"]
mod sent;
#[path = "../target_state.rs"]
mod target_state;
#[path = "../targets.rs"]
mod targets;

/// What is done at the end of operations: nothing here.
#[derive(Debug)]
pub(crate) struct Engine;

/// What the agent does with what it gets: nothing here.
mod pull {
    #[derive(Debug)]
    pub struct Pull;
}

/// Runs `program` in many interleavings, at random and by priorities (PCT).
fn check(program: impl Fn() + Send + Sync + Copy + 'static) {
    shuttle::check_random(program, 3_000);
    shuttle::check_pct(program, 3_000, 3);
}
