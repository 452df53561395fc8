//! One page: header, then the body by kind.
//!
//! The newest version is shown: the one in memory if it waits for a checkpoint, else
//! what lies in the file, right or damaged. A page that a large transaction left elsewhere says
//! where, and where its image lies the page that it is one of.

use super::body::Body;
use super::decode;
use super::superblock::{self, Superblocks};
use crate::images::Images;
use crate::store::Store;
use holdall_core::page::{self, PageKind};
use holdall_core::space_dir::SpaceDir;
use holdall_core::space_info::SpaceInfo;
use holdall_core::{Error, Lsn, PageNo, PageRead, Result, root_page};

/// A page of the volume.
#[derive(Debug)]
#[non_exhaustive]
pub struct Page {
    /// Its number.
    pub number: PageNo,
    /// Its first byte in the file.
    pub at: u64,
    /// Bytes of a page.
    pub page_size: u64,
    /// The version in memory, if that is shown and not yet in the file.
    pub newer: Option<Lsn>,
    /// Where its newest version lies, if not here.
    pub image: Option<PageNo>,
    /// The page of which this is the newest version.
    pub image_of: Option<PageNo>,
    /// What it holds.
    pub content: PageContent,
}

/// What a page holds.
#[derive(Debug)]
#[non_exhaustive]
pub enum PageContent {
    /// A copy of the superblock.
    Superblock(Superblocks),
    /// A page with a header and a right checksum.
    #[non_exhaustive]
    Known {
        /// Its kind.
        kind: PageKind,
        /// The commit that wrote it.
        lsn: Lsn,
        /// Number of the collection it belongs to, 0 for none.
        owner: u64,
        /// The checksum in its header.
        checksum: u32,
        /// What it says, as far as it can be understood.
        body: Option<Body>,
        /// What is wrong with it, and all its bytes.
        damage: Option<(Error, Vec<u8>)>,
    },
    /// Segment data, a free page or a damaged one: it does not say what it is.
    #[non_exhaustive]
    Unknown {
        /// Why it is no page with a header.
        error: Error,
        /// What its space says of it.
        place: Result<PlaceInSpace>,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}

/// What a space says of one of its pages.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlaceInSpace {
    /// Whether the page is in use.
    pub in_use: bool,
    /// What is noted of it as segment data, if its stretch has any.
    pub segment: Option<SegmentNote>,
}

/// What is noted of a page as segment data.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SegmentNote {
    /// The page that says it.
    pub noted_in: PageNo,
    /// Checksums of the units of 4 KiB.
    pub checksums: Vec<u32>,
    /// The owner.
    pub owner: u64,
}

pub(super) fn read(store: &Store, number: PageNo) -> Result<Page> {
    let (pager, layout) = (&store.inner.pager, store.inner.layout);
    let size = layout.page_size();
    let length = pager.volume.disk.len();
    let pages = length.map_err(|e| Error::io("reading the volume's length", e))? / size as u64;
    if number.0 >= pages {
        let text = format!("there is no page {number}; the file has {pages} pages, from 0");
        return Err(Error::Invalid(text));
    }
    let mut bytes = vec![0; size];
    let at = number.0 * size as u64;
    let read = pager.volume.disk.read_at(at, &mut bytes);
    read.map_err(|e| Error::io(format!("reading page {number}"), e))?;
    let state = pager.in_place_state(number).filter(|(newest, in_place)| newest != in_place);
    let newer = state.map(|(newest, _)| newest);
    if newer.is_some() {
        let mut found = PageKind::ALL.into_iter().filter_map(|k| pager.newest(number, k).ok());
        if let Some(newer) = found.next() {
            bytes.copy_from_slice(&newer);
        }
    }
    // Where the tree cannot be read the page is shown as it lies.
    let image_at = |page| image_of_page(store, page).unwrap_or_default();
    let image = image_at(number);
    let own = page::address(&bytes);
    // Of a page whose checksum is wrong nothing is known.
    let is_image = own != number && page::check(&bytes, own).is_ok();
    let image_of = Some(own).filter(|own| is_image && image_at(*own) == Some(number));
    let superblocks = layout.superblock_pages().map(|index| layout.page_at(0, index));
    let content = if superblocks.contains(&number) {
        PageContent::Superblock(superblock::read(&*pager.volume.disk)?)
    } else {
        let number = image_of.unwrap_or(number);
        match page::check(&bytes, number) {
            Ok(kind) => {
                let (lsn, owner) = (page::lsn(&bytes), page::owner(&bytes));
                let checksum = page::stored_checksum(&bytes);
                let (body, error) = decode::read(&layout, number, kind, &bytes);
                let damage = error.map(|e| (e, bytes));
                PageContent::Known { kind, lsn, owner, checksum, body, damage }
            }
            Err(error) => PageContent::Unknown { error, place: place(store, number), bytes },
        }
    };
    Ok(Page { number, at, page_size: size as u64, newer, image, image_of, content })
}

/// Where the newest version of a page lies, if elsewhere.
fn image_of_page(store: &Store, page: PageNo) -> Result<Option<PageNo>> {
    let reader = store.read_newest()?;
    let (state, root) = (&*reader.state, store.inner.root);
    let images = state.with_page(root, PageKind::Root, |b| Ok(root_page::images(b)))?;
    Images { root: images }.get(state, page)
}

/// What directory and info page say of a page.
fn place(store: &Store, no: PageNo) -> Result<PlaceInSpace> {
    let (pager, layout) = (&store.inner.pager, store.inner.layout);
    let (space, index) = layout.split(no)?;
    let dir = pager.newest(layout.dir_page(space), PageKind::SpaceDir)?;
    let dir = SpaceDir::open(layout, space, &*dir)?;
    let in_use = dir.is_allocated(index);
    let (stretch, place) = layout.stretch_of(index);
    let noted_in = dir.info_page(stretch)?;
    if noted_in.is_none() || dir.segment_pages(stretch)? == 0 {
        return Ok(PlaceInSpace { in_use, segment: None });
    }
    let bytes = pager.newest(noted_in, PageKind::SpaceInfo)?;
    let info = SpaceInfo::open(layout, space, stretch, &*bytes)?;
    let (checksums, owner) = (info.crcs(place, 1)?.collect(), info.owner(place)?);
    Ok(PlaceInSpace { in_use, segment: Some(SegmentNote { noted_in, checksums, owner }) })
}
