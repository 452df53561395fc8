//! Objects: their sizes, their bytes, and the table of those that live.
//!
//! Owns the table: positions, each free or with one object. A deletion draws a position; a
//! creation takes the position freed last. Threads: none.

use crate::free_space::heap_file::Rid;
use rand::Rng;
use rand::rngs::SmallRng;

/// How long objects are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sizes {
    /// 100 to 300 bytes, uniform (McAuliffe §5.1).
    Uniform,
    /// The same; of 20 objects one has 5000 bytes (§5.2).
    Mixed,
    /// All the same.
    Fixed(u16),
}

impl Sizes {
    /// The size of the next object.
    pub fn draw(self, rng: &mut SmallRng) -> usize {
        match self {
            Self::Mixed if rng.random_ratio(1, 20) => 5000,
            Self::Uniform | Self::Mixed => rng.random_range(100..=300),
            Self::Fixed(len) => usize::from(len),
        }
    }
}

/// Fills `out` with the `len` bytes of object number `id`.
pub fn content(id: u32, len: usize, out: &mut Vec<u8>) {
    out.clear();
    let mut x = (u64::from(id) + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    while out.len() < len {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        out.extend_from_slice(&x.to_le_bytes());
    }
    out.truncate(len);
}

/// An object that lives.
#[derive(Debug, Clone, Copy)]
pub(super) struct Live {
    pub(super) rid: Rid,
    pub(super) id: u32,
    pub(super) len: u16,
}

/// The table.
#[derive(Debug)]
pub(super) struct Objects {
    at: Vec<Option<Live>>,
    free: Vec<u32>,
    bytes: u64,
}

impl Objects {
    pub(super) fn new() -> Self {
        Self { at: Vec::new(), free: Vec::new(), bytes: 0 }
    }

    pub(super) fn count(&self) -> usize {
        self.at.len() - self.free.len()
    }

    /// Bytes of the objects, without their slots.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn put(&mut self, live: Live) {
        self.bytes += u64::from(live.len);
        match self.free.pop() {
            Some(at) => self.at[at as usize] = Some(live),
            None => self.at.push(Some(live)),
        }
    }

    /// Takes an object out, to be deleted; `None` if there is none.
    pub(super) fn take(&mut self, rng: &mut SmallRng) -> Option<Live> {
        if self.count() == 0 {
            return None;
        }
        loop {
            let at = rng.random_range(0..self.at.len());
            if let Some(live) = self.at[at].take() {
                self.free.push(at as u32);
                self.bytes -= u64::from(live.len);
                return Some(live);
            }
        }
    }
}
