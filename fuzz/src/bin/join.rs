//! Fuzzes the merge of two cards; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_join(data));
