//! Where old versions lie: a map that memory need not hold.
//!
//! Owns: [`ScratchMap`]. The newest entries are in memory; beyond a budget they are written to
//! scratch as a *piece*, sorted by page, of which memory keeps the first key of each page. Eight
//! pieces of a size are merged into one of the next (a log-structured merge tree without levels in
//! place). So an entry costs memory only while it is young, and a lookup reads a page of a few pieces.
//!
//! Invariants: a version serves the states from its own LSN on, before `until`; of one page these
//! ranges do not overlap, so any entry that fits is right. Entries of which every state is older than
//! any snapshot are never found; merges leave them out.

use holdall_core::bytes::{put_u32, put_u64, u32_at, u64_at};
use holdall_core::checksum::crc;
use holdall_core::{Error, Lsn, PageNo, PageRun, Result};
use holdall_io::Disk;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pieces of one size that are merged.
const MERGED: usize = 8;
/// Bytes of an entry in a piece: page, LSN, until, place.
const ENTRY: usize = 32;
/// Bytes before the entries of a page of a piece: checksum, number of entries.
const HEAD: usize = 8;

/// By page and LSN.
pub(super) type Key = (PageNo, Lsn);

/// Where a version lies, and which one followed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) at: PageNo,
    pub(super) until: Lsn,
}

/// Sorted entries in scratch.
#[derive(Debug)]
pub(super) struct Piece {
    /// How often it was merged.
    size: u32,
    runs: Vec<PageRun>,
    /// The first key of each page.
    first: Vec<Key>,
    upto: Lsn,
}

/// What gives pages of scratch, and takes them back.
pub(super) trait ScratchPages {
    /// Pages for this many, or fewer; `None` if there is no room.
    fn reserve(&self, pages: u64) -> Result<Option<PageRun>>;
    /// Writes them.
    fn write(&self, at: PageNo, bytes: &[u8]) -> Result<()>;
    /// Takes them back.
    fn give_back(&self, run: PageRun);
}

/// The map.
#[derive(Debug, Default)]
pub(super) struct ScratchMap {
    recent: BTreeMap<Key, Place>,
    pieces: Vec<Arc<Piece>>,
}

impl ScratchMap {
    /// Pages of scratch that pieces take.
    pub(super) fn pages(&self) -> u64 {
        self.pieces.iter().flat_map(|piece| &piece.runs).map(|run| run.len).sum()
    }

    /// Adds an entry.
    pub(super) fn insert(&mut self, key: Key, place: Place) {
        self.recent.insert(key, place);
    }

    /// Where the version of `page` lies that a state at `lsn` sees. Cost: a page of each piece
    /// whose keys reach from before to behind it.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Corrupt`] for a damaged piece.
    pub(super) fn find(
        &self,
        disk: &dyn Disk,
        page_size: usize,
        page: PageNo,
        lsn: Lsn,
    ) -> Result<Option<PageNo>> {
        let recent = self.recent.range((page, Lsn(0))..=(page, lsn)).next_back();
        if let Some((_, place)) = recent.filter(|(_, place)| lsn < place.until) {
            return Ok(Some(place.at));
        }
        for piece in self.pieces.iter().rev() {
            let before = piece.first.partition_point(|first| *first <= (page, lsn));
            let Some(index) = before.checked_sub(1) else { continue };
            let entries = piece.read(disk, page_size, index)?;
            let found = entries.partition_point(|(key, _)| *key <= (page, lsn)).checked_sub(1);
            let found = found.and_then(|i| entries.get(i));
            if let Some((_, place)) = found.filter(|((p, _), at)| *p == page && lsn < at.until) {
                return Ok(Some(place.at));
            }
        }
        Ok(None)
    }

    /// The entries in memory if they are more than `most`, without those that no state from `oldest`
    /// on reads.
    pub(super) fn young(&self, most: usize, oldest: Lsn) -> Option<Vec<(Key, Place)>> {
        let all = self.recent.iter().filter(|(_, place)| place.until > oldest);
        (self.recent.len() > most).then(|| all.map(|(key, place)| (*key, *place)).collect())
    }

    /// What is in memory lies in `piece` now, if anything is left of it.
    pub(super) fn push(&mut self, piece: Option<Piece>) {
        self.recent.clear();
        self.pieces.extend(piece.map(Arc::new));
    }

    /// Pieces of one size that are to be merged.
    pub(super) fn to_merge(&self) -> Option<Vec<Arc<Piece>>> {
        let of = |size: u32| self.pieces.iter().filter(move |piece| piece.size == size);
        let sizes = self.pieces.iter().map(|piece| piece.size);
        let size = sizes.into_iter().find(|size| of(*size).count() >= MERGED)?;
        Some(of(size).cloned().collect())
    }

    /// `piece` has what is needed of `old`.
    pub(super) fn replace(&mut self, old: &[Arc<Piece>], piece: Piece) {
        self.pieces.retain(|piece| !old.iter().any(|old| Arc::ptr_eq(old, piece)));
        self.pieces.push(Arc::new(piece));
    }

    /// Takes out the pieces that no state from `oldest` on reads, and everything if nothing is left
    /// of the versions (`empty`).
    pub(super) fn take_free(&mut self, oldest: Lsn, empty: bool) -> Vec<Arc<Piece>> {
        if empty {
            self.recent.clear();
        }
        let pieces = std::mem::take(&mut self.pieces);
        let (free, kept) = pieces.into_iter().partition(|p| empty || p.upto <= oldest);
        self.pieces = kept;
        free
    }
}

impl Piece {
    pub(super) fn give_back(&self, scratch: &dyn ScratchPages) {
        self.runs.iter().for_each(|run| scratch.give_back(*run));
    }

    /// The page that holds entries `index`.
    fn page(&self, mut index: u64) -> Result<PageNo> {
        for run in &self.runs {
            if index < run.len {
                return Ok(PageNo(run.start.0 + index));
            }
            index -= run.len;
        }
        Err(Error::corrupt("old versions in scratch", "a piece ends too early"))
    }

    fn read(&self, disk: &dyn Disk, page_size: usize, index: usize) -> Result<Vec<(Key, Place)>> {
        let no = self.page(index as u64)?;
        let mut bytes = vec![0; page_size];
        disk.read_at(no.0 * page_size as u64, &mut bytes)
            .map_err(|e| Error::io(format!("reading page {no}"), e))?;
        let count = u32_at(&bytes, 4) as usize;
        if u32_at(&bytes, 0) != crc(&bytes[4..]) || count > (page_size - HEAD) / ENTRY {
            return Err(Error::page(no, "is no page of the map of old versions"));
        }
        let entry = |i: usize| {
            let at = HEAD + i * ENTRY;
            let n = |k: usize| u64_at(&bytes, at + 8 * k);
            ((PageNo(n(0)), Lsn(n(1))), Place { until: Lsn(n(2)), at: PageNo(n(3)) })
        };
        Ok((0..count).map(entry).collect())
    }
}

/// Writes sorted entries as a piece; `None` if there is no room for all of it.
///
/// # Errors
/// [`Error::Io`]; those of `entries`.
pub(super) fn write(
    entries: impl Iterator<Item = Result<(Key, Place)>>,
    size: u32,
    page_size: usize,
    scratch: &dyn ScratchPages,
) -> Result<Option<Piece>> {
    let mut writer = PieceWriter {
        piece: Piece { size, runs: Vec::new(), first: Vec::new(), upto: Lsn(0) },
        page: vec![0; page_size],
        count: 0,
        free: PageRun::new(PageNo(0), 0),
        scratch,
    };
    let done = writer.all(entries);
    if !matches!(done, Ok(true)) {
        writer.piece.give_back(scratch);
    }
    Ok(done?.then_some(writer.piece))
}

struct PieceWriter<'a> {
    piece: Piece,
    page: Vec<u8>,
    count: usize,
    /// What is not written yet of the last run.
    free: PageRun,
    scratch: &'a dyn ScratchPages,
}

impl PieceWriter<'_> {
    /// Returns whether there was room.
    fn all(&mut self, entries: impl Iterator<Item = Result<(Key, Place)>>) -> Result<bool> {
        for entry in entries {
            let (key, place) = entry?;
            if self.count == (self.page.len() - HEAD) / ENTRY && !self.end_page()? {
                return Ok(false);
            }
            if self.count == 0 {
                self.piece.first.push(key);
            }
            let at = HEAD + self.count * ENTRY;
            for (k, n) in [key.0.0, key.1.0, place.until.0, place.at.0].into_iter().enumerate() {
                put_u64(&mut self.page, at + 8 * k, n);
            }
            self.count += 1;
            self.piece.upto = self.piece.upto.max(place.until);
        }
        let ended = self.count == 0 || self.end_page()?;
        // What was reserved beyond the end.
        if self.free.len > 0 {
            self.scratch.give_back(self.free);
            if let Some(last) = self.piece.runs.last_mut() {
                last.len -= self.free.len;
            }
        }
        Ok(ended)
    }

    fn end_page(&mut self) -> Result<bool> {
        if self.free.len == 0 {
            let want = (1 << 18) / self.page.len() as u64;
            let Some(run) = self.scratch.reserve(want.max(1))? else { return Ok(false) };
            self.piece.runs.push(run);
            self.free = run;
        }
        put_u32(&mut self.page, 4, self.count as u32);
        let sum = crc(&self.page[4..]);
        put_u32(&mut self.page, 0, sum);
        self.scratch.write(self.free.start, &self.page)?;
        self.free = PageRun::new(PageNo(self.free.start.0 + 1), self.free.len - 1);
        self.count = 0;
        Ok(true)
    }
}

/// Merges pieces of one size into one, without what no state from `oldest` on reads.
///
/// # Errors
/// [`Error::Io`], [`Error::Corrupt`] for a damaged piece.
pub(super) fn merge(
    pieces: &[Arc<Piece>],
    oldest: Lsn,
    (disk, page_size): (&dyn Disk, usize),
    scratch: &dyn ScratchPages,
) -> Result<Option<Piece>> {
    let size = pieces.first().map_or(0, |piece| piece.size + 1);
    let mut sources: Vec<_> =
        pieces.iter().map(|piece| entries_of(piece, disk, page_size).peekable()).collect();
    let next = std::iter::from_fn(|| {
        let mut least: Option<(Key, usize)> = None;
        for (i, source) in sources.iter_mut().enumerate() {
            match source.peek() {
                None => {}
                Some(Err(_)) => return source.next(),
                Some(Ok((key, _))) if least.is_none_or(|(k, _)| *key < k) => {
                    least = Some((*key, i));
                }
                Some(Ok(_)) => {}
            }
        }
        least.and_then(|(_, i)| sources[i].next())
    });
    let needed = |entry: &Result<(Key, Place)>| {
        entry.as_ref().map_or(true, |(_, place)| place.until > oldest)
    };
    write(next.filter(needed), size, page_size, scratch)
}

fn entries_of<'a>(
    piece: &'a Piece,
    disk: &'a dyn Disk,
    page_size: usize,
) -> impl Iterator<Item = Result<(Key, Place)>> + 'a {
    (0..piece.first.len()).flat_map(move |index| match piece.read(disk, page_size, index) {
        Ok(entries) => entries.into_iter().map(Ok).collect::<Vec<_>>(),
        Err(e) => vec![Err(e)],
    })
}

#[cfg(test)]
mod tests;
