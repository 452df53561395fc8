//! What is known beforehand of how an object will be used.
//!
//! Owns: [`Hints`], which callers give, and [`StoredHints`], what of them descriptors and
//! collections keep. Hints never change what is read or what survives, only how it lies.

use crate::segment_tree::DEFAULT_THRESHOLD;
use holdall_core::segment_tree::{APPEND_MOSTLY, Descriptor};

/// Longest threshold that an operation's size asks for, in bytes: beyond it the copies that
/// edits make to keep segments large cost more than the seeks they save.
const MOST_BYTES: u64 = 4 << 20;

/// How an object will be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// Bytes that a read or an edit of a part of it will typically take. Chooses the segment
    /// threshold T: segments then hold a whole operation (Biliris §4.4 to §4.6: reads want T
    /// above the operation's pages, edits pay for T in copies).
    pub operation_size: Option<u64>,
    /// T itself, in pages; goes before `operation_size`.
    pub threshold: Option<u16>,
    /// Whether it grows at its end most of the time, in pieces smaller than a page: up to a
    /// page of its last bytes is then kept in its record, not half a page, so that pages are
    /// written when they are full.
    pub append_mostly: bool,
}

impl Hints {
    /// What is kept of them in a store of this page size.
    pub(crate) fn kept(&self, page_size: usize) -> StoredHints {
        let pages = |bytes: u64| {
            let pages = bytes.min(MOST_BYTES).div_ceil(page_size as u64);
            u16::try_from(pages).unwrap_or(u16::MAX).max(DEFAULT_THRESHOLD)
        };
        let threshold = self.threshold.or(self.operation_size.map(pages)).unwrap_or(0);
        StoredHints { threshold, flags: if self.append_mostly { APPEND_MOSTLY } else { 0 } }
    }
}

/// What descriptors and collections keep of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StoredHints {
    /// T in pages; 0 for the default.
    pub threshold: u16,
    /// [`APPEND_MOSTLY`] or nothing.
    pub flags: u8,
}

impl StoredHints {
    /// What a descriptor keeps.
    pub fn from_descriptor(d: &Descriptor) -> Self {
        Self { threshold: d.threshold, flags: d.flags & APPEND_MOSTLY }
    }

    /// Notes them in a descriptor.
    pub fn apply(self, d: &mut Descriptor) {
        d.threshold = self.threshold;
        d.flags = d.flags & !APPEND_MOSTLY | self.flags;
    }
}
