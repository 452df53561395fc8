//! What happened in runs.

/// What happened in runs. A generator that no longer does anything must not pass.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub runs: u64,
    pub steps: u64,
    pub done: u64,
    pub lost: u64,
    pub unknown: u64,
    pub crashed: u64,
    pub late: u64,
    pub blobs_deleted: u64,
    pub records_removed: u64,
    /// Changes of trees that were done, and joints.
    pub trees: u64,
    pub joints: u64,
    /// Steps of readers that hold something.
    pub held: u64,
}

impl Tally {
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.steps += other.steps;
        self.done += other.done;
        self.lost += other.lost;
        self.unknown += other.unknown;
        self.crashed += other.crashed;
        self.late += other.late;
        self.blobs_deleted += other.blobs_deleted;
        self.records_removed += other.records_removed;
        self.trees += other.trees;
        self.joints += other.joints;
        self.held += other.held;
    }
}
