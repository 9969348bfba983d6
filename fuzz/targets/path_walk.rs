//! libFuzzer's face of [`fuzz::path_walk`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::path_walk::run(data));
