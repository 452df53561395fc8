//! The body `bucket_intent` of crates/holdall-bucket/tests/fuzz_bodies.
#![no_main]

#[path = "../../crates/holdall-bucket/tests/fuzz_bodies/mod.rs"]
#[expect(dead_code, reason = "a target uses one body")]
mod bodies;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    bodies::bucket_intent(data);
});
