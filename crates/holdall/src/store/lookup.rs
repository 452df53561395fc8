//! One look at one object.
//!
//! Owns: [`ObjectLookup`], and the fast path of a single get: handle and record, and the leaf of a name,
//! looked up under one pin and in memory only. For all else, and for all errors, the ordinary
//! way is asked, whose answer counts.
//!
//! Invariant: no code of the user's runs, and nothing is read from disk, under a pin.

use super::long_read::read_range_into;
use super::read::State;
use super::view::{Collection, Key, oid_of};
use crate::heap::{HeapFile, Location};
use crate::names::Names;
use crate::object::{self, Body, ObjectBody, Record};
use crate::pager::InMemory;
use holdall_core::{Error, Oid, PageRead, Result};

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

    pub(super) fn resolve(self, key: Key<'_>) -> Result<Oid> {
        match key {
            Key::Oid(oid) => Ok(oid),
            Key::Name(name) => self.lookup(name)?.ok_or_else(|| missing(key)),
        }
    }

    /// See [`Reader::get_into`](super::Reader::get_into).
    pub(super) fn get_into(self, key: Key<'_>, bytes: &mut Vec<u8>) -> Result<()> {
        let (oid, whole) = match self.at_once(key, bytes)? {
            Probe::Copied => return Ok(()),
            Probe::Large(oid, whole) => (oid, whole),
            Probe::Ask => {
                let (handles, oid) = (&self.state.root().handles, self.resolve(key)?);
                let loc = handles.lookup(self.state, oid)?;
                match body_at(self.state, oid, loc, bytes)? {
                    Probe::Copied => return Ok(()),
                    Probe::Large(oid, whole) => (oid, whole),
                    // Not its own record: this tells.
                    Probe::Ask => (oid, object::open(self.state, handles, oid)?),
                }
            }
        };
        read_range_into(self.state, &whole, oid, 0..whole.size(), bytes)
    }

    /// Where an object's bytes lie.
    pub(super) fn find(self, key: Key<'_>) -> Result<(Oid, ObjectBody)> {
        if let Some(found) = self.find_once(key)? {
            return Ok(found);
        }
        let oid = self.resolve(key)?;
        Ok((oid, object::open(self.state, &self.state.root().handles, oid)?))
    }

    /// Replaces `out` by the bytes of an object that lies in memory and in its record, or finds
    /// a large one whose record is in memory; or says that no object has this name.
    ///
    /// # Errors
    /// [`Error::NotFound`]; what else is wrong, the slow path tells.
    #[inline]
    fn at_once(self, key: Key<'_>, out: &mut Vec<u8>) -> Result<Probe> {
        let found = self.once(key, |pages, oid, loc| body_at(pages, oid, loc, out))?;
        Ok(found.unwrap_or(Probe::Ask))
    }

    /// Where the bytes of an object lie whose record is in memory.
    ///
    /// # Errors
    /// As [`ObjectLookup::at_once`]; those of an ordinary look at a small object's record.
    #[inline]
    fn find_once(self, key: Key<'_>) -> Result<Option<(Oid, ObjectBody)>> {
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
        Ok(match found.flatten() {
            Some((oid, _, Some(large))) => Some((oid, large)),
            // Keeps its page, and so counts a reference.
            Some((oid, loc, None)) => Some((oid, object::open_at(self.state, loc, oid)?)),
            None => None,
        })
    }

    /// What `look` makes of the place of an object's record, all in memory; `None` where that
    /// cannot be told for certain and the slow path is to be asked.
    #[inline]
    pub(super) fn once<T>(
        self,
        key: Key<'_>,
        look: impl FnOnce(&InMemory<'_>, Oid, Location) -> Result<T>,
    ) -> Result<Option<T>> {
        let names = match key {
            Key::Name(_) => self.current()?.map(|c| c.names),
            Key::Oid(_) => None,
        };
        let pages = self.state.snapshot.in_memory();
        let found = match key {
            Key::Oid(oid) => Ok(Some(oid)),
            Key::Name(name) => names.map_or(Ok(None), |n| in_leaf(&pages, n, name)),
        };
        let oid = match found {
            Ok(Some(oid)) => oid,
            Ok(None) => return pages.check().and(Err(missing(key))),
            Err(_) => return Ok(None),
        };
        let loc = self.state.root().handles.lookup(&pages, oid);
        let found = loc.and_then(|loc| {
            HeapFile::fetch(&pages, loc);
            look(&pages, oid, loc)
        });
        Ok(found.ok().filter(|_| pages.check().is_ok()))
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

#[cold]
fn missing(key: Key<'_>) -> Error {
    Error::NotFound(format!("object {}", key.show()))
}
