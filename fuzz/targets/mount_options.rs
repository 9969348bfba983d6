//! libFuzzer's face of [`fuzz::mount_options`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::mount_options::run(data));
