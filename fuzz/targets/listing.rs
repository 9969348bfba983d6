//! libFuzzer's face of [`fuzz::listing`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::listing::run(data));
