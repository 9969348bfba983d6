//! libFuzzer's face of [`fuzz::operations`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::operations::run(data));
