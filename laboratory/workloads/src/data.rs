//! Bytes and sizes of test objects, from a seed.

use rand::rngs::SmallRng;
use rand::{Rng, RngCore, SeedableRng};

/// Draws from a seed; the same seed gives the same workload.
pub fn rng(seed: u64) -> SmallRng {
    SmallRng::seed_from_u64(seed)
}

/// `len` random bytes, which nothing can compress; their memory is touched.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng(seed).fill_bytes(&mut bytes);
    bytes
}

/// Name number `i`; names are in the order of their numbers.
pub fn name(i: u64) -> String {
    format!("object-{i:010}")
}

/// A length from `least` to `most`, its logarithm evenly.
pub fn log_len(rng: &mut SmallRng, least: usize, most: usize) -> usize {
    let (from, to) = ((least as f64).ln(), (most as f64).ln());
    (rng.random_range(from..to).exp() as usize).clamp(least, most)
}
