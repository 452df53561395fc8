//! The buffer pool: frames of one page, least recently used first out (Biliris §3.2).
//!
//! Owns: [`Pool`]. It knows nothing of disks: it says which page must go, and the volume
//! writes it if it is dirty. Clean pages go before dirty ones; the root never goes. Searched
//! from end to end: the paper's pool has 12 frames. Not for use by two threads at once.

use crate::mutation::{Mutation, is};

/// Which of the two areas a page is in (§4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    /// Leaf segments.
    Leaf,
    /// Index pages.
    Index,
}

/// A page of an area.
pub type Key = (Which, u64);

/// A page in the pool.
#[derive(Debug)]
pub struct Frame {
    /// Which page it is.
    pub key: Key,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Whether the disk has older bytes.
    pub dirty: bool,
    used: u64,
}

/// The frames.
#[derive(Debug)]
pub struct Pool {
    frames: Vec<Frame>,
    /// Pages that may be held beside the root.
    room: usize,
    root: Option<u64>,
    clock: u64,
}

impl Pool {
    /// A pool of `pages` frames, one of which is the root's at all times (assumption: the
    /// root, never flushed, takes a frame of the pool).
    pub fn new(pages: usize) -> Self {
        Self { frames: Vec::new(), room: pages.saturating_sub(1).max(1), root: None, clock: 0 }
    }

    /// Whether `pages` pages could be held at once beside the root.
    pub fn can_hold(&self, pages: usize) -> bool {
        pages <= self.room
    }

    /// The index page that is the root and so stays.
    pub fn set_root(&mut self, root: Option<u64>) {
        self.root = root;
    }

    fn is_root(&self, key: Key) -> bool {
        key.0 == Which::Index && self.root == Some(key.1)
    }

    fn find(&self, key: Key) -> Option<usize> {
        self.frames.iter().position(|f| f.key == key)
    }

    /// Whether a page is there; not a use of it.
    pub fn has(&self, key: Key) -> bool {
        self.find(key).is_some()
    }

    /// A page's bytes, as a use of it.
    pub fn get(&mut self, key: Key) -> Option<&[u8]> {
        let at = self.find(key)?;
        self.clock += 1;
        self.frames[at].used = self.clock;
        Some(&self.frames[at].bytes)
    }

    /// A page's bytes, not as a use of it.
    pub fn look(&self, key: Key) -> Option<&[u8]> {
        self.find(key).map(|at| self.frames[at].bytes.as_slice())
    }

    /// Changes the bytes of a page that is there.
    pub fn update(&mut self, key: Key, bytes: &[u8]) -> bool {
        let Some(at) = self.find(key) else { return false };
        self.frames[at].bytes.copy_from_slice(bytes);
        true
    }

    /// Puts a page in, or new bytes of it. Room must have been made before.
    pub fn put(&mut self, key: Key, bytes: Vec<u8>, dirty: bool) {
        self.clock += 1;
        let used = self.clock;
        let frame = Frame { key, bytes, dirty, used };
        match self.find(key) {
            Some(at) => self.frames[at] = frame,
            None => self.frames.push(frame),
        }
    }

    /// Takes out a page that must go so that `more` pages find room: clean ones first, the
    /// least recently used first. `None` once there is room.
    pub fn evict(&mut self, more: usize) -> Option<Frame> {
        let held = self.frames.iter().filter(|f| !self.is_root(f.key)).count();
        if held + more <= self.room {
            return None;
        }
        let others = self.frames.iter().enumerate().filter(|(_, f)| !self.is_root(f.key));
        let (at, _) = others.min_by_key(|(_, f)| {
            let used = if is(Mutation::PoolNewest) { u64::MAX - f.used } else { f.used };
            (f.dirty && !is(Mutation::PoolDirty), used)
        })?;
        Some(self.frames.swap_remove(at))
    }

    /// Marks a page as the first to go: its successor has been written.
    pub fn expire(&mut self, key: Key) {
        if let Some(at) = self.find(key) {
            self.frames[at].used = 0;
        }
    }

    /// Drops the pages `first..first + pages` of an area, dirty or not.
    pub fn drop_pages(&mut self, which: Which, first: u64, pages: u64) {
        let gone = |f: &Frame| f.key.0 == which && (first..first + pages).contains(&f.key.1);
        self.frames.retain(|f| !gone(f));
    }

    /// Dirty pages but the root, in order of page, now taken for clean.
    pub fn take_dirty(&mut self) -> Vec<(Key, Vec<u8>)> {
        let root = self.root.filter(|_| !is(Mutation::RootFlush));
        let flushed =
            |f: &&mut Frame| f.dirty && !(f.key.0 == Which::Index && root == Some(f.key.1));
        if is(Mutation::IndexFlush) {
            return Vec::new();
        }
        let mut dirty: Vec<_> = self
            .frames
            .iter_mut()
            .filter(flushed)
            .map(|f| {
                f.dirty = false;
                (f.key, f.bytes.clone())
            })
            .collect();
        dirty.sort_by_key(|(key, _)| key.1);
        dirty
    }
}

#[cfg(test)]
mod rules {
    use super::*;

    #[test]
    fn clean_before_dirty_and_never_the_root() {
        let mut pool = Pool::new(4);
        pool.set_root(Some(1));
        pool.put((Which::Index, 1), vec![0], true);
        pool.put((Which::Index, 2), vec![0], true);
        pool.put((Which::Leaf, 1), vec![0], false);
        pool.put((Which::Leaf, 2), vec![0], false);
        pool.get((Which::Leaf, 1));
        assert!(pool.evict(0).is_none());
        assert_eq!(pool.evict(1).unwrap().key, (Which::Leaf, 2));
        assert_eq!(pool.evict(2).unwrap().key, (Which::Leaf, 1));
        assert_eq!(pool.evict(3).unwrap().key, (Which::Index, 2));
        assert!(pool.evict(3).is_none() && pool.has((Which::Index, 1)));
    }
}
