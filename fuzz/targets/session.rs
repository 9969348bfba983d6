//! libFuzzer's face of [`fuzz::session`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::session::run(data));
