//! libFuzzer's face of [`fuzz::acl`].
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::acl::run(data));
