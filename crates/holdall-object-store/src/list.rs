//! Objects listed.

use crate::attributes::meta;
use crate::error;
use crate::store::HoldallObjectStore;
use async_trait::async_trait;
use futures::stream::{self, BoxStream, StreamExt as _, TryStreamExt as _};
use holdall::{ListOptions, Listed};
use object_store::list::{PaginatedListOptions, PaginatedListResult, PaginatedListStore};
use object_store::path::Path;
use object_store::{ListResult, ObjectMeta, Result};

/// Names read at a time.
pub const PAGE: usize = 1000;

/// What all names below a path begin with.
pub fn folder(prefix: Option<&Path>) -> String {
    match prefix {
        Some(path) if !path.is_root() => format!("{path}/"),
        _ => String::new(),
    }
}

/// The path of a name; `None` for one that has no form as a path, and for a folder's marker.
pub fn path(name: &[u8]) -> Option<Path> {
    let text = std::str::from_utf8(name).ok().filter(|text| !text.ends_with('/'))?;
    Path::parse(text).ok().filter(|path| path.as_ref() == text)
}

/// A page of a listing, and the name to go on behind.
type Page = (ListResult, Option<Vec<u8>>);

/// Reads a page. Blocks. Cost: a step and a record for each entry.
fn page(own: &HoldallObjectStore, options: &ListOptions<'_>) -> Result<Page> {
    let read = || {
        let (mut objects, mut folders) = (Vec::new(), Vec::new());
        let Some(reader) = own.reader()? else { return Ok((objects, folders, None)) };
        let listing = reader.list(options)?;
        for entry in listing.entries {
            match entry {
                Listed::Prefix(name) => {
                    folders.extend(path(name.strip_suffix(b"/").unwrap_or(&name)));
                }
                Listed::Object(entry) => {
                    let Some(path) = path(&entry.name) else { continue };
                    let found = reader.metadata(entry.oid)?;
                    let modified = found.last_modified();
                    objects.push(meta(path, found.size, found.version, modified));
                }
            }
        }
        Ok((objects, folders, listing.next))
    };
    let (objects, common_prefixes, next) = read().map_err(|e| error::convert("", e))?;
    Ok((ListResult { objects, common_prefixes, extensions: Default::default() }, next))
}

/// All objects below a path, behind `offset` if one is given, a page at a time.
pub fn stream(
    own: HoldallObjectStore,
    prefix: Option<&Path>,
    offset: Option<&Path>,
) -> BoxStream<'static, Result<ObjectMeta>> {
    let prefix = folder(prefix);
    let after = offset.map(|offset| offset.as_ref().as_bytes().to_vec());
    let pages = stream::try_unfold(Some(after), move |after| {
        let (own, prefix) = (own.clone(), prefix.clone());
        async move {
            let Some(after) = after else { return Ok::<_, object_store::Error>(None) };
            let read = own.run(move |own| {
                let prefix = prefix.as_bytes();
                let start_after = after.as_deref();
                page(own, &ListOptions { prefix, start_after, delimiter: None, limit: PAGE })
            });
            let (found, next) = read.await?;
            let objects = stream::iter(found.objects.into_iter().map(Ok));
            Ok(Some((objects, next.map(Some))))
        }
    });
    pages.try_flatten().boxed()
}

/// The objects and folders that lie in a folder. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn delimited(own: &HoldallObjectStore, prefix: &str) -> Result<ListResult> {
    let mut all = ListResult {
        objects: Vec::new(),
        common_prefixes: Vec::new(),
        extensions: Default::default(),
    };
    let mut after: Option<Vec<u8>> = None;
    loop {
        let (prefix, start_after) = (prefix.as_bytes(), after.as_deref());
        let delimiter = Some(&b"/"[..]);
        let (found, next) =
            page(own, &ListOptions { prefix, start_after, delimiter, limit: PAGE })?;
        all.objects.extend(found.objects);
        all.common_prefixes.extend(found.common_prefixes);
        if next.is_none() {
            return Ok(all);
        }
        after = next;
    }
}

#[async_trait]
impl PaginatedListStore for HoldallObjectStore {
    /// A page token is the name that the next page goes on behind.
    async fn list_paginated(
        &self,
        prefix: Option<&str>,
        opts: PaginatedListOptions,
    ) -> Result<PaginatedListResult> {
        let prefix = prefix.unwrap_or_default().to_owned();
        let (result, next) = self
            .run(move |own| {
                let start_after = opts.page_token.or(opts.offset);
                let options = ListOptions {
                    prefix: prefix.as_bytes(),
                    start_after: start_after.as_deref().map(str::as_bytes),
                    delimiter: opts.delimiter.as_deref().map(str::as_bytes),
                    limit: opts.max_keys.unwrap_or(PAGE),
                };
                page(own, &options)
            })
            .await?;
        let page_token = next.map(String::from_utf8).transpose();
        let page_token = page_token.map_err(|_| error::message("a name is not UTF-8"))?;
        Ok(PaginatedListResult { result, page_token })
    }
}
