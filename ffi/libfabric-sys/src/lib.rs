//! Raw bindings to libfabric, opened at run time.
