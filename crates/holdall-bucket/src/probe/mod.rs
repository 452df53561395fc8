//! Whether a server does what a bucket store relies on.
//!
//! Owns: [`probe`] and [`probe_s3`], which ask a server below a random prefix and clean up, and what
//! they report. Servers that claim to speak S3 differ in conditional writes, which decide whether two
//! writers lose data; so nothing is believed.
//!
//! Modules: `checks` and `listings`, what is asked one after another; `races`, what several ask at
//! once; `peer`, what two machines ask at once; `watched`, which counts requests and remembers keys.

mod checks;
mod listings;
mod peer;
mod races;
mod watched;

use crate::backend::{Backend, Found, Got, Put, Quoting, S3, Tag};
use bytes::Bytes;
use futures::future::{BoxFuture, join_all};
use holdall::{Error, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use watched::Watched;

pub use peer::probe_peer;

/// How often a write of which nothing is known is sent again, after a look.
const TRIES: usize = 5;
/// No date of a server is before it: 2020.
const LEAST_DATE: u64 = 1_577_836_800_000;
/// Keys deleted at once in the end.
const AT_ONCE: usize = 8;

/// A part of a probe that went well.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What was asked.
    pub what: &'static str,
    /// What was found, if that may differ from server to server.
    pub found: Option<String>,
    /// Requests sent for it.
    pub requests: u64,
    /// How long it took.
    pub took: Duration,
}

/// What a probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeReport {
    /// What was done, in order.
    pub checks: Vec<Check>,
    /// How the server wants tags; `None` of a backend that has no such choice.
    pub quoting: Option<Quoting>,
    /// Whether it was seen to heed the tag of a deletion, and never not to.
    pub delete_if: bool,
    /// Requests in all, those that clean up included.
    pub requests: u64,
    /// How long it took in all.
    pub took: Duration,
}

/// Told of each part when it is done.
pub type Progress<'p> = &'p mut (dyn FnMut(&Check) + Send);

/// Asks a backend all that a bucket store relies on, below `probe/` and a random number behind `prefix`,
/// and deletes what it wrote, whatever comes. Some 900 requests, four at a time. To break off, drop it;
/// then some objects stay below `probe/`.
///
/// # Errors
/// [`Error::Invalid`] with what the server does wrong; those of asking it.
pub async fn probe(
    backend: &dyn Backend,
    prefix: &str,
    progress: Progress<'_>,
) -> Result<ProbeReport> {
    let started = Instant::now();
    let watched = Watched::new(backend);
    let run = Run { backend: &watched, below: below(prefix)?, next: AtomicU64::new(0) };
    let found = run.all(progress).await;
    watched.clean_up(AT_ONCE).await;
    let (checks, delete_if) = found?;
    let (requests, took) = (watched.requests(), started.elapsed());
    Ok(ProbeReport { checks, quoting: None, delete_if, requests, took })
}

/// Finds out how a server wants its tags, and then as [`probe`]. Gives it back with what was found set.
///
/// [`S3::with_delete_if`] stays as it was, unless deletions are found not to heed the tag. Races show
/// some servers only now and then that look at the tag first and then delete, so a caller who offers it has
/// to know the server.
///
/// # Errors
/// As [`probe`].
pub async fn probe_s3(s3: S3, prefix: &str, progress: Progress<'_>) -> Result<(S3, ProbeReport)> {
    let started = Instant::now();
    let (quoting, check) = quoting(&s3, &below(prefix)?).await?;
    progress(&check);
    let asked = s3.features().delete_if;
    let s3 = s3.with_quoting(quoting).with_delete_if(true);
    let mut report = probe(&s3, prefix, progress).await?;
    report.quoting = Some(quoting);
    report.requests += check.requests;
    report.checks.insert(0, check);
    report.took = started.elapsed();
    Ok((s3.with_delete_if(asked && report.delete_if), report))
}

/// A prefix of this probe's own.
fn below(prefix: &str) -> Result<String> {
    let mut random = [0; 16];
    getrandom::fill(&mut random)
        .map_err(|e| Error::Io { action: "drawing a random number".into(), source: e.into() })?;
    Ok(format!("{prefix}probe/{:032x}/", u128::from_be_bytes(random)))
}

/// What the server does wrong.
fn fails(what: impl std::fmt::Display) -> Error {
    Error::Invalid(format!(
        "the server fails the probe: {what}; a bucket store would lose data there; use another \
         server, or a newer version of this one"
    ))
}

fn require(holds: bool, what: impl std::fmt::Display) -> Result<()> {
    if holds { Ok(()) } else { Err(fails(what)) }
}

/// How the server wants tags: the first way by which a key can be replaced. Whether others cannot
/// replace it is asked later.
async fn quoting(s3: &S3, below: &str) -> Result<(Quoting, Check)> {
    let started = Instant::now();
    let (mut requests, mut found, mut said) = (0, None, String::new());
    for quoting in [Quoting::Quoted, Quoting::Bare] {
        let s3 = s3.clone().with_quoting(quoting);
        let watched = Watched::new(&s3);
        let run = Run { backend: &watched, below: below.to_owned(), next: AtomicU64::new(0) };
        let done = run.replaces().await;
        watched.clean_up(AT_ONCE).await;
        requests += watched.requests();
        match done {
            Ok(true) => found = Some(quoting),
            Ok(false) => {}
            Err(e) if quoting == Quoting::Quoted => said = format!(" ({e})"),
            Err(e) => return Err(e),
        }
        if found.is_some() {
            break;
        }
    }
    let quoting = found.ok_or_else(|| {
        fails(format!("a key cannot be replaced by its tag, quoted or not{said}"))
    })?;
    let words = if quoting == Quoting::Quoted { "quoted" } else { "without quotes" };
    let (what, found) = ("how tags are written", Some(words.to_owned()));
    Ok((quoting, Check { what, found, requests, took: started.elapsed() }))
}

/// A probe under way.
struct Run<'r> {
    backend: &'r Watched<'r>,
    /// What all its keys begin with.
    below: String,
    /// Numbers what is written, so that no two writes are equal.
    next: AtomicU64,
}

/// A part of a probe: what it found.
type Part<'r> = BoxFuture<'r, Result<Option<String>>>;

impl Run<'_> {
    /// All parts, and whether a deletion heeds its tag.
    async fn all(&self, progress: Progress<'_>) -> Result<(Vec<Check>, bool)> {
        let parts: [(&'static str, Part<'_>); 9] = [
            ("a key is created once", Box::pin(self.create())),
            ("a key is replaced by its tag alone", Box::pin(self.replace())),
            ("a key is read by ranges", Box::pin(self.ranges())),
            ("keys are what they are called", Box::pin(self.names())),
            ("listings show what was written and deleted", Box::pin(self.changes_listed())),
            ("listings are in order, and go on where they ended", Box::pin(self.order_listed())),
            ("of four that create one wins", Box::pin(self.create_races())),
            ("of four that replace one wins", Box::pin(self.replace_races())),
            ("a key is deleted by its tag alone", Box::pin(self.delete_by_tag())),
        ];
        let mut checks = Vec::new();
        for (what, part) in parts {
            let (started, before) = (Instant::now(), self.backend.requests());
            let found = part.await?;
            let requests = self.backend.requests() - before;
            let check = Check { what, found, requests, took: started.elapsed() };
            progress(&check);
            checks.push(check);
        }
        // Only the last part finds something, and that is a lack.
        let delete_if = checks.last().is_some_and(|check| check.found.is_none());
        Ok((checks, delete_if))
    }

    fn key(&self, name: &str) -> String {
        format!("{}{name}", self.below)
    }

    /// What was never written before.
    fn fresh(&self, name: &str) -> Bytes {
        let n = self.next.fetch_add(1, Ordering::Relaxed);
        Bytes::from(format!("{name} {n}"))
    }

    async fn get(&self, key: &str) -> Result<Option<Found>> {
        match self.backend.get(key, None, None).await? {
            Got::Found(found) => Ok(Some(found)),
            Got::Absent => Ok(None),
            Got::Same => Err(fails("a read without a tag says that the key has it")),
        }
    }

    /// The key holds these bytes, or nothing; returns what it holds.
    async fn holds(&self, key: &str, bytes: Option<&Bytes>, when: &str) -> Result<Option<Found>> {
        let found = self.get(key).await?;
        match (&found, bytes) {
            (Some(found), Some(bytes)) if found.bytes == *bytes => {}
            (None, None) => {}
            (None, Some(_)) => return Err(fails(format!("nothing is read {when}"))),
            (Some(_), None) => return Err(fails(format!("something is read {when}"))),
            (Some(_), Some(_)) => return Err(fails(format!("other bytes are read {when}"))),
        }
        Ok(found)
    }

    /// Writes what was never written before; its tag, or `None` if it was refused. What nothing is
    /// known of is looked up.
    async fn put(&self, key: &str, expected: Option<&Tag>, bytes: &Bytes) -> Result<Option<Tag>> {
        let mut why = String::new();
        for _ in 0..TRIES {
            match self.backend.put_if(key, expected, bytes.clone()).await? {
                Put::Done(tag) => return Ok(Some(tag)),
                Put::NotDone => return Ok(None),
                Put::Unknown(text) => why = text,
            }
            let found = self.get(key).await?;
            match found {
                Some(found) if found.bytes == *bytes => return Ok(Some(found.tag)),
                found if found.as_ref().map(|found| &found.tag) != expected => return Ok(None),
                _ => {}
            }
        }
        let source = std::io::Error::new(std::io::ErrorKind::NotConnected, why);
        Err(Error::Io { action: format!("writing {key}, {TRIES} times"), source })
    }

    /// Creates a key, for parts that need one.
    async fn made(&self, key: &str, bytes: &Bytes) -> Result<Tag> {
        let put = self.put(key, None, bytes).await?;
        put.ok_or_else(|| fails("a key that holds nothing cannot be created"))
    }

    /// Whether a key can be replaced by its tag.
    async fn replaces(&self) -> Result<bool> {
        let key = self.key("tag");
        let tag = self.made(&key, &self.fresh("tag")).await?;
        Ok(self.put(&key, Some(&tag), &self.fresh("tag")).await?.is_some())
    }

    /// What several read of a key at once, all of which must be the same.
    async fn all_read(&self, key: &str) -> Result<Option<Found>> {
        let reads = (0..races::AT_ONCE).map(|_| self.get(key));
        let reads = join_all(reads).await.into_iter().collect::<Result<Vec<_>>>()?;
        let content = |found: &Option<Found>| found.as_ref().map(|found| found.bytes.clone());
        let same = reads.iter().all(|read| content(read) == reads.first().and_then(content));
        require(same, "reads at the same time see different contents")?;
        Ok(reads.into_iter().next().flatten())
    }
}

#[cfg(test)]
#[path = "../tests/probe.rs"]
mod tests;
