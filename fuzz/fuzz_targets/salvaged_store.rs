//! The body `salvaged_store` of crates/holdall/tests/fuzz_bodies.
#![no_main]

#[path = "../../crates/holdall/tests/fuzz_bodies/mod.rs"]
#[expect(dead_code, reason = "a target uses one body")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| bodies::salvaged_store(data));
