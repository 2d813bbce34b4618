//! The transport seam: the trait that every transport implements, and shared memory words.
