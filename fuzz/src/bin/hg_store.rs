//! Fuzzes stores of Mercurial, sent as they are; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_hg_store(data));
