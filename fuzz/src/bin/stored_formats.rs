//! Fuzzes the serialised formats of a store's file; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_stored_formats(data));
