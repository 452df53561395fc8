//! What a probe asks of listings: that they show all that was written and nothing that was deleted, in
//! order, in pages of any length.

use super::{LEAST_DATE, Run, fails, require};
use crate::backend::{Backend, Listed};
use futures::future::join_all;
use holdall::Result;

/// Most that two statements of one date differ: some say seconds only.
const DATES_DIFFER: u64 = 2_000;
/// Most pages of one listing here.
const MOST_PAGES: usize = 100;

impl Run<'_> {
    /// All of a listing, in pages of at most `limit`: keys, and folders.
    pub(super) async fn listed(
        &self,
        prefix: &str,
        folders: bool,
        limit: usize,
    ) -> Result<(Vec<Listed>, Vec<String>)> {
        let (mut keys, mut found, mut after) = (Vec::new(), Vec::new(), None);
        for _ in 0..MOST_PAGES {
            let page = self.backend.list(prefix, after.as_deref(), folders, limit).await?;
            let many = page.keys.len() + page.folders.len();
            require(many <= limit, "a page of a listing is longer than was asked for")?;
            keys.extend(page.keys);
            found.extend(page.folders);
            after = page.next;
            if after.is_none() {
                return Ok((keys, found));
            }
        }
        Err(fails("a listing does not end"))
    }

    /// What a listing says of keys, after each of the changes that a key can have.
    pub(super) async fn changes_listed(&self) -> Result<Option<String>> {
        let folder = self.key("n/changes/");
        let keys: Vec<String> = (0..6).map(|n| format!("{folder}{n}!")).collect();
        let mut tags = Vec::new();
        for (n, key) in keys.iter().enumerate() {
            let tag = self.made(key, &self.fresh(&"x".repeat(n))).await?;
            let (listed, _) = self.listed(&folder, false, 1000).await?;
            require(listed.len() == n + 1, "a listing lacks what was just written")?;
            tags.push(tag);
        }
        for (key, tag) in keys.iter().zip(&mut tags).skip(3) {
            let put = self.put(key, Some(tag), &self.fresh("a longer text")).await?;
            *tag = put.ok_or_else(|| fails("a key cannot be replaced by its tag (If-Match)"))?;
            let (listed, _) = self.listed(&folder, false, 1000).await?;
            let shown = listed.iter().any(|listed| listed.key == *key && listed.tag == *tag);
            require(shown, "a listing lacks a replacement, or gives another tag than the write")?;
        }
        let (listed, _) = self.listed(&folder, false, 1000).await?;
        let found = join_all(keys.iter().map(|key| self.get(key))).await;
        for ((listed, key), found) in listed.iter().zip(&keys).zip(found) {
            let found = found?.ok_or_else(|| fails("nothing is read of a key that is listed"))?;
            let same = listed.key == *key && listed.len == found.len && listed.tag == found.tag;
            require(same, "a listing gives other lengths or tags than reads")?;
            let dates = listed.date > LEAST_DATE && listed.date.abs_diff(found.date) < DATES_DIFFER;
            require(dates, "a listing gives no dates, or others than reads")?;
        }
        for (n, key) in keys.iter().enumerate() {
            self.backend.delete(key).await?;
            let (listed, _) = self.listed(&folder, false, 1000).await?;
            let same = listed.iter().map(|listed| &listed.key).eq(&keys[n + 1..]);
            require(same, "a listing shows what was just deleted, or lacks something else")?;
        }
        Ok(None)
    }

    /// Order, pages, folders, prefixes that end anywhere.
    pub(super) async fn order_listed(&self) -> Result<Option<String>> {
        let names = [
            "a!",
            "a!x/b",
            "a%/1!",
            "a/%_/b!",
            "a/b!",
            "a/c/d!",
            "a/x!",
            "aa!",
            "b!",
            "c/d!",
            "c/e/f!",
            "\u{e9}/x!",
            "\u{e9}!",
        ];
        let mut keys: Vec<String> =
            names.iter().map(|name| self.key(&format!("n/order/{name}"))).collect();
        keys.sort();
        for key in keys.iter().rev() {
            self.made(key, &self.fresh("order")).await?;
        }
        let folder = self.key("n/order/");
        for limit in [1, 2, 3, 5, 1000] {
            let (all, none) = self.listed(&folder, false, limit).await?;
            let same = all.iter().map(|listed| &listed.key).eq(&keys) && none.is_empty();
            require(same, format!("a listing in pages of {limit} is not all in order"))?;
            let (all, folders) = self.listed(&folder, true, limit).await?;
            let expected = beside_folders(&keys, &folder);
            let same = all.iter().map(|listed| &listed.key).eq(&expected.0);
            require(same, format!("a listing beside folders, in pages of {limit}, is not right"))?;
            let same = folders == expected.1;
            require(
                same,
                format!("folders, in pages of {limit}, are not all in order, each once"),
            )?;
        }
        for part in ["a", "a!", "a!x", "a/", "a%", "c/e", "\u{e9}", "n"] {
            let prefix = format!("{folder}{part}");
            let (listed, _) = self.listed(&prefix, false, 1000).await?;
            let expected = keys.iter().filter(|key| key.starts_with(&prefix));
            let same = listed.iter().map(|listed| &listed.key).eq(expected);
            require(same, format!("a listing by the prefix {part} is not right"))?;
        }
        // Behind a key, and behind what is none.
        for key in &keys {
            for after in [key, key.trim_end_matches('!'), &format!("{key}a")] {
                let page = self.backend.list(&folder, Some(after), false, 1000).await?;
                let behind = keys.iter().filter(|other| other.as_str() > after);
                let expected: Vec<&String> = behind.collect();
                // A page may be shorter than it might.
                let shown: Vec<&String> = page.keys.iter().map(|listed| &listed.key).collect();
                let ends = page.next.is_none() || shown.is_empty();
                let same = expected.starts_with(&shown) && (!ends || shown.len() == expected.len());
                require(same, "a listing behind a key is not right (start-after)")?;
            }
        }
        Ok(None)
    }
}

/// Which of `keys` lie in `folder` itself, and what folders are there.
fn beside_folders(keys: &[String], folder: &str) -> (Vec<String>, Vec<String>) {
    let (mut beside, mut folders) = (Vec::new(), Vec::new());
    for key in keys {
        let rest = key.strip_prefix(folder).unwrap_or(key);
        match rest.split_once('/') {
            None => beside.push(key.clone()),
            Some((first, _)) => folders.push(format!("{folder}{first}/")),
        }
    }
    folders.dedup();
    (beside, folders)
}
