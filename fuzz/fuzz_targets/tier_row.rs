#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| tideline_fuzz::tier_row(bytes));
