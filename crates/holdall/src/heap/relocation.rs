//! Making room for a record no page has room for, by moving shorter ones away.
//!
//! Records longer than what any page has left would make the file grow although much of it
//! is empty, a little in each page. If the file is less full than the policy asks for,
//! some short records of the emptiest page known go elsewhere instead. The moving is the
//! object layer's, which knows whose records they are; here they are chosen.

use super::{At, HeapFile, Location, Placement};
use holdall_core::heap_page::{HeapPage, max_record};
use holdall_core::heap_placement::{Cached, class_for};
use holdall_core::{PageKind, PageNo, PageRead, PageWrite, Result, page};

/// Pages looked at.
const CANDIDATES: usize = 16;
/// Most records moved for one.
const MOST_MOVED: usize = 4;

/// A page, and the records to move out of it.
#[derive(Debug, Clone)]
pub struct Relocation {
    /// The page.
    pub page: PageNo,
    /// Its logical index.
    pub index: u32,
    /// Records to move, so that the new one fits.
    pub records: Vec<Location>,
}

impl HeapFile {
    /// Which records to move so that one of `need` bytes fits their page. `None` if the
    /// file had better grow: it is dense, or too much would have to move. Cost: one page,
    /// as a rule in memory, up to 16 if the emptiest do not serve.
    ///
    /// # Errors
    /// Page access.
    pub fn relocate<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        placement: &mut Placement,
        need: usize,
    ) -> Result<Option<Relocation>> {
        placement.sync(self.changes);
        let (used, capacity) = self.utilization(pages.page_size());
        if !placement.is_sparse(used, capacity) {
            return Ok(None);
        }
        let candidates = placement.emptiest(CANDIDATES);
        for cached in &candidates {
            // What moves must fit elsewhere, or nothing is gained.
            let other = candidates.iter().find(|c| c.index != cached.index);
            let most = other.map_or(0, |c| c.free).min(need);
            let plan = self.relocate_in(pages, *cached, need, most)?;
            if plan.is_some() {
                return Ok(plan);
            }
        }
        Ok(None)
    }

    /// Inserts a record into a page before page `index` of the file: into `near`, if that has
    /// room, else into the first there is, which `near` then names. `None` if no page has;
    /// the file never grows. Cost: as [`HeapFile::insert`].
    ///
    /// # Errors
    /// As [`HeapFile::insert`].
    pub fn insert_before<W: PageWrite + ?Sized>(
        &mut self,
        pages: &mut W,
        placement: &mut Placement,
        record: &[u8],
        (index, near): (u32, &mut Option<PageNo>),
    ) -> Result<Option<Location>> {
        placement.sync(self.changes);
        let mut at = match *near {
            Some(page) => self.near(pages, page, record.len())?,
            None => None,
        };
        if at.is_none() {
            at = self.room_before(pages, placement, record.len(), index)?;
        }
        let Some(at) = at else { return Ok(None) };
        *near = Some(at.page);
        self.put_in(pages, placement, at, record).map(Some)
    }

    /// A page before `index` with room: the fullest that will do of the cached ones, whose
    /// classes the map does not have, else the first by the map.
    fn room_before<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        placement: &Placement,
        need: usize,
        index: u32,
    ) -> Result<Option<At>> {
        let max = max_record(pages.page_size());
        let fits = |c: &&Cached| c.index < index && c.free >= need && c.free < max;
        if let Some(cached) = placement.cached().iter().find(fits) {
            let at = At { index: cached.index, page: cached.page };
            if self.free(pages, at)?.is_some_and(|free| free >= need) {
                return Ok(Some(at));
            }
        }
        let found = self.map.find_partly(pages, class_for(need, max), 0)?;
        let Some(found) = found.filter(|found| *found < index) else { return Ok(None) };
        let Some((page, _)) = self.map.get(pages, found)? else { return Ok(None) };
        let at = At { index: found, page };
        Ok(self.free(pages, at)?.filter(|free| *free >= need).map(|_| at))
    }

    /// As [`HeapFile::relocate`] for one page, moving records of at most `most` bytes.
    fn relocate_in<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        cached: Cached,
        need: usize,
        most: usize,
    ) -> Result<Option<Relocation>> {
        pages.with_page(cached.page, PageKind::Heap, |bytes| {
            let heap_page = HeapPage::new(bytes, cached.page)?;
            let own = page::owner(bytes) == self.owner && heap_page.index() == cached.index;
            let short = need.saturating_sub(heap_page.free_bytes());
            if !own || short > need / 4 * 3 {
                return Ok(None);
            }
            let mut all = Vec::with_capacity(heap_page.live());
            for record in heap_page.iter() {
                let (slot, range) = record?;
                // Its slot is not counted: only the last ones are given up with their record.
                all.push((range.len(), slot));
            }
            let chosen = choose(all, short, most);
            Ok(chosen.map(|slots| {
                let place = |slot| Location { page: cached.page, slot };
                Relocation {
                    page: cached.page,
                    index: cached.index,
                    records: slots.map(place).collect(),
                }
            }))
        })
    }
}

/// Slots of records with `short` bytes together, each of at most `most`: the shortest one
/// that is enough, else the longest ones until they are. `None` if these are too many.
fn choose(
    mut all: Vec<(usize, u16)>,
    short: usize,
    most: usize,
) -> Option<impl Iterator<Item = u16>> {
    all.retain(|(len, _)| *len <= most);
    all.sort_unstable();
    let alone = all.iter().position(|(len, _)| *len >= short);
    let mut chosen = Vec::new();
    if let Some(i) = alone {
        chosen.push(all.swap_remove(i));
    } else {
        let mut sum = 0;
        while sum < short {
            let next = all.pop().filter(|_| chosen.len() < MOST_MOVED)?;
            sum += next.0;
            chosen.push(next);
        }
    }
    Some(chosen.into_iter().map(|(_, slot)| slot))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(all: &[(usize, u16)], short: usize, most: usize) -> Option<Vec<u16>> {
        choose(all.to_vec(), short, most).map(Iterator::collect)
    }

    #[test]
    fn the_shortest_record_that_is_enough_moves_alone() {
        let all = [(500, 1), (300, 2), (100, 3), (2000, 4)];
        assert_eq!(slots(&all, 250, 1000), Some(vec![2]));
        assert_eq!(slots(&all, 501, 1000), Some(vec![1, 2]));
        assert_eq!(slots(&all, 501, 4000), Some(vec![4]));
        assert_eq!(slots(&all, 901, 1000), None);
        assert_eq!(slots(&[(10, 1); 9], 40, 1000).map(|s| s.len()), Some(4));
        assert_eq!(slots(&[(10, 1); 9], 41, 1000), None);
    }
}
