//! Giving an object another record, or none: handle, record and page are looked up once.

use super::read::record_at;
use super::{Body, Data, Head, ObjectWrite, Record, StoredHints};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, RecordRef};
use crate::segment_tree::DataRead;
use holdall_core::handle_page::Location;
use holdall_core::segment_tree::{self, Descriptor};
use holdall_core::version::Change;
use holdall_core::{Oid, PageNo, Result};

/// Where a live object's handle and its record lie. Good until the object, or its page's
/// records, are changed.
#[derive(Debug, Clone, Copy)]
pub struct ObjectLocation {
    oid: Oid,
    handle: PageNo,
    loc: Location,
}

impl ObjectLocation {
    /// Finds an object. Cost: the map of the handles and a handle page.
    ///
    /// # Errors
    /// As [`super::read_record`].
    pub fn find<D: DataRead + ?Sized>(pages: &D, handles: &HandleTable, oid: Oid) -> Result<Self> {
        let (handle, loc) = handles.live(pages, oid)?;
        Ok(Self { oid, handle, loc })
    }

    /// The page of the record.
    pub fn page(&self) -> PageNo {
        self.loc.page
    }

    /// The object's record. Cost: its page.
    pub(super) fn record<D: DataRead + ?Sized>(&self, pages: &D) -> Result<RecordRef> {
        record_at(pages, self.loc, self.oid)
    }

    /// Gives `f` the object's record, checked to be its own. Cost: its page, copying nothing.
    ///
    /// # Errors
    /// As [`super::read_record`], and those of `f`.
    pub fn with_record<D: DataRead + ?Sized, T>(
        &self,
        pages: &D,
        f: impl FnOnce(&Record<'_>) -> Result<T>,
    ) -> Result<T> {
        HeapFile::with_record(pages, self.loc, |record| {
            f(&super::read::own_record(record, self.loc, self.oid)?)
        })
    }
}

/// What is to be given up of an object: its size, its last change, and its tree if it has one.
#[derive(Debug)]
pub struct PreviousBody {
    size: u64,
    change: Change,
    descriptor: Option<Box<Descriptor>>,
}

impl PreviousBody {
    /// Of the object that has this record.
    ///
    /// # Errors
    /// [`holdall_core::Error::Corrupt`].
    pub fn from_record(record: &Record<'_>) -> Result<Self> {
        let (size, descriptor) = match record.body {
            Body::Small(bytes) => (bytes.len() as u64, None),
            Body::Large(bytes) => {
                let descriptor = Descriptor::decode(bytes)?;
                (descriptor.size(), Some(Box::new(descriptor)))
            }
        };
        Ok(Self { size, change: record.change, descriptor })
    }
}

impl ObjectWrite<'_> {
    /// Replaces an object's bytes and head; its OID stays, and so do its hints unless
    /// others are given. Returns its former size.
    ///
    /// # Errors
    /// As [`ObjectWrite::create`], [`holdall_core::Error::Dangling`].
    pub fn replace(
        &mut self,
        oid: Oid,
        head: &Head,
        data: Data<'_>,
        hints: Option<StoredHints>,
    ) -> Result<u64> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        let old = place.with_record(&*self.tx, PreviousBody::from_record)?;
        self.replace_at(place, &old, head, data, hints)
    }

    /// As [`ObjectWrite::replace`], for an object found before.
    ///
    /// # Errors
    /// As [`ObjectWrite::replace`].
    pub fn replace_at(
        &mut self,
        place: ObjectLocation,
        old: &PreviousBody,
        head: &Head,
        data: Data<'_>,
        hints: Option<StoredHints>,
    ) -> Result<u64> {
        self.drop_tree(place.oid, old)?;
        let kept = old.descriptor.as_deref().map(StoredHints::from_descriptor);
        let head = head.changed(old.change.next(self.epoch), self.time_of_change(head));
        let record = self.build(place.oid, &head, data, hints.or(kept))?;
        self.put_record(place, &record)?;
        Ok(old.size)
    }

    /// Deletes an object found before. Returns its size. Cost: its record and nodes; no data
    /// is read.
    ///
    /// # Errors
    /// [`holdall_core::Error::NotFound`], [`holdall_core::Error::Dangling`].
    pub fn delete(&mut self, place: ObjectLocation, old: &PreviousBody) -> Result<u64> {
        self.drop_tree(place.oid, old)?;
        let loc = self.handles.remove(self.tx, place.oid)?;
        self.heap.delete_whole(self.tx, self.placement, loc)?;
        Ok(old.size)
    }

    /// As [`ObjectWrite::delete`], for an object whose heap page goes too: its record stays.
    ///
    /// # Errors
    /// As [`ObjectWrite::delete`].
    pub fn give_up(&mut self, oid: Oid, old: &PreviousBody) -> Result<()> {
        self.drop_tree(oid, old)?;
        self.handles.remove(self.tx, oid).map(drop)
    }

    /// Frees nodes and segments of an object; its data is not read.
    fn drop_tree(&mut self, oid: Oid, old: &PreviousBody) -> Result<()> {
        let Some(d) = &old.descriptor else { return Ok(()) };
        segment_tree::delete_all(&mut self.tree(oid, d.flags), &d.tree)
    }

    pub(super) fn put_record(&mut self, place: ObjectLocation, record: &[u8]) -> Result<()> {
        // If it does not fit, the old one goes first: no record is moved that is to go, and
        // its room may serve.
        if self.heap.replace_whole(self.tx, self.placement, place.loc, record)? {
            return Ok(());
        }
        let new = self.place(record, None)?;
        HandleTable::update_in(self.tx, place.handle, place.oid, new)
    }
}
