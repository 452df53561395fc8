//! Options of a simulated store.
//!
//! Owns: [`Params`], drawn by seed from ranges that reach down to the least the store takes.

use crate::clock;
use holdall::Options;
use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use std::time::Duration;

/// The options that a script fixes. Fields are as in [`Options`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Bytes of a page.
    pub page_size: usize,
    /// Pages of a buddy space.
    pub space_pages: Option<u32>,
    /// What holds for one opening only.
    pub tuning: Tuning,
    /// Largest size of the file in bytes.
    pub max_bytes: u64,
    /// Whether sums of all bytes are kept beside the store, for verification.
    pub debug_sums: bool,
}

/// The options that may differ from opening to opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tuning {
    /// Bytes of pages in memory.
    pub cache_bytes: usize,
    /// Pages that may wait for a checkpoint.
    pub dirty_pages: usize,
    /// Bytes of changed pages that a transaction keeps in memory.
    pub transaction_bytes: usize,
    /// Bytes of checksums that a transaction keeps in memory.
    pub checksum_bytes: usize,
    /// Bytes of old page versions for snapshots.
    pub old_version_bytes: usize,
    /// Bytes of freed space for snapshots.
    pub pinned_bytes: Option<u64>,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of a new log.
    pub first_log_bytes: u64,
    /// New data of a commit that passes through the log.
    pub log_data_bytes: usize,
    /// Least step of growth.
    pub growth_bytes: u64,
    /// Free bytes that keep their blocks.
    pub spare_bytes: u64,
    /// Collections for which it is remembered where their next objects go.
    pub most_placements: usize,
    /// Spaces whose free pages are kept in memory.
    pub most_trees: usize,
    /// Objects up to which a collection is small, and bytes of their records.
    pub small: (u64, u64),
    /// Whether checkpoints start by themselves.
    pub auto_checkpoint: bool,
}

/// The id of every simulated store.
pub(crate) const STORE_ID: [u8; 16] = *b"holdallsimulator";

/// How long deferred commits may wait.
pub(crate) const DEFER: Duration = Duration::from_millis(200);
/// Old versions are never given up with this budget.
const UNBOUNDED: usize = 1 << 40;

impl Tuning {
    /// Draws the options of one opening.
    pub fn draw(rng: &mut SmallRng, page_size: usize) -> Self {
        let pages = *[1, 2, 7, 40, 1000, 20_000].choose(rng).unwrap_or(&40);
        let log = *[64 << 10, 68 << 10, 128 << 10, 512 << 10, 1 << 20, 4 << 20]
            .choose(rng)
            .unwrap_or(&(64 << 10));
        let direct = *[0, page_size, 4 * page_size, 64 << 10, 1 << 20].choose(rng).unwrap_or(&0);
        let growth = *[1, 16 << 10, 256 << 10].choose(rng).unwrap_or(&1);
        let old = *[0, 8 * page_size, UNBOUNDED, UNBOUNDED].choose(rng).unwrap_or(&UNBOUNDED);
        Self {
            cache_bytes: pages * page_size,
            dirty_pages: *[16, 24, 64, 1000, 4096].choose(rng).unwrap_or(&64),
            // A third of the openings: two pages.
            transaction_bytes: if growth == 1 { 2 * page_size } else { 32 << 20 },
            // Half of the openings: a few checksums, or none.
            checksum_bytes: match pages {
                1 => 0,
                2 | 1000 => 512,
                _ => 2 << 20,
            },
            old_version_bytes: old,
            // Memory alone gives no snapshot up.
            pinned_bytes: if old == 0 { Some(0) } else { None },
            log_bytes: log,
            // Checkpoints with work between their steps need a log of its full size.
            first_log_bytes: if log == 128 << 10 || log == 4 << 20 { 32 << 10 } else { 1 << 20 },
            log_data_bytes: direct,
            growth_bytes: growth,
            // Not drawn: other draws of a seed stay as they are.
            spare_bytes: if growth == 1 { 0 } else { growth },
            most_placements: if log == 68 << 10 || log == 1 << 20 { 1 } else { 256 },
            most_trees: if log == 128 << 10 || log == 4 << 20 { 1 } else { 4096 },
            // Not drawn either. Four of a border are one of a collection that becomes small.
            small: match log {
                0x1_0000 => (4, 4000),
                0x1_1000 => (8, 8000),
                0x2_0000 => (1000, 64 << 10),
                0x8_0000 => (4, 64 << 10),
                0x10_0000 => (12, 1 << 20),
                _ => (1000, 6000),
            },
            auto_checkpoint: rng.random_bool(0.7),
        }
    }
}

impl Params {
    /// Draws options.
    pub fn draw(rng: &mut SmallRng) -> Self {
        let page_size = *[4096, 4096, 8192, 16384].choose(rng).unwrap_or(&4096);
        let spaces = [Some(64), Some(128), Some(512), Some(2048), None];
        let max_bytes = match rng.random_range(0..6) {
            0 => rng.random_range(40..400) * page_size as u64,
            _ => u64::MAX,
        };
        Self {
            page_size,
            space_pages: *spaces.choose(rng).unwrap_or(&None),
            tuning: Tuning::draw(rng, page_size),
            max_bytes,
            debug_sums: false,
        }
    }

    /// The least of everything, for the exhaustive test: few calls, every path near.
    pub fn tiny() -> Self {
        Self {
            page_size: 4096,
            space_pages: Some(64),
            tuning: Tuning {
                cache_bytes: 4096,
                dirty_pages: 64,
                transaction_bytes: 32 << 20,
                checksum_bytes: 2 << 20,
                old_version_bytes: UNBOUNDED,
                pinned_bytes: None,
                log_bytes: 64 << 10,
                first_log_bytes: 1 << 20,
                log_data_bytes: 8192,
                growth_bytes: 1,
                spare_bytes: 0,
                most_placements: 256,
                most_trees: 4096,
                small: (4, 4000),
                auto_checkpoint: true,
            },
            max_bytes: u64::MAX,
            debug_sums: false,
        }
    }

    /// The store's options.
    pub fn options(&self) -> Options {
        let t = &self.tuning;
        Options::default()
            .page_size(self.page_size)
            .tuning(|set| set.space_pages(self.space_pages))
            .cache_bytes(t.cache_bytes)
            .tuning(|set| set.dirty_pages(t.dirty_pages).transaction_bytes(t.transaction_bytes))
            .tuning(|set| set.checksum_bytes(t.checksum_bytes))
            .old_version_bytes(t.old_version_bytes)
            .pinned_bytes(t.pinned_bytes)
            .tuning(|set| {
                set.log_bytes(t.log_bytes)
                    .log_data_bytes(t.log_data_bytes)
                    .growth_bytes(t.growth_bytes)
                    .spare_bytes(t.spare_bytes)
                    .most_placements(t.most_placements)
                    .most_trees(t.most_trees)
                    .small_collections(t.small.0, t.small.1)
            })
            .max_bytes(self.max_bytes)
            .debug_sums(self.debug_sums)
            .tuning(|set| set.first_log_bytes(t.first_log_bytes))
            .background(false)
            .defer(DEFER)
            .tuning(|set| {
                set.auto_checkpoint(t.auto_checkpoint).store_id(STORE_ID).clock(clock::next)
            })
    }
}
