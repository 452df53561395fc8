//! The pages that one state has in use, read in the order they lie in.
//!
//! Owns: [`State`]. Directories say which pages are in use, not what they are, so its bytes say
//! it (rule 61). A page whose newest version waits for a checkpoint has a header, and comes
//! from memory. In place, segment data has the checksums of its info page. All else has a header, with
//! its own number or as an image; if it is newer than the state the snapshot has what was before.
//! What is none of these was allocated for later and never used, or is damaged.

use super::blank;
use super::pieces::Reached;
use crate::read::state::ReadState;
use crate::txn::Pager;
use holdall_core::backup_stream::is_newer;
use holdall_core::checksum::crc;
use holdall_core::mutation::{self, Mutation};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::{GRANULE_BYTES, SpaceDir, SpaceLayout, UNIT_BYTES};
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, Lsn, PageNo, PageRead, PageRef, PageRun, Result, RunSet};
use std::ops::ControlFlow;
use std::time::Duration;

/// How often a page in place is read that a checkpoint may be writing, and the time between.
const MOST_LOOKS: u32 = 8;
const BETWEEN_LOOKS: Duration = Duration::from_millis(1);

/// Takes pages, in rising order.
pub(super) trait Sink {
    /// Takes the pages from `first` on.
    ///
    /// # Errors
    /// Those of writing them.
    fn put(&mut self, first: PageNo, bytes: &[u8]) -> Result<()>;

    /// Hears that all before this granule was put.
    ///
    /// # Errors
    /// What kept from writing what was put.
    fn reached(&mut self, _: Reached) -> Result<()> {
        Ok(())
    }
}

/// Who hears how far copying is.
pub(super) type Tell<'t> = &'t mut dyn FnMut(u64) -> ControlFlow<()>;

/// A state whose pages are copied.
pub(super) struct State<'a> {
    pub(super) read: &'a ReadState,
    pub(super) layout: SpaceLayout,
    pub(super) root: PageRef,
    pub(super) spaces: u32,
    disk_bytes: u64,
    buffer: Vec<u8>,
    sums: Sums,
    /// Pages allocated for later, once they were asked for.
    blank: Option<RunSet>,
}

/// The checksums of a stretch of segment data.
#[derive(Debug, Default)]
struct Sums {
    /// Space and number of the stretch.
    of: Option<(u32, u32)>,
    /// No segment data came after this commit, if that is after the base.
    lsn: Lsn,
    /// Nothing if it has no segment data.
    sums: Vec<u32>,
}

/// What a page in place was found to be.
enum Found {
    /// As it lies there.
    AsItIs {
        /// Whether it may be another than at the base: by its LSN, or that of its checksums.
        newer: bool,
    },
    /// Another version than in place.
    Other(PageRef),
    /// Allocated for later.
    Blank,
}

impl<'a> State<'a> {
    /// # Errors
    /// Those of reading the root.
    pub(super) fn new(read: &'a ReadState) -> Result<Self> {
        let inner = &read.view.inner;
        let root = read.snapshot.page(inner.root, PageKind::Root)?;
        let length = inner.pager.volume.disk.len();
        let disk_bytes = length.map_err(|e| Error::io("reading the volume's length", e))?;
        Ok(Self {
            read,
            layout: inner.layout,
            spaces: holdall_core::root_page::spaces(&root),
            root,
            disk_bytes,
            buffer: Vec::new(),
            sums: Sums::default(),
            blank: None,
        })
    }

    pub(super) fn pager(&self) -> &Pager {
        &self.read.view.inner.pager
    }

    /// Whether the state was given up.
    pub(super) fn is_gone(&self) -> bool {
        let snapshot = &self.read.snapshot;
        snapshot.check().is_err() || self.pager().is_past(snapshot.lsn())
    }

    /// The directory of a space.
    ///
    /// # Errors
    /// As [`PageRead::page`].
    pub(super) fn directory(&self, space: u32) -> Result<PageRef> {
        self.read.snapshot.page(self.layout.dir_page(space), PageKind::SpaceDir)
    }

    /// Bytes of pages in use, and the number behind the last of them.
    ///
    /// # Errors
    /// As [`State::directory`].
    pub(super) fn in_use(&self) -> Result<(u64, u64)> {
        let (mut pages, mut end) = (0, 0);
        for space in 0..self.spaces {
            let bytes = self.directory(space)?;
            let dir = SpaceDir::open(self.layout, space, &*bytes)?;
            pages += u64::from(dir.count_allocated());
            let last = (0..self.layout.space_pages()).rev().find(|index| dir.is_allocated(*index));
            end = last.map_or(end, |index| self.layout.page_at(space, index).0 + 1);
        }
        Ok((pages * self.layout.page_size() as u64, end))
    }

    /// Copies to `sink` what the granules of `space` from `from` on hold that changed since the
    /// state at `since`, or all that they hold. After each granule `tell` hears how many bytes were in
    /// use there, and may end it.
    ///
    /// # Errors
    /// [`Error::SnapshotTooOld`]; [`Error::Corrupt`] naming a damaged page; [`Error::Cancelled`] if
    /// `tell` ended it; [`Error::Io`]; those of `sink`.
    pub(super) fn copy(
        &mut self,
        space: u32,
        since: &dyn Fn(u32) -> Option<Lsn>,
        sink: &mut dyn Sink,
        tell: Tell<'_>,
    ) -> Result<()> {
        let bytes = self.directory(space)?;
        let dir = SpaceDir::open(self.layout, space, &*bytes)?;
        let per = (GRANULE_BYTES / self.layout.page_size() as u64) as u32;
        for granule in 0..self.layout.granules() {
            let first = granule * per;
            let since = since(granule);
            let end = (first + per).min(self.layout.space_pages());
            let changed = match since {
                Some(since) => dir.last_change(granule)? > since,
                None => true,
            };
            let mut at = first;
            while changed && at < end {
                let Some(start) = (at..end).find(|i| dir.is_allocated(*i)) else { break };
                at = (start..end).find(|i| !dir.is_allocated(*i)).unwrap_or(end);
                let run = PageRun::new(self.layout.page_at(space, start), u64::from(at - start));
                self.copy_run(run, since, sink)?;
            }
            let used = dir.count_allocated_in(first, end - first)?;
            sink.reached(Reached { space, granule: granule + 1 })?;
            if tell(u64::from(used) * self.layout.page_size() as u64).is_break() {
                return Err(Error::Cancelled);
            }
        }
        Ok(())
    }

    fn copy_run(&mut self, run: PageRun, since: Option<Lsn>, sink: &mut dyn Sink) -> Result<()> {
        let size = self.layout.page_size();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(run.len as usize * size, 0);
        let waiting: Vec<_> = (run.start.0..run.end())
            .map(|no| self.pager().waiting_kind(PageNo(no)).filter(|_| takes_from_memory()))
            .collect();
        // Looked at before: what is in place then stays there, or something newer comes.
        self.read_places(run, &mut buffer)?;
        let mut wanted = Vec::with_capacity(run.len as usize);
        for (i, waiting) in waiting.into_iter().enumerate() {
            let (no, bytes) =
                (PageNo(run.start.0 + i as u64), &mut buffer[i * size..(i + 1) * size]);
            wanted.push(self.settle(no, waiting, since, bytes)?);
        }
        self.read.snapshot.check()?;
        let mut at = 0;
        for same in wanted.chunk_by(|a, b| a == b) {
            let end = at + same.len();
            if same[0] {
                sink.put(PageNo(run.start.0 + at as u64), &buffer[at * size..end * size])?;
            }
            at = end;
        }
        self.buffer = buffer;
        Ok(())
    }

    /// Puts the page that this state has at `no` into `bytes`, which hold what lies in place.
    /// Returns whether it is wanted.
    fn settle(
        &mut self,
        no: PageNo,
        waiting: Option<PageKind>,
        since: Option<Lsn>,
        bytes: &mut [u8],
    ) -> Result<bool> {
        if self.layout.superblock_pages().map(u64::from).contains(&no.0) {
            return Ok(false);
        }
        // Of a page that lies elsewhere nobody reads what is in its place.
        if self.read.snapshot.image_of(no)?.is_some() {
            return Ok(false);
        }
        let found = match waiting {
            Some(kind) => self.before(no, kind)?,
            None => self.find(no, since, bytes)?,
        };
        Ok(match found {
            Found::AsItIs { newer } => newer,
            Found::Blank => false,
            Found::Other(page) => {
                bytes.copy_from_slice(&page);
                is_newer(&page, since)
            }
        })
    }

    fn find(&mut self, no: PageNo, since: Option<Lsn>, bytes: &mut [u8]) -> Result<Found> {
        for _ in 0..MOST_LOOKS {
            if self.is_segment_data(no, bytes)? {
                let newer = since.is_none_or(|since| self.sums.lsn > since);
                return Ok(Found::AsItIs { newer });
            }
            if let Ok(kind) = page::check(bytes, no) {
                let here = page::lsn(bytes) <= self.read.snapshot.lsn()
                    || mutation::is(Mutation::R61Newer);
                return match here {
                    true => Ok(Found::AsItIs { newer: is_newer(bytes, since) }),
                    false => self.before(no, kind),
                };
            }
            if self.is_image(no, bytes)? {
                return Ok(Found::AsItIs { newer: is_newer(bytes, since) });
            }
            if self.is_blank(no)? {
                return Ok(Found::Blank);
            }
            // A checkpoint may be writing it, or have replaced what waited in memory.
            std::thread::sleep(BETWEEN_LOOKS);
            if let Some(kind) = self.pager().waiting_kind(no) {
                return self.before(no, kind);
            }
            self.read_places(PageRun::new(no, 1), bytes)?;
        }
        let why = page::check(bytes, no).err();
        let why = why.unwrap_or_else(|| Error::page(no, "is not what the state has there"));
        self.read.snapshot.check()?;
        self.read.snapshot.judged(Err(why))
    }

    /// The version of a page that the snapshot sees; there is none of what was not used yet.
    fn before(&mut self, no: PageNo, kind: PageKind) -> Result<Found> {
        match self.read.snapshot.page_in_place(no, kind) {
            Ok(page) => Ok(Found::Other(page)),
            Err(_) if self.is_blank(no)? => Ok(Found::Blank),
            Err(e) => Err(e),
        }
    }

    /// Reads what lies in place; zeros behind the file's end.
    fn read_places(&self, run: PageRun, to: &mut [u8]) -> Result<()> {
        let at = run.start.0 * self.layout.page_size() as u64;
        let there = self.disk_bytes.saturating_sub(at).min(to.len() as u64) as usize;
        let (there, beyond) = to.split_at_mut(there);
        beyond.fill(0);
        let read = self.read.disk().read_at(at, there);
        let read =
            read.map_err(|e| Error::io(format!("reading {} pages from {}", run.len, run.start), e));
        // The end of the file is cut once no state needs it any more.
        if read.is_err() {
            self.read.snapshot.check()?;
        }
        read
    }

    /// Whether these bytes, of page `no`, have the checksums of segment data there.
    fn is_segment_data(&mut self, no: PageNo, bytes: &[u8]) -> Result<bool> {
        let (space, index) = self.layout.split(no)?;
        let (stretch, place) = self.layout.stretch_of(index);
        if self.sums.of != Some((space, stretch)) {
            self.sums = self.sums_of(space, stretch)?;
        }
        let units = self.layout.units();
        let first = place as usize * units;
        let Some(sums) = self.sums.sums.get(first..first + units) else { return Ok(false) };
        let mut parts = bytes.chunks_exact(UNIT_BYTES).zip(sums);
        Ok(parts.all(|(part, sum)| crc(part) == *sum))
    }

    fn sums_of(&self, space: u32, stretch: u32) -> Result<Sums> {
        let of = Some((space, stretch));
        let bytes = self.directory(space)?;
        let dir = SpaceDir::open(self.layout, space, &*bytes)?;
        if dir.segment_pages(stretch)? == 0 {
            return Ok(Sums { of, ..Sums::default() });
        }
        let info = self.read.snapshot.page(dir.info_page(stretch)?, PageKind::SpaceInfo)?;
        let info = SpaceInfo::open(self.layout, space, stretch, &*info)?;
        let lsn = info.last_change();
        let mut sums = vec![0; info.pages() as usize * self.layout.units()];
        let mut known = 0;
        while known < sums.len() {
            match info.copy_crcs(known as u64, &mut sums[known..])? {
                0 => break,
                n => known += n,
            }
        }
        sums.truncate(known);
        Ok(Sums { of, lsn, sums })
    }

    /// Whether these bytes are what page `no` holds of another page of this state.
    fn is_image(&self, no: PageNo, bytes: &[u8]) -> Result<bool> {
        let of = page::address(bytes);
        if self.read.snapshot.has_no_images() || page::check(bytes, of).is_err() {
            return Ok(false);
        }
        Ok(self.read.snapshot.image_of(of)? == Some(no))
    }

    /// Whether page `no` was allocated for later. Cost: at first a look at what leads to such pages.
    fn is_blank(&mut self, no: PageNo) -> Result<bool> {
        let blank = match self.blank.take() {
            Some(blank) => blank,
            None => blank::pages(self.read, &self.layout, self.spaces)?,
        };
        Ok(self.blank.insert(blank).contains(no))
    }
}

/// Whether what waits for a checkpoint is looked for.
fn takes_from_memory() -> bool {
    !mutation::is(Mutation::R61Memory)
}
