//! Locks of WebDAV: asked in memory, kept in the store that the locked path lies in.
//!
//! Owns: [`Locks`]. A lock lives ten minutes unless its owner asks for less or refreshes it, so
//! that one whose owner vanished does not stay.

use crate::dav::path::PREFIX;
use crate::error::from_store;
use crate::http::body;
use crate::objects::catalog::{Catalog, Served};
use crate::objects::place::Place;
use crate::objects::side::{SYSTEM, system};
use dav_server::davpath::DavPath;
use dav_server::ls::{DavLock, DavLockSystem, LsFuture};
use parking_lot::Mutex;
use s3s::S3Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use xmltree::Element;

/// How long a lock lives at most without a refresh.
const LIFE: Duration = Duration::from_secs(600);

/// Most locks of a path: all of them are told to who asks.
const MOST: usize = 32;

/// A lock as its record holds it.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Record {
    /// The path, encoded, with the prefix.
    path: String,
    principal: Option<String>,
    /// What the client said of itself, as XML.
    owner: Option<String>,
    until: SystemTime,
    shared: bool,
    deep: bool,
}

/// Path to the locks that are rooted there.
type Tree = BTreeMap<Vec<u8>, Vec<DavLock>>;

/// All locks. Clones share them.
#[derive(Debug, Clone)]
pub struct Locks {
    tree: Arc<Mutex<Tree>>,
    catalog: Arc<Catalog>,
}

/// A path without the slash at its end, so that no folder has two.
fn root(path: &DavPath) -> Vec<u8> {
    let bytes = path.as_bytes();
    bytes.strip_suffix(b"/").unwrap_or(bytes).to_vec()
}

fn is_live(lock: &DavLock, now: SystemTime) -> bool {
    lock.timeout_at.is_none_or(|at| at > now)
}

fn name(token: &str) -> String {
    format!("lock/{token}")
}

fn to_xml(owner: &Element) -> Option<String> {
    let mut owner = owner.clone();
    // The prefix that answers give it must be known where it stands alone.
    let mut spaces = owner.namespaces.take().unwrap_or_else(xmltree::Namespace::empty);
    spaces.put("D", "DAV:");
    owner.namespaces = Some(spaces);
    let mut bytes = Vec::new();
    owner.write(&mut bytes).ok()?;
    String::from_utf8(bytes).ok()
}

impl Record {
    fn of(lock: &DavLock, until: SystemTime) -> Self {
        Self {
            path: lock.path.with_prefix().as_url_string(),
            principal: lock.principal.clone(),
            owner: lock.owner.as_deref().and_then(to_xml),
            until,
            shared: lock.shared,
            deep: lock.deep,
        }
    }

    fn lock(self, token: String, now: SystemTime) -> Option<DavLock> {
        let left = self.until.duration_since(now).ok()?;
        let mut path = DavPath::new(&self.path).ok()?;
        path.set_prefix(PREFIX).ok()?;
        let owner = self.owner.and_then(|xml| crate::http::xml::parse(xml.as_bytes()).ok());
        Some(DavLock {
            token,
            path: Box::new(path),
            principal: self.principal,
            owner: owner.map(Box::new),
            timeout_at: Some(self.until),
            timeout: Some(left),
            shared: self.shared,
            deep: self.deep,
        })
    }
}

/// Locks that a store keeps and that have not ended.
fn load(served: &Served, now: SystemTime) -> holdall::Result<Vec<DavLock>> {
    let Some(system) = system(&served.store.read()?)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in system.names("lock/") {
        let entry = entry?;
        let bytes = system.get(entry.oid)?.unwrap_or_default();
        let token = String::from_utf8_lossy(&entry.name["lock/".len()..]).into_owned();
        let record = serde_json::from_slice::<Record>(&bytes).ok();
        found.extend(record.and_then(|record| record.lock(token, now)));
    }
    Ok(found)
}

/// Writes and removes records of locks. Blocks for a commit.
fn keep(served: &Served, put: Option<&DavLock>, gone: &[String]) -> S3Result<()> {
    let work = |tx: &mut holdall::WriteTx| {
        let mut system = tx.collection(SYSTEM)?;
        for token in gone {
            system.remove(name(token))?;
        }
        let Some(lock) = put else { return Ok(()) };
        let until = lock.timeout_at.unwrap_or_else(SystemTime::now);
        let record = serde_json::to_vec(&Record::of(lock, until));
        let bytes = record.map_err(|e| holdall::Error::Invalid(e.to_string()))?;
        system.put(name(&lock.token), &bytes).map(drop)
    };
    served.store.write(work).map_err(from_store)
}

/// The first lock in the way: one of `locks` that is not held, unless shared ones are not.
fn in_the_way<'l>(
    locks: impl Iterator<Item = &'l DavLock>,
    held: impl Fn(&DavLock) -> bool,
    shared_ok: bool,
) -> Option<&'l DavLock> {
    let (mut holds, mut shared) = (false, None);
    for lock in locks {
        if held(lock) {
            holds = true;
        } else if !lock.shared {
            return Some(lock);
        } else if !shared_ok {
            shared = shared.or(Some(lock));
        }
    }
    shared.filter(|_| !holds)
}

/// Locks that cover a path: those at it, and deep ones above.
fn above<'t>(tree: &'t Tree, path: &[u8], now: SystemTime) -> Vec<&'t DavLock> {
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    let mut found = Vec::new();
    for end in ends {
        let locks = tree.get(&path[..end]).into_iter().flatten();
        found.extend(locks.filter(|lock| lock.deep));
    }
    found.extend(tree.get(path).into_iter().flatten());
    found.retain(|lock| is_live(lock, now));
    found
}

/// Locks rooted below a path.
fn below<'t>(tree: &'t Tree, path: &[u8], now: SystemTime) -> impl Iterator<Item = &'t DavLock> {
    let prefix = [path, b"/"].concat();
    let range = tree.range(prefix.clone()..);
    let inside = range.take_while(move |(path, _)| path.starts_with(&prefix));
    inside.flat_map(|(_, locks)| locks).filter(move |lock| is_live(lock, now))
}

impl Locks {
    /// Reads what the stores keep. Blocks.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn open(catalog: Arc<Catalog>) -> holdall::Result<Self> {
        let mut tree = Tree::new();
        for served in catalog.stores() {
            for lock in load(served, SystemTime::now())? {
                tree.entry(root(&lock.path)).or_default().push(lock);
            }
        }
        Ok(Self { tree: Arc::new(Mutex::new(tree)), catalog })
    }

    /// The store that keeps a path's locks: its collection's, or the first one.
    fn store(&self, path: &DavPath) -> Served {
        let name = Place::of(path).ok().and_then(|place| place.collection);
        let bucket = name.and_then(|name| self.catalog.collection(&name).ok().flatten());
        bucket.map_or_else(|| self.catalog.stores()[0].clone(), |bucket| bucket.served)
    }

    /// What a lock's owner said of itself, as an element within an answer.
    pub fn owner_xml(owner: &Element) -> Option<String> {
        to_xml(owner).map(|xml| match xml.split_once("?>") {
            Some((declared, element)) if declared.starts_with("<?xml") => element.to_owned(),
            _ => xml,
        })
    }

    /// Locks that cover a path, which has no slash at its end.
    pub fn covering(&self, path: &[u8]) -> Vec<DavLock> {
        let tree = self.tree.lock();
        if tree.is_empty() {
            return Vec::new();
        }
        above(&tree, path, SystemTime::now()).into_iter().cloned().collect()
    }

    /// Whether a lock of this token covers a path.
    pub fn covers(&self, path: &DavPath, token: &str) -> bool {
        let tree = self.tree.lock();
        above(&tree, &root(path), SystemTime::now()).iter().any(|lock| lock.token == token)
    }

    async fn write(&self, path: &DavPath, put: Option<DavLock>, gone: Vec<String>) -> bool {
        let served = self.store(path);
        let kept = body::blocking(move || keep(&served, put.as_ref(), &gone)).await;
        kept.inspect_err(|e| tracing::warn!(error = %e, "a lock could not be kept")).is_ok()
    }

    /// Takes a lock into the tree, or tells which one is in its way.
    fn take(&self, lock: DavLock) -> Result<(DavLock, Vec<String>), DavLock> {
        let (now, path) = (SystemTime::now(), root(&lock.path));
        let mut tree = self.tree.lock();
        let held = |_: &DavLock| false;
        let covering = above(&tree, &path, now).into_iter();
        if let Some(other) = in_the_way(covering, held, lock.shared) {
            return Err(other.clone());
        }
        if lock.deep
            && let Some(other) = in_the_way(below(&tree, &path, now), held, lock.shared)
        {
            return Err(other.clone());
        }
        let locks = tree.entry(path).or_default();
        if let Some(other) = locks.iter().filter(|lock| is_live(lock, now)).nth(MOST - 1) {
            return Err(other.clone());
        }
        let ended = locks.extract_if(.., |lock| !is_live(lock, now));
        let ended = ended.map(|lock| lock.token).collect();
        locks.push(lock.clone());
        Ok((lock, ended))
    }

    /// Takes locks out of the tree.
    fn remove(&self, path: &[u8], wanted: impl Fn(&DavLock) -> bool) -> Vec<DavLock> {
        let mut tree = self.tree.lock();
        let Some(locks) = tree.get_mut(path) else { return Vec::new() };
        let removed = locks.extract_if(.., |lock| wanted(lock)).collect();
        if locks.is_empty() {
            tree.remove(path);
        }
        removed
    }

    /// Forgets the locks of a path that names nothing any more, those below it where `deep`.
    ///
    /// # Errors
    /// Where the store does not forget them.
    pub async fn forget(&self, path: &DavPath, deep: bool) -> Result<(), ()> {
        let top = root(path);
        let mut roots = vec![top.clone()];
        if deep {
            let tree = self.tree.lock();
            let inside = below(&tree, &top, SystemTime::UNIX_EPOCH);
            roots.extend(inside.map(|lock| root(&lock.path)));
        }
        let removed = roots.iter().flat_map(|path| self.remove(path, |_| true));
        let gone: Vec<String> = removed.map(|lock| lock.token).collect();
        if gone.is_empty() || self.write(path, None, gone).await { Ok(()) } else { Err(()) }
    }

    /// The path at or above `path` at which a lock of this token is rooted.
    fn rooted(&self, path: &DavPath, token: &str) -> Option<Vec<u8>> {
        let tree = self.tree.lock();
        let found = above(&tree, &root(path), SystemTime::now());
        found.into_iter().find(|lock| lock.token == token).map(|lock| root(&lock.path))
    }
}

impl DavLockSystem for Locks {
    fn lock(
        &'_ self,
        path: &DavPath,
        principal: Option<&str>,
        owner: Option<&Element>,
        timeout: Option<Duration>,
        shared: bool,
        deep: bool,
    ) -> LsFuture<'_, Result<DavLock, DavLock>> {
        let timeout = timeout.unwrap_or(LIFE).min(LIFE);
        let lock = DavLock {
            token: uuid::Uuid::new_v4().urn().to_string(),
            path: Box::new(path.clone()),
            principal: principal.map(str::to_owned),
            owner: owner.map(|owner| Box::new(owner.clone())),
            timeout_at: Some(SystemTime::now() + timeout),
            timeout: Some(timeout),
            shared,
            deep,
        };
        Box::pin(async move {
            let (lock, ended) = self.take(lock)?;
            if self.write(&lock.path, Some(lock.clone()), ended).await {
                return Ok(lock);
            }
            self.remove(&root(&lock.path), |other| other.token == lock.token);
            Err(lock)
        })
    }

    fn unlock(&'_ self, path: &DavPath, token: &str) -> LsFuture<'_, Result<(), ()>> {
        let (path, token) = (path.clone(), token.to_owned());
        Box::pin(async move {
            let rooted = self.rooted(&path, &token).ok_or(())?;
            if !self.write(&path, None, vec![token.clone()]).await {
                return Err(());
            }
            self.remove(&rooted, |lock| lock.token == token);
            Ok(())
        })
    }

    fn refresh(
        &'_ self,
        path: &DavPath,
        token: &str,
        timeout: Option<Duration>,
    ) -> LsFuture<'_, Result<DavLock, ()>> {
        let (path, token) = (path.clone(), token.to_owned());
        let timeout = timeout.unwrap_or(LIFE).min(LIFE);
        Box::pin(async move {
            let rooted = self.rooted(&path, &token).ok_or(())?;
            let longer = {
                let mut tree = self.tree.lock();
                let mut locks = tree.get_mut(&rooted).into_iter().flatten();
                let lock = locks.find(|lock| lock.token == token).ok_or(())?;
                lock.timeout_at = Some(SystemTime::now() + timeout);
                lock.timeout = Some(timeout);
                lock.clone()
            };
            let kept = self.write(&path, Some(longer.clone()), Vec::new()).await;
            if kept { Ok(longer) } else { Err(()) }
        })
    }

    fn check(
        &'_ self,
        path: &DavPath,
        principal: Option<&str>,
        ignore_principal: bool,
        deep: bool,
        submitted_tokens: &[String],
    ) -> LsFuture<'_, Result<(), DavLock>> {
        let (tree, path, now) = (self.tree.lock(), root(path), SystemTime::now());
        let held = |lock: &DavLock| {
            submitted_tokens.contains(&lock.token)
                && (ignore_principal || principal == lock.principal.as_deref())
        };
        let covering = above(&tree, &path, now);
        let other = in_the_way(covering.into_iter(), held, false)
            .or_else(|| below(&tree, &path, now).find(|lock| deep && !held(lock)));
        let checked = other.map_or(Ok(()), |lock| Err(lock.clone()));
        drop(tree);
        Box::pin(std::future::ready(checked))
    }

    fn discover(&'_ self, path: &DavPath) -> LsFuture<'_, Vec<DavLock>> {
        let tree = self.tree.lock();
        let found = above(&tree, &root(path), SystemTime::now()).into_iter().cloned().collect();
        drop(tree);
        Box::pin(std::future::ready(found))
    }

    fn delete(&'_ self, path: &DavPath) -> LsFuture<'_, Result<(), ()>> {
        let path = path.clone();
        Box::pin(async move { self.forget(&path, true).await })
    }
}
