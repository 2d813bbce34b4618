//! PMI-1: the wire format, and a client for it.
