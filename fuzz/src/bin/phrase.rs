//! Fuzzes dates, windows and events as people type them; what is checked is in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_phrase(data));
