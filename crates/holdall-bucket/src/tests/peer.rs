//! Two machines against servers whose parts each keep their word, and do not know of each other.

use super::*;
use crate::backend::{Features, Got, Memory, Page};
use crate::store::Machine;
use async_trait::async_trait;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// What two parts of a server do not tell each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Apart {
    /// Nothing.
    Nothing,
    /// Whose conditional creates come between a look and a write.
    Creates,
    /// The same of replacements.
    Replacements,
    /// What was written or deleted: each remembers what it read.
    Contents,
    /// What was written: each lists as it did before.
    Listings,
}

/// A part of a server, with a lock and a cache of its own.
#[derive(Debug)]
struct PartOfServer {
    inner: Arc<Memory>,
    apart: Apart,
    lock: tokio::sync::Mutex<()>,
    read: Mutex<HashMap<String, Got>>,
    listed: Mutex<HashMap<String, Page>>,
}

impl PartOfServer {
    fn new(inner: &Arc<Memory>, apart: Apart) -> Self {
        let (read, listed) = (Mutex::default(), Mutex::default());
        Self { inner: inner.clone(), apart, lock: tokio::sync::Mutex::default(), read, listed }
    }

    /// A key whose reads are remembered; the steps of the machines are not.
    fn is_remembered(&self, key: &str) -> bool {
        self.apart == Apart::Contents && key.ends_with('!')
    }

    fn forget(&self, key: &str) {
        self.read.lock().unwrap().remove(key);
        self.listed.lock().unwrap().retain(|prefix, _| !key.starts_with(prefix));
    }
}

#[async_trait]
impl Backend for PartOfServer {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        if let Some(known) = self.read.lock().unwrap().get(key) {
            return Ok(known.clone());
        }
        let got = self.inner.get(key, range, unless).await?;
        if self.is_remembered(key) {
            self.read.lock().unwrap().insert(key.to_owned(), got.clone());
        }
        Ok(got)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.forget(key);
        self.inner.put_new(key, bytes).await
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        let _alone = self.lock.lock().await;
        self.forget(key);
        let looks_first = match expected {
            None => self.apart == Apart::Creates,
            Some(_) => self.apart == Apart::Replacements,
        };
        if !looks_first {
            return self.inner.put_if(key, expected, bytes).await;
        }
        let tag = async || match self.inner.get(key, None, None).await {
            Ok(Got::Found(found)) => Some(found.tag),
            _ => None,
        };
        if tag().await.as_ref() != expected {
            return Ok(Put::NotDone);
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
        let now = tag().await;
        self.inner.put_if(key, now.as_ref(), bytes).await
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.forget(key);
        self.inner.delete(key).await
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.inner.delete_if(key, tag).await
    }

    async fn list(&self, p: &str, after: Option<&str>, folders: bool, n: usize) -> Result<Page> {
        if let Some(page) = self.listed.lock().unwrap().get(p) {
            return Ok(page.clone());
        }
        let page = self.inner.list(p, after, folders, n).await?;
        if self.apart == Apart::Listings && p.contains("seen/") {
            self.listed.lock().unwrap().insert(p.to_owned(), page.clone());
        }
        Ok(page)
    }

    fn features(&self) -> Features {
        self.inner.features()
    }
}

/// What both machines find, and the keys that are left.
async fn both(apart: Apart) -> ([Result<ProbeReport>; 2], usize) {
    let inner = Arc::new(Memory::default());
    let [a, b] = [0, 1].map(|_| PartOfServer::new(&inner, apart));
    let ask = async |part: PartOfServer| {
        super::super::probe(&part, "x/", &mut |_| ()).await.unwrap();
        probe_peer(&part, &Machine, "x/", "n-1", &mut |_| ()).await
    };
    let (a, b) = futures::join!(ask(a), ask(b));
    let left = inner.list("", None, false, 100).await.unwrap().keys.len();
    ([a, b], left)
}

#[tokio::test]
async fn a_server_whose_parts_agree_passes_and_nothing_is_left() {
    let (found, left) = both(Apart::Nothing).await;
    let [a, b] = found.map(Result::unwrap);
    assert_eq!((a.checks.len(), b.checks.len(), left), (3, 3, 0));
    let numbers = |report: &ProbeReport, part: usize| -> Vec<usize> {
        let text = report.checks[part].found.clone().unwrap();
        text.split(' ').filter_map(|word| word.parse().ok()).collect()
    };
    for part in [1, 2] {
        let (mine, theirs) = (numbers(&a, part), numbers(&b, part));
        assert_eq!(mine, [theirs[1], theirs[0]], "{part}");
        assert_eq!(mine.iter().sum::<usize>(), ROUNDS, "{part}");
    }
}

#[tokio::test]
async fn parts_that_do_not_know_of_each_other_pass_alone_and_fail_together() {
    for (apart, what) in [
        (Apart::Creates, "machines"),
        (Apart::Replacements, "machines"),
        (Apart::Contents, "another machine"),
        (Apart::Listings, "a listing"),
    ] {
        let (found, _) = tokio::time::timeout(Duration::from_secs(50), both(apart)).await.unwrap();
        for found in found {
            let error = found.unwrap_err().to_string();
            assert!(
                error.contains("fails the probe") && error.contains(what),
                "{apart:?}: {error}"
            );
        }
    }
}

#[tokio::test]
async fn names_and_machines_that_do_not_fit_are_refused() {
    let memory = Memory::default();
    for name in ["", "a/b", "a b", "é", &"n".repeat(65)] {
        let refused = probe_peer(&memory, &Machine, "", name, &mut |_| ()).await;
        assert!(matches!(refused, Err(Error::Invalid(_))), "{name}");
    }
    for n in 0..2 {
        memory.put_new(&format!("probe/with-n/here/{n}"), Bytes::new()).await.unwrap();
    }
    let third = probe_peer(&memory, &Machine, "", "n", &mut |_| ()).await.unwrap_err();
    assert!(third.to_string().contains("more than two machines"), "{third}");
    assert_eq!(memory.list("", None, false, 9).await.unwrap().keys.len(), 2);
}
