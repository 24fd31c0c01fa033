#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tideline_fuzz::key_operation(bytes));
