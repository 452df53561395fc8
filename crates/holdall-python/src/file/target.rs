//! Where a file's bytes go when it is closed.
//!
//! Owns: [`Target`].

use crate::errors::{Fail, Outcome};
use crate::handle::Held;
use crate::source::Transaction;
use crate::view::View;
use crate::view_edit::{in_collection, transact};
use holdall::{Attributes, Durability, ObjectsMut, Oid, PutMode, WriteTx};
use std::sync::Arc;

/// Begins the names of collections of drafts.
pub const DRAFT: &str = ".draft-";

/// Where an object goes when its file is closed.
pub struct Target {
    /// The store.
    pub handle: Held,
    pub(super) collection: Option<Arc<str>>,
    pub(super) durability: Durability,
    pub(super) name: Vec<u8>,
    pub(super) attributes: Attributes,
    pub(super) mode: PutMode,
}

impl Target {
    /// Runs `f` in a transaction as durable as the file's user wants it, or in `into`.
    pub fn write_into(
        &self,
        into: Option<&Transaction>,
        f: impl FnOnce(&mut WriteTx) -> Outcome<()>,
    ) -> Outcome<()> {
        match into {
            Some(tx) => tx.with(f),
            None => transact(&self.handle, self.durability, f),
        }
    }

    /// As [`Target::write_into`], in the collection that the object goes to.
    pub fn put_into(
        &self,
        into: Option<&Transaction>,
        f: impl FnOnce(&mut ObjectsMut) -> Outcome<()>,
    ) -> Outcome<()> {
        self.write_into(into, |tx| in_collection(tx, self.collection.as_deref(), f))
    }

    /// Gives a draft its name.
    pub fn publish(&self, tx: &mut WriteTx, draft: Oid, collection: &str) -> Outcome<()> {
        in_collection(tx, self.collection.as_deref(), |tx| self.copy_draft(tx, draft))?;
        Ok(tx.drop_collection(collection).map(drop)?)
    }

    fn copy_draft(&self, tx: &mut ObjectsMut, draft: Oid) -> Outcome<()> {
        tx.check_put(&self.name, self.mode)?;
        tx.copy(draft, &self.name)?;
        Ok(tx.set_attributes(&self.name, &self.attributes)?)
    }

    /// Gives a draft of a transaction its name, or with `keep` false removes it.
    pub fn end_in(&self, tx: &Transaction, draft: Oid, keep: bool) -> Outcome<()> {
        if !tx.end_draft(draft) {
            // The transaction has ended, and the draft with it.
            return if keep { Err(Fail::Closed("transaction")) } else { Ok(()) };
        }
        let collection = self.collection.as_deref();
        if !keep {
            // If that fails the transaction has failed: it cannot be committed.
            let _ = View::in_tx(tx, collection, |tx| Ok(tx.remove(draft)?));
            return Ok(());
        }
        View::in_tx(tx, collection, |tx| {
            self.copy_draft(tx, draft)?;
            Ok(tx.remove(draft).map(drop)?)
        })
    }

    /// Drops a draft that nobody wants.
    pub fn drop_draft(&self, collection: &str) -> Outcome<()> {
        let drop_it = |tx: &mut WriteTx| Ok(tx.drop_collection(collection).map(drop)?);
        transact(&self.handle, Durability::Deferred, drop_it)
    }
}
