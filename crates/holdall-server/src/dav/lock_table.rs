//! Locks of WebDAV: asked in memory, kept in the store that the locked path lies in.
//!
//! Owns: [`Locks`], [`Lock`]. A lock lives ten minutes unless its owner asks for less or refreshes
//! it, so that one whose owner vanished does not stay.

use crate::dav::error::{Error, Result, blocking, refusal};
use crate::dav::path::Path;
use crate::objects::catalog::{Catalog, Served};
use crate::objects::place::Place;
use crate::objects::side::{SYSTEM, system};
use holdall::WriteTx;
use http::StatusCode;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a lock lives at most without a refresh.
pub const LIFE: Duration = Duration::from_secs(600);

/// Most locks of a path: an answer names all of them.
const MOST: usize = 32;

/// A lock, as its record holds it beside the token, which names the record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Lock {
    /// What it is known by.
    #[serde(skip)]
    pub token: String,
    /// Where it is rooted.
    pub path: Path,
    /// Who has it.
    pub principal: Option<String>,
    /// The client's description of itself, as XML.
    pub owner: Option<String>,
    /// When it ends.
    pub until: SystemTime,
    /// Whether others may have one like it.
    pub shared: bool,
    /// Whether it covers all below the path, too.
    pub deep: bool,
}

impl Lock {
    fn is_live(&self, now: SystemTime) -> bool {
        self.until > now
    }
}

/// Path to the locks that are rooted there.
type Tree = BTreeMap<Vec<u8>, Vec<Lock>>;

/// All locks. Clones share them.
#[derive(Debug, Clone)]
pub struct Locks {
    tree: Arc<Mutex<Tree>>,
    catalog: Arc<Catalog>,
}

fn name(token: &str) -> String {
    format!("lock/{token}")
}

/// Locks that a store keeps and that have not ended.
fn load(served: &Served, now: SystemTime) -> holdall::Result<Vec<Lock>> {
    let Some(system) = system(&served.read()?)? else { return Ok(Vec::new()) };
    let mut found = Vec::new();
    for entry in system.names("lock/") {
        let entry = entry?;
        let bytes = system.get(entry.oid)?.unwrap_or_default();
        let token = String::from_utf8_lossy(&entry.name["lock/".len()..]).into_owned();
        let kept = serde_json::from_slice::<Lock>(&bytes).ok().filter(|lock| lock.is_live(now));
        found.extend(kept.map(|lock| Lock { token, ..lock }));
    }
    Ok(found)
}

/// Writes and removes records of locks. Blocks for a commit.
fn keep(served: &Served, put: Option<&Lock>, gone: &[String]) -> Result<()> {
    let work = |tx: &mut WriteTx| {
        let mut system = tx.collection(SYSTEM)?;
        for token in gone {
            system.remove(name(token))?;
        }
        let Some(lock) = put else { return Ok(()) };
        let bytes = serde_json::to_vec(lock);
        let bytes = bytes.map_err(|e| holdall::Error::Invalid(e.to_string()))?;
        system.put(name(&lock.token), &bytes).map(drop)
    };
    served.write(work).map_err(Error::from)
}

/// The first lock in the way: one of `locks` that is not held, unless shared ones are not.
fn in_the_way<'l>(
    locks: impl Iterator<Item = &'l Lock>,
    held: impl Fn(&Lock) -> bool,
    shared_ok: bool,
) -> Option<&'l Lock> {
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
fn above<'t>(tree: &'t Tree, path: &[u8], now: SystemTime) -> Vec<&'t Lock> {
    let ends = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| at);
    let mut found = Vec::new();
    for end in ends {
        let locks = tree.get(&path[..end]).into_iter().flatten();
        found.extend(locks.filter(|lock| lock.deep));
    }
    found.extend(tree.get(path).into_iter().flatten());
    found.retain(|lock| lock.is_live(now));
    found
}

/// Locks rooted below a path.
fn below<'t>(tree: &'t Tree, path: &[u8], now: SystemTime) -> impl Iterator<Item = &'t Lock> {
    let prefix = [path, b"/"].concat();
    let range = tree.range(prefix.clone()..);
    let inside = range.take_while(move |(path, _)| path.starts_with(&prefix));
    inside.flat_map(|(_, locks)| locks).filter(move |lock| lock.is_live(now))
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
                tree.entry(lock.path.root().to_vec()).or_default().push(lock);
            }
        }
        Ok(Self { tree: Arc::new(Mutex::new(tree)), catalog })
    }

    /// The store that keeps a path's locks: its collection's, or the first one.
    fn store(&self, path: &Path) -> Served {
        let name = Place::from_path(path).ok().and_then(|place| place.collection);
        let bucket = name.and_then(|name| self.catalog.collection(&name).ok().flatten());
        bucket.map_or_else(|| self.catalog.stores()[0].clone(), |bucket| bucket.served)
    }

    /// Locks that cover a path, which has no slash at its end.
    pub fn covering(&self, path: &[u8]) -> Vec<Lock> {
        let tree = self.tree.lock();
        if tree.is_empty() {
            return Vec::new();
        }
        above(&tree, path, SystemTime::now()).into_iter().cloned().collect()
    }

    /// Whether a lock of this token covers a path.
    pub fn covers(&self, path: &Path, token: &str) -> bool {
        self.rooted(path, token).is_some()
    }

    /// Whether a change by somebody who sends these tokens is in the way of a lock; `deep` if of
    /// all below the path.
    pub fn is_in_the_way(&self, path: &Path, user: &str, deep: bool, tokens: &[String]) -> bool {
        let (tree, path, now) = (self.tree.lock(), path.root(), SystemTime::now());
        let held =
            |lock: &Lock| tokens.contains(&lock.token) && lock.principal.as_deref() == Some(user);
        let covering = above(&tree, path, now);
        in_the_way(covering.into_iter(), held, false).is_some()
            || deep && below(&tree, path, now).any(|lock| !held(lock))
    }

    async fn write(&self, path: &Path, put: Option<Lock>, gone: Vec<String>) -> Result<()> {
        let served = self.store(path);
        blocking(move || keep(&served, put.as_ref(), &gone)).await
    }

    /// Takes a lock into the tree, and returns those that ended there; `None` if one is in its
    /// way.
    fn take(&self, lock: &Lock) -> Option<Vec<String>> {
        let (now, path) = (SystemTime::now(), lock.path.root());
        let mut tree = self.tree.lock();
        let held = |_: &Lock| false;
        let covering = above(&tree, path, now).into_iter();
        let blocked = in_the_way(covering, held, lock.shared).is_some()
            || lock.deep && in_the_way(below(&tree, path, now), held, lock.shared).is_some();
        let locks = (!blocked).then(|| tree.entry(path.to_vec()).or_default())?;
        if locks.iter().filter(|lock| lock.is_live(now)).count() >= MOST {
            return None;
        }
        let ended = locks.extract_if(.., |lock| !lock.is_live(now));
        let ended = ended.map(|lock| lock.token).collect();
        locks.push(lock.clone());
        Some(ended)
    }

    /// Takes locks out of the tree.
    fn remove(&self, path: &[u8], wanted: impl Fn(&Lock) -> bool) -> Vec<Lock> {
        let mut tree = self.tree.lock();
        let Some(locks) = tree.get_mut(path) else { return Vec::new() };
        let removed = locks.extract_if(.., |lock| wanted(lock)).collect();
        if locks.is_empty() {
            tree.remove(path);
        }
        removed
    }

    /// Forgets the locks of a path that names nothing any more, those below it if `deep`.
    ///
    /// # Errors
    /// If the store does not forget them.
    pub async fn forget(&self, path: &Path, deep: bool) -> Result<()> {
        let top = path.root().to_vec();
        let mut roots = vec![top.clone()];
        if deep {
            let tree = self.tree.lock();
            let inside = below(&tree, &top, SystemTime::UNIX_EPOCH);
            roots.extend(inside.map(|lock| lock.path.root().to_vec()));
        }
        let removed = roots.iter().flat_map(|path| self.remove(path, |_| true));
        let gone: Vec<String> = removed.map(|lock| lock.token).collect();
        if gone.is_empty() { Ok(()) } else { self.write(path, None, gone).await }
    }

    /// The path at or above `path` at which a lock of this token is rooted.
    fn rooted(&self, path: &Path, token: &str) -> Option<Vec<u8>> {
        let tree = self.tree.lock();
        let found = above(&tree, path.root(), SystemTime::now());
        found.into_iter().find(|lock| lock.token == token).map(|lock| lock.path.root().to_vec())
    }

    /// Adds a lock.
    ///
    /// # Errors
    /// Status 423 if another one is in its way; those of the engine.
    pub async fn add(&self, lock: Lock) -> Result<()> {
        let other = || refusal(StatusCode::LOCKED, "it is locked by somebody else");
        let ended = self.take(&lock).ok_or_else(other)?;
        let kept = self.write(&lock.path, Some(lock.clone()), ended).await;
        if kept.is_err() {
            self.remove(lock.path.root(), |other| other.token == lock.token);
        }
        kept
    }

    /// Ends a lock. False if there is none of this token that covers the path.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn unlock(&self, path: &Path, token: &str) -> Result<bool> {
        let Some(rooted) = self.rooted(path, token) else { return Ok(false) };
        self.write(path, None, vec![token.to_owned()]).await?;
        self.remove(&rooted, |lock| lock.token == token);
        Ok(true)
    }

    /// Lets a lock live for `life` from now on; `None` if there is none of this token that
    /// covers the path.
    ///
    /// # Errors
    /// Those of the engine.
    pub async fn refresh(&self, path: &Path, token: &str, life: Duration) -> Result<Option<Lock>> {
        let Some(rooted) = self.rooted(path, token) else { return Ok(None) };
        let longer = {
            let mut tree = self.tree.lock();
            let mut locks = tree.get_mut(&rooted).into_iter().flatten();
            let Some(lock) = locks.find(|lock| lock.token == token) else { return Ok(None) };
            lock.until = SystemTime::now() + life;
            lock.clone()
        };
        self.write(path, Some(longer.clone()), Vec::new()).await?;
        Ok(Some(longer))
    }
}
