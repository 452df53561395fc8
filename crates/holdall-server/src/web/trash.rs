//! What was deleted at the page, and can be brought back.
//!
//! Each deletion has a collection of its own, [`TRASH`]`/TIME-ID`, in which the tree has the names
//! that it had: with anything before them the longest ones would be too long. The record `TIME-ID`
//! of the collection [`TRASH`] says where it came from. Both go after [`DAYS`] days. A delete over
//! S3 or WebDAV is final. Earlier servers put trees into [`TRASH`] as `TIME-ID/COLLECTION/NAME`, if
//! nobody can tell a slash of the collection's name from the one behind it: who sees them needs
//! rights on all collections that it could be.

use crate::objects::catalog::{Bucket, Catalog, Served};
use crate::objects::node::{self, Node};
use crate::objects::tree::{self, Tree};
use crate::objects::{place::Place, side};
use crate::refusal::{Refusal, Result, Why};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdall::{ListOptions, Listed, Reader, WriteTx};
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The collection of what was deleted; no bucket has such a name.
pub const TRASH: &str = crate::objects::catalog::TRASH;
/// Days after which it is removed.
pub const DAYS: u64 = 30;
/// Deletions shown at a time.
const PAGE: usize = 100;
/// Names removed in a transaction.
const BATCH: usize = 1000;

/// Where something in the trash came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    collection: String,
    /// The name, in base64: it need not be text.
    key: String,
    folder: bool,
}

fn place(collection: &str, key: Vec<u8>, folder: bool) -> Place {
    Place { collection: Some(collection.to_owned()), key: Some(key), slash: folder }
}

fn bucket(name: &str, served: &Served) -> Bucket {
    Bucket { name: name.to_owned(), served: served.clone() }
}

/// The collection of one deletion.
fn apart(stamp: &str) -> String {
    format!("{TRASH}/{stamp}")
}

/// The seconds of a stamp `TIME-ID`.
fn seconds_of(stamp: &str) -> Option<u64> {
    stamp.split_once('-')?.0.parse().ok()
}

/// Something in the trash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deleted {
    /// When, in seconds since 1970.
    pub seconds: u64,
    /// The collection it came from.
    pub collection: String,
    /// Its name there, without a folder's slash.
    pub key: Vec<u8>,
    /// Whether it is a folder with all below it.
    folder: bool,
    /// What the page knows it by: the record's name, or by an earlier server the tree's.
    name: Vec<u8>,
    /// The collection that it lies in, and its name in that.
    lies: (String, Vec<u8>),
    /// The collections that it may have come from.
    origins: Vec<String>,
}

impl Deleted {
    /// By a record.
    fn recorded(stamp: &[u8], record: &[u8]) -> Option<Self> {
        let stamp = std::str::from_utf8(stamp).ok()?;
        let Record { collection, key, folder } = serde_json::from_slice(record).ok()?;
        let key = URL_SAFE_NO_PAD.decode(key).ok()?;
        Some(Self {
            seconds: seconds_of(stamp)?,
            origins: vec![collection.clone()],
            collection,
            folder,
            name: stamp.as_bytes().to_vec(),
            lies: (apart(stamp), key.clone()),
            key,
        })
    }

    /// By the name that an earlier server gave the tree.
    fn named(name: &[u8]) -> Option<Self> {
        let mut parts = name.splitn(3, |b| *b == b'/');
        let (stamp, first, key) = (parts.next()?, parts.next()?, parts.next()?);
        let seconds = seconds_of(std::str::from_utf8(stamp).ok()?)?;
        let collection = std::str::from_utf8(first).ok()?.to_owned();
        let sound = !collection.is_empty() && !key.is_empty();
        let folder = key.ends_with(b"/");
        let key = key.strip_suffix(b"/").unwrap_or(key).to_vec();
        let lies = name.strip_suffix(b"/").unwrap_or(name).to_vec();
        let from = &name[stamp.len() + 1..];
        let ends = (1..from.len()).filter(|at| from[*at] == b'/');
        let origins = ends.filter_map(|at| Some(std::str::from_utf8(&from[..at]).ok()?.to_owned()));
        let origins = origins.collect();
        let (name, lies) = (name.to_vec(), (TRASH.to_owned(), lies));
        sound.then_some(Self { seconds, collection, key, folder, name, lies, origins })
    }

    /// By what the page knows it by, in the store that has it. Blocks.
    ///
    /// # Errors
    /// Invalid; NoObject.
    pub fn find(catalog: &Catalog, id: &str) -> Result<(Served, Self)> {
        let bad = || Why::Invalid.says(format!("{id:?} names nothing that was deleted"));
        let name = URL_SAFE_NO_PAD.decode(id).map_err(|_| bad())?;
        let old = name.contains(&b'/');
        let found = if old { Some(Self::named(&name).ok_or_else(bad)?) } else { None };
        for served in catalog.stores() {
            let Some(trash) = reader(served)? else { continue };
            let there = match &found {
                Some(old) => node::look(&mut trash.clone(), &old.place())?.is_there(),
                None => trash.get(&name)?.is_some(),
            };
            if there {
                let record = || trash.get(&name).map_err(Refusal::from);
                let found = match found {
                    Some(old) => Some(old),
                    None => Self::recorded(&name, &record()?.unwrap_or_default()),
                };
                return Ok((served.clone(), found.ok_or_else(bad)?));
            }
        }
        Err(Why::NoObject.says("it is not in the trash any more"))
    }

    /// What the page knows it by.
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.name)
    }

    /// Whether it is for who `may` do something with a collection: with each that it may have come
    /// from.
    pub fn is_for(&self, may: impl Fn(&str) -> bool) -> bool {
        self.origins.iter().all(|origin| may(origin))
    }

    /// Where it lies.
    fn place(&self) -> Place {
        place(&self.lies.0, self.lies.1.clone(), self.folder)
    }
}

/// The collection of the trash in a store's newest state; none if nothing was deleted yet.
fn reader(served: &Served) -> Result<Option<Reader>> {
    match served.store.read().and_then(|reader| reader.collection(TRASH)) {
        Ok(reader) => Ok(Some(reader)),
        Err(holdall::Error::NotFound(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// What is in the trash, the oldest first, a page at a time: up to [`PAGE`] deletions from
/// collections that `may` allows, and where the next page begins. Blocks. Cost: a record of each,
/// or its first and last name.
///
/// # Errors
/// Those of the engine.
pub fn list(
    served: &Served,
    after: Option<&[u8]>,
    may: impl Fn(&str) -> bool,
) -> Result<(Vec<Deleted>, Option<Vec<u8>>)> {
    let Some(reader) = reader(served)? else { return Ok((Vec::new(), None)) };
    let all = ListOptions {
        start_after: after,
        delimiter: Some(b"/"),
        limit: PAGE,
        ..Default::default()
    };
    let stamps = reader.list(&all)?;
    let mut found = Vec::new();
    for entry in &stamps.entries {
        let one = match entry {
            Listed::Object(entry) => {
                let record = reader.get(entry.oid)?;
                Deleted::recorded(&entry.name, &record.unwrap_or_default())
            }
            Listed::Prefix(stamp) => {
                let mut names = reader.names(stamp);
                let Some(first) = names.next().transpose()? else { continue };
                let last = names.next_back().transpose()?;
                Deleted::named(common(&first.name, last.as_ref().map(|last| &last.name[..])))
            }
        };
        found.extend(one.filter(|one| one.is_for(&may)));
    }
    Ok((found, stamps.next))
}

/// The folder that holds all names from the first to the last, with its slash; the name itself
/// if there is no other.
fn common<'a>(first: &'a [u8], last: Option<&[u8]>) -> &'a [u8] {
    let Some(last) = last else { return first };
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let slash = first[..same].iter().rposition(|b| *b == b'/');
    &first[..slash.map_or(0, |slash| slash + 1)]
}

/// Moves what lies at a place into the trash, in one transaction if it has room, and returns what
/// it is brought back by. Blocks.
///
/// # Errors
/// NoObject; those of the engine.
pub fn put(from: &Bucket, at: &Place, node: &Node) -> Result<String> {
    let key = at.key.as_deref().filter(|_| node.is_there());
    let key = key.ok_or_else(|| Why::NoObject.says("there is nothing to delete"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|e| Refusal::internal(&e))?;
    let stamp = format!("{:012}-{}", now.as_secs(), crate::http::digest::hex(&random));
    let (tree, served) = (Tree::new(from.clone(), at.clone(), node), &from.served);
    let (collection, folder) = (from.name.clone(), tree.folder);
    let record = Record { collection, key: URL_SAFE_NO_PAD.encode(key), folder };
    let record = serde_json::to_vec(&record).map_err(|e| Refusal::internal(&e))?;
    let to = bucket(&apart(&stamp), served);
    let begin = |tx: &mut WriteTx| {
        tx.collection(TRASH)?.put(&stamp, &record)?;
        tx.collection(&to.name)?.create_collection()
    };
    served.write(begin)?;
    let place = place(&to.name, key.to_vec(), folder);
    let moved = tree::carry(tree, Tree { bucket: to, place, folder }, true);
    if let Err(e) = moved {
        forget(served, &stamp)?;
        return Err(e);
    }
    Ok(URL_SAFE_NO_PAD.encode(&stamp))
}

/// Drops a deletion of which nothing is left in the trash. Blocks.
fn forget(served: &Served, stamp: &str) -> Result<()> {
    let name = apart(stamp);
    let drop_it = |tx: &mut WriteTx| {
        let mut objects = tx.collection(&name)?;
        if objects.has_collection()? && objects.has_names()? {
            return Ok(());
        }
        drop(objects);
        tx.drop_collection(&name)?;
        side::remove(tx, TRASH, stamp).map(drop)
    };
    served.write(drop_it)
}

/// Brings back what was deleted, to the collection it came from. Blocks.
///
/// # Errors
/// NoObject; Unmet if something lies in its place by now; Invalid if two
/// collections could be the one it came from.
pub fn restore(catalog: &Catalog, served: &Served, deleted: &Deleted) -> Result<()> {
    let mut origins = Vec::new();
    for origin in &deleted.origins {
        origins.extend(catalog.collection(origin)?);
    }
    if origins.len() > 1 {
        let text = "two collections could be its own; take it from .trash by the command line";
        return Err(Why::Invalid.says(text));
    }
    let same = |to: &Bucket| {
        to.name == deleted.collection && std::sync::Arc::ptr_eq(&to.served.path, &served.path)
    };
    let gone = || Why::NoBucket.says("its collection is not there any more");
    let to = origins.pop().filter(same).ok_or_else(gone)?;
    let (source, folder) = (bucket(&deleted.lies.0, served), deleted.folder);
    let target = place(&to.name, deleted.key.clone(), folder);
    let found = |bucket: &Bucket, at: &Place| {
        let mut reader = bucket.read()?;
        node::look(&mut reader, at).map_err(Refusal::from)
    };
    let node = found(&source, &deleted.place())?;
    if !node.is_there() || node.is_folder() != folder {
        return Err(Why::NoObject.says("it is not in the trash any more"));
    }
    let there = found(&to, &target)?;
    if there.is_there() && there.is_folder() == folder {
        return Err(Why::Unmet.says("something of its name is there by now"));
    }
    let from = Tree::new(source, deleted.place(), &node);
    let to = Tree { bucket: to, place: target, folder };
    tree::carry(from, to, false)?;
    match std::str::from_utf8(&deleted.name) {
        Ok(stamp) if deleted.lies.0 != TRASH => forget(served, stamp),
        _ => Ok(()),
    }
}

/// Removes what was deleted long ago. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn sweep(served: &Served, now: SystemTime) -> Result<()> {
    let old = now.checked_sub(Duration::from_secs(DAYS * 24 * 3600)).unwrap_or(UNIX_EPOCH);
    let old = old.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    loop {
        let Some(reader) = reader(served)? else { return Ok(()) };
        let listing = reader.list(&batch())?;
        // Names begin with the time: what follows is younger.
        let is_old = |name: &[u8]| {
            let stamp = String::from_utf8_lossy(name);
            seconds_of(&stamp).is_some_and(|seconds| seconds < old)
        };
        let names = node::names(listing).take_while(|name| is_old(name));
        let names: Vec<Vec<u8>> = names.collect();
        if names.is_empty() {
            return Ok(());
        }
        for stamp in names.iter().filter(|name| !name.contains(&b'/')) {
            let stamp = String::from_utf8_lossy(stamp);
            empty(served, &apart(&stamp))?;
            forget(served, &stamp)?;
        }
        let remove = |tx: &mut WriteTx| {
            names.iter().try_for_each(|name| side::remove(tx, TRASH, name).map(drop))
        };
        served.write(remove)?;
    }
}

fn batch() -> ListOptions<'static> {
    ListOptions { prefix: b"", start_after: None, delimiter: None, limit: BATCH }
}

/// Removes all objects of a collection.
fn empty(served: &Served, collection: &str) -> Result<()> {
    let some = |tx: &mut WriteTx| {
        let mut objects = tx.collection(collection)?;
        if !objects.has_collection()? {
            return Ok(0);
        }
        let names = node::names(objects.list(&batch())?);
        let names: Vec<Vec<u8>> = names.collect();
        drop(objects);
        names.iter().try_for_each(|name| side::remove(tx, collection, name).map(drop))?;
        Ok(names.len())
    };
    while served.write(some)? > 0 {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_by_an_earlier_server_may_be_of_several_collections() {
        let found = Deleted::named(b"000000000012-ab/docs/a/\xff").unwrap();
        assert_eq!((found.seconds, &*found.collection, &*found.key), (12, "docs", &b"a/\xff"[..]));
        assert_eq!(found.origins, ["docs", "docs/a"]);
        assert!(
            found.is_for(|name| name.starts_with("docs")) && !found.is_for(|name| name == "docs")
        );
        let folder = Deleted::named(b"000000000012-ab/docs//").unwrap();
        assert!(folder.folder && folder.key.is_empty() && !found.folder);
        for bad in ["", "x", "12/docs/a", "12-a/docs", "12-a//a", "12-a/docs/", "z-a/docs/a"] {
            assert_eq!(Deleted::named(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn a_record_says_of_one_collection_and_any_name() {
        let key = URL_SAFE_NO_PAD.encode(b"a/\xff");
        let record = format!("{{\"collection\":\"x/y\",\"key\":\"{key}\",\"folder\":false}}");
        let found = Deleted::recorded(b"000000000012-ab", record.as_bytes()).unwrap();
        assert_eq!((&*found.collection, &*found.key), ("x/y", &b"a/\xff"[..]));
        assert!(found.is_for(|name| name == "x/y") && !found.is_for(|name| name == "x"));
        assert_eq!(Deleted::recorded(b"000000000012-ab", b""), None);
        assert_eq!(Deleted::recorded(b"z", record.as_bytes()), None);
    }

    #[test]
    fn what_was_deleted_together_is_shown_as_the_folder_that_holds_it() {
        let common = |first: &'static str, last: Option<&'static str>| {
            String::from_utf8_lossy(common(first.as_bytes(), last.map(str::as_bytes))).into_owned()
        };
        assert_eq!(common("s/c/a/b", None), "s/c/a/b");
        assert_eq!(common("s/c/a/", None), "s/c/a/");
        assert_eq!(common("s/c/a/", Some("s/c/a/c")), "s/c/a/");
        assert_eq!(common("s/c/a/b1", Some("s/c/a/b2")), "s/c/a/");
        assert_eq!(common("s/c/a/x/1", Some("s/c/a/x/2")), "s/c/a/x/");
        assert_eq!(common("s/c/a/x/1", Some("s/c/a/y")), "s/c/a/");
        assert_eq!(common("s/c//x", Some("s/c//y")), "s/c//");
    }
}
