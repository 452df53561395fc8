//! Little-endian numbers in byte slices.
//!
//! The `*_at` readers are for offsets that the caller's layout guarantees; [`Reader`] is
//! for bytes whose lengths come from disk: it never panics and never reads past the end.

/// `N` bytes at `at`: one check of the bounds for all of them.
#[inline]
fn array_at<const N: usize>(b: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&b[at..at + N]);
    array
}

/// The `u16` at `at`.
#[inline]
pub fn u16_at(b: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(b, at))
}

/// The `u32` at `at`.
#[inline]
pub fn u32_at(b: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(b, at))
}

/// The `u64` at `at`.
#[inline]
pub fn u64_at(b: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(b, at))
}

/// The 48-bit number at `at`.
#[inline]
pub fn u48_at(b: &[u8], at: usize) -> u64 {
    let [b0, b1, b2, b3, b4, b5] = array_at(b, at);
    u64::from_le_bytes([b0, b1, b2, b3, b4, b5, 0, 0])
}

/// Writes a `u16` at `at`.
#[inline]
pub fn put_u16(b: &mut [u8], at: usize, n: u16) {
    b[at..at + 2].copy_from_slice(&n.to_le_bytes());
}

/// Writes a `u32` at `at`.
#[inline]
pub fn put_u32(b: &mut [u8], at: usize, n: u32) {
    b[at..at + 4].copy_from_slice(&n.to_le_bytes());
}

/// Writes a `u64` at `at`.
#[inline]
pub fn put_u64(b: &mut [u8], at: usize, n: u64) {
    b[at..at + 8].copy_from_slice(&n.to_le_bytes());
}

/// Writes the low 48 bits of `n` at `at`.
#[inline]
pub fn put_u48(b: &mut [u8], at: usize, n: u64) {
    debug_assert!(n < 1 << 48, "48-bit number");
    b[at..at + 6].copy_from_slice(&n.to_le_bytes()[..6]);
}

/// Takes numbers and slices off the front of untrusted bytes.
#[derive(Debug, Clone)]
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads from the front of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// What has not been taken yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `n` bytes, or `None` if there are fewer.
    pub fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (head, tail) = self.rest.split_at_checked(n)?;
        self.rest = tail;
        Some(head)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    /// The next byte.
    pub fn u8(&mut self) -> Option<u8> {
        self.array::<1>().map(|[b]| b)
    }

    /// The next `u16`.
    pub fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    /// The next `u32`.
    pub fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// The next `u64`.
    pub fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// The next LEB128 number of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Option<u64> {
        match self.rest {
            [byte @ 0..0x80, rest @ ..] => {
                self.rest = rest;
                Some(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    /// As [`Reader::varint`], eight bytes at once: how many a number has is hard to predict.
    fn long_varint(&mut self) -> Option<u64> {
        let word = self.rest.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        let last = !word & 0x8080_8080_8080_8080;
        if self.rest.len() < 8 || last == 0 {
            return self.any_varint();
        }
        let len = last.trailing_zeros() as usize / 8 + 1;
        self.rest = &self.rest[len..];
        let sevens = word & (u64::MAX >> (64 - 8 * len));
        // Groups of 7 bits to groups of 14, of 28, of 56.
        let low = sevens & 0x007f_007f_007f_007f;
        let pairs = low | (sevens & 0x7f00_7f00_7f00_7f00) >> 1;
        let quads = (pairs & 0x3fff_0000_3fff) | (pairs & 0x3fff_0000_3fff_0000) >> 2;
        Some((quads & 0x0fff_ffff) | (quads & 0x0fff_ffff_0000_0000) >> 4)
    }

    fn any_varint(&mut self) -> Option<u64> {
        let mut n = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                return None;
            }
            n |= part << shift;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
}

/// Appends `n` as LEB128: seven bits a byte, low bits first.
pub fn push_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// Bytes [`push_varint`] takes for `n`.
pub fn varint_len(n: u64) -> usize {
    (64 - (n | 1).leading_zeros() as usize).div_ceil(7)
}

/// Writes a LEB128 number to the front of `b`; returns its bytes.
#[inline]
pub fn put_varint(b: &mut [u8], mut n: u64) -> usize {
    let mut len = 0;
    while n >= 0x80 {
        b[len] = n as u8 | 0x80;
        n >>= 7;
        len += 1;
    }
    b[len] = n as u8;
    len + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_refuse_overlong() {
        for n in [0, 1, 127, 128, 300, 1 << 20, u64::MAX >> 1, u64::MAX] {
            let mut out = Vec::new();
            push_varint(&mut out, n);
            assert_eq!(out.len(), varint_len(n));
            let mut fixed = [0; 10];
            let len = put_varint(&mut fixed, n);
            assert_eq!(fixed[..len], out);
            assert_eq!(Reader::new(&out).varint(), Some(n));
            assert_eq!(Reader::new(&out[..out.len() - 1]).varint(), None);
        }
        // Every length, with every bit set that it has and with few, before other bytes.
        for bits in 1..=64 {
            for n in
                [u64::MAX >> (64 - bits), 1 << (bits - 1), 0x5a5a_5a5a_5a5a_5a5a >> (64 - bits)]
            {
                for behind in [&[][..], &[0; 8], &[0xff; 9]] {
                    let mut out = Vec::new();
                    push_varint(&mut out, n);
                    let len = out.len();
                    out.extend_from_slice(behind);
                    let mut reader = Reader::new(&out);
                    assert_eq!(reader.varint(), Some(n));
                    assert_eq!(out.len() - reader.rest().len(), len);
                }
            }
        }
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
    }
}
