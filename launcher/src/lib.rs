//! The command `transom`: run, info.
