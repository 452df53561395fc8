//! Reading objects of one state.

use super::{Attributes, Body, Record};
use crate::handle::HandleTable;
use crate::heap::{HeapFile, Location, RecordRef};
use crate::segment_tree::{DEFAULT_THRESHOLD, DataRead, TreeRead, ahead};
use crate::sharing::Sharing;
use holdall_core::attributes::MTIME;
use holdall_core::heap_record::divided::in_place;
use holdall_core::segment_tree::{self, APPEND_MOSTLY, Descriptor, MAY_HOLD_SHARED_RUNS, Top};
use holdall_core::{Error, Oid, PageNo, PageRun, Result, Version};
use std::time::{Duration, SystemTime};

/// How an object is stored, as its record says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// Inside its heap record.
    Small,
    /// In segments.
    #[non_exhaustive]
    Large {
        /// Levels of the positional tree; 0 if the record itself lists the segments.
        levels: u8,
        /// Segment threshold T in pages.
        threshold: u16,
        /// Bytes at the end kept in the record.
        tail: u64,
        /// Whether it is hinted to grow at its end mostly.
        append_mostly: bool,
    },
}

/// What an object's segments are in numbers; all 0 for a small object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Segments {
    /// Runs of neighbouring pages.
    pub segments: u64,
    /// Nodes of the positional tree; 0 if the record itself lists the segments.
    pub nodes: u64,
    /// Pages of segments.
    pub pages: u64,
    /// Pages among them that other objects, or other parts of this one, hold too.
    pub shared_pages: u64,
    /// Bytes of the pages and of the tail in the record: the object's size ÷ this is its
    /// utilization.
    pub space: u64,
}

/// What is known of an object without reading its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metadata {
    /// Its id.
    pub oid: Oid,
    /// Its name, if it has one.
    pub name: Option<Vec<u8>>,
    /// Its size in bytes.
    pub size: u64,
    /// Changes with every change of its bytes or attributes.
    pub version: Version,
    /// When its bytes or attributes last changed: when the transaction that did it began. `None`
    /// for what was last changed by a build of format version 1, which kept no times.
    pub modified: Option<SystemTime>,
    /// Its attributes.
    pub attributes: Attributes,
    /// How it is stored.
    pub layout: Layout,
}

impl Metadata {
    /// When the bytes last changed, for display: as the attribute [`MTIME`] says, which a
    /// change of the bytes drops, else [`Metadata::modified`].
    #[must_use]
    pub fn last_modified(&self) -> Option<SystemTime> {
        mtime(&self.attributes).or(self.modified)
    }
}

/// The time that the attribute [`MTIME`] says, if it is there and says one.
#[must_use]
pub fn mtime(attributes: &Attributes) -> Option<SystemTime> {
    let text = std::str::from_utf8(attributes.get(MTIME)?).ok()?;
    time_at(text.parse().ok()?)
}

/// The time this many nanoseconds after 1970 UTC, or before, if the system can have it.
fn time_at(nanos: i128) -> Option<SystemTime> {
    let away = nanos.unsigned_abs();
    let seconds = u64::try_from(away / 1_000_000_000).ok()?;
    let away = Duration::new(seconds, u32::try_from(away % 1_000_000_000).ok()?);
    let start = SystemTime::UNIX_EPOCH;
    if nanos < 0 { start.checked_sub(away) } else { start.checked_add(away) }
}

/// The record of an object, checked to be its own. Cost: a handle page and a heap page.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Dangling`], [`Error::Corrupt`], [`Error::Io`].
pub fn read_record<D: DataRead + ?Sized>(
    pages: &D,
    handles: &HandleTable,
    oid: Oid,
) -> Result<RecordRef> {
    record_at(pages, handles.lookup(pages, oid)?, oid)
}

/// The record at `loc`, checked to be the object's.
pub(super) fn record_at<D: DataRead + ?Sized>(
    pages: &D,
    loc: Location,
    oid: Oid,
) -> Result<RecordRef> {
    let record = HeapFile::whole(pages, loc)?;
    own_record(&record, loc, oid)?;
    Ok(record)
}

/// The record found at `loc`, checked to be the object's.
#[inline]
pub fn own_record(record: &[u8], loc: Location, oid: Oid) -> Result<Record<'_>> {
    let record = Record::parse(record)?;
    if record.oid != oid {
        return Err(not_its_own(loc, record.oid, oid));
    }
    Ok(record)
}

/// The bytes of a small object from the two parts of its record, where they lie, of which the
/// first was found at `loc`; `None` if the parts are to be joined first.
#[inline]
pub fn own_in_place<'a>(
    (first, rest): (&'a [u8], &'a [u8]),
    loc: Location,
    oid: Oid,
) -> Result<Option<[&'a [u8]; 2]>> {
    let Some((record, rest)) = in_place(first, rest) else { return Ok(None) };
    if record.oid != oid {
        return Err(not_its_own(loc, record.oid, oid));
    }
    Ok(match record.body {
        Body::Small(bytes) => Some([bytes, rest]),
        Body::Large(_) => None,
    })
}

/// An object's bytes, found but not read.
#[derive(Debug, Clone)]
pub enum ObjectBody {
    /// In the record.
    Small(RecordRef, std::ops::Range<usize>),
    /// In segments.
    Large(Descriptor),
}

/// Finds an object's bytes.
///
/// # Errors
/// As [`read_record`].
pub fn open<D: DataRead + ?Sized>(
    pages: &D,
    handles: &HandleTable,
    oid: Oid,
) -> Result<ObjectBody> {
    let large = with_body(pages, handles, oid, |body| match body {
        Body::Large(descriptor) => ObjectBody::large(descriptor).map(Some),
        Body::Small(_) => Ok(None),
    })?;
    if let Some(large) = large {
        return Ok(large);
    }
    open_at(pages, handles.lookup(pages, oid)?, oid)
}

/// As [`open`], of an object whose record lies at `loc`. Cost: a heap page, which a small
/// object keeps in memory.
///
/// # Errors
/// As [`open`].
pub fn open_at<D: DataRead + ?Sized>(pages: &D, loc: Location, oid: Oid) -> Result<ObjectBody> {
    let record = record_at(pages, loc, oid)?;
    Ok(match Record::parse(&record)?.body {
        Body::Small(bytes) => {
            let range = record.len() - bytes.len()..record.len();
            ObjectBody::Small(record, range)
        }
        Body::Large(descriptor) => ObjectBody::large(descriptor)?,
    })
}

/// Gives `f` the body of an object's record, which is checked to be its own, where it lies.
/// Cost: as [`read_record`], without counting a reference.
///
/// # Errors
/// As [`read_record`], and those of `f`.
#[inline]
pub fn with_body<D: DataRead + ?Sized, T>(
    pages: &D,
    handles: &HandleTable,
    oid: Oid,
    f: impl FnOnce(Body<'_>) -> Result<T>,
) -> Result<T> {
    let loc = handles.lookup(pages, oid)?;
    HeapFile::with_record(pages, loc, |record| f(own_record(record, loc, oid)?.body))
}

#[cold]
fn not_its_own(loc: Location, own: Oid, oid: Oid) -> Error {
    Error::page(loc.page, format!("slot {} holds {own}, not {oid}", loc.slot))
}

impl ObjectBody {
    /// The bytes that an encoded descriptor leads to.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Unsupported`].
    pub fn large(descriptor: &[u8]) -> Result<Self> {
        Ok(Self::Large(Descriptor::decode(descriptor)?))
    }

    /// The object's size in bytes.
    pub fn size(&self) -> u64 {
        match self {
            Self::Small(_, range) => range.len() as u64,
            Self::Large(descriptor) => descriptor.size(),
        }
    }

    /// Has the bytes `range`, of which up to `at_once` are read in one go, read ahead if
    /// they lie in several segments. A hint; what goes wrong shows when they are
    /// read.
    pub fn prefetch<D: DataRead + ?Sized>(
        &self,
        pages: &D,
        (range, at_once): (std::ops::Range<u64>, u64),
    ) {
        if let Self::Large(d) = self {
            ahead::prefetch(pages, &d.tree, (range, at_once));
        }
    }

    /// Has all of its bytes read ahead, also if they lie in one segment: for callers that read
    /// something else before. A hint.
    pub fn prefetch_all<D: DataRead + ?Sized>(&self, pages: &D) {
        if let Self::Large(d) = self {
            ahead::prefetch_all(pages, &d.tree);
        }
    }

    /// Whether some of the bytes `range`, read at once, would come from the device past the
    /// page cache; looks at its first segments. Cost: O(tree height) pages, some calls.
    pub fn is_new<D: DataRead + ?Sized>(&self, pages: &D, range: std::ops::Range<u64>) -> bool {
        matches!(self, Self::Large(d) if ahead::is_new(pages, &d.tree, range))
    }

    /// The first stretch of bytes in `range` that were never written. Cost: O(tree height +
    /// segments before it) pages.
    ///
    /// # Errors
    /// As [`ObjectBody::read_at`].
    pub fn hole<D: DataRead + ?Sized>(
        &self,
        pages: &D,
        oid: Oid,
        range: std::ops::Range<u64>,
    ) -> Result<Option<std::ops::Range<u64>>> {
        let Self::Large(d) = self else { return Ok(None) };
        let mut hole: Option<std::ops::Range<u64>> = None;
        for located in segment_tree::slices(&TreeRead(pages), &d.tree, range.clone()) {
            let l = located.map_err(|e| name_range(e, oid, range.start, range.end))?;
            match &mut hole {
                _ if l.slice.is_run() => {
                    if hole.is_some() {
                        break;
                    }
                }
                None => hole = Some(range.start.max(l.start)..range.end.min(l.end())),
                Some(hole) => hole.end = range.end.min(l.end()),
            }
        }
        Ok(hole)
    }

    /// Fills `buf` with the bytes from `offset`, all of which exist. Cost: O(tree height)
    /// pages, and the bytes; nothing else of the object is read.
    ///
    /// # Errors
    /// [`Error::Range`], [`Error::Corrupt`] naming object and range, [`Error::Io`].
    pub fn read_at<D: DataRead + ?Sized>(
        &self,
        pages: &D,
        oid: Oid,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<()> {
        let (end, size) = (offset.saturating_add(buf.len() as u64), self.size());
        if end > size {
            return Err(Error::Range { object: oid.to_string(), start: offset, end, size });
        }
        match self {
            Self::Small(record, range) => {
                let from = range.start + offset as usize;
                let bytes = record.get(from..from + buf.len());
                buf.copy_from_slice(bytes.ok_or_else(|| damaged(oid, "record is too short"))?);
                Ok(())
            }
            Self::Large(d) => segment_tree::read_at(&TreeRead(pages), d, offset, buf)
                .map_err(|e| name_range(e, oid, offset, end)),
        }
    }
}

fn damaged(oid: Oid, detail: &str) -> Error {
    Error::corrupt(oid.to_string(), detail)
}

/// Adds object and range to what an error says of a page.
fn name_range(e: Error, oid: Oid, start: u64, end: u64) -> Error {
    match e {
        Error::Corrupt { place, detail } => Error::corrupt(
            format!("object {oid}, bytes {start}..{end}"),
            format!("{place}: {detail}"),
        ),
        other => other,
    }
}

/// Pages of an object's segments that are shared.
fn shared_pages<D: DataRead + ?Sized>(pages: &D, sharing: &Sharing, d: &Descriptor) -> Result<u64> {
    if d.flags & MAY_HOLD_SHARED_RUNS == 0 || sharing.is_empty() {
        return Ok(0);
    }
    let mut shared = 0;
    for located in segment_tree::slices(&TreeRead(pages), &d.tree, 0..d.tree.size) {
        let slice = located?.slice;
        if slice.is_run() {
            let len = slice.pages(pages.page_size() as u64);
            let run = PageRun::new(PageNo(slice.reference), len);
            for range in sharing.overlapping(pages, run)? {
                let from = range.run.start.0.max(run.start.0);
                shared += range.run.end().min(run.end()) - from;
            }
        }
    }
    Ok(shared)
}

/// What is known of an object. Cost: its record, whatever its size and its segments.
///
/// # Errors
/// As [`read_record`].
pub fn metadata<D: DataRead + ?Sized>(
    pages: &D,
    handles: &HandleTable,
    oid: Oid,
) -> Result<Metadata> {
    let record = read_record(pages, handles, oid)?;
    let record = Record::parse(&record)?;
    let (size, layout) = match record.body {
        Body::Small(bytes) => (bytes.len() as u64, Layout::Small),
        Body::Large(bytes) => {
            let d = Descriptor::decode(bytes)?;
            let levels = match d.tree.top {
                Top::Inline(_) => 0,
                Top::Root { height, .. } => height.saturating_add(1),
            };
            let threshold = if d.threshold == 0 { DEFAULT_THRESHOLD } else { d.threshold };
            let append_mostly = d.flags & APPEND_MOSTLY != 0;
            let tail = d.tail.len() as u64;
            (d.size(), Layout::Large { levels, threshold, tail, append_mostly })
        }
    };
    Ok(Metadata {
        oid,
        name: record.name.map(<[u8]>::to_vec),
        size,
        version: Version::new(oid, record.change),
        modified: time_of(record.time),
        attributes: record.attributes()?,
        layout,
    })
}

/// The time so many milliseconds after 1970 UTC, if it is known and one that the system can have.
pub fn time_of(millis: u64) -> Option<SystemTime> {
    SystemTime::UNIX_EPOCH.checked_add(Duration::from_millis(millis)).filter(|_| millis > 0)
}

/// Counts an object's segments. Cost: all nodes of its tree, and the notes of sharing about
/// them if it may share.
///
/// # Errors
/// As [`read_record`].
pub fn segments<D: DataRead + ?Sized>(
    pages: &D,
    handles: &HandleTable,
    sharing: &Sharing,
    oid: Oid,
) -> Result<Segments> {
    let record = read_record(pages, handles, oid)?;
    let Body::Large(bytes) = Record::parse(&record)?.body else { return Ok(Segments::default()) };
    let d = Descriptor::decode(bytes)?;
    let s = segment_tree::stats(&TreeRead(pages), &d, pages.page_size())?;
    Ok(Segments {
        segments: s.segments,
        nodes: s.nodes,
        pages: s.pages,
        shared_pages: shared_pages(pages, sharing, &d)?,
        space: s.pages.saturating_mul(pages.page_size() as u64).saturating_add(s.tail),
    })
}
