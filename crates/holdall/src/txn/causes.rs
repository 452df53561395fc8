//! Why checkpoints run, and how many did.

/// Why a checkpoint runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The log has little room left, or none for a commit, or is to grow.
    Log,
    /// Pages in memory that are newer than in place.
    DirtyPages,
    /// Bytes that replay would copy within the volume.
    Copies,
    /// Freed space that waits to be used again.
    Waiting,
    /// A request for space that nothing free serves.
    Space,
    /// Maintenance: giving back, defragmentation, closing.
    Maintenance,
    /// A call of the application.
    Call,
}

/// Checkpoints since the store was opened, by what made them due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Checkpoints {
    /// The log had little room left, or none for a commit, or grew.
    pub log: u64,
    /// Too many pages in memory were newer than in place.
    pub dirty_pages: u64,
    /// Replay would have had to copy too much within the volume.
    pub copies: u64,
    /// Too much freed space waited to be used again.
    pub waiting: u64,
    /// Nothing that was free served a request for space.
    pub space: u64,
    /// For giving space back, for defragmentation, at the close.
    pub maintenance: u64,
    /// The application called for one.
    pub call: u64,
    /// Pages that all of them wrote in place.
    pub pages: u64,
}

impl Cause {
    /// In a word.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::DirtyPages => "dirty pages",
            Self::Copies => "copies",
            Self::Waiting => "waiting space",
            Self::Space => "space",
            Self::Maintenance => "maintenance",
            Self::Call => "call",
        }
    }
}

impl Checkpoints {
    /// Counts one more.
    pub(super) fn count(&mut self, cause: Cause) {
        *match cause {
            Cause::Log => &mut self.log,
            Cause::DirtyPages => &mut self.dirty_pages,
            Cause::Copies => &mut self.copies,
            Cause::Waiting => &mut self.waiting,
            Cause::Space => &mut self.space,
            Cause::Maintenance => &mut self.maintenance,
            Cause::Call => &mut self.call,
        } += 1;
    }
}
