//! Bodies of the fuzz targets: bytes in, no panic, no hang, no unbounded memory.
//!
//! Used by `fuzz/` (cargo-fuzz) with bytes that a fuzzer evolves, and by `tests/fuzz.rs` with
//! seeded ones. Each body builds something valid, changes it as the input says, with right
//! checksums, and then uses all of it: what is nonsense must give errors.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a target fails by panicking")]

mod backup;
mod input;
mod kinds;
pub mod log;
mod model;
mod pages;
mod store;

pub use backup::restored_store;
pub use input::Input;
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
