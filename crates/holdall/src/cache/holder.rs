//! Another process that holds a state for this one.
//!
//! Owns: [`Holder`], and what is believed of its answers: nothing that the page does not prove.

use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Lsn, PageNo, PageRef, Result};

/// A process that has a store open for writing, and a snapshot of it for a reader elsewhere. As long
/// as it is held, what the state has in use is not used again.
pub trait Holder: std::fmt::Debug + Send + Sync {
    /// The page that the state has in place `page`, of the kind with this number.
    ///
    /// # Errors
    /// What the other process met; [`Error::SnapshotTooOld`] if it holds the state no more.
    fn page(&self, page: PageNo, kind: u8) -> Result<Vec<u8>>;

    /// Whether the state is held.
    fn is_held(&self) -> bool;
}

/// The page that the state at `lsn` has at `page`, which is not what lies there.
pub(super) fn page(
    holder: &dyn Holder,
    (page, kind): (PageNo, PageKind),
    lsn: Lsn,
) -> Result<PageRef> {
    let bytes: PageRef = holder.page(page, kind as u8)?.into();
    page::check(&bytes, page)?;
    let own = page::lsn(&bytes);
    if own > lsn {
        let detail = format!("the writing process sent LSN {own} for the state {lsn}");
        return Err(Error::page(page, detail));
    }
    Ok(bytes)
}
