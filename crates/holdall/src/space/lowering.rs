//! Moving pages of the store's own structures towards the front of the file.
//!
//! Owns: [`Lowering`], which pages move and how many still may. Each structure walks its own
//! pages, since what leads to them lies there. Where a page goes, the transaction decides:
//! [`SpaceTx::keep_below`](super::SpaceTx::keep_below).

use holdall_core::page::{self, HEADER, PageKind};
use holdall_core::{PageNo, PageWrite, Result};

/// What one transaction moves.
#[derive(Debug, Clone, Copy)]
pub struct Lowering {
    /// Pages from this one on move.
    line: PageNo,
    /// How many more may.
    left: u32,
    moved: u32,
}

impl Lowering {
    /// Moves at most `most` pages, those from `line` on.
    pub fn new(line: PageNo, most: u32) -> Self {
        Self { line, left: most, moved: 0 }
    }

    /// Pages from this one on move.
    pub fn line(&self) -> PageNo {
        self.line
    }

    /// Pages moved so far.
    pub fn moved(&self) -> u32 {
        self.moved
    }

    /// Whether it may move no more.
    pub fn is_done(&self) -> bool {
        self.left == 0
    }

    /// Whether a page is to move; the caller then moves it.
    pub fn takes(&mut self, no: PageNo) -> bool {
        let takes = self.left > 0 && no >= self.line;
        (self.left, self.moved) = (self.left - u32::from(takes), self.moved + u32::from(takes));
        takes
    }

    /// Moves page `no` if it is to move, and returns where it is then; what led to it must lead
    /// there. Cost: a page read and a new one.
    ///
    /// # Errors
    /// [`Error::Full`](holdall_core::Error::Full) if there is no room below the line; page
    /// access.
    pub fn page<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        no: PageNo,
        kind: PageKind,
    ) -> Result<Option<PageNo>> {
        if self.takes(no) { move_page(pages, no, kind).map(Some) } else { Ok(None) }
    }
}

/// Writes the page once more elsewhere, frees it, and returns the new one.
pub fn move_page<W: PageWrite + ?Sized>(
    pages: &mut W,
    no: PageNo,
    kind: PageKind,
) -> Result<PageNo> {
    let old = pages.page(no, kind)?;
    let new = pages.new_page(kind, page::owner(&old), None)?;
    pages.page_mut(new, kind)?[HEADER..].copy_from_slice(&old[HEADER..]);
    pages.free_page(no)?;
    Ok(new)
}

/// As [`move_page`], for a page that was never formatted.
pub fn move_blank<W: PageWrite + ?Sized>(pages: &mut W, no: PageNo) -> Result<PageNo> {
    let new = pages.alloc_run(1, None)?.start;
    pages.free_page(no)?;
    Ok(new)
}
