//! Bodies of the fuzz targets: bytes in, no panic, no hang, no unbounded memory.
//!
//! Used by `fuzz/` (cargo-fuzz) with bytes that a fuzzer evolves, and by `tests/fuzz.rs` with
//! seeded ones. Each body builds something valid, changes it as the input says, with right
//! checksums, and then uses all of it: what is nonsense must give errors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a target fails by panicking")]

mod backup;
mod kinds;
pub mod log;
mod model;
mod pages;
mod store;

pub use backup::restored_store;
pub use kinds::hostile_store;
pub use log::hostile_log;
pub use model::model;
pub use pages::{
    descriptor, handle_page, heap_page, heap_record, log_blocks, names_node, page_header,
    page_map_node, segment_node, space_dir, space_info, superblock,
};
pub use store::{open_store, salvaged_store, write_store};

/// A body.
pub type Body = fn(&[u8]);

/// All bodies by name.
pub const ALL: [(&str, Body); 19] = [
    ("superblock", superblock),
    ("log_blocks", log_blocks),
    ("page_header", page_header),
    ("heap_page", heap_page),
    ("handle_page", handle_page),
    ("names_node", names_node),
    ("page_map_node", page_map_node),
    ("space_dir", space_dir),
    ("space_info", space_info),
    ("segment_node", segment_node),
    ("descriptor", descriptor),
    ("heap_record", heap_record),
    ("hostile_log", hostile_log),
    ("hostile_store", hostile_store),
    ("open_store", open_store),
    ("write_store", write_store),
    ("restored_store", restored_store),
    ("salvaged_store", salvaged_store),
    ("model", model),
];

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
