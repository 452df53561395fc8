//! Objects of a bucket listed.
//!
//! A bucket lists names in the order of their keys, which is not that of names: what comes behind an
//! offset is found by looking at all.

use super::read::meta_of;
use super::{BucketObjectStore, failed};
use crate::error;
use crate::list::{PAGE, folder, path};
use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use holdall_bucket::BucketStore;
use holdall_bucket::store::{ListNames, ObjectInfo};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, Result};

/// Reads a page: those behind `offset`, if one is given. Cost: a request for each thousand names, and
/// one for each folder and each object that is not at hand.
async fn page(
    store: &BucketStore,
    what: &ListNames,
    offset: Option<&str>,
) -> Result<(ListResult, Option<String>)> {
    let behind = |name: &str| offset.is_none_or(|offset| name > offset);
    let wanted = |name: &str| behind(name) && path(name.as_bytes()).is_some();
    let listed = store.list_infos(what, wanted).await.map_err(failed(&what.prefix))?;
    let object = |info: ObjectInfo| Some(meta_of(path(info.name.as_bytes())?, &info));
    let objects = listed.objects.into_iter().filter_map(object).collect();
    let folder = |name: &String| path(name.strip_suffix('/').unwrap_or(name).as_bytes());
    let folders = listed.folders.iter().filter(|name| behind(name));
    let common_prefixes = folders.filter_map(folder).collect();
    Ok((ListResult { objects, common_prefixes, extensions: Default::default() }, listed.next))
}

/// All objects below a path, behind `offset` if one is given, a page at a time.
pub fn stream(
    store: &BucketStore,
    prefix: Option<&Path>,
    offset: Option<&Path>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let store = store.clone();
    let first = ListNames { prefix: folder(prefix), ..ListNames::default() };
    let offset = offset.map(Path::to_string);
    let pages = stream::try_unfold(Some(first), move |what| {
        let (store, offset) = (store.clone(), offset.clone());
        async move {
            let Some(what) = what else { return Ok::<_, object_store::Error>(None) };
            let (found, next) = page(&store, &what, offset.as_deref()).await?;
            let next = next.map(|after| ListNames { after: Some(after), ..what });
            Ok(Some((stream::iter(found.objects.into_iter().map(Ok)), next)))
        }
    });
    pages.try_flatten().boxed()
}

/// The objects and folders that lie in a folder.
///
/// # Errors
/// Those of the store.
pub async fn delimited(store: &BucketStore, prefix: Option<&Path>) -> Result<ListResult> {
    let mut what = ListNames { prefix: folder(prefix), folders: true, ..ListNames::default() };
    let (mut all, mut next) = page(store, &what, None).await?;
    while next.is_some() {
        what.after = next;
        let (more, after) = page(store, &what, None).await?;
        all.objects.extend(more.objects);
        all.common_prefixes.extend(more.common_prefixes);
        next = after;
    }
    Ok(all)
}

#[async_trait]
impl PaginatedListStore for BucketObjectStore {
    /// A page token is where the bucket goes on. A page may have less than was asked for and not be
    /// the last.
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        if opts.delimiter.as_deref().is_some_and(|delimiter| delimiter != "/") {
            return Err(error::unsupported("folders end with a slash, and with nothing else"));
        }
        let what = ListNames {
            prefix: prefix.unwrap_or_default().to_owned(),
            folders: opts.delimiter.is_some(),
            after: opts.page_token,
            limit: Some(opts.max_keys.unwrap_or(PAGE)),
            ..ListNames::default()
        };
        let (result, page_token) = page(&self.store, &what, opts.offset.as_deref()).await?;
        Ok(PaginatedListResult { result, page_token })
    }
}
