//! The variants of what the paper leaves open. Owns no state.

use crate::free_space::algorithm::{CacheOptions, Kind, Pick, WitnessOptions};

const EMPTIEST: WitnessOptions = WitnessOptions { emptiest: true, cursor_of_searches: false };
const AO_EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::AO };
const HY_EXACT: CacheOptions = CacheOptions { exact: true, ..CacheOptions::HY };
const OLDEST_FIRST: CacheOptions = CacheOptions { pick: Pick::Oldest, ..CacheOptions::HY };

/// AO(8) read as HY's cache is: the fullest page leaves.
pub(super) const AO_FULLEST: Kind = Kind::AoWith(8, CacheOptions::HY, "the fullest page leaves");
/// NF(WH) read so that only searches move the cursor.
pub(super) const NF_WH_SEARCHES: Kind = Kind::NfWhWith(
    WitnessOptions { emptiest: false, cursor_of_searches: true },
    "the cursor moves with searches",
);

/// For fills.
pub(super) const FILLS: [Kind; 10] = [
    Kind::Ao(8),
    AO_FULLEST,
    Kind::AoWith(8, AO_EXACT, "exact free bytes"),
    Kind::NfWh,
    NF_WH_SEARCHES,
    Kind::NfWhWith(EMPTIEST, "emptiest witness first"),
    Kind::NfH,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, HY_EXACT, "exact free bytes"),
    Kind::HyEngine(8, 87),
];

/// For Create-Delete: the same, u taken strictly, and the rest of the family.
pub(super) const CHURNS: [Kind; 16] = [
    Kind::Ao(1),
    Kind::Ao(8),
    AO_FULLEST,
    Kind::AoWith(8, AO_EXACT, "exact free bytes"),
    Kind::Ff,
    Kind::FfDb2,
    Kind::Nf,
    Kind::NfH,
    Kind::NfWh,
    NF_WH_SEARCHES,
    Kind::NfWhWith(EMPTIEST, "emptiest witness first"),
    Kind::Bf,
    Kind::Hy(8, 0.875),
    Kind::HyWith(8, 0.875, HY_EXACT, "exact free bytes"),
    Kind::HyWith(8, 0.875, OLDEST_FIRST, "oldest page first"),
    Kind::HyEngine(8, 87),
];

/// Pairs of name and a value of u that the paper's "u = 87 %" may mean.
pub(super) const TARGETS: [(&str, f64); 3] =
    [("7/8: pages from bucket 5 on", 0.875), ("0.87: from bucket 6 on", 0.87), ("0.90", 0.90)];
