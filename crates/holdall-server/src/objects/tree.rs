//! Trees removed, copied and moved: in one transaction, or in several if one has no room.
//!
//! Owns: [`Change`].

use crate::http::body;
use crate::objects::acl::Acl;
use crate::objects::catalog::Bucket;
use crate::objects::edit::copy_bytes;
use crate::objects::meta::{About, Meta};
use crate::objects::node::{self, InTx, Names, Node, keep_parent, mark};
use crate::objects::place::Place;
use crate::objects::records::Settings;
use crate::objects::side;
use crate::refusal::{Result, Why};
use holdall::{ListOptions, Reader, Target, Version, WriteTx};
use std::io::Read as _;
use std::sync::Arc;
use std::time::SystemTime;

/// Names of a tree read at a time.
const PAGE: usize = 1000;
/// Names changed in a transaction, if all at once are too many.
const BATCH: usize = 4096;

/// One object, or all that a folder or a collection holds.
#[derive(Debug, Clone)]
pub struct Tree {
    /// Its collection.
    pub bucket: Bucket,
    /// Where it lies.
    pub place: Place,
    /// Whether it is a folder.
    pub folder: bool,
}

impl Tree {
    /// What lies at a place.
    pub fn new(bucket: Bucket, place: Place, node: &Node) -> Self {
        Self { bucket, place, folder: node.is_folder() }
    }

    /// What all its names begin with.
    fn prefix(&self) -> Vec<u8> {
        if self.folder { self.place.prefix() } else { self.place.name().to_vec() }
    }

    /// The next of its names behind `after`, `limit` at most.
    fn names(
        &self,
        tx: &mut WriteTx,
        after: Option<&[u8]>,
        limit: usize,
    ) -> holdall::Result<Vec<Vec<u8>>> {
        let mut names = InTx(tx, &self.bucket.name);
        if !self.folder {
            let there = after.is_none() && names.metadata(self.place.name())?.is_some();
            return Ok(there.then(|| self.place.name().to_vec()).into_iter().collect());
        }
        let prefix = self.prefix();
        let options = ListOptions { prefix: &prefix, start_after: after, delimiter: None, limit };
        Ok(node::names(names.list(&options)?).collect())
    }
}

/// What is to be done with a tree's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Copied, with all below them.
    Copy,
    /// A folder alone.
    CopyFolder,
    /// Moved.
    Move,
}

/// A change of trees.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// What goes first: what was at the destination, or what is to be deleted.
    pub removed: Option<Tree>,
    /// What is copied or moved, and where to.
    pub carried: Option<(Verb, Tree, Tree)>,
    /// A removed name whose folder stays.
    pub kept: Option<(Bucket, Vec<u8>)>,
    /// An object, or a folder's marker, that must have this version still.
    pub pinned: Option<(Tree, Version)>,
    /// Whether of an object that is replaced the bytes alone go.
    pub bytes_alone: bool,
    /// The time that a copied or moved object has then.
    pub modified: Option<SystemTime>,
}

/// How far a change has come.
#[derive(Debug, Clone, Default)]
struct Progress {
    begun: bool,
    removed: bool,
    /// The last name that was copied or moved.
    after: Option<Vec<u8>>,
    done: bool,
}

impl Change {
    /// Makes the change and returns in how many transactions. Each is durable when the next one
    /// begins, and the same change made again goes on where an earlier one ended. Blocks.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn run(&self, from: &Reader) -> Result<usize> {
        let target = self.carried.as_ref().map(|(_, _, to)| &to.bucket);
        let bucket = target.or(self.removed.as_ref().map(|tree| &tree.bucket));
        let Some(bucket) = bucket else { return Ok(0) };
        let (mut at, mut count) = (Progress::default(), 0);
        let mut limit = usize::MAX;
        while !at.done {
            let step = |tx: &mut WriteTx| {
                let mut next = at.clone();
                self.step(tx, from, &mut next, limit)?;
                Ok(next)
            };
            match bucket.served.store.write_with(&bucket.served.waits, step) {
                Ok(next) => (at, count) = (next, count + 1),
                Err(holdall::Error::TooLarge(_)) if limit > 1 => limit = BATCH.min(limit / 2),
                Err(e) => return Err(e.into()),
            }
        }
        Ok(count)
    }

    /// Whether the two ends lie in different stores.
    pub fn crosses(&self) -> bool {
        let other = |(_, from, to): &(Verb, Tree, Tree)| {
            !Arc::ptr_eq(&from.bucket.served.path, &to.bucket.served.path)
        };
        self.carried.as_ref().is_some_and(other)
    }

    /// Refuses to begin if the pinned object changed meanwhile, and returns what stays of the
    /// object that is to be replaced.
    fn begin(&self, tx: &mut WriteTx, from: &Reader) -> holdall::Result<Option<About>> {
        if let Some((tree, version)) = &self.pinned {
            let (name, key) = (&tree.bucket.name, tree.prefix());
            let found = if self.crosses() {
                Names::metadata(&mut from.clone(), &key)?
            } else {
                InTx(tx, name).metadata(&key)?
            };
            if found.is_none_or(|found| found.version != *version) {
                let text = Why::Unmet.says("it was changed since it was looked at");
                return Err(text.into());
            }
        }
        let Some((_, from, to)) = self.carried.as_ref().filter(|_| self.bytes_alone) else {
            return Ok(None);
        };
        if from.folder || self.crosses() {
            let text = "only an object of the same store gives another one its bytes";
            return Err(Why::Invalid.says(text).into());
        }
        let mut names = InTx(tx, &to.bucket.name);
        let Some(old) = names.metadata(to.place.name())? else { return Ok(None) };
        let meta = side::meta_in(tx, old.oid)?;
        Ok(Some(meta.about.without_bytes()))
    }

    fn step(
        &self,
        tx: &mut WriteTx,
        from: &Reader,
        at: &mut Progress,
        limit: usize,
    ) -> holdall::Result<()> {
        let mut left = limit;
        let about = if at.begun { None } else { self.begin(tx, from)? };
        at.begun = true;
        if let Some(tree) = self.removed.as_ref().filter(|_| !at.removed) {
            loop {
                let names = tree.names(tx, None, left.min(PAGE))?;
                for name in &names {
                    side::remove(tx, &tree.bucket.name, name)?;
                }
                left = left.saturating_sub(names.len());
                if names.is_empty() {
                    break;
                }
                if left == 0 {
                    return Ok(());
                }
            }
        }
        at.removed = true;
        if let Some((verb, tree, to)) = &self.carried {
            let carried = Carried { verb: *verb, tree, to, from };
            // Bytes of another store are moved: an object at a time. The first one comes with the
            // removal of what it replaces.
            let most = if self.crosses() { 1 } else { left };
            if !carried.step(tx, at, most)? {
                return Ok(());
            }
            if about.is_some() || self.modified.is_some() {
                amend(tx, to, about, self.modified)?;
            }
        }
        if let Some((bucket, key)) = &self.kept {
            keep_parent(tx, bucket, key)?;
        }
        at.done = true;
        Ok(())
    }
}

/// Gives a moved object the properties and the time of the one that it replaced.
fn amend(
    tx: &mut WriteTx,
    at: &Tree,
    about: Option<About>,
    modified: Option<SystemTime>,
) -> holdall::Result<()> {
    let name = at.place.name();
    let Some(found) = InTx(tx, &at.bucket.name).metadata(name)? else { return Ok(()) };
    let mut meta = side::meta_in(tx, found.oid)?;
    if let Some(about) = about {
        let (encoding, language) = (meta.about.encoding.take(), meta.about.language.take());
        meta.about = About { encoding, language, ..about };
    }
    meta.modified = modified.or(meta.modified);
    side::set_meta(tx, found.oid, &meta, at.bucket.served.attribute_bytes)
}

/// A tree on its way.
struct Carried<'c> {
    verb: Verb,
    tree: &'c Tree,
    to: &'c Tree,
    /// The state that bytes of another store are read in.
    from: &'c Reader,
}

impl Carried<'_> {
    /// Carries on; false if more is left.
    fn step(&self, tx: &mut WriteTx, at: &mut Progress, mut left: usize) -> holdall::Result<bool> {
        if self.verb == Verb::CopyFolder {
            return self.folder(tx).map(|()| true);
        }
        let (prefix, to) = (self.tree.prefix(), self.to.prefix());
        let same = self.tree.bucket.name == self.to.bucket.name;
        loop {
            let names = self.names(tx, at.after.as_deref(), left.min(PAGE))?;
            let Some(last) = names.last() else { return self.root(tx).map(|()| true) };
            for name in &names {
                // A folder copied into itself does not hold the copy.
                let inside = same && self.tree.folder && to.len() > prefix.len();
                let target = [&to, &name[prefix.len()..]].concat();
                let skipped = target.is_empty() || (inside && name.starts_with(&to));
                if !skipped {
                    self.one(tx, name, &target)?;
                }
            }
            at.after = Some(last.clone());
            left = left.saturating_sub(names.len());
            if left == 0 {
                return Ok(!self.tree.folder);
            }
        }
    }

    fn crosses(&self) -> bool {
        !Arc::ptr_eq(&self.tree.bucket.served.path, &self.to.bucket.served.path)
    }

    fn names(
        &self,
        tx: &mut WriteTx,
        after: Option<&[u8]>,
        limit: usize,
    ) -> holdall::Result<Vec<Vec<u8>>> {
        if !self.crosses() {
            return self.tree.names(tx, after, limit);
        }
        let prefix = self.tree.prefix();
        let options = ListOptions { prefix: &prefix, start_after: after, delimiter: None, limit };
        let names = node::names(self.from.list(&options)?);
        Ok(names.filter(|name| self.tree.folder || *name == self.tree.place.name()).collect())
    }

    /// Copies a folder's marker with its properties, and nothing below it. A collection that moves
    /// takes along what else is kept of it.
    fn folder(&self, tx: &mut WriteTx) -> holdall::Result<()> {
        let mut kept = self.kept(tx)?;
        if self.verb != Verb::Move {
            kept = Settings::props(kept.props);
        }
        let (bucket, prefix) = (&self.to.bucket, self.to.place.prefix());
        if prefix.is_empty() {
            return kept.set(tx, &bucket.name);
        }
        let oid = mark(tx, bucket, &prefix)?;
        let mut meta = side::meta_in(tx, oid)?;
        meta.about.props = kept.props;
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
    }

    /// Ends a tree: a collection has no marker, and a folder that was one needs one.
    fn root(&self, tx: &mut WriteTx) -> holdall::Result<()> {
        let ends = [&self.tree.place, &self.to.place];
        if self.tree.folder && ends.iter().any(|place| place.key.is_none()) {
            self.folder(tx)?;
            let marker = self.tree.place.prefix();
            if self.verb == Verb::Move && !marker.is_empty() && !self.crosses() {
                side::remove(tx, &self.tree.bucket.name, marker)?;
            }
        }
        Ok(())
    }

    /// What is kept of the tree's root.
    fn kept(&self, tx: &mut WriteTx) -> holdall::Result<Settings> {
        let (name, prefix) = (&self.tree.bucket.name, self.tree.place.prefix());
        let about = |meta: Meta| Settings::props(meta.about.props);
        if self.crosses() {
            if prefix.is_empty() {
                return Settings::load(self.from, name);
            }
            let marker = Names::metadata(&mut self.from.clone(), &prefix)?;
            let Some(marker) = marker else { return Ok(Settings::default()) };
            return Ok(about(side::meta(self.from, &marker)?));
        }
        if prefix.is_empty() {
            return Settings::in_tx(tx, name);
        }
        let marker = InTx(tx, name).metadata(&prefix)?;
        let Some(marker) = marker else { return Ok(Settings::default()) };
        Ok(about(side::meta_in(tx, marker.oid)?))
    }

    fn one(&self, tx: &mut WriteTx, name: &[u8], to: &[u8]) -> holdall::Result<()> {
        let (source, bucket) = (&self.tree.bucket, &self.to.bucket);
        if self.verb == Verb::Move && source.name == bucket.name && !self.crosses() {
            return tx.collection(&bucket.name)?.rename(name, to);
        }
        let (oid, mut meta) = if self.crosses() {
            let object = self.from.open(name)?;
            let (size, found) = (object.size(), self.from.metadata(name)?);
            let meta = side::meta(self.from, &found)?;
            (copy_bytes(tx, bucket, object.take(size), size, Target::from(to))?, meta)
        } else {
            let found = tx.collection(&source.name)?.metadata(name)?;
            let meta = side::meta_in(tx, found.oid)?;
            (bucket.objects(tx)?.copy(found.oid, Target::from(to))?, meta)
        };
        if self.verb != Verb::Move {
            meta.about.acl = Acl::default();
        }
        if let Some(of_bytes) = &mut meta.of_bytes {
            of_bytes.upload = None;
        }
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)?;
        if self.verb == Verb::Move && !self.crosses() {
            side::remove(tx, &source.name, name)?;
        }
        Ok(())
    }
}

/// Moves a tree to where nothing is; the folder that it lay in stays if it `keeps_folder`.
/// Blocks.
///
/// # Errors
/// Those of the engine.
pub fn carry(from: Tree, to: Tree, keeps_folder: bool) -> Result<()> {
    let reader = from.bucket.read()?;
    let kept = keeps_folder.then(|| (from.bucket.clone(), from.place.name().to_vec()));
    let carried = Some((Verb::Move, from, to));
    let change = Change { carried, kept, ..Change::default() };
    change.run(&reader).map(drop)
}

/// Makes a change where waiting hurts nobody; after a move between stores, what was moved goes.
///
/// # Errors
/// Those of the engine.
pub async fn run(change: Change) -> Result<usize> {
    body::blocking(move || {
        let source = change.carried.as_ref().map(|(_, from, _)| &from.bucket);
        let Some(source) = source.or(change.removed.as_ref().map(|tree| &tree.bucket)) else {
            return Ok(0);
        };
        let count = change.run(&source.read()?)?;
        let reader = source.read()?;
        match &change.carried {
            Some((Verb::Move, from, _)) if change.crosses() => {
                let removed = Some(from.clone());
                let gone = Change { removed, ..Change::default() };
                Ok(count + gone.run(&reader)?)
            }
            _ => Ok(count),
        }
    })
    .await
}
