//! Checksums: CRC-32C, chosen because processors compute it (docs/design.md); and [`Sum`], which
//! distinguishes bytes of any length, for tests.

use crc_fast::{CrcAlgorithm, Digest};
use std::fmt;

/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32C of several parts, as if they were one.
pub fn crc_of(parts: &[&[u8]]) -> u32 {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize() as u32
}

/// Continues a CRC-32C with a few more bytes. Cost: a table look-up for each.
pub fn crc_append(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |state, byte| TABLE[usize::from(state as u8 ^ byte)] ^ (state >> 8))
}

/// What distinguishes an object's bytes from others, wherever they lie: their number and CRC-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sum {
    /// How many there are.
    pub len: u64,
    /// Their CRC-64/NVME.
    pub crc: u64,
}

impl Sum {
    /// Of `bytes`.
    pub fn compute(bytes: &[u8]) -> Self {
        Self { len: bytes.len() as u64, crc: crc_fast::crc64_nvme(bytes) }
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes with CRC-64 {:016x}", self.len, self.crc)
    }
}

/// A [`Sum`] of bytes that come in parts.
#[derive(Debug, Clone)]
pub struct Summing(Digest);

impl Summing {
    /// Of no bytes so far.
    pub fn new() -> Self {
        Self(Digest::new(CrcAlgorithm::Crc64Nvme))
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The sum of all bytes taken.
    pub fn sum(&self) -> Sum {
        Sum { len: self.0.get_amount(), crc: self.0.finalize() }
    }
}

impl Default for Summing {
    fn default() -> Self {
        Self::new()
    }
}

/// What eight bits contribute, by the reversed polynomial.
static TABLE: [u32; 256] = table();

const fn table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let (mut value, mut bit) = (i as u32, 0);
        while bit < 8 {
            value = if value & 1 == 1 { value >> 1 ^ 0x82f6_3b78 } else { value >> 1 };
            bit += 1;
        }
        table[i] = value;
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};

    /// Check value of the CRC catalogue, and those of RFC 3720, B.4.
    #[test]
    fn known_values() {
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc(&[0xff; 32]), 0x62a8_ab43);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc(&up), 0x46dd_794e);
        assert_eq!(crc(b""), 0);
    }

    /// Check value of the CRC catalogue; parts sum as the whole.
    #[test]
    fn sums_do_not_depend_on_the_parts() {
        assert_eq!(Sum::compute(b"123456789"), Sum { len: 9, crc: 0xae8b_1486_0a79_9888 });
        let bytes: Vec<u8> = (0..70_000u32).map(|i| ((i * 7) >> 3) as u8).collect();
        for at in [0, 1, 4096, 69_999] {
            let mut parts = Summing::new();
            parts.update(&bytes[..at]);
            parts.update(&bytes[at..]);
            assert_eq!(parts.sum(), Sum::compute(&bytes), "{at}");
        }
        let mut other = bytes.clone();
        other[5] ^= 1;
        assert_ne!(Sum::compute(&other), Sum::compute(&bytes));
    }

    /// By the definition: reflected, polynomial 0x1edc6f41, bit by bit.
    fn by_bits(before: u32, bytes: &[u8]) -> u32 {
        let step = |c: u32| if c & 1 == 1 { c >> 1 ^ 0x82f6_3b78 } else { c >> 1 };
        !bytes.iter().fold(!before, |c, b| (0..8).fold(c ^ u32::from(*b), |c, _| step(c)))
    }

    #[test]
    fn all_lengths_at_all_alignments_follow_the_definition() {
        let mut rng = SmallRng::seed_from_u64(3);
        let mut bytes = vec![0; 70_000];
        rng.fill_bytes(&mut bytes);
        let random = (0..300).map(|_| rng.random_range(0..66_000));
        for (i, len) in (0..1200).chain([4096, 8180, 65_536]).chain(random).enumerate() {
            let part = &bytes[i % 67..][..len];
            assert_eq!(crc(part), by_bits(0, part), "{len} bytes");
            let (a, b) = part.split_at(i * 7 % (len + 1));
            assert_eq!(crc_append(crc(a), b), crc(part), "{len} bytes, {} first", a.len());
            assert_eq!(crc_of(&[a, &[], b]), crc(part), "{len} bytes, {} first", a.len());
        }
    }
}
