//! The variants of what the paper leaves open. Owns no state.

use crate::free_space::algorithm::{CacheOptions, Eviction, Kind, Pick, WitnessOptions};

const ALWAYS: WitnessOptions = WitnessOptions { emptiest: false, cursor_always: true };
const EMPTIEST: WitnessOptions = WitnessOptions { emptiest: true, cursor_always: false };
const EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::PAPER };
const OLDEST_LEAVES: CacheOptions =
    CacheOptions { eviction: Eviction::Oldest, ..CacheOptions::PAPER };
const OLDEST_FIRST: CacheOptions = CacheOptions { pick: Pick::Oldest, ..CacheOptions::PAPER };

/// For fills.
pub(super) const FILLS: [Kind; 10] = [
    Kind::Ao(8),
    Kind::AoWith(8, OLDEST_LEAVES, "the oldest page leaves"),
    Kind::AoWith(8, EXACT, "exact free bytes"),
    Kind::NfWh,
    Kind::NfWhWith(ALWAYS, "cursor follows every allocation"),
    Kind::NfWhWith(EMPTIEST, "emptiest witness first"),
    Kind::NfH,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, EXACT, "exact free bytes"),
    Kind::HyEngine(8, 87),
];

/// For Create-Delete: the same, u taken strictly, and the rest of the family.
pub(super) const CHURNS: [Kind; 16] = [
    Kind::Ao(1),
    Kind::Ao(8),
    Kind::AoWith(8, OLDEST_LEAVES, "the oldest page leaves"),
    Kind::AoWith(8, EXACT, "exact free bytes"),
    Kind::Ff,
    Kind::FfDb2,
    Kind::Nf,
    Kind::NfH,
    Kind::NfWh,
    Kind::NfWhWith(ALWAYS, "cursor follows every allocation"),
    Kind::NfWhWith(EMPTIEST, "emptiest witness first"),
    Kind::Bf,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, EXACT, "exact free bytes"),
    Kind::HyWith(8, 0.875, OLDEST_FIRST, "oldest page first"),
    Kind::HyEngine(8, 87),
];

/// Pairs of name and a value of u that the paper's "u = 87 %" may mean.
pub(super) const TARGETS: [(&str, f64); 3] =
    [("7/8: pages from bucket 5 on", 0.875), ("0.87: from bucket 6 on", 0.87), ("0.90", 0.90)];
