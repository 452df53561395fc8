//! What the site keeps beside its graph (Iyengar §4.2): two caches of fragments and the times at
//! which pages expire.
//!
//! Owns three tables. The source cache has every fragment and page as it was received, with the
//! names of its parts; the assembled cache has every one with parts, put together. An event
//! assembles anew what it reaches; other parts come ready from the assembled cache. Threads: none.

use super::tables::{LARGE, Tables};
use super::{Odg, decode, encode};
use crate::mutation::{Mutation, is};
use anyhow::{Context, Result};
use std::collections::HashSet;

/// The cache of sources.
pub const SOURCE: u32 = LARGE;
/// The cache of what was assembled.
pub const ASSEMBLED: u32 = SOURCE + 1;
/// When pages expire.
pub const EXPIRY: u32 = SOURCE + 2;
/// Seconds for which a page is good.
pub const LIFETIME: u64 = 600;

/// The graph with its caches.
#[derive(Debug)]
pub struct Site(Odg);

/// Names of parts, and a text of its own.
type Source = (Vec<Vec<u8>>, Vec<u8>);

#[expect(clippy::missing_errors_doc, reason = "all of them are the tables'")]
impl Site {
    /// An empty site in empty tables.
    pub fn create(mut tables: Tables) -> Result<Self> {
        for table in [SOURCE, ASSEMBLED, EXPIRY] {
            tables.add(table)?;
        }
        Ok(Self(Odg::create(tables)?))
    }

    /// The site in `tables`.
    pub fn open(mut tables: Tables) -> Result<Self> {
        for table in [SOURCE, ASSEMBLED, EXPIRY] {
            tables.open(table)?;
        }
        Ok(Self(Odg::open(tables)?))
    }

    /// Its graph.
    pub fn graph(&mut self) -> &mut Odg {
        &mut self.0
    }

    /// Keeps a fragment or page as it was received. Its parts are assembled before its text.
    pub fn receive(&mut self, name: &str, parts: &[Vec<u8>], text: &[u8]) -> Result<()> {
        let list = encode(parts)?;
        let len = u32::try_from(list.len()).context("too many parts")?;
        let value = [&len.to_le_bytes(), &list[..], text].concat();
        self.0.tables().put(SOURCE, name.as_bytes(), &value)
    }

    fn source(&mut self, name: &[u8]) -> Result<Source> {
        let value = self.0.tables().get(SOURCE, name)?.context("no such fragment")?;
        let (len, rest) = value.split_first_chunk::<4>().context("a damaged source")?;
        let (list, text) =
            rest.split_at_checked(u32::from_le_bytes(*len) as usize).context("a damaged source")?;
        Ok((decode(list.get(1..).unwrap_or_default())?, text.to_vec()))
    }

    /// Keeps the new texts of `changed`, which were received at `now`, and assembles what
    /// depends on them; gives the pages among it.
    pub fn publish(&mut self, changed: &[(&str, &[u8])], now: u64) -> Result<Vec<String>> {
        for (name, text) in changed {
            let (parts, _) = self.source(name.as_bytes())?;
            self.receive(name, &parts, text)?;
        }
        let names: Vec<&str> = changed.iter().map(|(name, _)| *name).collect();
        let reached = self.0.reached(&names)?;
        let mut stale: HashSet<Vec<u8>> = reached.into_iter().collect();
        let pages = self.0.publish(&names)?;
        for page in &pages {
            self.assembled(page.as_bytes(), &mut stale)?;
            let end = (now + LIFETIME).to_le_bytes();
            self.0.tables().put(EXPIRY, page.as_bytes(), &end)?;
        }
        // Composite fragments that no page has yet.
        while let Some(name) = stale.iter().next().cloned() {
            self.assembled(&name, &mut stale)?;
        }
        Ok(pages)
    }

    /// What `name` looks like with its parts; those that are not stale come from the cache.
    fn assembled(&mut self, name: &[u8], stale: &mut HashSet<Vec<u8>>) -> Result<Vec<u8>> {
        let fresh = !stale.remove(name) || is(Mutation::SiteStale);
        if fresh && let Some(ready) = self.0.tables().get(ASSEMBLED, name)? {
            return Ok(ready);
        }
        let (parts, text) = self.source(name)?;
        if parts.is_empty() {
            return Ok(text);
        }
        let mut whole = Vec::new();
        for part in parts {
            whole.extend(self.assembled(&part, stale)?);
        }
        whole.extend(text);
        self.0.tables().put(ASSEMBLED, name, &whole)?;
        Ok(whole)
    }

    /// A page as it is served.
    pub fn page(&mut self, name: &str) -> Result<Vec<u8>> {
        self.assembled(name.as_bytes(), &mut HashSet::new())
    }

    /// The pages whose time is over at `now`. Looks through the whole table.
    pub fn expired(&mut self, now: u64) -> Result<Vec<String>> {
        let mut over = Vec::new();
        for name in self.0.tables().keys(EXPIRY)? {
            let end = self.0.tables().get(EXPIRY, &name)?.context("no such page")?;
            let end = u64::from_le_bytes(end[..].try_into().context("a damaged time")?);
            if end <= now {
                over.push(String::from_utf8(name).context("a name that is no text")?);
            }
        }
        Ok(over)
    }
}
