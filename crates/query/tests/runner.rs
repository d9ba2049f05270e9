//! Tests through the public API, in one binary.
