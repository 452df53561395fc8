//! A B+-tree for OIDs (Eickler §3.1.2): prefix compression in the leaves, and the tuned split.
//!
//! Owns the tree: page 0 with its state, leaves and inner nodes behind it. A leaf that deletions
//! empty stays in the tree, for OIDs near those it had; the paper merges nothing either. Threads:
//! none.

mod inner;
mod leaf;

use std::sync::Arc;

use anyhow::{Result, bail, ensure};
use holdall_io::Disk;

use super::mapping::{Mapping, Place};
use super::oid::{Handle, Oid};
use super::pages::{Kind, Pages};
use crate::mutation::{Mutation, is};
pub use inner::FANOUT;

/// How many neighbours are tried for an OID near another one.
const HOPS: usize = 4;

/// What an over-full node gives to the new one (figure 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Split {
    /// The last entry.
    Tuned,
    /// Half of the entries.
    Half,
}

impl Split {
    /// This many of the entries of an over-full node stay in it.
    fn cut(self, entries: usize) -> usize {
        match self {
            Self::Tuned if !is(Mutation::TunedSplit) => entries - 1,
            _ => entries / 2,
        }
    }
}

/// A leaf and the range of its keys.
#[derive(Debug, Clone, Copy)]
struct Spot {
    leaf: u32,
    /// From here on; all below the upper end if there is none.
    low: Option<Oid>,
    /// Below this.
    high: Option<Oid>,
}

impl Spot {
    fn has(&self, key: Oid) -> bool {
        self.low.is_none_or(|low| low <= key) && self.high.is_none_or(|high| key < high)
    }
}

/// The tree.
#[derive(Debug)]
pub struct BTree {
    pages: Pages,
    rule: Split,
    root: u32,
    /// Levels of inner nodes.
    height: u32,
    next_page: u32,
    entries: u64,
    /// Clusters of serial numbers begun so far.
    clusters: u64,
    /// The leaf that recorded the last new mapping.
    last: Option<Spot>,
}

impl BTree {
    /// The tree on `disk`; an empty disk gets an empty one. `frames` pages of buffer.
    pub fn open(disk: Arc<dyn Disk>, frames: usize, rule: Split) -> Result<Self> {
        let mut pages = Pages::new(disk, frames);
        let state = pages.state()?;
        if state.is_none() {
            pages.fresh(1, Kind::Leaf, true)?;
        }
        let state = state.unwrap_or_else(|| vec![1, 0, 2, 0, 0]);
        let [root, height, next_page] = [0, 1, 2].map(|n| state[n] as u32);
        ensure!(height < 16, "page 0 of the tree is damaged; restore the file");
        let (entries, clusters) = (state[3], state[4]);
        Ok(Self { pages, rule, root, height, next_page, entries, clusters, last: None })
    }

    /// Levels of inner nodes above the leaves.
    #[cfg(test)]
    pub fn height(&self) -> u32 {
        self.height
    }

    /// Entries of each leaf, from the left. Cost: every page.
    #[cfg(test)]
    pub fn leaves(&mut self) -> Result<Vec<usize>> {
        let mut counts = Vec::new();
        let mut key = Some(Oid::serial(0));
        while let Some(low) = key {
            let spot = self.descend(low)?;
            let bytes = self.pages.read(spot.leaf, Kind::Leaf)?;
            let all = leaf::entries(bytes);
            let inside = all.iter().all(|(key, _)| spot.has(*key));
            ensure!(
                inside && all.is_sorted_by(|a, b| a.0 < b.0),
                "leaf {} has no order",
                spot.leaf
            );
            counts.push(all.len());
            key = spot.high;
        }
        Ok(counts)
    }

    /// Records the mapping of an OID that some server gave out. Cost: the way from the root,
    /// none of it if the last new mapping lies in the same leaf; a new page for a split.
    pub fn insert(&mut self, key: Oid, handle: Handle) -> Result<()> {
        let spot = match self.last {
            Some(spot) if spot.has(key) => spot,
            _ => self.descend(key)?,
        };
        let bytes = self.pages.write(spot.leaf, Kind::Leaf)?;
        let Err(place) = leaf::find(bytes, key) else {
            bail!("{key:?} is mapped already; give it another OID");
        };
        let spot = if leaf::insert(bytes, place, key, handle) {
            spot
        } else {
            let mut all = leaf::entries(bytes);
            all.insert(place, (key, handle));
            self.split(spot, all, key)?
        };
        self.entries += 1;
        self.last = Some(spot);
        self.pages.keep(spot.leaf, Kind::Leaf);
        Ok(())
    }

    /// Puts the entries of an over-full leaf into it and a new one; gives the one with `key`.
    fn split(&mut self, spot: Spot, mut all: Vec<leaf::Entry>, key: Oid) -> Result<Spot> {
        let mut cut = self.rule.cut(all.len());
        while !leaf::fits(&all[..cut]) {
            cut -= 1;
        }
        let right = all.split_off(cut);
        let border = right[0].0;
        let old = self.pages.write(spot.leaf, Kind::Leaf)?;
        let issued = leaf::issued(old).max(right[right.len() - 1].0);
        // All numbers up to the border count as given out: nobody looked at which were.
        leaf::write(old, &all, border);
        let new = self.page();
        leaf::write(self.pages.fresh(new, Kind::Leaf, true)?, &right, issued);
        self.add(border, new)?;
        Ok(match key >= border {
            true => Spot { leaf: new, low: Some(border), high: spot.high },
            false => Spot { high: Some(border), ..spot },
        })
    }

    /// Enters a new leaf into the inner nodes, which are split as the leaves are.
    fn add(&mut self, border: Oid, leaf: u32) -> Result<()> {
        let mut path = Vec::new();
        let mut page = self.root;
        for _ in 0..self.height {
            let bytes = self.pages.read(page, Kind::Inner)?;
            let place = inner::find(bytes, border);
            path.push((page, place));
            let child = inner::child(bytes, place);
            if !is(Mutation::KeptNodes) {
                self.pages.keep(page, Kind::Inner);
            }
            page = child;
        }
        let (mut key, mut child) = (border, leaf);
        while let Some((page, place)) = path.pop() {
            let bytes = self.pages.write(page, Kind::Inner)?;
            let mut all = inner::entries(bytes);
            all.insert(place + 1, (key, child));
            if all.len() <= FANOUT {
                inner::write(bytes, &all);
                return Ok(());
            }
            let right = all.split_off(self.rule.cut(all.len()));
            inner::write(bytes, &all);
            (key, child) = (right[0].0, self.page());
            inner::write(self.pages.fresh(child, Kind::Inner, true)?, &right);
        }
        let root = self.page();
        let both = [(Oid::serial(0), self.root), (key, child)];
        inner::write(self.pages.fresh(root, Kind::Inner, true)?, &both);
        (self.root, self.height) = (root, self.height + 1);
        Ok(())
    }

    fn page(&mut self) -> u32 {
        self.next_page += 1;
        self.next_page - 1
    }

    /// The leaf of a key. Cost: a page for each level.
    fn descend(&mut self, key: Oid) -> Result<Spot> {
        let mut spot = Spot { leaf: self.root, low: None, high: None };
        for _ in 0..self.height {
            let bytes = self.pages.read(spot.leaf, Kind::Inner)?;
            let place = inner::find(bytes, key);
            if place > 0 {
                spot.low = Some(inner::key(bytes, place));
            }
            if place + 1 < inner::count(bytes) {
                spot.high = Some(inner::key(bytes, place + 1));
            }
            spot.leaf = inner::child(bytes, place);
        }
        Ok(spot)
    }

    /// An OID never given out that lies in the leaf of `near` or in one behind it (§4.1.1).
    fn beside(&mut self, near: Oid) -> Result<Option<Oid>> {
        let mut spot = match self.last {
            Some(spot) if spot.has(near) => spot,
            _ => self.descend(near)?,
        };
        for _ in 0..HOPS {
            let issued = leaf::issued(self.pages.read(spot.leaf, Kind::Leaf)?);
            let number = issued.number().max(near.number()).saturating_add(1);
            // Numbers of a cluster that is full would run into the next one.
            if number >> 32 == near.number() >> 32 && spot.has(Oid::serial(number)) {
                return Ok(Some(Oid::serial(number)));
            }
            match spot.high {
                Some(high) => spot = self.descend(high)?,
                None => break,
            }
        }
        Ok(None)
    }

    fn find(&mut self, oid: Oid) -> Result<Option<(u32, usize)>> {
        let spot = self.descend(oid)?;
        let found = leaf::find(self.pages.read(spot.leaf, Kind::Leaf)?, oid);
        Ok(found.ok().map(|place| (spot.leaf, place)))
    }
}

impl Mapping for BTree {
    /// Near another object, or as the first of a new cluster of 2^32 OIDs.
    fn create(&mut self, place: Place, handle: Handle) -> Result<Oid> {
        let beside = match place.near {
            Some(near) if !is(Mutation::NearLeaf) => self.beside(near)?,
            _ => None,
        };
        let oid = match beside {
            Some(oid) => oid,
            None => {
                self.clusters += 1;
                Oid::serial((self.clusters - 1) << 32 | 1)
            }
        };
        self.insert(oid, handle)?;
        Ok(oid)
    }

    fn lookup(&mut self, oid: Oid) -> Result<Option<Handle>> {
        let Some((page, place)) = self.find(oid)? else { return Ok(None) };
        Ok(Some(leaf::handle(self.pages.read(page, Kind::Leaf)?, place)))
    }

    fn update(&mut self, oid: Oid, handle: Handle) -> Result<bool> {
        let Some((page, place)) = self.find(oid)? else { return Ok(false) };
        leaf::set_handle(self.pages.write(page, Kind::Leaf)?, place, handle);
        Ok(true)
    }

    fn remove(&mut self, oid: Oid) -> Result<bool> {
        let Some((page, place)) = self.find(oid)? else { return Ok(false) };
        leaf::remove(self.pages.write(page, Kind::Leaf)?, place);
        self.entries -= 1;
        Ok(true)
    }

    fn flush(&mut self) -> Result<()> {
        let words = [self.root, self.height, self.next_page].map(u64::from);
        self.pages.flush(&[&words[..], &[self.entries, self.clusters]].concat())
    }

    fn pages(&mut self) -> &mut Pages {
        &mut self.pages
    }

    fn used(&self) -> u64 {
        u64::from(self.next_page)
    }
}
