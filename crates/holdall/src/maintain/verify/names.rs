//! Walking a tree of names, going on behind a damaged node.
//!
//! Owns: no state. As `Names::check`, but it reports and does not stop.

use super::report::ProblemKind;
use super::walk_state::Walk;
use crate::names::{Names, Value};
use holdall_core::names_node::Node;
use holdall_core::{PageKind, PageNo, Result};
use std::cmp::Ordering;

/// What is done with an entry: its key and its value.
pub(super) type VisitName<'v, 'a> = dyn FnMut(&mut Walk<'a>, &[u8], &Value) -> Result<()> + 'v;

struct Tree<'t> {
    owner: u64,
    what: &'t str,
}

/// Where in the tree a node belongs: its level, and the keys it may hold (from, below).
#[derive(Clone, Copy)]
struct NodeBounds<'k> {
    level: Option<u8>,
    low: Option<&'k [u8]>,
    high: Option<&'k [u8]>,
}

impl<'a> Walk<'a> {
    /// Visits every entry of `tree` in key order. Returns whether all could be read.
    ///
    /// # Errors
    /// Anything but damage.
    pub(super) fn names(
        &mut self,
        tree: &Names,
        owner: u64,
        what: &str,
        entry: &mut VisitName<'_, 'a>,
    ) -> Result<bool> {
        if tree.root.is_none() {
            return Ok(true);
        }
        let place = NodeBounds { level: None, low: None, high: None };
        self.names_node(&Tree { owner, what }, tree.root, place, entry)
    }

    /// Recursion ends with the levels, of which there are at most 64.
    fn names_node(
        &mut self,
        tree: &Tree<'_>,
        no: PageNo,
        place: NodeBounds<'_>,
        entry: &mut VisitName<'_, 'a>,
    ) -> Result<bool> {
        let what = || match place.low {
            None => tree.what.to_owned(),
            Some(low) => format!("{} from {:?} on", tree.what, String::from_utf8_lossy(low)),
        };
        let Some(bytes) = self.own_page(no, PageKind::Names, tree.owner, &what)? else {
            return Ok(false);
        };
        let node = match place.level {
            Some(level) => Node::open_at(no, &bytes, level),
            None => Node::open(no, &bytes),
        };
        let checked = node.and_then(|node| {
            node.validate()?;
            Ok((node, node.cells()?))
        });
        let Some((node, cells)) = self.take(ProblemKind::Page, &what, checked)? else {
            return Ok(false);
        };
        if node.is_leaf() && cells.is_empty() {
            self.bad_page(no, &what(), "is an empty leaf");
        }
        let outside = cells.iter().any(|cell| {
            place.low.is_some_and(|low| cell.key.cmp_bytes(low) == Ordering::Less)
                || place.high.is_some_and(|high| cell.key.cmp_bytes(high) != Ordering::Less)
        });
        if outside {
            self.bad_page(no, &what(), "holds a key that belongs elsewhere in the tree");
        }
        let mut whole = !outside;
        if node.is_leaf() {
            for (i, cell) in cells.iter().enumerate() {
                match self.take(ProblemKind::Page, &what, node.value(i))? {
                    Some(value) => entry(self, &cell.key.to_vec(), &value)?,
                    None => whole = false,
                }
            }
            return Ok(whole);
        }
        let below = node.level().checked_sub(1);
        let mut from = place.low.map(<[u8]>::to_vec);
        for i in 0..=cells.len() {
            let to = cells.get(i).map(|cell| cell.key.to_vec());
            let Some(child) = self.take(ProblemKind::Page, &what, node.child(i))? else {
                (whole, from) = (false, to);
                continue;
            };
            let high = to.as_deref().or(place.high);
            let place = NodeBounds { level: below, low: from.as_deref(), high };
            whole &= self.names_node(tree, child, place, entry)?;
            from = to;
        }
        Ok(whole)
    }
}
