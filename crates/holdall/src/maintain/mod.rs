//! Looking after a store: checking it, showing what lies in it and how well, putting it in order.
//!
//! Owns: nothing on disk. [`verify`] and [`inspect`] read and change nothing; [`inspect`] also
//! reads the log of a store that is not open. [`defrag`] changes where things lie, by ordinary
//! transactions.

mod defrag;
pub mod frag;
pub mod inspect;
mod scrub;
mod verify;

pub use defrag::{DefragOptions, DefragReport, Defragmenter, Moved};
pub use scrub::{ScrubOptions, Scrubber};
pub use verify::{Problem, Progress, VerifyOptions, VerifyReport};

use crate::store::Store;
use holdall_core::{Error, Oid, Result};

/// The objects of handle page `index` as they are now; `None` behind the last page.
fn handles(store: &Store, index: u32) -> Result<Option<Vec<Oid>>> {
    loop {
        let reader = store.read_newest()?;
        let handles = reader.state.root().handles;
        if index >= handles.map.len() {
            return Ok(None);
        }
        match handles.page_handles(&*reader.state, index) {
            // Given up before the page was read; there is a newer state now.
            Err(Error::SnapshotTooOld { .. }) => {}
            all => return Ok(Some(all?.into_iter().map(|(oid, _)| oid).collect())),
        }
    }
}
