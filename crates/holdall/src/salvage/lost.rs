//! Objects that are known and were not brought.
//!
//! Owns no state. Handles say which objects there are, leaves of names how they are called.

use super::bring::Bringer;
use super::catalog::Catalog;
use super::handles::Handles;
use super::pages::Pages;
use super::report::LostObject;
use super::scan::Found;
use crate::engine::catalog::oid_of;
use holdall_core::collection_entry::{END, NumberKey, SMALL_OWNER};
use holdall_core::names_node::Node;
use holdall_core::page::PageKind;
use holdall_core::{Oid, PageRead};
use std::collections::BTreeMap;

const RECORD: &str = "its record is lost";
const PERHAPS: &str = "its record is lost, if it was not removed";
const BOTH: &str = "its record and its handle are lost, if it was not removed";

/// Adds to the report all objects that handles or names know and that were not settled. `sure`: all pages
/// are of one state. Cost: each handle page and each leaf of names once.
pub(super) fn find(
    (pages, found, sure): (&Pages<'_>, &Found, bool),
    handles: &Handles,
    catalog: &Catalog,
    bringer: &mut Bringer<'_>,
) {
    let mut lost: BTreeMap<Oid, LostObject> = BTreeMap::new();
    let known: BTreeMap<Oid, usize> =
        bringer.report.lost.iter().enumerate().map(|(i, lost)| (lost.oid, i)).collect();
    handles.each(pages, &mut |oid, _, own| {
        if !bringer.is_taken(oid) {
            lost.insert(oid, all_of(oid, if own { RECORD } else { PERHAPS }));
        }
    });
    for (owner, no) in &found.leaves {
        if *owner == 0 || *owner >= END && *owner != SMALL_OWNER {
            continue;
        }
        if sure && pages.is_free(*no) == Some(true) {
            continue;
        }
        let Ok(bytes) = pages.page(*no, PageKind::Names) else { continue };
        let Ok(node) = Node::open(*no, &bytes) else { continue };
        for cell in (0..node.count()).filter_map(|i| node.cell(i).ok()) {
            let key = cell.key.to_vec();
            let (number, name) = match *owner {
                SMALL_OWNER => match NumberKey::split(&key) {
                    Ok(split) => split,
                    Err(_) => continue,
                },
                number => (number, &key[..]),
            };
            let (Ok(oid), Some(collection)) = (oid_of(cell.payload), catalog.name(number)) else {
                continue;
            };
            let entry = match (lost.get_mut(&oid), known.get(&oid)) {
                (Some(entry), _) => entry,
                (None, Some(i)) => &mut bringer.report.lost[*i],
                (None, None) if !bringer.is_taken(oid) && handles.is_live(pages, oid).is_none() => {
                    lost.entry(oid).or_insert(all_of(oid, BOTH))
                }
                (None, None) => continue,
            };
            entry.name.get_or_insert_with(|| name.to_vec());
            entry.collection.get_or_insert(collection);
        }
    }
    bringer.report.lost.extend(lost.into_values());
}

fn all_of(oid: Oid, why: &str) -> LostObject {
    let (collection, name, size, ranges) = (None, None, None, Vec::new());
    LostObject { collection, name, oid, size, ranges, why: why.into(), brought: false }
}
