//! What the walk sums up, for the score and the contract on space.
//!
//! Owns: [`Sums`].

/// Sums over objects and heap pages.
#[derive(Debug, Default)]
pub(super) struct Sums {
    pub(super) small: u64,
    pub(super) large: u64,
    pub(super) name_bytes: u64,
    /// Bytes of objects, those in pieces counted for each object, holes left out.
    pub(super) object_bytes: u64,
    pub(super) piece_bytes: u64,
    pub(super) cut_bytes: u64,
    pub(super) pieces: u64,
    pub(super) fewest: u64,
    pub(super) excess: u64,
    /// Bytes · excess, and bytes · share of the fewest in all pieces.
    pub(super) excess_bytes: f64,
    pub(super) whole_bytes: f64,
    pub(super) heap_used: u64,
    pub(super) heap_capacity: u64,
    pub(super) slack_pages: u64,
    pub(super) slack_cost: u64,
    /// The most heap pages that the records seen may take.
    pub(super) most_heap_pages: u64,
    /// The most pages of everything else but the volume's own.
    pub(super) most_metadata_pages: u64,
    /// Free pages with blocks that are not given back as a rule.
    pub(super) kept_pages: u64,
}
