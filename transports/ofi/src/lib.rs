//! libfabric transport.
