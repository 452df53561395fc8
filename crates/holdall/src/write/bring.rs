//! Objects that come from another store as they were there.
//!
//! Owns: [`Brought`].

use super::ObjectsMut;
use crate::engine::Inner;
use crate::object::{Data, Head, StoredHints};
use crate::space::Stager;
use holdall_core::{Error, Oid, Result};

/// An object as another store had it.
#[derive(Debug)]
pub(crate) struct Brought<'a> {
    pub(crate) oid: Oid,
    /// Name, attributes, last change and its time.
    pub(crate) head: Head<'a>,
    pub(crate) data: Data<'a>,
    /// Its size in bytes.
    pub(crate) size: u64,
    pub(crate) hints: Option<StoredHints>,
}

impl ObjectsMut {
    /// Makes an object of the current collection with the OID, the change and the time that it had. No
    /// object may have its name or its slot. Cost: as of a put.
    ///
    /// # Errors
    /// As [`ObjectsMut::put`], after which the transaction can only be given up.
    pub(crate) fn bring(&mut self, object: Brought<'_>) -> Result<()> {
        let Brought { oid, head, data, size, hints } = object;
        self.make_fit_for(head.name.is_none())?;
        self.with_objects(|objects, c| {
            if !objects.create_as(oid, &head, data, hints)? {
                return Err(Error::Exists(format!("an object in the slot of {oid}")));
            }
            if let Some(name) = &head.name {
                let value = objects.name_value(oid)?.encode();
                c.names.insert(objects.tx, c.owner(), &c.key(name), &value)?;
            }
            c.add(1, head.name.is_some());
            c.resize(0, size);
            Ok(())
        })
    }
}

/// Takes the bytes of an object that is to be brought, of about `expected` bytes.
pub(crate) fn stager(inner: &Inner, expected: u64) -> Stager {
    Stager::new(&inner.alloc, &inner.pager, Some(expected))
}
