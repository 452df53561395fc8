//! The probe against servers that lie: each lie is found, and told in words.

use super::*;
use crate::backend::{Faults, Faulty, Features, Listed, Memory, Page};
use async_trait::async_trait;
use std::ops::Range;
use std::sync::Mutex;

/// What a server does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lie {
    /// Nothing.
    None,
    CreateIsPut,
    CreateLooksFirst,
    MatchIgnored,
    MatchLooksFirst,
    MatchCreates,
    RefusedIsDone,
    RefusedIsDoneLater,
    DoneIsNot,
    TagsAreConstant,
    TagsOfListings,
    ReadsAreStale,
    ReadsIgnoreTags,
    RangesIgnored,
    RangesHaveNoLength,
    NoDates,
    DeleteDoesNothing,
    CaseFolded,
    EscapesDecoded,
    FoldersHideKeys,
    LettersComposed,
    ListingsAreLate,
    ListingsShowDeleted,
    ListingsUnordered,
    ListingsBySegment,
    ListingsBeginAnew,
    ListingsIncludeStart,
    ListingsEndEarly,
    FoldersTwice,
    DeleteIgnoresTag,
    DeleteLooksFirst,
}

/// A bucket in memory that lies.
#[derive(Debug)]
struct Liar {
    inner: Memory,
    lie: Lie,
    /// What a stale answer shows: the last page or content.
    old: Mutex<(Option<Page>, Option<Found>)>,
}

impl Liar {
    fn key(&self, key: &str) -> String {
        let (folder, name) = key.rsplit_once('/').unwrap_or(("", key));
        match self.lie {
            Lie::CaseFolded => format!("{folder}/{}", name.to_lowercase()),
            Lie::EscapesDecoded => key.replace("%41", "A").replace("%252F", "%2F"),
            Lie::LettersComposed => key.replace("e\u{301}", "\u{e9}"),
            _ => key.to_owned(),
        }
    }

    async fn hidden(&self, key: &str) -> bool {
        let below = format!("{key}/");
        let longer = format!("{key}x/");
        for prefix in [below, longer] {
            let page = self.inner.list(&prefix, None, false, 1).await.unwrap();
            if !page.keys.is_empty() {
                return true;
            }
        }
        false
    }

    fn list_wrongly(&self, page: &mut Page, after: Option<&str>, prefix: &str) {
        let old = |listed: &Listed| Listed { tag: Tag("0".into()), ..listed.clone() };
        match self.lie {
            Lie::TagsOfListings => page.keys = page.keys.iter().map(old).collect(),
            Lie::NoDates => page.keys.iter_mut().for_each(|listed| listed.date = 0),
            Lie::ListingsUnordered => page.keys.reverse(),
            Lie::ListingsBySegment if !prefix.ends_with('/') => page.keys.clear(),
            Lie::ListingsEndEarly => page.next = None,
            Lie::FoldersTwice => {
                // As servers do that compare where to start with what is in a folder.
                if let Some(folder) = after.filter(|after| after.ends_with('/')) {
                    page.folders.insert(0, folder.to_owned());
                }
            }
            _ => {}
        }
    }
}

#[async_trait]
impl Backend for Liar {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        let key = self.key(key);
        if self.lie == Lie::FoldersHideKeys && self.hidden(&key).await {
            return Ok(Got::Absent);
        }
        let unless = unless.filter(|_| self.lie != Lie::ReadsIgnoreTags);
        let asked = range.clone().filter(|_| self.lie != Lie::RangesIgnored);
        let mut got = self.inner.get(&key, asked, unless).await?;
        if let Got::Found(found) = &mut got {
            match self.lie {
                Lie::RangesHaveNoLength if range.is_some() => found.len = found.bytes.len() as u64,
                Lie::NoDates => found.date = 0,
                Lie::TagsAreConstant => found.tag = Tag("1".into()),
                Lie::ReadsAreStale => {
                    let now = self.old.lock().unwrap().1.replace(found.clone());
                    if let Some(old) = now.filter(|old| range.is_none() && old.len == found.len) {
                        *found = old;
                    }
                }
                _ => {}
            }
        }
        Ok(got)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.inner.put_new(&self.key(key), bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        let key = self.key(key);
        let there = self.inner.get(&key, None, None).await?;
        let there = if let Got::Found(found) = there { Some(found.tag) } else { None };
        let put = |expected: Option<Tag>| {
            let (key, bytes) = (&key, bytes.clone());
            async move { self.inner.put_if(key, expected.as_ref(), bytes).await }
        };
        match (self.lie, expected) {
            (Lie::CreateIsPut, None) => put(there).await,
            (Lie::CreateLooksFirst, None) | (Lie::MatchLooksFirst, Some(_)) => {
                tokio::task::yield_now().await;
                if there.as_ref() != expected {
                    return Ok(Put::NotDone);
                }
                self.inner.delete(&key).await?;
                put(None).await
            }
            (Lie::MatchIgnored, Some(_)) if there.is_some() => put(there).await,
            (Lie::MatchCreates, Some(_)) if there.is_none() => put(None).await,
            (Lie::RefusedIsDone, _) => {
                let done = put(expected.cloned()).await?;
                if done == Put::NotDone {
                    put(there).await?;
                }
                Ok(done)
            }
            (Lie::RefusedIsDoneLater, _) => {
                let done = put(expected.cloned()).await?;
                if done == Put::NotDone && bytes.starts_with(b"race") {
                    put(there).await?;
                }
                Ok(done)
            }
            (Lie::DoneIsNot, Some(tag)) if bytes.starts_with(b"race") => {
                Ok(Put::Done(Tag(format!("{tag}+"))))
            }
            (Lie::TagsAreConstant, _) if expected.is_some() == there.is_some() => {
                put(there).await?;
                Ok(Put::Done(Tag("1".into())))
            }
            _ => put(expected.cloned()).await,
        }
    }

    async fn delete(&self, key: &str) -> Result<()> {
        if self.lie == Lie::DeleteDoesNothing {
            return Ok(());
        }
        self.inner.delete(&self.key(key)).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        match self.lie {
            Lie::DeleteIgnoresTag => {
                self.inner.delete(key).await?;
                Ok(true)
            }
            Lie::DeleteLooksFirst => {
                let same = self.inner.get(key, None, Some(tag)).await? == Got::Same;
                tokio::task::yield_now().await;
                if same {
                    self.inner.delete(key).await?;
                }
                Ok(same)
            }
            _ => self.inner.delete_if(key, tag).await,
        }
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        let start = match (self.lie, after) {
            (Lie::ListingsBeginAnew, _) => None,
            // The one before.
            (Lie::ListingsIncludeStart, Some(after)) if !after.ends_with('/') => {
                Some(&after[..after.len() - 1])
            }
            _ => after,
        };
        let mut page = self.inner.list(prefix, start, folders, limit).await?;
        self.list_wrongly(&mut page, after, prefix);
        let mut old = self.old.lock().unwrap();
        let before = old.0.replace(page.clone()).unwrap_or_default();
        let same = before.keys.first().is_some_and(|listed| listed.key.starts_with(prefix));
        match self.lie {
            Lie::ListingsAreLate => page = before,
            Lie::ListingsShowDeleted if same && page.keys.len() < before.keys.len() => {
                page = before;
            }
            _ => {}
        }
        Ok(page)
    }

    fn features(&self) -> Features {
        self.inner.features()
    }
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

fn probed(lie: Lie) -> (Result<ProbeReport>, Liar) {
    let liar = Liar { inner: Memory::default(), lie, old: Mutex::default() };
    (run(probe(&liar, "x/", &mut |_| {})), liar)
}

#[test]
fn a_bucket_in_memory_passes_and_is_left_empty() {
    let (report, liar) = probed(Lie::None);
    let report = report.unwrap();
    assert!(report.delete_if && report.quoting.is_none());
    assert!(report.checks.len() == 9 && report.checks.iter().all(|check| check.found.is_none()));
    let sum: u64 = report.checks.iter().map(|check| check.requests).sum();
    assert!(sum < report.requests && report.requests < 1000, "{} requests", report.requests);
    assert_eq!(run(liar.inner.list("", None, false, 10)).unwrap(), Page::default());
}

#[test]
fn faults_of_a_network_are_no_lies() {
    for seed in 0..20 {
        // A repeat that is refused looks like a lie: the server says that it did not do what it did.
        let faults = Faults { repeated: 0, ..Faults::default() };
        let faulty = Faulty::new(Memory::default(), faults, seed);
        let yielding = |_| -> BoxFuture<'static, ()> { Box::pin(tokio::task::yield_now()) };
        let faulty = faulty.with_wait(Box::new(yielding));
        let report = run(probe(&faulty, "", &mut |_| {}));
        assert!(report.is_ok(), "seed {seed}: {report:?}");
        let left = run(faulty.inner().list("", None, false, 10)).unwrap();
        assert_eq!(left, Page::default());
    }
}

#[test]
fn every_lie_is_found() {
    for (lie, words) in [
        (Lie::CreateIsPut, "can be created again"),
        (Lie::CreateLooksFirst, "4 of 4 win"),
        (Lie::MatchIgnored, "can be replaced by an old tag"),
        (Lie::MatchLooksFirst, "4 of 4 win"),
        (Lie::MatchCreates, "a key that holds nothing can be replaced"),
        (Lie::RefusedIsDone, "other bytes are read after a refused create"),
        (Lie::RefusedIsDoneLater, "what the winner of several writes wrote does not stay"),
        (Lie::DoneIsNot, "4 of 4 win"),
        (Lie::TagsAreConstant, "other bytes have the same tag"),
        (Lie::TagsOfListings, "gives another tag than the write"),
        (Lie::ReadsAreStale, "read after a create that followed a deletion"),
        (Lie::RangesIgnored, "bytes 0..1 are asked for, and others come"),
        (Lie::RangesHaveNoLength, "does not tell the whole length"),
        (Lie::NoDates, "no date"),
        (Lie::DeleteDoesNothing, "something is read after a deletion"),
        (Lie::CaseFolded, "k/A! is taken for another"),
        (Lie::EscapesDecoded, "k/%41! is taken for another"),
        (Lie::FoldersHideKeys, "k/a! is hidden"),
        (Lie::LettersComposed, "is taken for another"),
        (Lie::ListingsAreLate, "listed otherwise"),
        (Lie::ListingsShowDeleted, "shows what was just deleted"),
        (Lie::ListingsUnordered, "not in order"),
        (Lie::ListingsBySegment, "by the prefix a is not right"),
        (Lie::ListingsBeginAnew, "does not end"),
        (Lie::ListingsIncludeStart, "does not end"),
        (Lie::ListingsEndEarly, "in pages of 1 is not all in order"),
        (Lie::FoldersTwice, "longer than was asked for"),
    ] {
        let (report, _) = probed(lie);
        let e = report.err().map(|e| e.to_string()).unwrap_or_default();
        assert!(e.contains(words), "{lie:?}: {e}");
    }
}

#[test]
fn what_costs_only_passes() {
    let report = probed(Lie::ReadsIgnoreTags).0.unwrap();
    assert!(report.delete_if && report.checks[1].found.is_some());
    for (lie, words) in [
        (Lie::DeleteIgnoresTag, "deletes whatever the tag"),
        (Lie::DeleteLooksFirst, "deletes what was replaced meanwhile"),
    ] {
        let report = probed(lie).0.unwrap();
        assert!(!report.delete_if);
        let found = report.checks.last().and_then(|check| check.found.as_deref());
        assert_eq!(found, Some(words), "{lie:?}");
    }
}
