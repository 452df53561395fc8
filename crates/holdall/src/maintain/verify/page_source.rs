//! Pages of the snapshot, each also held against what lies in the file.
//!
//! Owns: [`Pages`]. The pool keeps pages in memory, so damage in the file below them would
//! stay unseen: the first read of each page goes to the file. If the page is in memory
//! and newer than the file, the file may hold anything; if it is not in memory, the file
//! has the newest version, and the pool is not filled by the walk.

use super::bits::PageBits;
use crate::cache::page_read::{read_image, read_in_place};
use crate::engine::Inner;
use crate::segment_tree::DataRead;
use crate::space::{ReadHow, read_segment};
use crate::txn::{Pager, Snapshot};
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::SpaceLayout;
use holdall_core::{Error, PageNo, PageRead, PageRef, Result};
use holdall_io::Disk;
use std::cell::{Cell, RefCell};
use std::time::Duration;

/// The snapshot being verified.
#[derive(Debug)]
pub(super) struct Pages<'a> {
    snapshot: &'a Snapshot,
    pub(super) pager: &'a Pager,
    layout: SpaceLayout,
    /// Pages of the file.
    pub(super) volume_pages: u64,
    seen: RefCell<PageBits>,
    /// Damage in the file below a page that memory still has right.
    hidden: RefCell<Vec<(PageNo, Error)>>,
    bytes: Cell<u64>,
    ended: Cell<bool>,
}

/// Attempts at a page that a checkpoint writes at the same time.
const ATTEMPTS: usize = 8;
/// Before another attempt at what another process may be writing.
pub(super) const PAUSE: Duration = Duration::from_millis(1);

impl<'a> Pages<'a> {
    /// Pages of `snapshot`.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Invalid`] if memory is short.
    pub(super) fn new(inner: &'a Inner, snapshot: &'a Snapshot) -> Result<Self> {
        let pager = &*inner.pager;
        let length = pager.volume.disk.len();
        let length = length.map_err(|e| Error::io("reading the volume's length", e))?;
        let volume_pages = length / inner.layout.page_size() as u64;
        Ok(Self {
            snapshot,
            pager,
            layout: inner.layout,
            volume_pages,
            seen: RefCell::new(PageBits::new(volume_pages)?),
            hidden: RefCell::default(),
            bytes: Cell::new(0),
            ended: Cell::new(false),
        })
    }

    /// Ends the walk with its next read.
    pub(super) fn end(&self) {
        self.ended.set(true);
    }

    /// The volume file.
    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.pager.volume.disk
    }

    /// Bytes held against a checksum so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.get()
    }

    /// Counts bytes of data checked elsewhere.
    pub(super) fn count(&self, bytes: u64) {
        self.bytes.set(self.bytes.get() + bytes);
    }

    /// Damage in the file found since the last call, under pages right in memory.
    pub(super) fn take_hidden(&self) -> Vec<(PageNo, Error)> {
        std::mem::take(&mut *self.hidden.borrow_mut())
    }

    /// Reads a page for the first time: from the file, and from memory if it is there.
    fn first(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        self.count(self.layout.page_size() as u64);
        if self.pager.is_held() {
            return self.first_held(no, kind);
        }
        for _ in 0..ATTEMPTS {
            let before = self.pager.in_place_state(no);
            let found = read_in_place(self.disk(), self.layout.page_size(), no);
            let still = self.pager.in_place_state(no) == before;
            match (before, found) {
                // The file has the newest version; one newer than the snapshot came meanwhile.
                (None, Ok(bytes)) if page::lsn(&bytes) <= self.snapshot.lsn() => {
                    return of_kind(bytes, no, kind);
                }
                (None, Err(e)) if still => return Err(e),
                (None, _) => {}
                (Some((newest, in_place)), _) if newest != in_place => {
                    return self.cached(no, kind);
                }
                (Some(_), result) => {
                    let cached = self.cached(no, kind)?;
                    let same = |bytes: PageRef| {
                        // A version the snapshot does not see is right by its checksum.
                        let newer = before.is_some_and(|(n, _)| n > self.snapshot.lsn());
                        if newer || bytes == cached {
                            return Ok(());
                        }
                        Err(Error::page(no, "the file holds another version than was written"))
                    };
                    match result.and_then(same) {
                        Ok(()) => return Ok(cached),
                        Err(e) if still => {
                            self.hidden.borrow_mut().push((no, e));
                            return Ok(cached);
                        }
                        Err(_) => {}
                    }
                }
            }
        }
        // It changes all the time: memory has it right.
        self.cached(no, kind)
    }

    /// As [`Pages::first`], where another process writes and holds the snapshot: what is wrong in the
    /// file for long is no write under way.
    fn first_held(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        if self.pager.is_dirty(no) {
            return self.cached(no, kind);
        }
        let mut found = read_in_place(self.disk(), self.layout.page_size(), no);
        for attempt in 1..ATTEMPTS {
            match &found {
                Ok(bytes) if page::lsn(bytes) <= self.snapshot.lsn() => {
                    return of_kind(bytes.clone(), no, kind);
                }
                Ok(_) => return self.cached(no, kind),
                Err(_) => std::thread::sleep(PAUSE * attempt as u32),
            }
            found = read_in_place(self.disk(), self.layout.page_size(), no);
        }
        let cached = self.cached(no, kind)?;
        found.err().into_iter().for_each(|e| self.hidden.borrow_mut().push((no, e)));
        Ok(cached)
    }

    /// The image of a page, from the file.
    pub(super) fn image(&self, page: PageNo, image: PageNo) -> Result<PageRef> {
        self.count(self.layout.page_size() as u64);
        let read = read_image(self.disk(), self.layout.page_size(), (page, image));
        // Looked at after the read: it may have been freed while it ran.
        self.snapshot.check()?;
        read
    }

    fn cached(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        self.snapshot.page(no, kind)
    }
}

fn of_kind(bytes: PageRef, no: PageNo, kind: PageKind) -> Result<PageRef> {
    match page::kind(&bytes) {
        Some(k) if k == kind => Ok(bytes),
        k => Err(Error::page(no, format!("is a page of kind {k:?}, not {kind:?}"))),
    }
}

impl PageRead for Pages<'_> {
    fn page_size(&self) -> usize {
        self.layout.page_size()
    }

    fn page(&self, no: PageNo, kind: PageKind) -> Result<PageRef> {
        if self.ended.get() {
            return Err(Error::Cancelled);
        }
        if no.0 >= self.volume_pages {
            return Err(Error::page(no, "lies beyond the end of the file"));
        }
        // What lies elsewhere is read with the tree of images.
        let elsewhere = kind.may_lie_elsewhere() && self.snapshot.image_of(no)?.is_some();
        let result = if !elsewhere && self.seen.borrow_mut().add(no.0) {
            self.first(no, kind)
        } else {
            self.cached(no, kind)
        };
        // Looked at after the read: pages may have gone while it ran.
        self.snapshot.check()?;
        result
    }
}

impl DataRead for Pages<'_> {
    fn layout(&self) -> &SpaceLayout {
        &self.layout
    }

    fn read_data(&self, start: PageNo, offset: u64, buf: &mut [u8]) -> Result<()> {
        let result =
            read_segment(self, &self.layout, (self.disk(), ReadHow::default()), start, offset, buf);
        self.snapshot.check()?;
        result
    }
}
