//! Listing names and collections.

use super::current::Target;
use super::inner::Inner;
use super::read::ObjectInfo;
use super::together::together;
use crate::backend::{Listed, Tag};
use crate::format::{Class, keys};
use holdall::{Error, Result};
use std::sync::Arc;

/// Keys that are asked for at once: what servers give.
const PAGE: usize = 1000;
/// Keys of a folder that are looked at first for an object.
const FIRST: usize = 16;
/// Requests that are under way together for what a listing does not tell.
const READS: usize = 64;

/// A page of names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Names {
    /// The names, in the order of their keys.
    pub names: Vec<String>,
    /// What names begin with that go on behind a `/`, each once, with that `/`.
    pub folders: Vec<String>,
    /// Where to go on; `None` at the end.
    pub next: Option<String>,
}

/// A page of what is known of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Infos {
    /// The objects, in the order of their names' keys.
    pub objects: Vec<ObjectInfo>,
    /// As [`Names::folders`].
    pub folders: Vec<String>,
    /// As [`Names::next`].
    pub next: Option<String>,
}

/// A page, with the tags of the records.
#[derive(Default)]
struct Shown {
    names: Vec<(String, Tag)>,
    folders: Vec<String>,
    next: Option<String>,
}

/// What to list.
#[derive(Debug, Clone, Default)]
pub struct ListNames {
    /// What names begin with.
    pub prefix: String,
    /// Whether names that go on behind the prefix with a `/` are shown as folders.
    pub folders: bool,
    /// Where to go on, from [`Names::next`].
    pub after: Option<String>,
    /// Most names and folders of a page; none is for as many as a server gives.
    pub limit: Option<usize>,
    /// Whether folders are shown too that hold nothing but traces of objects which were removed. Saves
    /// a request for each folder.
    pub ghosts: bool,
}

impl Inner {
    /// A page of names. Cost: a request for each thousand keys, those of objects that are gone too; one
    /// for each folder, and one for each thousand keys there that are of gone objects, until one is not.
    pub(crate) async fn list(
        self: &Arc<Self>,
        collection: &str,
        what: &ListNames,
    ) -> Result<Names> {
        let Shown { names, folders, next } = self.shown(collection, what).await?;
        Ok(Names { names: names.into_iter().map(|(name, _)| name).collect(), folders, next })
    }

    /// A page of objects, with what is known of those that are `wanted`. Cost: as [`Inner::list`], and as
    /// [`Inner::infos`] for those of which another version is at hand, or none.
    pub(crate) async fn list_infos(
        self: &Arc<Self>,
        collection: &str,
        what: &ListNames,
        wanted: impl Fn(&str) -> bool,
    ) -> Result<Infos> {
        let Shown { names, folders, next } = self.shown(collection, what).await?;
        let names = names.into_iter().filter(|(name, _)| wanted(name));
        let names = names.map(|(name, tag)| (name, Some(tag))).collect();
        Ok(Infos { objects: self.headers(collection, names).await?, folders, next })
    }

    async fn shown(self: &Arc<Self>, collection: &str, what: &ListNames) -> Result<Shown> {
        let limit = what.limit.unwrap_or(PAGE);
        let mut names = Shown::default();
        let mut after = what.after.clone();
        if limit == 0 {
            return Ok(names);
        }
        let prefix = keys::prefix(collection, &what.prefix);
        loop {
            let lacks = limit - names.names.len() - names.folders.len();
            let ask = lacks.min(PAGE);
            let page = self.backend.list(&prefix, after.as_deref(), what.folders, ask).await?;
            for listed in page.keys {
                if let Some(name) = object_name(&listed)? {
                    names.names.push((name, listed.tag));
                }
            }
            let folders = match what.ghosts {
                true => page.folders,
                false => self.with_objects(page.folders).await?,
            };
            for folder in folders {
                let parsed = keys::parse_record(&folder);
                let (_, name) = parsed.ok_or_else(|| strange(&folder))?;
                names.folders.push(name);
            }
            after = page.next;
            if after.is_none() || names.names.len() + names.folders.len() >= limit {
                names.next = after;
                return Ok(names);
            }
        }
    }

    /// Those of `folders`, by key, in which an object is: others hold records of objects that are gone.
    async fn with_objects(self: &Arc<Self>, folders: Vec<String>) -> Result<Vec<String>> {
        let look = |folder: String| async move {
            let (mut after, mut ask) = (None, FIRST);
            loop {
                let page = self.backend.list(&folder, after.as_deref(), false, ask).await?;
                ask = PAGE;
                for listed in page.keys {
                    if object_name(&listed)?.is_some() {
                        return Ok(Some(folder));
                    }
                }
                after = page.next;
                if after.is_none() {
                    return Ok(None);
                }
            }
        };
        Ok(together(folders, READS, look).await?.into_iter().flatten().collect())
    }

    /// What is known of objects, in the order of `names`; of those removed meanwhile nothing. Cost: a
    /// request for each, of a kilobyte.
    pub(crate) async fn infos(
        self: &Arc<Self>,
        collection: &str,
        names: &[String],
    ) -> Result<Vec<ObjectInfo>> {
        let names = names.iter().map(|name| (name.clone(), None)).collect();
        self.headers(collection, names).await
    }

    /// What is known of objects, by the tag that a listing showed where it did.
    async fn headers(
        self: &Arc<Self>,
        collection: &str,
        names: Vec<(String, Option<Tag>)>,
    ) -> Result<Vec<ObjectInfo>> {
        let target =
            |(name, tag): (String, Option<Tag>)| Ok((Target::new(collection, &name)?, tag));
        let targets: Result<Vec<_>> = names.into_iter().map(target).collect();
        let read = |(target, tag): (Target, Option<Tag>)| async move {
            self.read_header(&target, tag.as_ref()).await
        };
        let read = together(targets?, READS, read).await?;
        let found = read.into_iter().flatten().filter(|header| !header.gone);
        Ok(found.map(ObjectInfo::from).collect())
    }

    /// The collections that have records.
    pub(crate) async fn collections(&self) -> Result<Vec<String>> {
        let (mut all, mut after) = (Vec::new(), None);
        loop {
            let page = self.backend.list(keys::RECORDS, after.as_deref(), true, PAGE).await?;
            for folder in &page.folders {
                all.push(keys::parse_collection(folder).ok_or_else(|| strange(folder))?);
            }
            after = page.next;
            if after.is_none() {
                return Ok(all);
            }
        }
    }
}

/// The name of an object that a listing shows; `None` if it is gone.
fn object_name(listed: &Listed) -> Result<Option<String>> {
    let (_, name) = keys::parse_record(&listed.key).ok_or_else(|| strange(&listed.key))?;
    let class = Class::of_len(listed.len);
    let class = class.ok_or_else(|| Error::corrupt(&*listed.key, "is of no class of records"))?;
    Ok(class.is_object().then_some(name))
}

fn strange(key: &str) -> Error {
    Error::corrupt(key, "is no record's key; something else uses the prefix of the store")
}
