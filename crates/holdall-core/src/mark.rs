//! Marks of backups in the root page.
//!
//! Owns: [`Mark`], and the list of a store's newest marks (docs/format.md "Root page"). A mark is a
//! commit: a state that has it comes after the state that the mark names.

use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::page::HEADER;
use crate::{Error, Lsn, PageNo, Result};

const COUNT: usize = HEADER + 96;
const LIST: usize = COUNT + 8;
/// Marks that a store remembers.
pub const MOST: usize = 128;

/// What a backup was taken at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mark {
    /// Drawn at random, never zeros.
    pub id: [u8; 16],
    /// The state before the mark: what changed since has a later LSN.
    pub lsn: Lsn,
}

impl Mark {
    /// Bytes of a mark.
    pub const BYTES: usize = 24;

    /// Writes it to the first bytes of `to`.
    pub fn encode(&self, to: &mut [u8]) {
        to[..16].copy_from_slice(&self.id);
        put_u64(to, 16, self.lsn.0);
    }

    /// Reads one; `None` of zeros.
    pub fn decode(b: &[u8]) -> Option<Self> {
        let mut id = [0; 16];
        id.copy_from_slice(b.get(..16)?);
        (id != [0; 16]).then(|| Self { id, lsn: Lsn(u64_at(b, 16)) })
    }
}

/// The marks of a root page, the oldest first.
///
/// # Errors
/// [`Error::Corrupt`] naming `page` if they are none.
pub fn all(root: &[u8], page: PageNo) -> Result<Vec<Mark>> {
    let count = u32_at(root, COUNT) as usize;
    if count > MOST {
        return Err(Error::page(page, format!("names {count} marks of backups, at most {MOST}")));
    }
    let marks = root[LIST..].chunks_exact(Mark::BYTES).take(count).map(Mark::decode);
    let marks: Option<Vec<Mark>> = marks.collect();
    let ordered = |marks: &Vec<Mark>| marks.is_sorted_by_key(|mark| mark.lsn);
    marks.filter(ordered).ok_or_else(|| Error::page(page, "its marks of backups are not in order"))
}

/// The state that the newest mark of a root page names. Constant cost.
pub fn newest(root: &[u8]) -> Option<Lsn> {
    let last = (u32_at(root, COUNT) as usize).checked_sub(1)?;
    let at = LIST + last.min(MOST - 1) * Mark::BYTES;
    Some(Lsn(u64_at(root, at + 16)))
}

/// Adds a mark to a root page, whose `marks` were read. The oldest goes if there are too many.
pub fn add(root: &mut [u8], mut marks: Vec<Mark>, mark: Mark) {
    let end = LIST + MOST * Mark::BYTES;
    marks.push(mark);
    let first = marks.len().saturating_sub(MOST);
    root[LIST..end].fill(0);
    for (to, mark) in root[LIST..end].chunks_exact_mut(Mark::BYTES).zip(&marks[first..]) {
        mark.encode(to);
    }
    put_u32(root, COUNT, (marks.len() - first) as u32);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_marks_are_kept_in_order() {
        let mut root = vec![0; crate::page::MIN_PAGE_SIZE];
        assert_eq!((all(&root, PageNo(4)).unwrap(), newest(&root)), (Vec::new(), None));
        for n in 1..=200_u8 {
            let mark = Mark { id: [n; 16], lsn: Lsn(u64::from(n) * 10) };
            let marks = all(&root, PageNo(4)).unwrap();
            add(&mut root, marks, mark);
            let found = all(&root, PageNo(4)).unwrap();
            assert_eq!(found.last(), Some(&mark));
            assert_eq!((found.len(), newest(&root)), (MOST.min(n.into()), Some(mark.lsn)));
        }
        root[COUNT] = 200;
        assert!(all(&root, PageNo(4)).is_err());
        root[COUNT] = 128;
        root[LIST..LIST + Mark::BYTES].fill(0);
        assert!(all(&root, PageNo(4)).is_err());
    }
}
