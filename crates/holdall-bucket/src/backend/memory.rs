//! A bucket in memory: for tests, and for what others are compared with.

use super::{Backend, Features, Found, Got, Listed, Page, Put, Tag};
use async_trait::async_trait;
use bytes::Bytes;
use holdall::Result;
use std::collections::BTreeMap;
use std::ops::{Bound, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A bucket in memory.
#[derive(Debug, Default)]
pub struct Memory {
    keys: Mutex<BTreeMap<String, Found>>,
    next: std::sync::atomic::AtomicU64,
}

impl Memory {
    fn keys(&self) -> MutexGuard<'_, BTreeMap<String, Found>> {
        self.keys.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, bytes: Bytes) -> Found {
        let n = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let (len, date) = (bytes.len() as u64, since.as_millis() as u64);
        Found { bytes: bytes.into(), len, tag: Tag(format!("\"{n}\"")), date }
    }
}

/// The answer to a read of what a key holds.
pub(crate) fn answer(
    found: Option<&Found>,
    range: Option<Range<u64>>,
    unless: Option<&Tag>,
) -> Got {
    let Some(found) = found else { return Got::Absent };
    if Some(&found.tag) == unless {
        return Got::Same;
    }
    let range = range.unwrap_or(0..found.len);
    let (start, end) = (range.start.min(found.len), range.end.min(found.len));
    let bytes = found.bytes.whole().slice(start as usize..end.max(start) as usize);
    Got::Found(Found { bytes: bytes.into(), ..found.clone() })
}

/// A page of the listing of `keys`.
pub(crate) fn page(
    keys: &BTreeMap<String, Found>,
    prefix: &str,
    after: Option<&str>,
    folders: bool,
    limit: usize,
) -> Page {
    let mut page = Page::default();
    let from =
        after.filter(|after| *after >= prefix).map_or(Bound::Included(prefix), Bound::Excluded);
    let mut last: Option<String> = None;
    for (key, found) in keys.range::<str, _>((from, Bound::Unbounded)) {
        let Some(rest) = key.strip_prefix(prefix) else { break };
        let folder = rest.find('/').filter(|_| folders).map(|at| &key[..=prefix.len() + at]);
        // What is behind a folder that was shown belongs to it.
        if folder
            .is_some_and(|f| last.as_deref() == Some(f) || after.is_some_and(|a| a.starts_with(f)))
        {
            continue;
        }
        if page.keys.len() + page.folders.len() == limit {
            page.next = last;
            return page;
        }
        last = Some(folder.unwrap_or(key).to_owned());
        match folder {
            Some(folder) => page.folders.push(folder.to_owned()),
            None => page.keys.push(Listed {
                key: key.clone(),
                len: found.len,
                tag: found.tag.clone(),
                date: found.date,
            }),
        }
    }
    page
}

#[async_trait]
impl Backend for Memory {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        Ok(answer(self.keys().get(key), range, unless))
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        let found = self.found(bytes);
        self.keys().insert(key.to_owned(), found);
        Ok(())
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        let found = self.found(bytes);
        let mut keys = self.keys();
        if keys.get(key).map(|found| &found.tag) != expected {
            return Ok(Put::NotDone);
        }
        let tag = found.tag.clone();
        keys.insert(key.to_owned(), found);
        Ok(Put::Done(tag))
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.keys().remove(key);
        Ok(())
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        let mut keys = self.keys();
        let same = keys.get(key).is_some_and(|found| found.tag == *tag);
        if same {
            keys.remove(key);
        }
        Ok(same)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        Ok(page(&self.keys(), prefix, after, folders, limit))
    }

    fn features(&self) -> Features {
        Features { delete_if: true }
    }
}
