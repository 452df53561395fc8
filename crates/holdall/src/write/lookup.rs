//! What a transaction sees of objects, its own changes included.

use super::ObjectsMut;
use crate::engine::catalog::oid_of;
use crate::engine::key::{Key, missing};
use crate::names::ListOptions;
use crate::object::{self, Metadata, ObjectLocation};
use crate::read::Listing;
use crate::read::long_read::read_range;
use crate::read::view_cache::ViewCache;
use holdall_core::{Oid, Result};
use std::ops::{Bound, Range};

impl ObjectsMut {
    /// The object of this name in the current collection.
    ///
    /// # Errors
    /// As [`Reader::lookup`](crate::Reader::lookup).
    pub fn lookup(&mut self, name: impl AsRef<[u8]>) -> Result<Option<Oid>> {
        let Some(c) = self.current()? else { return Ok(None) };
        let begun = self.begin()?;
        c.names.get(&begun.tx, &c.key(name.as_ref()))?.map(|v| oid_of(&v)).transpose()
    }

    /// Bytes of the object that a put of this name replaces, without waiting for the writer's lock:
    /// of the newest durable state unless this transaction has it. 0 if there is none.
    ///
    /// # Errors
    /// As [`ObjectsMut::lookup`].
    pub(super) fn likely_size(&mut self, name: &[u8]) -> Result<u64> {
        if self.begun.is_some() {
            return self.lookup(name)?.map_or(Ok(0), |oid| self.object_size(oid));
        }
        let state = ViewCache::new().open(&self.inner, false)?;
        let root = state.root();
        let Some(c) = root.collection(&state, self.opened.name(self.current))? else {
            return Ok(0);
        };
        let Some(found) = c.names.get(&state, &c.key(name))? else { return Ok(0) };
        let place = ObjectLocation::find(&state, &root.handles, oid_of(&found)?)?;
        place.with_record(&state, |record| record.size())
    }

    /// Whether the collection that calls go to is there. A put makes it if it is missing.
    ///
    /// # Errors
    /// As [`ObjectsMut::lookup`].
    pub fn has_collection(&mut self) -> Result<bool> {
        Ok(self.current()?.is_some())
    }

    /// Whether any object of the current collection has a name. Cost: one page per level of the
    /// names tree.
    ///
    /// # Errors
    /// As [`ObjectsMut::lookup`].
    #[doc(hidden)]
    pub fn has_names(&mut self) -> Result<bool> {
        let Some(c) = self.current()? else { return Ok(false) };
        if c.is_small() {
            return Ok(c.objects > 0);
        }
        let begun = self.begin()?;
        c.names.iter(&begun.tx, Bound::Unbounded).next().transpose().map(|first| first.is_some())
    }

    /// Lists names of the current collection as [`Reader::list`](crate::Reader::list) does, those
    /// of this transaction included.
    ///
    /// # Errors
    /// As [`Reader::list`](crate::Reader::list).
    pub fn list(&mut self, options: &ListOptions<'_>) -> Result<Listing> {
        let Some(c) = self.current()? else { return Ok(Listing::default()) };
        let begun = self.begin()?;
        Listing::of(&begun.tx, &c, options)
    }

    /// How many names the collection has; see
    /// [`Reader::count_names`](crate::Reader::count_names).
    ///
    /// # Errors
    /// As [`Reader::count_names`](crate::Reader::count_names).
    pub fn count_names(&mut self) -> Result<u64> {
        Ok(self.current()?.map_or(0, |c| c.named()))
    }

    /// The object of this key; `None` if no object has the name.
    pub(crate) fn object_of(&mut self, key: &Key<'_>) -> Result<Option<Oid>> {
        match key {
            Key::Oid(oid) => {
                let begun = self.begin()?;
                if !begun.root.drops.root.is_none() {
                    self.place_of(*oid, |_| Ok(()))?;
                }
                Ok(Some(*oid))
            }
            Key::Name(name) => self.lookup(name),
        }
    }

    pub(crate) fn resolve(&mut self, key: &Key<'_>) -> Result<Oid> {
        self.object_of(key)?.ok_or_else(|| missing(key))
    }

    /// All bytes of an object; `None` if no object has the name.
    ///
    /// # Errors
    /// As [`Reader::get`](crate::Reader::get).
    pub fn get<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Option<Vec<u8>>> {
        self.get_part(&key.into(), |size| 0..size)
    }

    /// The bytes `range` of an object; `None` if no object has the name.
    ///
    /// # Errors
    /// As [`Reader::get_range`](crate::Reader::get_range).
    pub fn get_range<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        range: Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        self.get_part(&key.into(), |_| range)
    }

    /// The bytes of an object that `part` chooses by its size.
    fn get_part(
        &mut self,
        key: &Key<'_>,
        part: impl FnOnce(u64) -> Range<u64>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(oid) = self.object_of(key)? else { return Ok(None) };
        let begun = self.begin()?;
        let whole = object::open(&begun.tx, &begun.root.handles, oid)?;
        read_range(&begun.tx, &whole, oid, part(whole.size())).map(Some)
    }

    /// What is known of an object. Cost: its record.
    ///
    /// # Errors
    /// As [`Reader::metadata`](crate::Reader::metadata).
    pub fn metadata<'k>(&mut self, key: impl Into<Key<'k>>) -> Result<Metadata> {
        let oid = self.resolve(&key.into())?;
        let begun = self.begin()?;
        object::metadata(&begun.tx, &begun.root.handles, oid)
    }
}
