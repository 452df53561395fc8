//! How the volume is cut into spaces, stretches and granules.
//!
//! Owns: [`SpaceLayout`], all arithmetic from page numbers to places in directory and info
//! pages (docs/format.md "Spaces"). Nothing of it is stored but the two sizes it is
//! computed from. Pure; a value of the type is always usable.

use crate::buddy::{MAX_SPACE_PAGES, Run, word};
use crate::{Error, PageNo, PageRun, Result, page};

/// Bytes of a granule, the unit of "changed since".
pub const GRANULE_BYTES: u64 = 1 << 20;
/// Bytes of segment data under one checksum, whatever the page size.
pub const UNIT_BYTES: usize = 4096;
/// Fewest pages of a space.
pub const MIN_SPACE_PAGES: u32 = 64;

/// Byte address of the second superblock slot; the first is in page 0.
const SECOND_SUPERBLOCK: usize = 65536;
/// Directory page of space 0, whose first page holds a superblock.
const FIRST_DIR_PAGE: u32 = 3;
/// Bytes before the bitmap: page header, space number, space size, 8 reserved.
pub(super) const DIR_FIXED: usize = page::HEADER + 16;
/// Bytes before the checksums of an info page: page header, first page, 8 reserved.
pub(crate) const INFO_FIXED: usize = page::HEADER + 16;
pub(super) const STRETCH_BYTES: usize = 10;
pub(crate) const OWNER_BYTES: usize = 8;
const LSN_BYTES: usize = 8;

/// Page size and pages per space, and what follows from them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpaceLayout {
    page_size: usize,
    space_pages: u32,
    /// What follows from these and is needed at every read: not divided anew each time.
    stretch_pages: u32,
    stretches: u32,
}

impl SpaceLayout {
    /// The layout of a volume.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the page size is none, the space is not 64 to 32,768 pages
    /// long, or its directory does not fit into a page.
    pub fn new(page_size: usize, space_pages: u32) -> Result<Self> {
        if !page::valid_page_size(page_size) {
            return Err(Error::Invalid(format!("{page_size} is not a page size")));
        }
        let per_page = 4 * (page_size / UNIT_BYTES) + OWNER_BYTES;
        // At most 64 KiB / 12, so the narrowing is exact.
        let stretch_pages = ((page_size - INFO_FIXED) / per_page) as u32;
        let stretches = space_pages.div_ceil(stretch_pages);
        let layout = Self { page_size, space_pages, stretch_pages, stretches };
        let range = MIN_SPACE_PAGES..=MAX_SPACE_PAGES;
        if !range.contains(&space_pages) || layout.dir_bytes() > page_size {
            let text = format!("a space cannot have {space_pages} pages of {page_size} bytes");
            return Err(Error::Invalid(text));
        }
        Ok(layout)
    }

    /// Pages of a space if the creator does not say: 16,384 of 4 KiB, else 32,768.
    pub const fn default_space_pages(page_size: usize) -> u32 {
        if page_size == 4096 { 16_384 } else { MAX_SPACE_PAGES }
    }

    /// Bytes of a page.
    pub const fn page_size(&self) -> usize {
        self.page_size
    }

    /// Pages of a space (N).
    pub const fn space_pages(&self) -> u32 {
        self.space_pages
    }

    /// Checksum units of a page: one for each 4 KiB.
    pub const fn units(&self) -> usize {
        self.page_size / UNIT_BYTES
    }

    /// Pages whose checksums fit into one info page (K), the length of a stretch.
    pub const fn stretch_pages(&self) -> u32 {
        self.stretch_pages
    }

    /// Stretches of a space (M).
    pub const fn stretches(&self) -> u32 {
        self.stretches
    }

    /// The stretch of page `index` of a space, and the page's place in the stretch.
    pub const fn stretch_of(&self, index: u32) -> (u32, u32) {
        (index / self.stretch_pages(), index % self.stretch_pages())
    }

    /// The pages of stretch `stretch` within its space; the last one may be shorter than
    /// the others. `None` if there is no such stretch.
    pub fn stretch_run(&self, stretch: u32) -> Option<Run> {
        let start = stretch.checked_mul(self.stretch_pages())?;
        let rest = self.space_pages.checked_sub(start).filter(|&n| n > 0)?;
        Some(Run { start, len: rest.min(self.stretch_pages()) })
    }

    /// Granules of a space.
    pub const fn granules(&self) -> u32 {
        // At most 2 GiB / 1 MiB.
        (self.space_pages as u64 * self.page_size as u64).div_ceil(GRANULE_BYTES) as u32
    }

    /// The granule of page `index` of a space.
    pub const fn granule_of(&self, index: u32) -> u32 {
        (index as u64 * self.page_size as u64 / GRANULE_BYTES) as u32
    }

    /// The directory page of space `space`.
    pub const fn dir_page(&self, space: u32) -> PageNo {
        match space {
            0 => PageNo(FIRST_DIR_PAGE as u64),
            _ => PageNo(space as u64 * self.space_pages as u64),
        }
    }

    /// Whether a space's directory lies at page `no`.
    pub const fn is_directory(&self, no: PageNo) -> bool {
        no.0 == self.dir_page((no.0 / self.space_pages as u64) as u32).0
    }

    /// The pages that hold superblocks; both are in space 0.
    pub const fn superblock_pages(&self) -> [u32; 2] {
        [0, (SECOND_SUPERBLOCK / self.page_size) as u32]
    }

    /// The pages of space `space`, counted from its start, that are never free: its
    /// directory and in space 0 the superblocks.
    pub fn fixed_pages(&self, space: u32) -> impl Iterator<Item = u32> + use<> {
        let first = self.superblock_pages();
        let (dir, others) = if space == 0 { (FIRST_DIR_PAGE, 2) } else { (0, 0) };
        std::iter::once(dir).chain(first.into_iter().take(others))
    }

    /// Whether a volume of `volume_pages` pages holds all fixed pages of space 0, the least
    /// it needs. (Any later space it touches has its directory first.)
    pub fn is_whole(&self, volume_pages: u64) -> bool {
        volume_pages > u64::from(self.superblock_pages()[1]).max(u64::from(FIRST_DIR_PAGE))
    }

    /// Space and index in it of a page.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if no volume has such a page.
    pub fn split(&self, page: PageNo) -> Result<(u32, u32)> {
        let n = u64::from(self.space_pages);
        match u32::try_from(page.0 / n) {
            // The remainder is below 32,768.
            Ok(space) if page <= PageNo::MAX => Ok((space, (page.0 % n) as u32)),
            _ => Err(Error::page(page, "lies outside every volume")),
        }
    }

    /// Space of a run, and the run in it.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the run is empty or leaves its space.
    pub fn split_run(&self, run: PageRun) -> Result<(u32, Run)> {
        let (space, start) = self.split(run.start)?;
        if run.len == 0 || run.len > u64::from(self.space_pages - start) {
            let detail = format!("a run of {} pages leaves the space", run.len);
            return Err(Error::page(run.start, detail));
        }
        // Not more than the pages of a space.
        Ok((space, Run { start, len: run.len as u32 }))
    }

    /// The page at `index` of space `space`.
    pub const fn page_at(&self, space: u32, index: u32) -> PageNo {
        PageNo(space as u64 * self.space_pages as u64 + index as u64)
    }

    /// A run of space `space` as pages of the volume.
    pub const fn run_at(&self, space: u32, run: Run) -> PageRun {
        PageRun { start: self.page_at(space, run.start), len: run.len as u64 }
    }

    /// Order of the largest block a space can ever have free: as a fixed page is among its
    /// first, half a space. What an unvisited space is believed to have.
    pub const fn largest_order(&self) -> u8 {
        // At most 14, so the narrowing is exact.
        (self.space_pages / 2).ilog2() as u8
    }

    /// Spaces that a volume of `volume_pages` pages touches; the last may be cut short.
    ///
    /// # Errors
    /// [`Error::Invalid`] if there are more than page numbers allow.
    pub fn spaces(&self, volume_pages: u64) -> Result<u32> {
        let spaces = volume_pages.div_ceil(u64::from(self.space_pages));
        u32::try_from(spaces)
            .ok()
            .filter(|_| volume_pages <= PageNo::MAX.0)
            .ok_or_else(|| Error::Invalid(format!("a volume cannot have {volume_pages} pages")))
    }

    /// Pages of space `space` inside a volume of `volume_pages` pages.
    pub fn pages_inside(&self, space: u32, volume_pages: u64) -> u32 {
        let rest = volume_pages.saturating_sub(self.page_at(space, 0).0);
        // Not more than the pages of a space.
        rest.min(u64::from(self.space_pages)) as u32
    }

    pub(super) const fn granules_at(&self) -> usize {
        DIR_FIXED + word::count(self.space_pages) * 8
    }

    pub(super) const fn stretches_at(&self) -> usize {
        self.granules_at() + self.granules() as usize * LSN_BYTES
    }

    /// Bytes of a directory page in use, from the page's start.
    pub const fn dir_bytes(&self) -> usize {
        self.stretches_at() + self.stretches() as usize * STRETCH_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [usize; 5] = [4096, 8192, 16_384, 32_768, 65_536];

    #[test]
    fn the_numbers_of_the_format_do_not_move() {
        // (K, M, granules, bytes of the directory page in use), by the formulas of docs/format.md.
        let expected = [
            (337, 49, 64, 48 + 2048 + 512 + 490),
            (509, 65, 256, 48 + 4096 + 2048 + 650),
            (680, 49, 512, 48 + 4096 + 4096 + 490),
            (818, 41, 1024, 48 + 4096 + 8192 + 410),
            (909, 37, 2048, 48 + 4096 + 16_384 + 370),
        ];
        for (size, numbers) in SIZES.into_iter().zip(expected) {
            let l = SpaceLayout::new(size, SpaceLayout::default_space_pages(size)).unwrap();
            let got = (l.stretch_pages(), l.stretches(), l.granules(), l.dir_bytes());
            assert_eq!(got, numbers, "page size {size}");
            assert!(l.dir_bytes() <= size);
            let info = INFO_FIXED + l.stretch_pages() as usize * (4 * l.units() + OWNER_BYTES);
            assert!(info <= size && info + 4 * l.units() + OWNER_BYTES > size);
        }
    }

    #[test]
    fn sizes_that_cannot_be_are_refused() {
        for (size, pages) in [
            (0, 64),
            (2048, 64),
            (5000, 64),
            (131_072, 64),
            (4096, 63),
            (8192, 32_769),
            (4096, 32_768),
        ] {
            assert!(SpaceLayout::new(size, pages).is_err(), "{pages} pages of {size}");
        }
        for size in SIZES {
            assert!(SpaceLayout::new(size, 64).is_ok() && SpaceLayout::new(size, 101).is_ok());
        }
    }

    #[test]
    fn every_page_has_one_place() {
        for (size, pages) in [(4096, 64), (4096, 1000), (65_536, 32_768), (8192, 101)] {
            let l = SpaceLayout::new(size, pages).unwrap();
            let mut at = 0;
            for j in 0..l.stretches() {
                let run = l.stretch_run(j).unwrap();
                assert_eq!(run.start, at);
                assert_eq!(l.stretch_of(run.start), (j, 0));
                assert_eq!(l.stretch_of(run.end() - 1), (j, run.len - 1));
                at = run.end();
            }
            assert_eq!((at, l.stretch_run(l.stretches())), (pages, None));
            assert_eq!(l.stretch_run(u32::MAX), None);
            assert_eq!(l.granule_of(pages - 1), l.granules() - 1);
            for (space, index) in [(0, 0), (3, pages - 1), (u32::MAX, 7)] {
                assert_eq!(l.split(l.page_at(space, index)).unwrap(), (space, index));
            }
            assert!(l.split(PageNo(u64::MAX)).is_err());
        }
    }

    #[test]
    fn fixed_pages_differ_and_lie_in_the_space() {
        for size in SIZES {
            let l = SpaceLayout::new(size, 64).unwrap();
            let mut fixed: Vec<_> = l.fixed_pages(0).collect();
            fixed.sort_unstable();
            let (second, dir) = ((65_536 / size) as u32, 3);
            assert_eq!(fixed, [0, second.min(dir), second.max(dir)]);
            assert!(fixed.iter().all(|&p| p < 64));
            assert_eq!(l.fixed_pages(5).collect::<Vec<_>>(), [0]);
            assert_eq!((l.dir_page(0), l.dir_page(5)), (PageNo(3), PageNo(320)));
            assert!(l.is_whole(18) && !l.is_whole(3));
        }
    }

    #[test]
    fn runs_and_volume_ends_stay_inside_a_space() {
        let l = SpaceLayout::new(4096, 100).unwrap();
        let run = PageRun::new(PageNo(250), 50);
        assert_eq!(l.split_run(run).unwrap(), (2, Run { start: 50, len: 50 }));
        assert_eq!(l.run_at(2, Run { start: 50, len: 50 }), run);
        for len in [0, 51, u64::MAX] {
            assert!(l.split_run(PageRun::new(PageNo(250), len)).is_err());
        }
        assert_eq!(
            (l.spaces(0).unwrap(), l.spaces(100).unwrap(), l.spaces(101).unwrap()),
            (0, 1, 2)
        );
        assert!(l.spaces(u64::MAX).is_err());
        let inside: Vec<_> = (0..4).map(|s| l.pages_inside(s, 230)).collect();
        assert_eq!(inside, [100, 100, 30, 0]);
    }
}
