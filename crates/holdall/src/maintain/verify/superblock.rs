//! Checking both copies of the superblock and what lies beside them.
//!
//! Owns: no state. The copies are written in turn, so their numbers follow each other; a
//! damaged or missed one is reported although the other serves.

use super::page_source::PAUSE;
use super::report::ProblemKind;
use super::walk_state::Walk;
use crate::txn::newest_superblock;
use holdall_core::superblock::{SLOT_AT, SLOT_BYTES, Superblock};
use holdall_core::{Error, Result};

/// Attempts at copies that a checkpoint writes at the same time.
const ATTEMPTS: usize = 8;

impl Walk<'_> {
    /// Reads both superblocks, enters their pages, and checks the file's length.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(super) fn superblocks(&mut self) -> Result<()> {
        let mut problems = Vec::new();
        for _ in 0..ATTEMPTS {
            let current = self.newest()?;
            problems = self.copies(&current)?;
            let still = self.newest()?.sequence == current.sequence;
            if problems.is_empty() || still && !self.pages.pager.is_held() {
                break;
            }
            if self.pages.pager.is_held() {
                std::thread::sleep(PAUSE);
            }
        }
        for (place, detail) in problems {
            self.found.add(ProblemKind::Superblock, place, detail);
        }
        let size = self.layout.page_size();
        for index in self.layout.superblock_pages() {
            let page = self.layout.page_at(0, index);
            self.reached.add(page.0);
            self.tick(1);
            if size > SLOT_BYTES {
                let mut rest = vec![0; size - SLOT_BYTES];
                let at = page.0 * size as u64 + SLOT_BYTES as u64;
                self.read(at, &mut rest)?;
                if rest.iter().any(|b| *b != 0) {
                    self.bad_page(page, "superblock", "the unused bytes of its page are not zero");
                }
            }
        }
        self.length()
    }

    /// The newest superblock, after a write of it that is on its way. Of a store that another process
    /// writes, as it is in the file.
    fn newest(&self) -> Result<Superblock> {
        let volume = &self.pages.pager.volume;
        let other = match self.pages.pager.is_held() {
            true => newest_superblock(&*volume.disk)?,
            false => None,
        };
        Ok(other.unwrap_or_else(|| volume.superblock()))
    }

    /// Holds the file's length against the one that the superblock names.
    fn length(&mut self) -> Result<()> {
        let volume = &self.pages.pager.volume;
        let mut named = self.newest()?.volume_pages;
        loop {
            // Asked for behind the name: the file grows before the superblock names its length.
            let length = volume.disk.len();
            let length = length.map_err(|e| Error::io("reading the volume's length", e))?;
            let pages = length / self.layout.page_size() as u64;
            // A close names a shorter length before it cuts the file.
            let before = std::mem::replace(&mut named, self.newest()?.volume_pages);
            if pages >= before {
                return Ok(());
            }
            if named == before {
                let detail = format!("has {pages} pages, the superblock names {named}");
                self.found.add(
                    ProblemKind::Page,
                    "the file",
                    format!("{detail}: it was cut short"),
                );
                return Ok(());
            }
        }
    }

    /// What is wrong with the copies, `current` being the newest one.
    fn copies(&mut self, current: &Superblock) -> Result<Vec<(String, String)>> {
        let mut problems = Vec::new();
        for (slot, at) in SLOT_AT.into_iter().enumerate() {
            let mut bytes = vec![0; SLOT_BYTES];
            self.read(at, &mut bytes)?;
            let wrong = match Superblock::decode(&bytes) {
                Ok(Some(sb)) => differs(&sb, slot, current),
                Ok(None) => Some("is damaged: its checksum or its first bytes are wrong".into()),
                Err(e) => Some(e.to_string()),
            };
            if let Some(wrong) = wrong {
                problems.push((format!("superblock copy {slot} at byte {at}"), wrong));
            }
        }
        Ok(problems)
    }

    fn read(&mut self, at: u64, buf: &mut [u8]) -> Result<()> {
        let read = self.pages.disk().read_at(at, buf);
        read.map_err(|e| Error::io(format!("reading the superblock at {at}"), e))?;
        self.pages.count(buf.len() as u64);
        Ok(())
    }
}

/// What a valid copy says that it cannot.
fn differs(sb: &Superblock, slot: usize, current: &Superblock) -> Option<String> {
    let before = current.sequence.checked_sub(1);
    let expected =
        if Superblock::slot_of(current.sequence) == slot { Some(current.sequence) } else { before };
    if Some(sb.sequence) != expected {
        let text = format!("has number {}, the newest is {}", sb.sequence, current.sequence);
        return Some(format!("{text}: a write of it was lost"));
    }
    let fixed = |sb: &Superblock| (sb.store_id, sb.page_size, sb.space_pages, sb.root);
    (fixed(sb) != fixed(current)).then(|| "contradicts the other copy".to_owned())
}
