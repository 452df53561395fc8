//! One look at one object.
//!
//! Owns: [`ObjectLookup`], and the fast path of a single get: handle and record, and the leaf of a name,
//! looked up under one pin and in memory only. For all else, and for all errors, the ordinary
//! way is asked, whose answer counts.
//!
//! Invariant: no code of the user's runs, and nothing is read from disk, under a pin.

use super::long_read::read_range_into;
use super::read::State;
use super::view::{Collection, Key, missing, oid_of};
use crate::heap::{HeapFile, Location};
use crate::names::Names;
use crate::object::{self, Body, ObjectBody, Record};
use crate::pager::InMemory;
use holdall_core::{Oid, PageRead, Result};

/// A state, seen through one collection, for one call.
#[derive(Debug, Clone, Copy)]
pub(super) struct ObjectLookup<'a> {
    pub(super) state: &'a State,
    /// None: the default one.
    pub(super) collection: Option<&'a Collection>,
}

/// What the fast path of a get found.
pub(super) enum Probe {
    /// All of a small object.
    Copied,
    /// Where a large one lies.
    Large(Oid, ObjectBody),
    /// Nothing for certain: the slow path is to be asked.
    Ask,
}

/// What a look in memory only found.
pub(super) enum Seen<T> {
    /// This.
    Found(T),
    /// That no object has this name.
    Missing,
    /// Nothing for certain: the slow path is to be asked.
    Unsure,
}

impl<'a> ObjectLookup<'a> {
    pub(super) fn current(self) -> Result<Option<&'a Collection>> {
        match self.collection {
            Some(c) => Ok(Some(c)),
            None => self.state.default_collection(),
        }
    }

    /// See [`Reader::lookup`](super::Reader::lookup).
    pub(super) fn lookup(self, name: &[u8]) -> Result<Option<Oid>> {
        let Some(c) = self.current()? else { return Ok(None) };
        c.names.find(self.state, name, oid_of)
    }

    /// The object of this key; `None` where no object has the name.
    fn object_of(self, key: &Key<'_>) -> Result<Option<Oid>> {
        match key {
            Key::Oid(oid) => Ok(Some(*oid)),
            Key::Name(name) => self.lookup(name),
        }
    }

    pub(super) fn resolve(self, key: &Key<'_>) -> Result<Oid> {
        self.object_of(key)?.ok_or_else(|| missing(key))
    }

    /// See [`Reader::get_into`](super::Reader::get_into).
    pub(super) fn get_into(self, key: &Key<'_>, bytes: &mut Vec<u8>) -> Result<bool> {
        let found = self.once(key, |pages, oid, loc| body_at(pages, oid, loc, bytes))?;
        let (oid, whole) = match found {
            Seen::Found(Probe::Copied) => return Ok(true),
            Seen::Found(Probe::Large(oid, whole)) => (oid, whole),
            Seen::Missing => return Ok(none(bytes)),
            Seen::Found(Probe::Ask) | Seen::Unsure => {
                let Some(oid) = self.object_of(key)? else { return Ok(none(bytes)) };
                let handles = &self.state.root().handles;
                let loc = handles.lookup(self.state, oid)?;
                match body_at(self.state, oid, loc, bytes)? {
                    Probe::Copied => return Ok(true),
                    Probe::Large(oid, whole) => (oid, whole),
                    // Not its own record: this tells.
                    Probe::Ask => (oid, object::open(self.state, handles, oid)?),
                }
            }
        };
        read_range_into(self.state, &whole, oid, 0..whole.size(), bytes)?;
        Ok(true)
    }

    /// Where an object's bytes lie; `None` where no object has the name.
    pub(super) fn find(self, key: &Key<'_>) -> Result<Option<(Oid, ObjectBody)>> {
        match self.find_once(key)? {
            Seen::Found(found) => return Ok(Some(found)),
            Seen::Missing => return Ok(None),
            Seen::Unsure => {}
        }
        let Some(oid) = self.object_of(key)? else { return Ok(None) };
        Ok(Some((oid, object::open(self.state, &self.state.root().handles, oid)?)))
    }

    /// Where the bytes of an object lie whose record is in memory.
    ///
    /// # Errors
    /// As [`ObjectLookup::once`]; those of an ordinary look at a small object's record.
    #[inline]
    fn find_once(self, key: &Key<'_>) -> Result<Seen<(Oid, ObjectBody)>> {
        let found = self.once(key, |pages, oid, loc| {
            HeapFile::look(pages, loc, |record| {
                let record = Record::parse(record)?;
                Ok(match record.body {
                    _ if record.oid != oid => None,
                    Body::Large(descriptor) => {
                        Some((oid, loc, Some(ObjectBody::large(descriptor)?)))
                    }
                    Body::Small(_) => Some((oid, loc, None)),
                })
            })
        })?;
        Ok(match found {
            Seen::Found(Some((oid, _, Some(large)))) => Seen::Found((oid, large)),
            // Keeps its page, and so counts a reference.
            Seen::Found(Some((oid, loc, None))) => {
                Seen::Found((oid, object::open_at(self.state, loc, oid)?))
            }
            Seen::Missing => Seen::Missing,
            Seen::Found(None) | Seen::Unsure => Seen::Unsure,
        })
    }

    /// What `look` makes of the place of an object's record, all in memory.
    ///
    /// # Errors
    /// Those of finding the collection, and `SnapshotTooOld`; what else is wrong, the slow path
    /// tells.
    #[inline]
    pub(super) fn once<T>(
        self,
        key: &Key<'_>,
        look: impl FnOnce(&InMemory<'_>, Oid, Location) -> Result<T>,
    ) -> Result<Seen<T>> {
        let names = match key {
            Key::Name(_) => self.current()?.map(|c| c.names),
            Key::Oid(_) => None,
        };
        let pages = self.state.snapshot.in_memory();
        let found = match key {
            Key::Oid(oid) => Ok(Some(*oid)),
            Key::Name(name) => names.map_or(Ok(None), |n| in_leaf(&pages, n, name)),
        };
        let oid = match found {
            Ok(Some(oid)) => oid,
            Ok(None) => return pages.check().map(|()| Seen::Missing),
            Err(_) => return Ok(Seen::Unsure),
        };
        let loc = self.state.root().handles.lookup(&pages, oid);
        let found = loc.and_then(|loc| {
            HeapFile::fetch(&pages, loc);
            look(&pages, oid, loc)
        });
        Ok(match found {
            Ok(found) if pages.check().is_ok() => Seen::Found(found),
            _ => Seen::Unsure,
        })
    }
}

/// Replaces `out` by a small object's bytes, or finds where a large one's lie.
#[inline]
pub(super) fn body_at<R: PageRead>(
    pages: &R,
    oid: Oid,
    loc: Location,
    out: &mut Vec<u8>,
) -> Result<Probe> {
    HeapFile::look(pages, loc, |record| {
        let record = Record::parse(record)?;
        if record.oid != oid {
            return Ok(Probe::Ask);
        }
        Ok(match record.body {
            Body::Small(bytes) => {
                out.clear();
                out.extend_from_slice(bytes);
                Probe::Copied
            }
            Body::Large(descriptor) => Probe::Large(oid, ObjectBody::large(descriptor)?),
        })
    })
}

/// As [`Names::find`], of one key.
#[inline]
fn in_leaf(pages: &InMemory<'_>, names: Names, name: &[u8]) -> Result<Option<Oid>> {
    let Some(leaf) = names.leaf_of(pages, name)? else { return Ok(None) };
    leaf.fetch(pages);
    leaf.find(pages, name, oid_of)
}

/// The answer where there is no object: no bytes.
fn none(bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    false
}
