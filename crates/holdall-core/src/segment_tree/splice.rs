//! The one edit: replacing a byte range of an object by other bytes.
//!
//! Owns: [`splice`]. Insert, delete, replace, append and truncate are cases of it. It cuts
//! the segments at the range's ends, lets the window (window.rs) keep the threshold, writes
//! what is new or copied, and hands the tree's structure to replace.rs. All data is
//! read and written before a page is retired.
//!
//! How a cut treats pages (T4): the part on the left keeps the page the cut falls into, its
//! bytes behind the cut are dead; the rest of that page is copied into what is written; the
//! part on the right starts at the next page.
//!
//! What is written at the object's end and does not fill a page becomes the inline tail, if it
//! is short enough, else a partly filled last page. An append of whole pages copies nothing; one
//! behind a partly filled page copies up to T pages, since pages are written once.

use super::find::{Finder, Located};
use super::limits::Limits;
use super::replace::replace;
use super::store::Piece;
use super::window::{Item, Origin, Window};
use super::{Descriptor, MAX_OBJECT, NodeRead, Pieces, Segments, Slice, Source, Store};
use crate::{Error, PageNo, Result};
use std::ops::Range;

/// What a store sets for its objects.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// Threshold T in pages for descriptors that name none (Biliris §2.3); 0 and 1 mean no
    /// merging of segments.
    pub threshold: u16,
    /// Whether bytes alone on a page beside an edit go along if that saves a page (the
    /// reshuffling of bytes in EOS): denser for small T, for at most
    /// two pages more to read.
    pub shuffle_bytes: bool,
    /// Most bytes of the inline tail; what counts is at most a page less one byte.
    pub max_tail: usize,
    /// Most slices held inline in the descriptor.
    pub max_inline: usize,
    /// Pages of the largest segment, at least 1.
    pub max_segment_pages: u64,
}

/// The bytes that a [`splice`] puts in.
pub enum Content<'a> {
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// This many bytes of a source, read once, in order.
    Stream(&'a mut dyn Source, u64),
    /// Runs written before, and the bytes around them. They become the object's; among
    /// themselves they stay as they are, but small ones at either end may be copied and
    /// retired to keep the threshold.
    Staged {
        /// Bytes before them.
        head: &'a [u8],
        /// The runs.
        slices: Vec<Slice>,
        /// Bytes behind them.
        tail: &'a [u8],
    },
    /// This many zeros; they take no space, except for fewer than T pages.
    Zeros(u64),
}

impl Content<'_> {
    /// Number of bytes; `None` if more than an object can have.
    pub fn len(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Stream(_, len) | Self::Zeros(len) => Some(*len),
            Self::Staged { head, slices, tail } => {
                let lens = slices.iter().map(|s| s.len);
                super::node::sum(lens.chain([head.len() as u64, tail.len() as u64]))
            }
        }
    }

    /// Whether there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == Some(0)
    }
}

/// Replaces the bytes `range` of an object by `content` and returns its new descriptor.
/// The old one stays valid as long as the store keeps what was retired.
///
/// Cost (Biliris §4.4): O(height) nodes; the pages of the new bytes, and up to about T pages
/// on either side copied if the threshold asks for it, independent of the object's size.
/// Segments wholly inside `range` are retired without being read.
///
/// # Errors
/// [`Error::Range`] (with no object name) for a range outside the object,
/// [`Error::Invalid`] for an object too large or slices that cannot be, and those of the
/// store. After an error the old descriptor is what counts; what was written or retired is
/// the transaction's to undo.
pub fn splice<S: Store + ?Sized>(
    store: &mut S,
    descriptor: &Descriptor,
    range: Range<u64>,
    content: Content<'_>,
    options: &Options,
) -> Result<Descriptor> {
    let size = descriptor.size();
    let Range { start, end } = range;
    if start > end || end > size {
        return Err(Error::Range { object: String::new(), start, end, size });
    }
    let new_size = content.len().and_then(|n| n.checked_add(size - (end - start)));
    if new_size.is_none_or(|n| n > MAX_OBJECT) {
        let detail = format!("an object can have {MAX_OBJECT} bytes at most");
        return Err(Error::Invalid(detail));
    }
    if start == end && content.is_empty() {
        return Ok(descriptor.clone());
    }
    let mut finder = Finder::new(&descriptor.tree);
    let (mut window, inner) = plan(store, &mut finder, descriptor, range, content, options)?;
    window.settle(store, &mut finder)?;
    apply(store, descriptor, window, inner, options)
}

/// Cuts at the ends of `range` and puts the content between. Also returns the tree's bytes
/// whose slices are dropped whole.
fn plan<'a, 'c: 'a, S: Store + ?Sized>(
    store: &S,
    finder: &mut Finder<'_>,
    descriptor: &'a Descriptor,
    range: Range<u64>,
    content: Content<'c>,
    options: &Options,
) -> Result<(Window<'a>, Range<u64>)> {
    let tree = descriptor.tree.size;
    let (a, b) = (range.start.min(tree), range.end.min(tree));
    let mut window = Window::new(descriptor, store.page_size(), a..b, options)?;
    let page = window.page;
    let left = cut_slice(store, finder, a)?;
    let right = cut_slice(store, finder, b)?;
    left.iter().chain(&right).try_for_each(|l| window.sound(&l.slice))?;
    let (mut inner, mut until) = (a..b, None);
    if let Some(l) = left {
        window.push(Item::Kept(l.slice.part(0, a - l.start, page), Origin::Cut));
        (window.old.start, inner.start) = (l.start, l.end().min(b));
    }
    let mut rest = Rest::default();
    if let Some(r) = right {
        rest = Rest::behind(&r.slice, b - r.start, page);
        (window.old.end, inner.end) = (r.end(), r.start.max(inner.start));
        until = Some((r, rest.first_page));
    }
    free_cut(&mut window, left, until);
    let tail = descriptor.tail.as_slice();
    let tail_at = |at: u64| (at.max(tree) - tree) as usize;
    window.push_new(Piece::Bytes(&tail[..tail_at(range.start)]));
    push_content(&mut window, content)?;
    if let Some(copied) = rest.copied {
        window.push_new(Piece::Copy(copied));
    }
    if let Some(kept) = rest.kept {
        window.push(Item::Kept(kept, Origin::Cut));
    }
    if b == tree {
        window.push_tail(&tail[tail_at(range.end)..]);
    }
    Ok((window, inner))
}

/// The slice that byte `at` is inside of, not the first byte of.
fn cut_slice<S: NodeRead + ?Sized>(
    store: &S,
    finder: &mut Finder<'_>,
    at: u64,
) -> Result<Option<Located>> {
    if at == 0 || at >= finder.size() {
        return Ok(None);
    }
    Ok(Some(finder.slice(store, at)?).filter(|l| l.start < at))
}

/// What remains of a slice behind a cut.
#[derive(Default)]
struct Rest {
    /// The rest of the page the cut falls into, to be copied.
    copied: Option<Slice>,
    /// The whole pages behind.
    kept: Option<Slice>,
    /// The first page of those, counted from the slice's first.
    first_page: u64,
}

impl Rest {
    fn behind(slice: &Slice, from: u64, page: u64) -> Self {
        let len = slice.len - from;
        let used = (u64::from(slice.offset) + from) % page;
        let copied = if slice.is_run() && used > 0 { (page - used).min(len) } else { 0 };
        let part = |from, len| (len > 0).then(|| slice.part(from, len, page));
        Self {
            copied: part(from, copied),
            kept: part(from + copied, len - copied),
            first_page: (u64::from(slice.offset) + from).div_ceil(page),
        }
    }
}

/// Frees the pages of the slices cut that neither part keeps.
fn free_cut(window: &mut Window<'_>, left: Option<Located>, right: Option<(Located, u64)>) {
    let page = window.page;
    let left = left.map(|l| {
        let bytes = window.cut.start - l.start;
        (l, l.slice.part(0, bytes, page).pages(page))
    });
    match (left, right) {
        (Some((l, from)), Some((r, to))) if l.start == r.start => {
            window.free_pages(&l.slice, from..to.min(l.slice.pages(page)));
        }
        (left, right) => {
            if let Some((l, from)) = left {
                window.free_pages(&l.slice, from..l.slice.pages(page));
            }
            if let Some((r, to)) = right {
                window.free_pages(&r.slice, 0..to.min(r.slice.pages(page)));
            }
        }
    }
}

fn push_content<'a, 'c: 'a>(window: &mut Window<'a>, content: Content<'c>) -> Result<()> {
    match content {
        Content::Bytes(bytes) => window.push_new(Piece::Bytes(bytes)),
        Content::Stream(source, len) => window.push_new(Piece::Stream(source, len)),
        Content::Zeros(0) => {}
        Content::Zeros(len) if len < window.least_bytes() => {
            window.push_new(Piece::Copy(Slice::zeros(len)));
        }
        Content::Zeros(len) => window.push(Item::Kept(Slice::zeros(len), Origin::Cut)),
        Content::Staged { head, slices, tail } => {
            window.push_new(Piece::Bytes(head));
            for slice in slices {
                slice.validate(&|| "staged slice".into())?;
                window.sound(&slice)?;
                window.push(Item::Kept(slice, Origin::Staged));
            }
            window.push_new(Piece::Bytes(tail));
        }
    }
    Ok(())
}

/// Writes the window, then the tree above it, then retires what is no longer used.
fn apply<S: Store + ?Sized>(
    store: &mut S,
    descriptor: &Descriptor,
    mut window: Window<'_>,
    inner: Range<u64>,
    options: &Options,
) -> Result<Descriptor> {
    let (lead, trail) = window.unchanged();
    let freed = std::mem::take(&mut window.freed);
    let mut range = window.old.clone();
    let (mut new, tail) = window.write(store)?;
    // Slices at both ends that came out as they were stay where they are, but for one: an
    // insertion between two slices needs a place.
    let mut front = lead.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let back = trail.iter().rev().zip(new[front..].iter().rev());
    let mut back = back.take_while(|(a, b)| a == b).count();
    let len = |slices: &[Slice]| slices.iter().map(|s| s.len).sum::<u64>();
    let skipped = len(&lead[..front]) + len(&trail[trail.len() - back..]);
    if skipped == range.end - range.start && front + back < new.len() {
        if front > 0 { front -= 1 } else { back = back.saturating_sub(1) }
    }
    range.start += len(&lead[..front]);
    range.end -= len(&trail[trail.len() - back..]);
    new.truncate(new.len() - back);
    new.drain(..front);
    let tree = if range.is_empty() && new.is_empty() {
        descriptor.tree.clone()
    } else {
        let mut removed = |store: &mut S, at: u64, slice: &Slice| {
            if inner.contains(&at) && slice.is_run() { store.retire_run(slice) } else { Ok(()) }
        };
        replace(store, &descriptor.tree, range, new, options.max_inline, &mut removed)?
    };
    freed.iter().try_for_each(|slice| store.retire_run(slice))?;
    let Descriptor { flags, threshold, .. } = *descriptor;
    Ok(Descriptor { flags, threshold, tree, tail })
}

/// Writes `len` bytes of `source` to runs of their own, for [`Content::Staged`] or
/// [`super::build()`]: the runs, and the bytes behind them that fit a tail. Holds no more in
/// memory than `store` does. Needs no lock: nothing refers to the runs yet.
///
/// # Errors
/// Those of `store` and `source`.
pub fn stage<S: Segments + ?Sized>(
    store: &mut S,
    source: &mut dyn Source,
    len: u64,
    near: Option<PageNo>,
    options: &Options,
) -> Result<(Vec<Slice>, Vec<u8>)> {
    if len > MAX_OBJECT {
        let detail = format!("an object can have {MAX_OBJECT} bytes at most");
        return Err(Error::Invalid(detail));
    }
    let limits = Limits::for_threshold(0, store.page_size(), options)?;
    let mut pieces = Pieces::from_source(source, len);
    let mut out = Vec::new();
    limits.write_runs(store, &mut pieces, len - limits.tail_of(len), near, &mut out)?;
    let tail = limits.take_tail(store, &mut pieces)?;
    Ok((out, tail))
}
