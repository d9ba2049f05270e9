//! Fuzzes objects of packs, and git's deltas; the checks are in the library.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| larder_fuzz::check_pack_object(data));
