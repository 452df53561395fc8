//! A client that leaves a history, for `tests/linearizable`: `histories WHAT key=value...`.
//!
//! `create place=` makes a store, with a grace of `grace=` seconds and, with `small=1`, sizes that
//! make trees of few entries; only a test may do that. `work` runs operations by seed until it is
//! killed and writes each call before it is made and each answer after it came. `last` reads all names.
//! `end` collects until nothing is left, verifies, and tells what it found.

mod chosen;
mod history;
mod units;
mod work;

use history::History;
use holdall::{Error, Result};
use holdall_bucket::backend::{Backend, Got, Put, S3};
use holdall_bucket::format::Head;
use holdall_bucket::{Access, BucketStore, CollectOptions, Verified};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The key of a store's head.
const HEAD: &str = "holdall";
/// Cycles after which collecting must have found all.
const CYCLES: usize = 12;

/// What was given as `key=value`.
pub(crate) struct Arguments(BTreeMap<String, String>);

impl Arguments {
    fn read() -> (String, Self) {
        let mut given = std::env::args().skip(1);
        let what = given.next().unwrap_or_default();
        let pairs = given.filter_map(|pair| {
            pair.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()))
        });
        (what, Self(pairs.collect()))
    }

    pub(crate) fn text(&self, key: &str) -> Result<&str> {
        let value = self.0.get(key).map(String::as_str);
        value.ok_or_else(|| Error::Invalid(format!("{key}= is missing")))
    }

    pub(crate) fn number(&self, key: &str) -> Result<u64> {
        let value = self.text(key)?;
        value.parse().map_err(|e| Error::Invalid(format!("{key}={value}: {e}")))
    }
}

fn main() -> Result<()> {
    let (what, arguments) = Arguments::read();
    break_a_rule()?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|e| Error::io("starting threads", e))?;
    match what.as_str() {
        "create" => runtime.block_on(create(&arguments)),
        "work" => runtime.block_on(work(&arguments)),
        "last" => runtime.block_on(last(&arguments)),
        "end" => runtime.block_on(end(&arguments)),
        _ => Err(Error::Invalid("histories create, work, last or end".into())),
    }
}

/// Takes a rule away, if the build can and the environment says which.
#[cfg(holdall_mutations)]
fn break_a_rule() -> Result<()> {
    use holdall_bucket::mutation::{ALL, activate};
    let Ok(wanted) = std::env::var("HOLDALL_BUCKET_MUTATION") else { return Ok(()) };
    let found = ALL.iter().find(|(_, name)| *name == wanted);
    let (mutation, _) = found.ok_or_else(|| Error::Invalid(format!("no mutation {wanted}")))?;
    activate(Some(*mutation));
    Ok(())
}

#[cfg(not(holdall_mutations))]
fn break_a_rule() -> Result<()> {
    Ok(())
}

async fn create(arguments: &Arguments) -> Result<()> {
    let place = arguments.text("place")?;
    let access = Access::default();
    let (_, report) = BucketStore::create_at(place, &access, &mut |_| {}).await?;
    let quoting = report.quoting.unwrap_or_default();
    let s3 = S3::open(place, &access)?.with_quoting(quoting);
    let Got::Found(found) = s3.get(HEAD, None, None).await? else {
        return Err(Error::NotFound(place.into()));
    };
    let mut head = Head::decode(&found.bytes.whole(), place)?;
    head.sizes.grace = arguments.number("grace")?;
    if arguments.number("small")? == 1 {
        head.sizes.embedded = 4096;
        head.sizes.segment = 65_536;
        (head.sizes.slices, head.sizes.fanout, head.sizes.retired) = (24, 6, 6);
    }
    let put = s3.put_if(HEAD, Some(&found.tag), head.encode()?).await?;
    if !matches!(put, Put::Done(_)) {
        return Err(Error::Invalid(format!("the head cannot be replaced: {put:?}")));
    }
    println!("{quoting:?}, {} requests, sizes {:?}", report.requests, head.sizes);
    Ok(())
}

async fn work(arguments: &Arguments) -> Result<()> {
    let place = arguments.text("place")?;
    let store = loop {
        match BucketStore::open_at(place, &Access::default()).await {
            Err(Error::Io { .. }) => tokio::time::sleep(Duration::from_millis(200)).await,
            opened => break opened?,
        }
    };
    let history = Arc::new(History::open(arguments.text("history")?)?);
    let tasks = (0..arguments.number("tasks")?).map(|task| {
        let worker = work::Worker::new(store.clone(), history.clone(), arguments, task);
        async move { tokio::spawn(worker?.run()).await.map_err(|e| Error::io("a task", e.into()))? }
    });
    futures::future::try_join_all(tasks).await.map(drop)
}

async fn last(arguments: &Arguments) -> Result<()> {
    let store = BucketStore::open_at(arguments.text("place")?, &Access::default()).await?;
    let history = Arc::new(History::open(arguments.text("history")?)?);
    work::Worker::new(store, history, arguments, 0)?.last().await
}

/// Collects until nothing is found any more, verifies, collects in full, verifies again.
async fn end(arguments: &Arguments) -> Result<()> {
    let store = BucketStore::open_at(arguments.text("place")?, &Access::default()).await?;
    let grace = Duration::from_secs(arguments.number("grace")? + 2);
    let alone = CollectOptions { alone: true, full: false };
    let mut quiet = false;
    for cycle in 0..CYCLES {
        tokio::time::sleep(grace).await;
        let found = store.collect(alone, &mut |_| {}).await?;
        println!("{found:?}");
        quiet = (found.intents, found.closed, found.blobs, found.gone) == (0, 0, 0, 0);
        if quiet && cycle > 0 {
            break;
        }
    }
    let first = verified(&store).await?;
    let full = store.collect(CollectOptions { alone: true, full: true }, &mut |_| {}).await?;
    println!("{full:?}");
    let last = verified(&store).await?;
    let problems = first.problems.len() + last.problems.len();
    if !quiet || problems > 0 || last.unnamed > 0 {
        let left = last.unnamed;
        let text = format!("quiet: {quiet}, {problems} problems, {left} blobs left without a name");
        return Err(Error::Invalid(text));
    }
    println!("nothing is missing, damaged or left; {} were without a name before", first.unnamed);
    Ok(())
}

async fn verified(store: &BucketStore) -> Result<Verified> {
    let found = store.verify(&mut |_| {}).await?;
    println!("{found:?}");
    Ok(found)
}
