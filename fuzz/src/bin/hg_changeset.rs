//! Fuzzes texts of changesets; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_hg_changeset(data));
