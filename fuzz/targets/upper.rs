//! libFuzzer's face of [`fuzz::upper`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::upper::run(data));
