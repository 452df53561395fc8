//! What an opening holds the root against, before anything trusts it.
//!
//! Owns: no state. A root page whose checksum is right may still have been made by somebody else.
//! If it contradicts the superblock or the file, nothing of the store can be read or given
//! back by it.

use crate::page_map::PageMap;
use holdall_core::collection_entry::END;
use holdall_core::page_map_node::span;
use holdall_core::space_dir::SpaceLayout;
use holdall_core::superblock::Superblock;
use holdall_core::{Error, PageNo, Result, root_page};

/// Checks the root page `root` of a file of `pages` pages. `clean`: the store was closed, so that
/// the superblock names what the root does; else commits since may have added spaces, and given
/// up those of which `holds` finds no page in use.
///
/// # Errors
/// [`Error::Corrupt`] naming the page and what it says.
pub(super) fn check(
    root: &[u8],
    sb: &Superblock,
    layout: &SpaceLayout,
    (pages, clean): (u64, bool),
    holds: impl Fn(u32) -> Result<bool>,
) -> Result<()> {
    let bad = |text: String| Err(Error::page(sb.root, text));
    let (spaces, n) = (root_page::spaces(root), u64::from(layout.space_pages()));
    let most = pages.div_ceil(n);
    if u64::from(spaces) > most {
        return bad(format!("names {spaces} spaces, the file has room for {most}"));
    }
    let mut differs = spaces == 0 || u64::from(sb.spaces) > most || clean && spaces != sb.spaces;
    for space in spaces..sb.spaces {
        differs = differs || holds(space)?;
        if differs {
            break;
        }
    }
    if differs {
        return bad(format!("names {spaces} spaces, the superblock {}", sb.spaces));
    }
    if clean && layout.dir_page(spaces - 1).0 >= sb.volume_pages {
        let named = sb.volume_pages;
        return bad(format!("names {spaces} spaces, the superblock only {named} pages of them"));
    }
    let next = root_page::next_collection(root);
    if next == 0 || next > END {
        return bad(format!("says that the next collection has number {next}"));
    }
    let map = PageMap::decode(&root_page::handles(root))
        .map_err(|e| Error::page(sb.root, format!("the handle table: {e}")))?;
    let (height, len) = (map.height(), u64::from(map.len()));
    if height > 0 && len > span(layout.page_size(), height) {
        return bad(format!("names {len} handle pages in {height} levels"));
    }
    let named = [
        ("root page", sb.root),
        ("catalog", root_page::catalog(root)),
        ("collections", root_page::entries(root)),
        ("small collections", root_page::small(root)),
        ("drop list", root_page::drops(root)),
        ("handle table", map.root()),
        ("tree of shared pages", root_page::sharing(root)),
        ("tree of images", root_page::images(root)),
    ];
    for (what, page) in named.into_iter().filter(|(_, page)| !page.is_none()) {
        if !may_hold(page, layout, pages.min(u64::from(spaces) * n)) {
            return bad(format!(
                "names page {page} for its {what}, which is in none of its spaces"
            ));
        }
    }
    Ok(())
}

/// Whether a page below `end` that is no space's own.
fn may_hold(page: PageNo, layout: &SpaceLayout, end: u64) -> bool {
    let fixed = |(space, index)| layout.fixed_pages(space).any(|own| own == index);
    page.0 < end && layout.split(page).is_ok_and(|place| !fixed(place))
}
