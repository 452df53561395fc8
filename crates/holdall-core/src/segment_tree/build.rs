//! Building a tree from slices that are written already.
//!
//! Owns: [`Builder`], which holds at most one and a half nodes per level however many
//! slices come, and [`append_slices`]. All nodes come out full but the last two of a level,
//! which are at least half full (T2).

use super::replace::{Entry, cut, fill, plant, replace, write_one};
use super::{Child, MAX_HEIGHT, MAX_OBJECT, Nodes, Slice, Tree};
use crate::{Error, Result};

/// Builds a tree bottom-up; nodes are written as they fill.
#[derive(Debug, Default)]
pub struct Builder {
    slices: Vec<Slice>,
    /// Children waiting for a node of level 1, 2 and so on.
    levels: Vec<Vec<Child>>,
    size: u64,
}

impl Builder {
    /// A builder of an empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes pushed so far.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Puts `slice` behind those before. Cost: one node write per node that fills.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a slice that cannot be or an object too large; those of
    /// [`Nodes::write_node`].
    pub fn push<S: Nodes + ?Sized>(&mut self, store: &mut S, slice: Slice) -> Result<()> {
        slice.validate(&|| "slice to build a tree of".into())?;
        let size = self.size.checked_add(slice.len).filter(|n| *n <= MAX_OBJECT);
        self.size = size.ok_or_else(|| {
            Error::Invalid(format!("an object can have {MAX_OBJECT} bytes at most"))
        })?;
        self.slices.push(slice);
        match take_full(store, 0, &mut self.slices)? {
            Some(child) => self.push_child(store, 1, child),
            None => Ok(()),
        }
    }

    fn push_child<S: Nodes + ?Sized>(
        &mut self,
        store: &mut S,
        mut level: usize,
        mut child: Child,
    ) -> Result<()> {
        loop {
            if self.levels.len() < level {
                self.levels.push(Vec::new());
            }
            let waiting = &mut self.levels[level - 1];
            waiting.push(child);
            match take_full(store, level_of(level)?, waiting)? {
                Some(full) => child = full,
                None => return Ok(()),
            }
            level += 1;
        }
    }

    /// Writes what is left and returns the tree; its slices stay inline if they are
    /// `max_inline` at most.
    ///
    /// # Errors
    /// Those of [`Nodes::write_node`].
    pub fn finish<S: Nodes + ?Sized>(mut self, store: &mut S, max_inline: usize) -> Result<Tree> {
        if self.levels.is_empty() {
            return plant(store, 0, self.slices, Vec::new(), max_inline, true);
        }
        for child in write_rest(store, 0, &self.slices)? {
            self.push_child(store, 1, child)?;
        }
        let mut level = 1;
        loop {
            let waiting = std::mem::take(&mut self.levels[level - 1]);
            if level == self.levels.len() {
                return plant(store, level_of(level)?, waiting, Vec::new(), max_inline, true);
            }
            for child in write_rest(store, level_of(level)?, &waiting)? {
                self.push_child(store, level + 1, child)?;
            }
            level += 1;
        }
    }
}

fn level_of(level: usize) -> Result<u8> {
    u8::try_from(level)
        .ok()
        .filter(|l| *l <= MAX_HEIGHT)
        .ok_or_else(|| Error::Invalid("segment tree too high".into()))
}

/// Writes a full node off the front once enough is left for another.
fn take_full<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    level: u8,
    waiting: &mut Vec<E>,
) -> Result<Option<Child>> {
    let bounds = fill(store, level)?;
    if waiting.len() < bounds.max + bounds.min {
        return Ok(None);
    }
    let rest = waiting.split_off(bounds.max);
    let full = std::mem::replace(waiting, rest);
    write_one(store, level, full, None).map(Some)
}

fn write_rest<E: Entry, S: Nodes + ?Sized>(
    store: &mut S,
    level: u8,
    mut rest: &[E],
) -> Result<Vec<Child>> {
    let mut children = Vec::new();
    for size in cut(rest.len(), fill(store, level)?, true) {
        let (now, later) = rest.split_at(size);
        children.push(write_one(store, level, now.to_vec(), None)?);
        rest = later;
    }
    Ok(children)
}

/// Builds a tree of `slices`, in order; see [`Builder`].
///
/// # Errors
/// As [`Builder::push`].
pub fn build<S: Nodes + ?Sized>(
    store: &mut S,
    slices: impl IntoIterator<Item = Slice>,
    max_inline: usize,
) -> Result<Tree> {
    let mut builder = Builder::new();
    for slice in slices {
        builder.push(store, slice)?;
    }
    builder.finish(store, max_inline)
}

/// Puts `slices` behind the last byte of `tree`, as they are: for objects streamed in
/// several goes. The bytes of a descriptor's tail would come behind them, so there should
/// be none yet. Cost: O(height) nodes, plus those written for the new slices.
///
/// # Errors
/// As [`Builder::push`], and those of reading nodes.
pub fn append_slices<S: Nodes + ?Sized>(
    store: &mut S,
    tree: &Tree,
    slices: &[Slice],
    max_inline: usize,
) -> Result<Tree> {
    slices.iter().try_for_each(|s| s.validate(&|| "slice to append".into()))?;
    if slices.is_empty() {
        return Ok(tree.clone());
    }
    let mut new = Vec::with_capacity(slices.len() + 1);
    let mut range = 0..tree.size;
    if tree.size > 0 {
        let last = super::find::Finder::new(tree).slice(store, tree.size - 1)?;
        new.push(last.slice);
        range.start = last.start;
    }
    new.extend_from_slice(slices);
    replace(store, tree, range, new, max_inline, &mut |_, _, _| Ok(()))
}
