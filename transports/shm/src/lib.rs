//! Shared-memory transport: memory files, cross-memory attach, CPU atomics.
