//! Why a page is wanted. Owns the order in which reads are counted by it.

/// Why a page is wanted; reads from the disk are counted apart by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To put an object on it.
    Create,
    /// To delete an object from it.
    Delete,
    /// It is a free-space inventory page.
    Inventory,
    /// To release reserved space at commit, or to roll back.
    Release,
    /// To read an object.
    Read,
}

impl From<Purpose> for usize {
    fn from(purpose: Purpose) -> Self {
        purpose as Self
    }
}
