//! What bodies make of a fuzzer's bytes: numbers, slices, and changes of other bytes.

/// The fuzzer's bytes, taken one number at a time; zeros behind their end.
#[derive(Debug)]
pub struct Input<'a>(pub &'a [u8]);

impl<'a> Input<'a> {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn u8(&mut self) -> u8 {
        match self.0.split_first() {
            Some((first, rest)) => {
                self.0 = rest;
                *first
            }
            None => 0,
        }
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.u8(), self.u8()])
    }

    pub fn u32(&mut self) -> u32 {
        u32::from(self.u16()) | u32::from(self.u16()) << 16
    }

    pub fn take(&mut self, n: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        head
    }

    /// Changes up to `most` places of `bytes` from `from` on: mostly near their beginning, where
    /// counts and offsets are.
    pub fn edit(&mut self, bytes: &mut [u8], from: usize, most: usize) {
        for _ in 0..most {
            if self.is_empty() || bytes.len() <= from {
                return;
            }
            let how = self.u8();
            let span = if how & 1 == 0 { 64.min(bytes.len() - from) } else { bytes.len() - from };
            let at = from + usize::from(self.u16()) % span;
            let value = self.u8();
            match how >> 1 & 3 {
                0 => bytes[at] = value,
                1 => bytes[at] ^= 1 << (value % 8),
                2 => bytes[at] = bytes[at].wrapping_add(value % 5).wrapping_sub(2),
                _ => {
                    let end = (at + 1 + usize::from(value % 8)).min(bytes.len());
                    bytes[at..end].fill(if value & 8 == 0 { 0 } else { 0xff });
                }
            }
        }
    }
}
