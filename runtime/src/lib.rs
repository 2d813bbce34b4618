//! One-sided communication: windows, epochs, put, get, atomics.
