//! Checksums: CRC-32C, chosen because processors compute it (docs/design.md).

/// CRC-32C (Castagnoli) of `bytes`.
pub fn crc(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// Continues a CRC-32C with a few more bytes. Cost: a table look-up for each.
pub fn crc_append(crc: u32, bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!crc, |state, byte| TABLE[usize::from(state as u8 ^ byte)] ^ (state >> 8))
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

    /// All lengths at which the processor's ways change, at every alignment.
    #[test]
    fn every_length_is_as_byte_by_byte() {
        let bytes: Vec<u8> = (0..9000_u32).map(|i| (i * i / 7) as u8).collect();
        for len in (0..300).chain([511, 512, 1023, 4024, 4092, 4096, 8188, 8900]) {
            let at = len % 64;
            let part = &bytes[at..at + len];
            assert_eq!(crc(part), crc_append(0, part), "{len} bytes at {at}");
            let (a, b) = part.split_at(len / 3);
            assert_eq!(crc_append(crc(a), b), crc(part), "{len} bytes in two parts");
        }
    }
}
