//! Listing, a page at a time.

use crate::error::{self, blocking};
use crate::meta;
use crate::service::HoldallService;
use holdall::{ListOptions, Listed};
use opendal_core::Result;
use opendal_core::raw::{OpList, build_rel_path, oio};
use std::collections::VecDeque;

/// Names read at a time if the caller does not say.
const PAGE: usize = 1000;

/// Pages of the names that begin with a path.
pub struct Pages {
    own: HoldallService,
    prefix: String,
    after: Option<String>,
    recursive: bool,
    limit: usize,
}

impl Pages {
    /// From the first name on, or from behind the one that was asked for.
    pub fn new(own: HoldallService, path: &str, args: &OpList) -> Self {
        let (prefix, after) = (own.name(path), args.start_after().map(|after| own.name(after)));
        let limit = args.limit().unwrap_or(PAGE).clamp(1, PAGE);
        Self { own, prefix, after, recursive: args.recursive(), limit }
    }
}

/// A page's entries, and the token of the next page.
type Page = (VecDeque<oio::Entry>, Option<String>);

fn page(
    own: &HoldallService,
    prefix: &str,
    after: Option<&[u8]>,
    (recursive, limit): (bool, usize),
) -> holdall::Result<Page> {
    let Some(reader) = own.reader()? else { return Ok(Page::default()) };
    let delimiter = (!recursive).then_some(&b"/"[..]);
    let options = ListOptions { prefix: prefix.as_bytes(), start_after: after, delimiter, limit };
    let listing = reader.list(&options)?;
    let mut entries = VecDeque::with_capacity(listing.entries.len());
    for entry in &listing.entries {
        // A name that is no text has no path here.
        let name = match entry {
            Listed::Object(entry) => &entry.name,
            Listed::Prefix(prefix) => prefix,
        };
        let Ok(name) = std::str::from_utf8(name) else { continue };
        let told = match entry {
            Listed::Object(entry) if !name.ends_with('/') => {
                meta::file(&reader.metadata(entry.oid)?)
            }
            _ => meta::folder(),
        };
        entries.push_back(oio::Entry::new(&build_rel_path(&own.root, name), told));
    }
    let next = listing.next.map(|next| next.iter().map(|b| format!("{b:02x}")).collect());
    Ok((entries, next))
}

/// The name that a token was made of.
fn name_of(token: &str) -> Option<Vec<u8>> {
    let pairs = token.as_bytes().chunks(2).map(std::str::from_utf8);
    pairs.map(|pair| u8::from_str_radix(pair.ok()?, 16).ok()).collect()
}

impl oio::PageList for Pages {
    async fn next_page(&self, ctx: &mut oio::PageContext) -> Result<()> {
        let (own, prefix, how) =
            (self.own.clone(), self.prefix.clone(), (self.recursive, self.limit));
        // A name need not be text, a token must be.
        let after = match name_of(&ctx.token).filter(|name| !name.is_empty()) {
            Some(name) => Some(name),
            None => self.after.clone().map(String::into_bytes),
        };
        let found = blocking(move || {
            page(&own, &prefix, after.as_deref(), how).map_err(|e| error::convert(&prefix, e))
        });
        let (entries, next) = found.await?;
        ctx.entries.extend(entries);
        ctx.done = next.is_none();
        ctx.token = next.unwrap_or_default();
        Ok(())
    }
}
