//! Fuzzes names of files in maildirs; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_maildir_name(data));
