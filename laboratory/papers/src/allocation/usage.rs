//! What is counted of a file of blocks, and the fragmentation that follows (Iyengar §3.3.1). Owns no
//! state. Threads: none.

/// How often each of the algorithm's steps answered a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// From a quick list of just the size.
    pub quick: u64,
    /// From a misc list without a split.
    pub misc: u64,
    /// From the tail.
    pub tail: u64,
    /// From a list of larger blocks.
    pub larger: u64,
    /// Blocks split, wherever they came from.
    pub splits: u64,
    /// Blocks given back.
    pub freed: u64,
    /// Times the file was coalesced.
    pub coalesced: u64,
    /// Writes of another block's header because a list on disk lost a block within it (PFL).
    pub unlinks: u64,
    /// Writes of the file's header.
    pub checkpoints: u64,
}

/// What a file holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Allocated blocks.
    pub blocks: u64,
    /// Bytes of allocated blocks, headers and waste included.
    pub allocated: u64,
    /// Bytes that were asked for in them. After a crash as of the last checkpoint.
    pub requested: u64,
    /// Free blocks known.
    pub free_blocks: u64,
    /// Bytes of free blocks known.
    pub free: u64,
    /// Bytes up to the tail.
    pub tail: u64,
    /// The most that was.
    pub most: u64,
}

impl Usage {
    /// Internal fragmentation f_i = a ÷ b (§3.3.1).
    pub fn internal(&self) -> f64 {
        self.allocated as f64 / self.requested as f64
    }

    /// External fragmentation f_e = M ÷ a (§3.3.1), M being the most storage needed so far and
    /// a what is allocated now.
    pub fn external(&self) -> f64 {
        self.most as f64 / self.allocated as f64
    }

    /// Total fragmentation: the product.
    pub fn total(&self) -> f64 {
        self.internal() * self.external()
    }
}
