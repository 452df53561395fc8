//! What was deleted at the page, and can be brought back.
//!
//! Deleted trees lie in the collection [`TRASH`] under `TIME-ID/COLLECTION/NAME`, and are removed
//! after [`DAYS`] days. A delete over S3 or WebDAV is final. The page knows them by these names
//! in base64, since a name need not be text.

use crate::catalog::{Bucket, Served};
use crate::dav::{self, Node, Place, Tree};
use crate::error::from_store;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use holdall::{ListOptions, Listed};
use s3s::{S3Result, s3_error};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The collection of what was deleted; no bucket has such a name.
pub const TRASH: &str = ".trash";
/// Days after which it is removed.
pub const DAYS: u64 = 30;
/// Deletions shown at a time.
const PAGE: usize = 100;

fn place(collection: &str, key: Vec<u8>, folder: bool) -> Place {
    Place { collection: Some(collection.to_owned()), key: Some(key), slash: folder }
}

fn trash(served: &Served) -> Bucket {
    Bucket { name: TRASH.to_owned(), served: served.clone() }
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
    pub folder: bool,
    /// Its name in the trash, with a folder's slash.
    name: Vec<u8>,
}

impl Deleted {
    /// By its name in the trash.
    fn of(name: &[u8]) -> Option<Self> {
        let mut parts = name.splitn(3, |b| *b == b'/');
        let (stamp, collection, key) = (parts.next()?, parts.next()?, parts.next()?);
        let seconds = stamp.split(|b| *b == b'-').next().filter(|s| s.len() < stamp.len())?;
        let seconds = std::str::from_utf8(seconds).ok()?.parse().ok()?;
        let collection = std::str::from_utf8(collection).ok()?.to_owned();
        let sound = !collection.is_empty() && !key.is_empty();
        let folder = key.ends_with(b"/");
        let key = key.strip_suffix(b"/").unwrap_or(key).to_vec();
        sound.then(|| Self { seconds, collection, key, folder, name: name.to_vec() })
    }

    /// By what the page knows it by.
    ///
    /// # Errors
    /// InvalidRequest.
    pub fn parse(id: &str) -> S3Result<Self> {
        let name = URL_SAFE_NO_PAD.decode(id).ok();
        let found = name.and_then(|name| Self::of(&name));
        found.ok_or_else(|| s3_error!(InvalidRequest, "{id:?} names nothing that was deleted"))
    }

    /// What the page knows it by.
    pub fn id(&self) -> String {
        URL_SAFE_NO_PAD.encode(&self.name)
    }
}

/// What is in the trash, the oldest first, a page at a time: up to [`PAGE`] deletions from
/// collections that `may` allows, and where the next page begins. Blocks. Cost: the first and the
/// last name of each.
///
/// # Errors
/// Those of the engine.
pub fn list(
    served: &Served,
    after: Option<&[u8]>,
    may: impl Fn(&str) -> bool,
) -> S3Result<(Vec<Deleted>, Option<Vec<u8>>)> {
    let reader = match served.store.read().and_then(|reader| reader.collection(TRASH)) {
        Ok(reader) => reader,
        Err(holdall::Error::NotFound(_)) => return Ok((Vec::new(), None)),
        Err(e) => return Err(from_store(e)),
    };
    let all = ListOptions {
        start_after: after,
        delimiter: Some(b"/"),
        limit: PAGE,
        ..Default::default()
    };
    let stamps = reader.list(&all).map_err(from_store)?;
    let mut found = Vec::new();
    for entry in &stamps.entries {
        let Listed::Prefix(stamp) = entry else { continue };
        let mut names = reader.names(stamp);
        let Some(first) = names.next().transpose().map_err(from_store)? else { continue };
        let last = names.next_back().transpose().map_err(from_store)?;
        let name = common(&first.name, last.as_ref().map(|last| &last.name[..]));
        found.extend(Deleted::of(name).filter(|one| may(&one.collection)));
    }
    Ok((found, stamps.next))
}

/// The folder that holds all names from the first to the last, with its slash; the name itself
/// where there is no other.
fn common<'a>(first: &'a [u8], last: Option<&[u8]>) -> &'a [u8] {
    let Some(last) = last else { return first };
    let same = first.iter().zip(last).take_while(|(a, b)| a == b).count();
    let slash = first[..same].iter().rposition(|b| *b == b'/');
    &first[..slash.map_or(0, |slash| slash + 1)]
}

/// Moves what lies at a place into the trash, in one transaction where it has room, and tells the
/// name by which it is brought back. Blocks.
///
/// # Errors
/// NoSuchKey; those of the engine.
pub fn put(bucket: &Bucket, at: &Place, node: &Node) -> S3Result<String> {
    let key = at.key.as_deref().filter(|_| node.is_there());
    let key = key.ok_or_else(|| s3_error!(NoSuchKey, "there is nothing to delete"))?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut random = [0; 4];
    getrandom::fill(&mut random).map_err(|e| crate::error::internal(&e.to_string()))?;
    let stamp = format!("{:012}-{}", now.as_secs(), crate::digest::hex(&random));
    let name = [format!("{stamp}/{}/", bucket.name).as_bytes(), key].concat();
    let to = trash(&bucket.served);
    let make = bucket.served.store.write(|tx| tx.collection(TRASH)?.create_collection());
    match make {
        Ok(()) | Err(holdall::Error::Exists(_)) => {}
        Err(e) => return Err(from_store(e)),
    }
    let from = Tree::new(bucket.clone(), at.clone(), node);
    let slash: &[u8] = if from.folder { b"/" } else { b"" };
    let id = URL_SAFE_NO_PAD.encode([&name, slash].concat());
    let target = Tree { bucket: to, place: place(TRASH, name, from.folder), folder: from.folder };
    dav::carry_tree(from, target, true)?;
    Ok(id)
}

/// Brings back what was deleted, to the collection it came from. Blocks.
///
/// # Errors
/// NoSuchKey; PreconditionFailed where something lies in its place by now.
pub fn restore(bucket: &Bucket, deleted: Deleted) -> S3Result<()> {
    let Deleted { key, folder, name, .. } = deleted;
    let (source, target) = (trash(&bucket.served), place(&bucket.name, key, folder));
    let name = if folder { name[..name.len() - 1].to_vec() } else { name };
    let from = place(TRASH, name, folder);
    let found = |bucket: &Bucket, at: &Place| {
        let mut reader = bucket.read().map_err(from_store)?;
        dav::look(&mut reader, at).map_err(from_store)
    };
    let node = found(&source, &from)?;
    if !node.is_there() || node.is_folder() != folder {
        return Err(s3_error!(NoSuchKey, "it is not in the trash any more"));
    }
    let there = found(bucket, &target)?;
    if there.is_there() && there.is_folder() == folder {
        return Err(s3_error!(PreconditionFailed, "something of its name is there by now"));
    }
    let from = Tree::new(source, from, &node);
    let to = Tree { bucket: bucket.clone(), place: target, folder: from.folder };
    dav::carry_tree(from, to, false)
}

/// Removes what was deleted long ago. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn sweep(served: &Served, now: SystemTime) -> S3Result<()> {
    match served.store.read().and_then(|reader| reader.collection(TRASH)) {
        Ok(_) => {}
        Err(holdall::Error::NotFound(_)) => return Ok(()),
        Err(e) => return Err(from_store(e)),
    }
    let old = now.checked_sub(Duration::from_secs(DAYS * 24 * 3600)).unwrap_or(UNIX_EPOCH);
    let old = old.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    loop {
        let mut left = false;
        let options = ListOptions { prefix: b"", start_after: None, delimiter: None, limit: 1000 };
        let gone = |tx: &mut holdall::WriteTx| {
            left = false;
            let listing = tx.collection(TRASH)?.list(&options)?;
            for entry in listing.entries {
                let Listed::Object(entry) = entry else { continue };
                let name = String::from_utf8_lossy(&entry.name).into_owned();
                let stamp = name.split('-').next().and_then(|text| text.parse::<u64>().ok());
                // Names begin with the time: what follows is younger.
                if stamp.is_none_or(|stamp| stamp >= old) {
                    return Ok(());
                }
                crate::side::remove(tx, TRASH, &entry.name)?;
                left = true;
            }
            Ok(())
        };
        served.store.write(gone).map_err(from_store)?;
        if !left {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trash_name_says_where_it_came_from() {
        let found = Deleted::of(b"000000000012-ab/docs/a/\xff").unwrap();
        assert_eq!((found.seconds, &*found.collection, &*found.key), (12, "docs", &b"a/\xff"[..]));
        assert_eq!(Deleted::parse(&found.id()).unwrap(), found);
        let folder = Deleted::of(b"000000000012-ab/docs//").unwrap();
        assert!(folder.folder && folder.key.is_empty() && !found.folder);
        for bad in ["", "x", "12/docs/a", "12-a/docs", "12-a//a", "12-a/docs/", "z-a/docs/a"] {
            assert!(Deleted::parse(&URL_SAFE_NO_PAD.encode(bad)).is_err(), "{bad}");
        }
        assert!(Deleted::parse("?").is_err());
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
