//! Marks: what a backup is taken at, and what an increment builds on.
//!
//! Owns: no state. A mark is a transaction that notes in the root what state was before it (rule 60).

use crate::engine::{Inner, format};
use crate::space::SpaceTx;
use crate::store::Store;
use crate::txn::Waiting;
use holdall_core::bytes::put_u64;
use holdall_core::mark::{self, Mark};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::{Lsn, PageRead, PageWrite, Result};
use std::sync::Arc;

impl Store {
    /// Marks the newest state for a backup, durably: the backup of this state or a later one can be
    /// built on while the store remembers the mark, the newest 128. `forget`: those that nobody will
    /// build on any more. Cost: a durable commit of one page; at first two superblocks. Until
    /// another mark, the first change in each MiB costs 8 bytes in the log.
    ///
    /// # Errors
    /// As [`Store::write`].
    #[doc(hidden)]
    pub fn mark_backup(&self, forget: &[[u8; 16]]) -> Result<Mark> {
        mark(&self.inner, forget)
    }

    /// The marks that this store remembers, the oldest first.
    ///
    /// # Errors
    /// As [`Store::read`].
    #[doc(hidden)]
    pub fn backup_marks(&self) -> Result<Vec<Mark>> {
        let state = self.state(false)?;
        let root = self.inner.root;
        state.with_page(root, PageKind::Root, |bytes| mark::all(bytes, root))
    }
}

fn mark(inner: &Arc<Inner>, forget: &[[u8; 16]]) -> Result<Mark> {
    inner.check_writable()?;
    // Builds that would change pages without noting it must leave the store alone.
    inner.pager.volume.announce_marks()?;
    let mut tx = SpaceTx::begin(&inner.pager, &inner.alloc, inner.root, &Waiting::default())?;
    let late = mutation::is(Mutation::R60Before);
    let log = &inner.pager.log;
    let lsn = if late { log.next_commit_bound() } else { inner.pager.horizon.newest() };
    let mark = Mark { id: number(inner, lsn), lsn };
    let root = tx.root();
    let bytes = tx.page_mut(root, PageKind::Root)?;
    let mut marks = mark::all(bytes, root)?;
    marks.retain(|old| !forget.contains(&old.id));
    mark::add(bytes, marks, mark);
    let (lsn, installed) = tx.commit()?;
    drop(installed);
    inner.pager.wait_durable(lsn)?;
    inner.note_time();
    inner.after_commit()?;
    Ok(mark)
}

/// A number that no other mark has; where a test set the store's id, one that follows from it.
fn number(inner: &Inner, lsn: Lsn) -> [u8; 16] {
    let Some(mut id) = inner.options.tuning.store_id else { return format::draw_id() };
    put_u64(&mut id, 0, lsn.0);
    id
}
