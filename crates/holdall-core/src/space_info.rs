//! Checksums and owners of the segment pages of one stretch.
//!
//! Owns: the body of pages of kind `SpaceInfo` (docs/format.md "Space info"). Segment data
//! carries nothing of its own, so that a segment can be split, trimmed or read in part; its
//! CRC-32C lies here by place, one for each 4 KiB. The owner is a hint, written for the
//! first page of each run and 0 for the others; who uses it verifies it.
//!
//! Checksums of the stretch lie together and so do owners: the checksums of a run are one
//! range of bytes, and one difference in the log. What is written for pages that are not
//! live segment pages means nothing. Pure views over page bytes; no threads.

use crate::buddy::Run;
use crate::bytes::{put_u32, put_u64, u32_at, u64_at};
use crate::space_dir::{INFO_FIXED, OWNER_BYTES, SpaceLayout};
use crate::{Error, Lsn, PageNo, Result, page};

const FIRST_PAGE: usize = page::HEADER;
const LAST_CHANGE: usize = FIRST_PAGE + 8;
const SUMS: usize = INFO_FIXED;

/// View of an info page. Over `&mut [u8]` it also changes it. Pages are counted from the
/// start of the stretch.
#[derive(Debug, Clone, Copy)]
pub struct SpaceInfo<B> {
    layout: SpaceLayout,
    first: PageNo,
    pages: u32,
    bytes: B,
}

impl<B: AsRef<[u8]>> SpaceInfo<B> {
    /// Looks at the info page of stretch `stretch` of space `space`, whose header has been
    /// checked. Constant cost.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch or the page is another one's.
    pub fn open(layout: SpaceLayout, space: u32, stretch: u32, bytes: B) -> Result<Self> {
        let (first, run) = place(layout, space, stretch)?;
        let b = bytes.as_ref();
        if b.len() != layout.page_size() {
            return Err(Error::page(first, format!("info page of {} bytes", b.len())));
        }
        let stored = u64_at(b, FIRST_PAGE);
        if stored != first.0 {
            let detail = format!("its info page is that of the stretch at page {stored}");
            return Err(Error::page(first, detail));
        }
        Ok(Self { layout, first, pages: run.len, bytes })
    }

    /// The first page of the stretch.
    pub fn first_page(&self) -> PageNo {
        self.first
    }

    /// The state before the first segment data since the newest mark of a backup; an earlier one if
    /// there was none since.
    pub fn last_change(&self) -> Lsn {
        Lsn(u64_at(self.bytes.as_ref(), LAST_CHANGE))
    }

    /// Pages of the stretch.
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The CRC-32C of unit `unit` (4 KiB each) of page `index`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the stretch has no such page or the page no such unit.
    pub fn crc(&self, index: u32, unit: usize) -> Result<u32> {
        self.inside(index, 1)?;
        if unit >= self.layout.units() {
            let page = PageNo(self.first.0 + u64::from(index));
            return Err(Error::page(page, format!("has no 4 KiB unit {unit}")));
        }
        Ok(u32_at(self.bytes.as_ref(), self.sums_at(index) + 4 * unit))
    }

    /// Copies the checksums of units from `first` on, counted from the start of the stretch,
    /// to `out`, as many as the stretch has; returns how many.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the stretch has no unit `first`.
    pub fn copy_crcs(&self, first: u64, out: &mut [u32]) -> Result<usize> {
        let units = self.layout.units() as u64;
        let left = (u64::from(self.pages) * units).saturating_sub(first) as usize;
        if left == 0 {
            let page = PageNo(self.first.0 + first / units);
            return Err(Error::page(page, "lies behind its stretch"));
        }
        let n = left.min(out.len());
        let from = SUMS + 4 * first as usize;
        let stored = self.bytes.as_ref()[from..from + 4 * n].chunks_exact(4);
        out.iter_mut().zip(stored).for_each(|(out, b)| *out = u32_at(b, 0));
        Ok(n)
    }

    /// The checksums of the pages `index..index + len` in order, all units of each.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the range leaves the stretch.
    pub fn crcs(&self, index: u32, len: u32) -> Result<impl Iterator<Item = u32> + '_> {
        self.inside(index, len)?;
        let range = self.sums_at(index)..self.sums_at(index + len);
        Ok(self.bytes.as_ref()[range].chunks_exact(4).map(|b| u32_at(b, 0)))
    }

    /// The owner noted for page `index`, 0 for none.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the stretch has no such page.
    pub fn owner(&self, index: u32) -> Result<u64> {
        self.inside(index, 1)?;
        Ok(u64_at(self.bytes.as_ref(), self.owner_at(index)))
    }

    fn sums_at(&self, index: u32) -> usize {
        SUMS + index as usize * 4 * self.layout.units()
    }

    fn owner_at(&self, index: u32) -> usize {
        self.sums_at(self.layout.stretch_pages()) + index as usize * OWNER_BYTES
    }

    fn inside(&self, index: u32, len: u32) -> Result<()> {
        if u64::from(index) + u64::from(len) > u64::from(self.pages) {
            let page = PageNo(self.first.0 + u64::from(index));
            return Err(Error::page(page, format!("{len} pages from here leave the stretch")));
        }
        Ok(())
    }
}

impl<'a> SpaceInfo<&'a mut [u8]> {
    /// Writes the info of a stretch without segment pages into a page formatted as
    /// `SpaceInfo`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if there is no such stretch, [`Error::Invalid`] if the page
    /// is not of the layout's size.
    pub fn init(
        layout: SpaceLayout,
        space: u32,
        stretch: u32,
        bytes: &'a mut [u8],
    ) -> Result<Self> {
        let (first, run) = place(layout, space, stretch)?;
        if bytes.len() != layout.page_size() {
            let text = format!("{} bytes for a page of {}", bytes.len(), layout.page_size());
            return Err(Error::Invalid(text));
        }
        bytes[page::HEADER..].fill(0);
        put_u64(bytes, FIRST_PAGE, first.0);
        Ok(Self { layout, first, pages: run.len, bytes })
    }

    /// Notes when segment data comes.
    pub fn note_change(&mut self, lsn: Lsn) {
        put_u64(self.bytes, LAST_CHANGE, lsn.0);
    }

    /// Sets the checksums of page `index`, one for each 4 KiB; leaves its owner.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the stretch has no such page, [`Error::Invalid`] if the
    /// number of checksums is wrong; nothing is changed.
    pub fn set_entry(&mut self, index: u32, crcs: &[u32]) -> Result<()> {
        self.inside(index, 1)?;
        self.fits(1, crcs)?;
        self.put_sums(index, crcs);
        Ok(())
    }

    /// Sets the owner noted for page `index`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the stretch has no such page.
    pub fn set_owner(&mut self, index: u32, owner: u64) -> Result<()> {
        self.inside(index, 1)?;
        let at = self.owner_at(index);
        put_u64(self.bytes, at, owner);
        Ok(())
    }

    /// Sets a new run of `len` pages from `index` on: `crcs` are the checksums of all its
    /// pages in order, `owner` is noted for the first page, or 0 if the run began in the
    /// stretch before. Cost: the bytes written.
    ///
    /// # Errors
    /// As [`SpaceInfo::set_entry`]; nothing is changed.
    pub fn set_run(&mut self, index: u32, len: u32, owner: u64, crcs: &[u32]) -> Result<()> {
        self.inside(index, len)?;
        self.fits(len, crcs)?;
        self.put_sums(index, crcs);
        let owners = self.owner_at(index)..self.owner_at(index + len);
        self.bytes[owners].fill(0);
        if len > 0 { self.set_owner(index, owner) } else { Ok(()) }
    }

    fn fits(&self, len: u32, crcs: &[u32]) -> Result<()> {
        if crcs.len() != len as usize * self.layout.units() {
            return Err(Error::Invalid(format!("{} checksums for {len} pages", crcs.len())));
        }
        Ok(())
    }

    fn put_sums(&mut self, index: u32, crcs: &[u32]) {
        let at = self.sums_at(index);
        for (i, &crc) in crcs.iter().enumerate() {
            put_u32(self.bytes, at + 4 * i, crc);
        }
    }
}

/// First page of a stretch in the volume, and its pages in the space.
fn place(layout: SpaceLayout, space: u32, stretch: u32) -> Result<(PageNo, Run)> {
    let run = layout.stretch_run(stretch).ok_or_else(|| {
        Error::page(layout.dir_page(space), format!("no stretch {stretch} in the space"))
    })?;
    Ok((layout.page_at(space, run.start), run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PageKind;
    use rand::{Rng, SeedableRng, rngs::SmallRng};

    fn formatted(layout: SpaceLayout, space: u32, stretch: u32) -> Vec<u8> {
        let mut bytes = vec![0xee; layout.page_size()];
        page::format(&mut bytes, PageKind::SpaceInfo, PageNo(9), 0);
        SpaceInfo::init(layout, space, stretch, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn runs_and_entries_read_back_and_touch_nothing_else() {
        let mut rng = SmallRng::seed_from_u64(5);
        for (size, pages, stretch) in
            [(4096, 1000, 0), (4096, 1000, 2), (65_536, 32_768, 36), (8192, 64, 0)]
        {
            let layout = SpaceLayout::new(size, pages).unwrap();
            let units = layout.units();
            let mut bytes = formatted(layout, 3, stretch);
            let n = layout.stretch_run(stretch).unwrap().len;
            let (mut sums, mut owners) = (vec![0u32; n as usize * units], vec![0u64; n as usize]);
            for _ in 0..300 {
                let mut info = SpaceInfo::open(layout, 3, stretch, &mut bytes[..]).unwrap();
                assert_eq!(info.pages(), n);
                let start = rng.random_range(0..=n);
                let len = rng.random_range(0..=n - start);
                let crcs: Vec<u32> = (0..len as usize * units).map(|_| rng.random()).collect();
                let (at, owner) = (start as usize, rng.random());
                if rng.random() {
                    info.set_run(start, len, owner, &crcs).unwrap();
                    sums[at * units..][..crcs.len()].copy_from_slice(&crcs);
                    owners[at..at + len as usize].fill(0);
                    owners[at..at + len.min(1) as usize].fill(owner);
                } else if len > 0 {
                    info.set_entry(start, &crcs[..units]).unwrap();
                    info.set_owner(start, owner).unwrap();
                    sums[at * units..][..units].copy_from_slice(&crcs[..units]);
                    owners[at] = owner;
                }
                let info = SpaceInfo::open(layout, 3, stretch, &bytes[..]).unwrap();
                assert_eq!(info.crcs(0, n).unwrap().collect::<Vec<_>>(), sums);
                let read: Vec<_> = (0..n).map(|i| info.owner(i).unwrap()).collect();
                assert_eq!(read, owners);
                let (i, unit) = (rng.random_range(0..n), rng.random_range(0..units));
                let at = i as usize * units + unit;
                assert_eq!(info.crc(i, unit).unwrap(), sums[at]);
                let mut some = [0; 9];
                let count = info.copy_crcs(at as u64, &mut some).unwrap();
                assert_eq!(&some[..count], &sums[at..sums.len().min(at + 9)]);
            }
        }
    }

    #[test]
    fn what_lies_outside_is_refused_and_changes_nothing() {
        let layout = SpaceLayout::new(8192, 700).unwrap();
        let mut bytes = formatted(layout, 1, 1);
        let before = bytes.clone();
        let n = 700 - 509;
        let mut info = SpaceInfo::open(layout, 1, 1, &mut bytes[..]).unwrap();
        assert_eq!((info.first_page(), info.pages()), (PageNo(700 + 509), n));
        assert!(
            info.crc(0, 2).is_err() && info.crc(n, 0).is_err() && info.crc(u32::MAX, 0).is_err()
        );
        let end = u64::from(n) * 2;
        assert_eq!(info.copy_crcs(end - 1, &mut [0; 4]).unwrap(), 1);
        assert!(info.copy_crcs(end, &mut [0; 4]).is_err());
        assert!(info.copy_crcs(u64::MAX, &mut [0; 4]).is_err());
        assert!(info.owner(n).is_err() && info.set_owner(n, 1).is_err());
        assert!(info.set_entry(n, &[1, 2]).is_err() && info.set_entry(0, &[1]).is_err());
        assert!(info.set_run(n - 1, 2, 1, &[1; 4]).is_err());
        assert!(info.set_run(0, 2, 1, &[1; 3]).is_err());
        assert!(info.set_run(u32::MAX, u32::MAX, 1, &[]).is_err());
        assert!(info.crcs(1, n).is_err());
        assert_eq!(bytes, before);
    }

    #[test]
    fn the_info_of_another_stretch_is_refused() {
        let layout = SpaceLayout::new(4096, 1000).unwrap();
        let bytes = formatted(layout, 1, 1);
        assert!(SpaceInfo::open(layout, 1, 1, &bytes[..]).is_ok());
        for (space, stretch) in [(1, 0), (0, 1), (1, 3), (1, u32::MAX)] {
            assert!(SpaceInfo::open(layout, space, stretch, &bytes[..]).is_err());
        }
        assert!(SpaceInfo::open(layout, 1, 1, &bytes[..4000]).is_err());
    }
}
