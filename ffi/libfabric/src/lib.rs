//! RAII over libfabric's objects.
