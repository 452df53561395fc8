//! Pages in use that hold nothing yet.
//!
//! Owns: no state. Pages allocated for later are fresh in their page map: of the handle table, of heap
//! files. An info page of a stretch without segment data is made anew before it is used.

use crate::engine::catalog::{Known, large, page_of};
use crate::page_map::PageMap;
use crate::read::state::ReadState;
use holdall_core::collection_entry::{Entry, NumberKey, SMALL_OWNER};
use holdall_core::page_map_node::{self as node, FRESH, Node};
use holdall_core::space_dir::{SpaceDir, SpaceLayout};
use holdall_core::{PageKind, PageNo, PageRead, PageRun, Result, RunSet};
use std::ops::Bound;

/// All such pages of a state. Cost: the nodes of the catalog, all directories, and the nodes of page
/// maps that lead to such pages.
pub(super) fn pages(read: &ReadState, layout: &SpaceLayout, spaces: u32) -> Result<RunSet> {
    let mut all = RunSet::default();
    let root = read.root();
    fresh(read, &root.handles.map, &mut all)?;
    let mut heap = |number, page| fresh(read, large(read, number, page)?.heap.map(), &mut all);
    for entry in root.entries.iter(read, Bound::Unbounded) {
        let (key, value) = entry?;
        let known = Known::decode(&key, &value)?;
        if let Entry::Large(page) = known.entry {
            heap(known.number, page)?;
        }
    }
    if !root.small.is_none() {
        heap(SMALL_OWNER, root.small)?;
    }
    for entry in root.drops.iter(read, Bound::Unbounded) {
        let (key, value) = entry?;
        heap(NumberKey::split(&key)?.0, page_of(&value)?)?;
    }
    for space in 0..spaces {
        let bytes = read.page(layout.dir_page(space), PageKind::SpaceDir)?;
        let dir = SpaceDir::open(*layout, space, &*bytes)?;
        for stretch in 0..layout.stretches() {
            let info = dir.info_page(stretch)?;
            if !info.is_none() && dir.segment_pages(stretch)? == 0 {
                all.insert(PageRun::new(info, 1));
            }
        }
    }
    Ok(all)
}

fn fresh(read: &ReadState, map: &PageMap, all: &mut RunSet) -> Result<()> {
    let Some(level) = map.height().checked_sub(1) else { return Ok(()) };
    below(read, (map.root(), level, 0), u64::from(map.len()), all)
}

fn below(
    read: &ReadState,
    (no, level, base): (PageNo, u8, u64),
    len: u64,
    all: &mut RunSet,
) -> Result<()> {
    let bytes = read.page(no, PageKind::PageMap)?;
    let here = Node::new(&bytes, no, level, base as u32)?;
    let span = node::span(read.page_size(), level);
    for slot in 0..node::fanout(read.page_size()) {
        let first = base + slot as u64 * span;
        if first >= len {
            break;
        }
        let entry = here.entry(slot)?;
        match level {
            _ if entry.page.is_none() || entry.tag.class != FRESH => {}
            0 => all.insert(PageRun::new(entry.page, 1)),
            _ => below(read, (entry.page, level - 1, first), len, all)?,
        }
    }
    Ok(())
}
