//! What the allocator knows of free space, for reports.
//!
//! Owns: [`SpacePicture`]. Changes nothing.

use super::Allocator;
use holdall_core::RunSet;
use std::collections::BTreeSet;

/// Free space that bitmaps do not hold, at one moment.
#[derive(Debug, Clone)]
pub struct SpacePicture {
    /// Pages of the volume.
    pub volume_pages: u64,
    /// Pages freed but not yet reusable.
    pub waiting: RunSet,
    /// Pages reserved by transactions and staged data.
    pub reserved: RunSet,
    /// Free runs known to have no blocks.
    pub holes: RunSet,
    /// Spaces of which any free run may have no blocks.
    pub unknown: BTreeSet<u32>,
    /// Free bytes that keep their blocks, whatever the store holds.
    pub spare_bytes: u64,
    /// The same as a share of what the store holds.
    pub spare_share: f64,
}

impl SpacePicture {
    /// [`Options::space_factor`](crate::Options::space_factor): half of it beyond 1 is spare.
    pub fn space_factor(&self) -> f64 {
        1.0 + 2.0 * self.spare_share
    }
}

impl Allocator {
    /// What is free, and in which way. Cost: a copy of the sets, under the allocator's lock.
    pub fn picture(&self) -> SpacePicture {
        let s = self.state.lock();
        let mut reserved = s.reserved.clone();
        s.windows.free_runs().for_each(|run| reserved.remove(run));
        SpacePicture {
            volume_pages: s.volume_pages,
            waiting: s.waiting.clone(),
            reserved,
            holes: s.holes.clone(),
            unknown: s.unknown.clone(),
            spare_bytes: self.limits.spare_bytes,
            spare_share: self.limits.spare_share,
        }
    }
}
