//! Reading a whole heap file: in portions, and for tests in one go and with every check.

use super::{HeapFile, Location, RecordRef};
use holdall_core::heap_page::HeapPage;
use holdall_core::page_map_node::FRESH;
use holdall_core::{Error, PageKind, PageNo, PageRead, Result};
#[cfg(test)]
use {
    crate::page_map::VisitPage, holdall_core::heap_page::max_record,
    holdall_core::heap_placement::class_of, std::cell::RefCell,
};

impl HeapFile {
    /// The records of heap page `index`, and parts of records, in slot order; none for fresh pages, holes and
    /// indexes beyond the end. With `map().len()` a scan that can stop and go on. Cost: the
    /// map's height and one page read.
    ///
    /// # Errors
    /// [`Error::Corrupt`], [`Error::Io`].
    pub fn page_records<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        index: u32,
    ) -> Result<Vec<(Location, RecordRef)>> {
        let Some((page, class)) = self.map.get(pages, index)? else { return Ok(Vec::new()) };
        if class == FRESH {
            return Ok(Vec::new());
        }
        let bytes = pages.page(page, PageKind::Heap)?;
        self.identify(&bytes, page, index)?
            .iter()
            .map(|found| {
                let (slot, range) = found?;
                Ok((Location { page, slot }, RecordRef::InPage(bytes.clone(), range)))
            })
            .collect()
    }

    /// Every record with its place, in page order. Ends after an error.
    #[cfg(test)]
    pub fn iter<'a, R: PageRead + ?Sized>(
        &self,
        pages: &'a R,
    ) -> impl Iterator<Item = Result<(Location, RecordRef)>> + use<'a, R> {
        let (file, mut failed) = (*self, false);
        (0..file.map.len())
            .map_while(move |index| {
                let found = if failed { return None } else { file.page_records(pages, index) };
                failed = found.is_err();
                Some(found)
            })
            .flat_map(|page| match page {
                Ok(records) => records.into_iter().map(Ok).collect::<Vec<_>>(),
                Err(e) => vec![Err(e)],
            })
    }

    /// Checks the whole file: map, pages, classes, sums. `visit` gets every page of it,
    /// `record` every record with its place. Cost: one read per page of the file.
    ///
    /// # Errors
    /// [`Error::Corrupt`] at the first thing wrong; the visitors' own.
    #[cfg(test)]
    pub fn check<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        visit: &mut VisitPage<'_>,
        record: &mut dyn FnMut(Location, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let max = max_record(pages.page_size());
        let visit = RefCell::new(visit);
        let (mut records, mut used, mut formatted) = (0, 0, 0);
        self.map.check(
            pages,
            &mut |page| (visit.borrow_mut())(page),
            &mut |index, no, class| {
                (visit.borrow_mut())(no)?;
                if class == FRESH {
                    return Ok(());
                }
                let bytes = pages.page(no, PageKind::Heap)?;
                let page = self.identify(&bytes, no, index)?;
                page.check()?;
                let own = class_of(page.room(), max);
                if class != 0 && class != own {
                    return Err(Error::page(
                        no,
                        format!("heap page of class {own} mapped as {class}"),
                    ));
                }
                records += page.live() as u64;
                used += (max - page.free_bytes()) as u64;
                formatted += 1;
                for found in page.iter() {
                    let (slot, range) = found?;
                    record(Location { page: no, slot }, &bytes[range])?;
                }
                Ok(())
            },
        )?;
        if (records, used, formatted) != (self.records, self.used, self.formatted) {
            let found = format!("{records} records, {used} bytes, {formatted} pages found");
            return Err(self.wrong(&found));
        }
        Ok(())
    }

    /// The page, which must be number `index` of this file.
    fn identify<'a>(&self, bytes: &'a [u8], no: PageNo, index: u32) -> Result<HeapPage<'a>> {
        let (page, owner) = (HeapPage::new(bytes, no)?, holdall_core::page::owner(bytes));
        if owner != self.owner || page.index() != index {
            let detail = format!(
                "is heap page {} of collection {owner}, not {index} of {}",
                page.index(),
                self.owner
            );
            return Err(Error::page(no, detail));
        }
        Ok(page)
    }
}
