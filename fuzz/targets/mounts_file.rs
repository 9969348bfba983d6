//! libFuzzer's face of [`fuzz::mounts_file`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::mounts_file::run(data));
