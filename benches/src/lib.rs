//! Network microbenchmarks beside their limits.
