//! Page maps as far as they can be read and are of the state.
//!
//! Owns no state.

use super::pages::Pages;
use crate::page_map::PageMap;
use holdall_core::page_map_node::{self as node, Entry, Node};
use holdall_core::{PageKind, PageRead};

/// Gives `f` each index of a map whose entry can be read and names a page. Cost: each node once.
pub(super) fn each_entry(pages: &Pages<'_>, map: &PageMap, f: &mut dyn FnMut(u32, Entry)) {
    let Some(level) = map.height().checked_sub(1) else { return };
    let mut left = vec![(map.root(), level, 0_u64)];
    while let Some((no, level, base)) = left.pop() {
        // A node says its level and its first index, so no way leads in circles.
        let Ok((bytes, false)) = pages.look(no, PageKind::PageMap) else { continue };
        let Ok(here) = Node::new(&bytes, no, level, base as u32) else { continue };
        let span = node::span(pages.page_size(), level);
        for slot in 0..node::fanout(pages.page_size()) {
            let first = base + slot as u64 * span;
            if first >= u64::from(map.len()) {
                break;
            }
            match here.entry(slot) {
                Ok(entry) if entry.page.is_none() => {}
                Ok(entry) if level > 0 => left.push((entry.page, level - 1, first)),
                Ok(entry) => f(first as u32, entry),
                Err(_) => {}
            }
        }
    }
}
