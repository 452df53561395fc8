//! The random numbers of faults and crashes ([`Rng`]).
//!
//! Owns one 64-bit state. Written here and not taken from a crate because a failing seed in a bug
//! report must give the same crash in every later version. SplitMix64 (Steele, Lea, Flood, "Fast
//! Splittable Pseudorandom Number Generators", 2014).

/// A stream of random numbers, the same for the same seed for ever.
#[derive(Clone, Debug)]
pub(super) struct Rng(u64);

impl Rng {
    /// The stream of this seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `n`, or 0 if `n` is 0. Slightly uneven, which does not matter here.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }

    /// True half of the time.
    pub(super) fn coin(&mut self) -> bool {
        self.next() >> 63 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_a_seed_never_changes() {
        // The first numbers for seed 1234567 of the published reference implementation.
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next(), 3_203_168_211_198_807_973);
        assert!((0..1000).all(|_| rng.below(7) < 7));
    }
}
