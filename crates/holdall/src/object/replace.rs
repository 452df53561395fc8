//! Giving an object another record, or none: handle, record and page are looked up once.

use super::read::record_at;
use super::{Body, Data, Head, ObjectWrite, Record, StoredHints};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, RecordRef};
use crate::segment_tree::DataRead;
use holdall_core::handle_page::Location;
use holdall_core::mutation::{self, Mutation};
use holdall_core::segment_tree::{self, Descriptor};
use holdall_core::version::Change;
use holdall_core::{Error, Oid, PageNo, Result};

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

    /// The object.
    pub fn oid(&self) -> Oid {
        self.oid
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

/// The record of an object on its way into another heap file.
#[derive(Debug)]
pub struct HandedOver {
    place: ObjectLocation,
    record: Vec<u8>,
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
        let head = head.of(self.collection);
        let head = head.changed(old.change.next(self.epoch), self.time_of_change(&head));
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
        self.count_record(place, 0)?;
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

    /// Takes an object's record out of this collection's heap file, for [`ObjectWrite::take_over`]
    /// of another. Until then its handle leads nowhere.
    ///
    /// # Errors
    /// As [`ObjectWrite::delete`].
    pub fn hand_over(&mut self, oid: Oid) -> Result<HandedOver> {
        let place = ObjectLocation::find(&*self.tx, self.handles, oid)?;
        let record = place.record(&*self.tx)?.to_vec();
        self.count_record(place, 0)?;
        self.heap.delete_whole(self.tx, self.placement, place.loc)?;
        Ok(HandedOver { place, record })
    }

    /// Puts an object that another collection handed over into this one's heap file. Its OID, its
    /// bytes, its version and what lies in segments stay as they are.
    ///
    /// # Errors
    /// As [`ObjectWrite::create`].
    pub fn take_over(&mut self, HandedOver { place, record }: HandedOver) -> Result<()> {
        let record = Record::parse(&record)?;
        let kept = record.head();
        let head = kept.of(self.collection);
        let new = match record.body {
            Body::Small(bytes) => self.build(place.oid, &head, Data::Small(bytes), None)?,
            Body::Large(d) => {
                let d = self.fit_tail(place.oid, &head, Descriptor::decode(d)?)?;
                head.large(place.oid, &d)
            }
        };
        let loc = self.place(&new, None)?;
        self.record_bytes = self.record_bytes.saturating_add(new.len() as u64);
        if mutation::is(Mutation::R51Handles) {
            return Ok(());
        }
        HandleTable::update_in(self.tx, place.handle, place.oid, loc)
    }

    /// Frees nodes and segments of an object; its data is not read.
    fn drop_tree(&mut self, oid: Oid, old: &PreviousBody) -> Result<()> {
        let Some(d) = &old.descriptor else { return Ok(()) };
        segment_tree::delete_all(&mut self.tree(oid, d.flags), &d.tree)
    }

    /// Counts that a record of a small collection has `after` bytes from here on.
    fn count_record(&mut self, place: ObjectLocation, after: usize) -> Result<()> {
        if self.collection != 0 && !mutation::is(Mutation::R50Counts) {
            let before = place.record(&*self.tx)?.len() as u64;
            let rest = self.record_bytes.checked_sub(before);
            let wrong = || Error::corrupt("catalog", "a collection counts too few bytes");
            self.record_bytes = rest.ok_or_else(wrong)?.saturating_add(after as u64);
        }
        Ok(())
    }

    pub(super) fn put_record(&mut self, place: ObjectLocation, record: &[u8]) -> Result<()> {
        self.count_record(place, record.len())?;
        // If it does not fit, the old one goes first: no record is moved that is to go, and
        // its room may serve.
        if self.heap.replace_whole(self.tx, self.placement, place.loc, record)? {
            return Ok(());
        }
        let new = self.place(record, None)?;
        HandleTable::update_in(self.tx, place.handle, place.oid, new)
    }
}
