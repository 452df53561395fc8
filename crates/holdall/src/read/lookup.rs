//! Finding objects: from a name or an OID to the record.
//!
//! Owns: [`find`], the one way that all reads of objects go: leaf of the names tree, handle,
//! place of the record; and [`ObjectLookup`], which goes it for one key. Several keys take each
//! step together: all have what the next step needs prefetched before any takes it, so that
//! they wait for the processor's memory once and not each for itself. (Group prefetching: Chen,
//! Ailamaki, Gibbons and Mowry, "Improving hash join performance through prefetching", ICDE
//! 2004.) A single lookup is a group of one.
//!
//! Invariant: no code of the user's runs under a pin.

use crate::engine::catalog::{Collection, oid_of};
use crate::engine::key::{Key, missing};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, Location, WholeRecord};
use crate::names::{Leaf, Names};
use crate::object::{self, Body, Metadata, ObjectBody, own_in_place, own_record};
use crate::read::long_read::{read_range, read_range_into, read_up_to};
use crate::read::state::ReadState;
use crate::txn::{MOST_EXPECTED, Pinned};
use holdall_core::handle_page::HandlePage;
use holdall_core::heap_record::divided::join;
use holdall_core::{Error, NameValue, Oid, PageKind, PageNo, PageRead, Result};
use std::ops::Range;

/// Most lookups that take their steps together. Each asks for up to eight lines at a time, and
/// processors wait for some dozens together.
pub(crate) const GROUP: usize = MOST_EXPECTED;

/// The lookup of one key, and how far it has come.
pub(crate) struct Lookup<'k> {
    key: &'k Key<'k>,
    step: LookupStep,
}

enum LookupStep {
    Begin,
    /// The leaf of its name.
    Leaf(Leaf),
    /// Its handle page.
    Handle(Oid, PageNo),
    /// Where its record lies.
    Record(Oid, Location),
    /// No object has this name.
    Missing,
    Failed(Error),
}

impl<'k> Lookup<'k> {
    pub(crate) fn new(key: &'k Key<'k>) -> Self {
        Self { key, step: LookupStep::Begin }
    }

    /// Whether no object has the name, after [`find`].
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.step, LookupStep::Missing)
    }

    /// What `f` makes of the object's body, after [`find`]; `None` if no object has the name.
    ///
    /// # Errors
    /// Those of [`find`], and of `f`.
    #[inline]
    pub(crate) fn body<T>(
        self,
        pages: &Pinned<'_>,
        alone: bool,
        f: impl FnOnce(Oid, Location, FoundBody<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        let (oid, loc) = match self.step {
            LookupStep::Record(oid, loc) => (oid, loc),
            LookupStep::Failed(e) => return Err(e),
            _ => return Ok(None),
        };
        HeapFile::look_parts(pages, loc, alone, |first, rest| {
            found_parts(first, rest, (oid, loc), |body| f(oid, loc, body))
        })
        .map(Some)
    }
}

/// What `f` makes of the body of an object whose record is `first`, or is divided into these.
#[inline]
pub(crate) fn found_parts<T>(
    first: &[u8],
    rest: &[u8],
    (oid, loc): (Oid, Location),
    f: impl FnOnce(FoundBody<'_>) -> Result<T>,
) -> Result<T> {
    if rest.is_empty() {
        return f(FoundBody::from_body(own_record(first, loc, oid)?.body));
    }
    match own_in_place((first, rest), loc, oid)? {
        Some(parts) => f(FoundBody::Small(parts)),
        None => f(FoundBody::from_body(own_record(&join(first, rest)?, loc, oid)?.body)),
    }
}

/// What a lookup found of an object.
pub(crate) enum FoundBody<'a> {
    /// All of its bytes, in one part or two.
    Small([&'a [u8]; 2]),
    /// Where its bytes are; still encoded.
    Large(&'a [u8]),
}

impl<'a> FoundBody<'a> {
    fn from_body(body: Body<'a>) -> Self {
        match body {
            Body::Small(bytes) => Self::Small([bytes, &[]]),
            Body::Large(descriptor) => Self::Large(descriptor),
        }
    }
}

/// Gives `f` the bodies of those objects of a group that were found, after [`find`], each with its
/// place in the group. Those of divided records come last: their continuations are on their way
/// meanwhile. What is not in memory is left out if the pages are looked at without the disk.
///
/// # Errors
/// Those of [`find`] and of `f`, at the first of which it ends.
#[inline]
pub(crate) fn bodies(
    pages: &Pinned<'_>,
    all: Vec<Lookup<'_>>,
    mut f: impl FnMut(usize, (Oid, Location), FoundBody<'_>) -> Result<()>,
) -> Result<()> {
    let mut found = Vec::with_capacity(all.len());
    for (i, lookup) in all.into_iter().enumerate() {
        match lookup.step {
            LookupStep::Record(oid, loc) => found.push((i, oid, loc)),
            LookupStep::Failed(Error::Cancelled) => {}
            LookupStep::Failed(e) => return Err(e),
            _ => {}
        }
    }
    // Neighbours, as objects that were put one after the other are, share the look at a page.
    let runs = || found.chunk_by(|(.., a), (.., b)| a.page == b.page);
    for run in runs() {
        HeapFile::prefetch_records(pages, run[0].2.page, run.iter().map(|(.., loc)| *loc));
    }
    let (mut later, mut count) = ([None; GROUP], 0);
    for run in runs() {
        let records = run.iter().map(|(i, oid, loc)| ((*i, *oid), *loc));
        HeapFile::look_page(pages, run[0].2.page, records, |((i, oid), loc), looked| {
            match looked {
                WholeRecord::Seen(record) => {
                    let body = own_record(record, loc, oid)?.body;
                    f(i, (oid, loc), FoundBody::from_body(body))?;
                }
                WholeRecord::Not(link) => {
                    later[count] = Some((i, (oid, loc), link));
                    count += 1;
                }
            }
            Ok(())
        })?;
    }
    let later = || later.iter().flatten();
    let links = || later().filter_map(|(.., link)| *link);
    links().for_each(|link| HeapFile::prefetch_slot(pages, link));
    links().for_each(|link| HeapFile::prefetch_records(pages, link.page, [link].into_iter()));
    pages.expect(later().map(|(_, (_, loc), link)| link.map_or(loc.page, |link| link.page)));
    for (i, found, _) in later() {
        let looked = HeapFile::look_parts(pages, found.1, false, |first, rest| {
            found_parts(first, rest, *found, |body| f(*i, *found, body))
        });
        if !matches!(looked, Err(Error::Cancelled)) {
            looked?;
        }
    }
    Ok(())
}

/// Takes lookups to their records. `names` is the tree of their names, if there is one. Cost:
/// for each one page per level of the names tree and of the page map, and a handle page. A name's
/// entry says where the record lay: that is fetched beside the handle, and decides nothing.
#[inline]
pub(crate) fn find(
    pages: &Pinned<'_>,
    (handles, names): (&HandleTable, Option<Names>),
    all: &mut [Lookup<'_>],
) {
    pages.count(all.len());
    to_leaves(pages, names, all);
    to_handles(pages, handles, all);
    if let [one] = all {
        let LookupStep::Handle(oid, page) = one.step else { return };
        one.step = match HandleTable::lookup_in(pages, page, oid) {
            Ok(loc) => {
                HeapFile::prefetch_alone(pages, loc);
                LookupStep::Record(oid, loc)
            }
            Err(e) => LookupStep::Failed(e),
        };
        return;
    }
    to_records(pages, all);
    let mut last = None;
    for lookup in &*all {
        if let LookupStep::Record(_, loc) = lookup.step
            && last.replace(loc.page) != Some(loc.page)
        {
            HeapFile::prefetch_slot(pages, loc);
        }
    }
}

/// Takes a group from handle pages to the places of the records. Neighbours share the look at a
/// page.
#[inline]
fn to_records(pages: &Pinned<'_>, all: &mut [Lookup<'_>]) {
    let (mut at, mut last) = (0, None);
    while let Some(first) = all.get(at) {
        let LookupStep::Handle(Oid { page: index, .. }, page) = first.step else {
            at += 1;
            continue;
        };
        let same = |lookup: &&Lookup<'_>| match lookup.step {
            LookupStep::Handle(oid, other) => (oid.page, other) == (index, page),
            _ => false,
        };
        let end = at + all[at..].iter().take_while(same).count();
        let looked = pages.with_page(page, PageKind::Handle, |bytes| {
            let handles = HandlePage::new(bytes, page, index)?;
            for lookup in &mut all[at..end] {
                let LookupStep::Handle(oid, _) = lookup.step else { continue };
                lookup.step = match HandleTable::lookup_at(handles, oid) {
                    Ok(loc) => {
                        if last.replace(loc.page) != Some(loc.page) {
                            pages.prefetch_entry(loc.page);
                        }
                        LookupStep::Record(oid, loc)
                    }
                    Err(e) => LookupStep::Failed(e),
                };
            }
            Ok(())
        });
        at = match looked {
            Ok(()) => end,
            Err(e) => {
                // The others of the run find out for themselves.
                all[at].step = LookupStep::Failed(e);
                at + 1
            }
        };
    }
}

/// Takes the names of a group to the cells of their leaves.
#[inline]
fn to_leaves(pages: &Pinned<'_>, names: Option<Names>, all: &mut [Lookup<'_>]) {
    for lookup in &mut *all {
        let Key::Name(name) = lookup.key else { continue };
        lookup.step = match names.map(|names| names.leaf_of(pages, name)).transpose() {
            Ok(leaf) => leaf.flatten().map_or(LookupStep::Missing, LookupStep::Leaf),
            Err(e) => LookupStep::Failed(e),
        };
    }
    if names.is_none() {
        return;
    }
    // One alone would wait for each of the group's hints as for the look itself.
    if let [Lookup { step: LookupStep::Leaf(leaf), .. }] = &*all {
        leaf.prefetch(pages);
    } else {
        let hints: [fn(&Leaf, &Pinned<'_>); 4] = [
            |leaf, pages| pages.prefetch_entry(leaf.page()),
            |leaf, pages| leaf.prefetch_head(pages),
            |leaf, pages| leaf.prefetch_slot(pages),
            |leaf, pages| leaf.prefetch_cell(pages),
        ];
        for hint in hints {
            for lookup in &*all {
                if let LookupStep::Leaf(leaf) = &lookup.step {
                    hint(leaf, pages);
                }
            }
        }
        pages.expect(all.iter().filter_map(|lookup| match &lookup.step {
            LookupStep::Leaf(leaf) => Some(leaf.page()),
            _ => None,
        }));
    }
}

/// Takes a group from OIDs, and from leaves that hold names, to handle pages.
#[inline]
fn to_handles(pages: &Pinned<'_>, handles: &HandleTable, all: &mut [Lookup<'_>]) {
    let (alone, mut last) = (all.len() == 1, None);
    for lookup in &mut *all {
        let decode = NameValue::decode;
        let value = match (lookup.key, &lookup.step) {
            (Key::Oid(oid), _) => Ok(Some(NameValue { oid: *oid, place: None })),
            (Key::Name(name), LookupStep::Leaf(leaf)) if alone => {
                leaf.find_alone(pages, name, decode)
            }
            (Key::Name(name), LookupStep::Leaf(leaf)) => leaf.find(pages, name, decode),
            _ => continue,
        };
        // Neighbours have one handle page.
        let page = |value: NameValue| match (last, value.oid) {
            (Some((site, index, page)), oid) if (site, index) == (oid.site, oid.page) => {
                Ok((value, page))
            }
            (_, oid) => Ok((value, handles.page_of(pages, oid)?)),
        };
        lookup.step = match value.and_then(|value| value.map(page).transpose()) {
            Ok(Some((NameValue { oid, place }, page))) => {
                match place.filter(|_| alone) {
                    // Both pages come at once; where the record lies the handle says.
                    Some(place) => {
                        pages.prefetch_entry(page);
                        pages.prefetch_entry(place.page);
                        HandleTable::prefetch(pages, page, oid);
                        HeapFile::prefetch_alone(pages, place);
                    }
                    None if alone => {}
                    None => {
                        let before = last.replace((oid.site, oid.page, page));
                        if before.is_none_or(|(.., before)| before != page) {
                            pages.prefetch_entry(page);
                        }
                    }
                }
                LookupStep::Handle(oid, page)
            }
            Ok(None) => LookupStep::Missing,
            Err(e) => LookupStep::Failed(e),
        };
    }
    let mut last = None;
    for lookup in all.iter().filter(|_| !alone) {
        if let LookupStep::Handle(oid, page) = lookup.step
            && last.replace(page) != Some(page)
        {
            HandleTable::prefetch(pages, page, oid);
        }
    }
    if !alone {
        pages.expect(all.iter().filter_map(|lookup| match lookup.step {
            LookupStep::Handle(_, page) => Some(page),
            _ => None,
        }));
    }
}

/// A state, seen through one collection, for one call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObjectLookup<'a> {
    pub(crate) state: &'a ReadState,
    /// None: the default one.
    pub(crate) collection: Option<&'a Collection>,
    /// Whether it reads from disk what is not in memory; if not, that is [`Error::Cancelled`].
    pub(crate) waits: bool,
}

/// Where a record says that its object's bytes lie.
pub(crate) enum FoundObject<T> {
    /// In it; this was made of them.
    Small(T),
    /// In segments.
    Large(Oid, ObjectBody),
}

impl<'a> ObjectLookup<'a> {
    pub(crate) fn current(self) -> Result<Option<&'a Collection>> {
        match self.collection {
            Some(c) => Ok(Some(c)),
            None if !self.waits && !self.state.knows_default() => Err(Error::Cancelled),
            None => self.state.default_collection(),
        }
    }

    /// The tree of names, where one of these keys is a name.
    pub(crate) fn names<'k>(
        self,
        mut keys: impl Iterator<Item = &'k Key<'k>>,
    ) -> Result<Option<Names>> {
        match keys.any(|key| matches!(key, Key::Name(_))) {
            true => Ok(self.current()?.map(|c| c.names)),
            false => Ok(None),
        }
    }

    /// The key as the tree of names has it, if that is another; refuses an OID of a dropped
    /// collection's object.
    ///
    /// # Errors
    /// As [`ReadState::check_alive`].
    #[inline]
    pub(crate) fn own_key(self, key: &Key<'_>) -> Result<Option<Key<'static>>> {
        match (key, self.collection) {
            (Key::Oid(_), _) if !self.waits && !self.state.root().drops.root.is_none() => {
                Err(Error::Cancelled)
            }
            (Key::Oid(oid), _) => self.state.check_alive(*oid).map(|()| None),
            (Key::Name(name), Some(c)) if c.is_small() => {
                Ok(Some(Key::Name(c.key(name).into_owned().into())))
            }
            _ => Ok(None),
        }
    }

    /// As [`ObjectLookup::own_key`], for several; `None` if all are as they are.
    ///
    /// # Errors
    /// As there.
    pub(crate) fn own_keys(self, keys: &[Key<'_>]) -> Result<Option<Vec<Key<'static>>>> {
        let small = self.collection.is_some_and(Collection::is_small);
        if !small && self.state.root().drops.root.is_none() {
            return Ok(None);
        }
        let own = |key| Ok(self.own_key(key)?.unwrap_or_else(|| key.owned()));
        keys.iter().map(own).collect::<Result<_>>().map(Some)
    }

    /// What `f` finds in the state's pages.
    ///
    /// # Errors
    /// As [`Snapshot::pinned`](crate::txn::Snapshot::pinned).
    #[inline]
    pub(crate) fn pinned<T>(self, f: impl FnOnce(&Pinned<'_>) -> Result<T>) -> Result<T> {
        let snapshot = &self.state.snapshot;
        if self.waits { snapshot.pinned(f) } else { snapshot.pinned_in_memory(f) }
    }

    /// What `small` makes of the bytes of the object of this key, if they lie in its record;
    /// `None` if no object has the name.
    #[inline]
    pub(crate) fn with_small<T>(
        self,
        key: &Key<'_>,
        small: impl FnOnce(Oid, Location, [&[u8]; 2]) -> Result<T>,
    ) -> Result<Option<FoundObject<T>>> {
        // Before the pin: it may be read from disk.
        let trees = (&self.state.root().handles, self.names([key].into_iter())?);
        let own = self.own_key(key)?;
        let key = own.as_ref().unwrap_or(key);
        self.pinned(|pages| {
            let mut one = [Lookup::new(key)];
            find(pages, trees, &mut one);
            let [one] = one;
            one.body(pages, true, |oid, loc, body| match body {
                FoundBody::Small(parts) => small(oid, loc, parts).map(FoundObject::Small),
                FoundBody::Large(descriptor) => {
                    Ok(FoundObject::Large(oid, ObjectBody::large(descriptor)?))
                }
            })
        })
    }

    /// See [`Reader::lookup`](super::Reader::lookup).
    pub(crate) fn lookup(self, name: &[u8]) -> Result<Option<Oid>> {
        let Some(c) = self.current()? else { return Ok(None) };
        c.names.find(self.state, &c.key(name), oid_of)
    }

    pub(crate) fn resolve(self, key: &Key<'_>) -> Result<Oid> {
        match key {
            Key::Oid(oid) => self.state.check_alive(*oid).map(|()| *oid),
            Key::Name(name) => self.lookup(name)?.ok_or_else(|| missing(key)),
        }
    }

    /// Puts them in place of what `bytes` holds if they lie in the record.
    #[inline]
    pub(crate) fn fetch(
        self,
        key: &Key<'_>,
        bytes: &mut Vec<u8>,
    ) -> Result<Option<FoundObject<()>>> {
        self.with_small(key, |_, _, small| {
            bytes.clear();
            small.iter().for_each(|part| bytes.extend_from_slice(part));
            Ok(())
        })
    }

    /// See [`Reader::get_into`](super::Reader::get_into).
    pub(crate) fn get_into(self, key: &Key<'_>, bytes: &mut Vec<u8>) -> Result<bool> {
        let read = self.fetch(key, bytes).and_then(|found| match found {
            Some(FoundObject::Small(())) => Ok(true),
            // Not emptied before: what is written over need not be made zero.
            Some(FoundObject::Large(oid, whole)) => {
                read_range_into(self.state, &whole, oid, 0..whole.size(), bytes).map(|()| true)
            }
            None => Ok(false),
        });
        if !matches!(read, Ok(true)) {
            bytes.clear();
        }
        read
    }

    /// See [`Reader::get_range`](super::Reader::get_range).
    pub(crate) fn get_range(self, key: &Key<'_>, range: Range<u64>) -> Result<Option<Vec<u8>>> {
        let Some((oid, whole)) = self.find(key)? else { return Ok(None) };
        read_range(self.state, &whole, oid, range).map(Some)
    }

    /// See [`Reader::metadata`](super::Reader::metadata).
    pub(crate) fn metadata(self, key: &Key<'_>) -> Result<Metadata> {
        let oid = self.resolve(key)?;
        object::metadata(self.state, &self.state.root().handles, oid)
    }

    /// See [`Reader::read_at`](super::Reader::read_at).
    pub(crate) fn read_at(
        self,
        key: &Key<'_>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let found = self.with_small(key, |_, _, small| {
            let size: u64 = small.iter().map(|part| part.len() as u64).sum();
            let n = buf.len().min(size.saturating_sub(offset) as usize);
            copy_parts(small, size.min(offset) as usize, &mut buf[..n]);
            Ok(n)
        })?;
        Ok(match found {
            Some(FoundObject::Small(n)) => Some(n),
            Some(FoundObject::Large(oid, whole)) => {
                Some(read_up_to(self.state, (&whole, oid), offset, buf)?)
            }
            None => None,
        })
    }

    /// Where an object's bytes lie; `None` if no object has the name.
    pub(crate) fn find(self, key: &Key<'_>) -> Result<Option<(Oid, ObjectBody)>> {
        Ok(match self.with_small(key, |oid, loc, _| Ok((oid, loc)))? {
            // Keeps its page, and so counts a reference.
            Some(FoundObject::Small((oid, loc))) => {
                Some((oid, object::open_at(self.state, loc, oid)?))
            }
            Some(FoundObject::Large(oid, whole)) => Some((oid, whole)),
            None => None,
        })
    }
}

/// Fills `buf` with the bytes from `offset` on of two parts, which have as many.
#[inline]
pub(crate) fn copy_parts([first, rest]: [&[u8]; 2], offset: usize, buf: &mut [u8]) {
    let from = offset.min(first.len());
    let (begin, end) = buf.split_at_mut(buf.len().min(first.len() - from));
    begin.copy_from_slice(&first[from..from + begin.len()]);
    let from = offset.saturating_sub(first.len());
    end.copy_from_slice(&rest[from..from + end.len()]);
}
