//! Checksums: CRC-32C, chosen because processors compute it (docs/design.md).

use crc_fast::{CrcAlgorithm::Crc32Iscsi, Digest};

/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Continues a CRC-32C with more bytes.
pub fn crc_append(crc: u32, bytes: &[u8]) -> u32 {
    // The state of the computation is the checksum's complement.
    let mut digest = Digest::new_with_init_state(Crc32Iscsi, u64::from(!crc));
    digest.update(bytes);
    digest.finalize() as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, RngCore, SeedableRng, rngs::SmallRng};

    /// By the definition: reflected, polynomial 0x1edc6f41, bit by bit.
    fn by_bits(before: u32, bytes: &[u8]) -> u32 {
        let step = |c: u32| if c & 1 == 1 { c >> 1 ^ 0x82f6_3b78 } else { c >> 1 };
        !bytes.iter().fold(!before, |c, b| (0..8).fold(c ^ u32::from(*b), |c, _| step(c)))
    }

    #[test]
    fn the_known_value() {
        assert_eq!(crc(b"123456789"), 0xe306_9283);
        assert_eq!(crc(b""), 0);
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
        }
    }
}
