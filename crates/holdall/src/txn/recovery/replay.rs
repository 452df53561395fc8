//! The records of the log, sorted by what they change, and the pages that they make.
//!
//! Owns: [`Replay`], and the bounds of what a log may ask for. Reads the volume, changes
//! nothing. Invariants: all that a log names lies within what the file may have reached, and
//! every page has the checksum of its last record; both are known before anything is written.
//!
//! Memory: records stay as they are in the log; of the pages they make, [`KEPT_BYTES`] at most
//! are kept from the check to the writing, the others are made a second time.

use crate::txn::volume::{MOST_UNSYNCED_GROWTH, Volume};
use holdall_core::bytes::Reader;
use holdall_core::log_format::{Parts, Ranges, Record, most_composed, next_record};
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::PageKind;
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::{Error, Lsn, PageNo, Result, page};

/// Bytes of pages that are kept: all, mostly. A record of 28 bytes makes a page of up to 64 KiB.
const KEPT_BYTES: usize = 64 << 20;

/// A change of a page.
struct Edit<'a> {
    page: PageNo,
    new: bool,
    /// Where the version before lies, with its checksum, if not in its place.
    image: Option<(PageNo, u32)>,
    lsn: Lsn,
    checksum: u32,
    ranges: Ranges<'a>,
}

impl Edit<'_> {
    fn begins_at_image(&self) -> bool {
        self.image.is_some() && !mutation::is(Mutation::R36Base)
    }
}

/// Segment data of a record.
pub(super) struct Segment<'a> {
    pub(super) first: PageNo,
    pub(super) pages: u64,
    pub(super) data: Data<'a>,
}

pub(super) enum Data<'a> {
    Bytes(&'a [u8]),
    /// Checksum and parts.
    Composed(u32, Parts<'a>),
}

/// What the log asks to be written in place.
pub(in crate::txn) struct Replay<'a> {
    /// By page, those of a page in the order of the log.
    edits: Vec<Edit<'a>>,
    /// The first pages, as they will be.
    kept: Vec<Vec<u8>>,
    /// How many different pages change.
    pub(super) pages: u64,
    /// In the order of the log.
    pub(super) segments: Vec<Segment<'a>>,
    pub(super) commits: u64,
    /// Behind the last page that the log names, or holds as allocated.
    pub(super) end: u64,
}

/// A page as the log makes it, or why it cannot.
pub(super) type Attempt<'a> = Result<&'a [u8]>;

/// What a log may ask for: what a writer can have written, and no more.
struct Bounds {
    page_size: u64,
    /// Behind the last page. A commit that ends more than [`MOST_UNSYNCED_GROWTH`] behind the
    /// end that was durable is preceded by a sync, so that the file is at least so long.
    end: u64,
    /// Bytes that composed records stand for and do not hold: a checkpoint comes before more.
    composed: u64,
}

impl Bounds {
    fn read(volume: &Volume, log_bytes: u64) -> Result<Self> {
        let length = volume.disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
        let page_size = volume.page_size() as u64;
        let end = length.saturating_add(MOST_UNSYNCED_GROWTH) / page_size;
        let composed = most_composed(log_bytes);
        Ok(Self { page_size, end: end.min(PageNo::MAX.0), composed })
    }

    /// Refuses a run that ends behind what the file can have reached; returns its end.
    fn end_of(&self, first: PageNo, pages: u64) -> Result<u64> {
        first.0.checked_add(pages).filter(|end| *end <= self.end).ok_or_else(|| {
            let most = self.end;
            let detail = format!("{pages} pages at page {first}, the volume may have {most}");
            Error::corrupt("log record", detail)
        })
    }

    /// Pages that `bytes` of segment data take.
    fn pages_of(&self, first: PageNo, bytes: u64) -> Result<u64> {
        if bytes.is_multiple_of(self.page_size) {
            return Ok(bytes / self.page_size);
        }
        Err(Error::corrupt("log record", format!("{bytes} bytes of segment data at page {first}")))
    }
}

impl<'a> Replay<'a> {
    /// Reads the records of a log of `log_bytes` bytes and checks the pages they make. Cost:
    /// a read of each page that is not new.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub(super) fn read(volume: &Volume, groups: &'a [Vec<u8>], log_bytes: u64) -> Result<Self> {
        let (mut replay, bounds) = Self::parse(volume, groups, log_bytes)?;
        replay.check(volume, &bounds)?;
        Ok(replay)
    }

    /// As [`Replay::read`], and makes no page yet.
    ///
    /// # Errors
    /// As [`Replay::read`].
    pub(in crate::txn) fn unchecked(
        volume: &Volume,
        groups: &'a [Vec<u8>],
        log_bytes: u64,
    ) -> Result<Self> {
        Self::parse(volume, groups, log_bytes).map(|(replay, _)| replay)
    }

    fn parse(volume: &Volume, groups: &'a [Vec<u8>], log_bytes: u64) -> Result<(Self, Bounds)> {
        let mut bounds = Bounds::read(volume, log_bytes)?;
        let (edits, segments) = (Vec::new(), Vec::new());
        let mut replay = Self { edits, kept: Vec::new(), pages: 0, segments, commits: 0, end: 0 };
        for group in groups {
            replay.read_group(&mut bounds, group)?;
        }
        replay.edits.sort_by_key(|edit| edit.page);
        Ok((replay, bounds))
    }

    /// As [`Replay::unchecked`], without the groups that cannot be read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn lenient(volume: &Volume, groups: &'a [Vec<u8>], log_bytes: u64) -> Result<Self> {
        let (mut replay, mut bounds) = Self::parse(volume, &[], log_bytes)?;
        for group in groups {
            let before = (replay.edits.len(), replay.segments.len());
            if replay.read_group(&mut bounds, group).is_err() {
                replay.edits.truncate(before.0);
                replay.segments.truncate(before.1);
            }
        }
        replay.edits.sort_by_key(|edit| edit.page);
        Ok(replay)
    }

    /// Gives `f` each page that the log changes and that is not newer in its place: as the log makes it,
    /// or why it cannot be made. In order of place. A page that is whole there is what edits begin with: older ones may be of
    /// another life of its place.
    ///
    /// # Errors
    /// Those of `f`.
    pub(super) fn each_attempt(
        &self,
        volume: &Volume,
        f: &mut dyn FnMut(PageNo, Attempt<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut bytes = vec![0; volume.page_size()];
        for edits in self.edits.chunk_by(|a, b| a.page == b.page) {
            let Some(no) = edits.first().map(|edit| edit.page) else { continue };
            let read = raw_page(volume, no, &mut bytes);
            let whole = read.is_ok() && page::check(&bytes, no).is_ok();
            let there = if whole { page::lsn(&bytes) } else { Lsn(0) };
            let newer = &edits[edits.partition_point(|edit| edit.lsn <= there)..];
            if newer.is_empty() {
                continue;
            }
            let mut base = |to: &mut [u8]| raw_page(volume, no, to);
            let made = make(volume, newer, &mut bytes, &mut base);
            let made = made.or_else(|_| make(volume, edits, &mut bytes, &mut base));
            f(no, made.map(|_| &bytes[..]))?;
        }
        Ok(())
    }

    /// The pages that change, in order of place.
    pub(in crate::txn) fn changed(&self) -> impl Iterator<Item = PageNo> {
        self.edits.chunk_by(|a, b| a.page == b.page).filter_map(|edits| Some(edits.first()?.page))
    }

    /// Whether page `no` changes. Cost: a search.
    pub(in crate::txn) fn changes(&self, no: PageNo) -> bool {
        self.edits.binary_search_by_key(&no, |edit| edit.page).is_ok()
    }

    /// Gives `f` page `no` as the log makes it from what `base` puts there, with the commit that
    /// changed it last.
    ///
    /// # Errors
    /// As [`Replay::each_page`]; those of `base`.
    pub(in crate::txn) fn make(
        &self,
        volume: &Volume,
        no: PageNo,
        bytes: &mut [u8],
        base: &mut dyn FnMut(&mut [u8]) -> Result<()>,
    ) -> Result<Lsn> {
        let first = self.edits.partition_point(|edit| edit.page < no);
        let len = self.edits[first..].partition_point(|edit| edit.page == no);
        make(volume, &self.edits[first..first + len], bytes, base)
    }

    fn read_group(&mut self, bounds: &mut Bounds, group: &'a [u8]) -> Result<()> {
        let mut reader = Reader::new(group);
        let (mut first, mut open) = (self.edits.len(), false);
        while let Some(record) = next_record(&mut reader)? {
            open = !matches!(record, Record::Commit { .. });
            match record {
                Record::Commit { lsn } => {
                    self.edits[first..].iter_mut().for_each(|edit| edit.lsn = lsn);
                    first = self.edits.len();
                    self.commits += 1;
                }
                Record::Page { page, new, checksum, ranges } => {
                    self.end = self.end.max(bounds.end_of(page, 1)?);
                    self.edits.push(Edit { page, new, image: None, lsn: Lsn(0), checksum, ranges });
                }
                Record::FromImage { page, image, before, checksum, ranges } => {
                    self.end = self.end.max(bounds.end_of(page, 1)?);
                    bounds.end_of(image, 1)?;
                    let (image, lsn) = (Some((image, before)), Lsn(0));
                    self.edits.push(Edit { page, new: false, image, lsn, checksum, ranges });
                }
                Record::Segment { page, bytes } => {
                    self.push_segment(bounds, page, bytes.len() as u64, Data::Bytes(bytes))?;
                }
                Record::Composed { page, checksum, parts } => {
                    let (mut bytes, mut unlogged) = (0_u64, 0_u64);
                    for part in parts.iter() {
                        let part = part?;
                        bytes += part.len();
                        unlogged += part.unlogged();
                    }
                    bounds.composed = bounds.composed.checked_sub(unlogged).ok_or_else(|| {
                        Error::corrupt("log", "its records stand for more than any log may")
                    })?;
                    self.push_segment(bounds, page, bytes, Data::Composed(checksum, parts))?;
                }
                Record::InPlace { .. } | Record::Skipped => {}
            }
        }
        if open {
            return Err(Error::corrupt("log", "a group ends inside a commit"));
        }
        Ok(())
    }

    fn push_segment(
        &mut self,
        bounds: &Bounds,
        first: PageNo,
        bytes: u64,
        data: Data<'a>,
    ) -> Result<()> {
        let pages = bounds.pages_of(first, bytes)?;
        self.end = self.end.max(bounds.end_of(first, pages)?);
        self.segments.push(Segment { first, pages, data });
        Ok(())
    }

    /// Makes every page once, checks it, and finds what the directories among them hold as
    /// allocated: extents are allocated before their pages are written, and their growth need
    /// not have been synced.
    fn check(&mut self, volume: &Volume, bounds: &Bounds) -> Result<()> {
        let sb = volume.superblock();
        let layout = SpaceLayout::new(sb.page_size as usize, sb.space_pages)?;
        let (mut pages, mut end, mut kept) = (0, self.end, Vec::new());
        self.each_page(volume, &mut |no, bytes| {
            pages += 1;
            if page::kind(bytes) == Some(PageKind::SpaceDir) {
                end = end.max(bounds.end_of(no, allocated(&layout, no, bytes)?)?);
            }
            if (kept.len() + 1) * bytes.len() <= KEPT_BYTES {
                kept.push(bytes.to_vec());
            }
            Ok(())
        })?;
        (self.pages, self.kept) = (pages, kept);
        if !mutation::is(Mutation::R21Grown) {
            self.end = end;
        }
        Ok(())
    }

    /// Bytes that are written in place, and by which the file grows again.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn bytes_to_write(&self, volume: &Volume) -> Result<u64> {
        let length = volume.disk.len().map_err(|e| Error::io("reading the volume's length", e))?;
        let size = volume.page_size() as u64;
        let pages = self.pages + self.segments.iter().map(|segment| segment.pages).sum::<u64>();
        Ok(pages * size + self.end.saturating_mul(size).saturating_sub(length))
    }

    /// Gives `f` each page as the log makes it, in order of place.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if one is not what was committed, [`Error::Io`], those of `f`.
    pub(super) fn each_page(
        &self,
        volume: &Volume,
        f: &mut dyn FnMut(PageNo, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (mut kept, mut bytes) = (self.kept.iter(), vec![0; volume.page_size()]);
        for edits in self.edits.chunk_by(|a, b| a.page == b.page) {
            let Some(no) = edits.first().map(|edit| edit.page) else { continue };
            if let Some(kept) = kept.next() {
                f(no, kept)?;
                continue;
            }
            make(volume, edits, &mut bytes, &mut |bytes| raw_page(volume, no, bytes))?;
            f(no, &bytes)?;
        }
        Ok(())
    }
}

/// Makes a page from all its edits, in the order of the log; returns the last one's commit.
fn make(
    volume: &Volume,
    edits: &[Edit<'_>],
    bytes: &mut [u8],
    base: &mut dyn FnMut(&mut [u8]) -> Result<()>,
) -> Result<Lsn> {
    let Some(last) = edits.last() else { return Ok(Lsn(0)) };
    // A new page starts as zeros, and one that lay elsewhere from there: nothing before matters.
    let from = edits.iter().rposition(|edit| edit.new || edit.begins_at_image());
    match from.map(|from| &edits[from]) {
        Some(Edit { new: true, .. }) if !mutation::is(Mutation::R13Unread) => bytes.fill(0),
        Some(Edit { image: Some(image), .. }) => image_or_place(volume, last.page, *image, bytes)?,
        _ => base(bytes)?,
    }
    for edit in &edits[from.unwrap_or(0)..] {
        edit.ranges.apply(bytes)?;
    }
    if page::seal(bytes, last.lsn) != last.checksum {
        let detail = "replaying the log does not give the page that was committed";
        return Err(Error::page(last.page, detail));
    }
    Ok(last.lsn)
}

/// Pages from `no` on up to the last one that it holds as allocated, if it lies where the
/// directory of a space does.
fn allocated(layout: &SpaceLayout, no: PageNo, bytes: &[u8]) -> Result<u64> {
    let (space, _) = layout.split(no)?;
    if no != layout.dir_page(space) {
        return Ok(0);
    }
    let dir = SpaceDir::open(*layout, space, bytes)?;
    let last = (0..layout.space_pages()).rev().find(|i| dir.is_allocated(*i));
    Ok(last.map_or(0, |i| (layout.page_at(space, i).0 + 1).saturating_sub(no.0)))
}

/// A page as its image has it, which the record's commit freed: it lies there until a checkpoint
/// allows its reuse. If that was so, and the superblock of that checkpoint was lost since, it had
/// brought the page into its place.
fn image_or_place(
    volume: &Volume,
    no: PageNo,
    (image, checksum): (PageNo, u32),
    bytes: &mut [u8],
) -> Result<()> {
    raw_page(volume, image, bytes)?;
    let there = page::check(bytes, no).is_ok() && page::stored_checksum(bytes) == checksum;
    if there || mutation::is(Mutation::R36Place) { Ok(()) } else { raw_page(volume, no, bytes) }
}

/// A page as it lies there, torn or not; zeros beyond the end of the file, whose growth the
/// crash may have undone.
pub(in crate::txn) fn raw_page(volume: &Volume, no: PageNo, bytes: &mut [u8]) -> Result<()> {
    let at = no.0 * volume.page_size() as u64;
    match volume.disk.read_at(at, bytes) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => {
            bytes.fill(0);
            Ok(())
        }
        Err(e) => Err(Error::io(format!("reading page {no} for replay"), e)),
    }
}
