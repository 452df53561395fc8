//! Copying one collection: many objects under way together.
//!
//! Owns: [`run`]. As many threads as requests take names from one list. Into a bucket each stores its
//! object by itself; for a store's file one thread more makes transactions of what they read. A large
//! object has many requests of its own, and so one at a time is streamed.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use holdall::{Attributes, Error, StagedObject, Store, Target};
use holdall_bucket::blocking::BucketStore;

use super::ends::{End, Held, Names};
use crate::failure::{DAMAGED, ERROR, Failure, NO_SPACE, is_full, reason};
use crate::progress::Meter;
use crate::{files, name, open};

/// Objects under way together.
const TOGETHER: usize = 16;
/// Bytes of an object that is held in memory.
const SMALL: u64 = 8 << 20;
/// A transaction ends at this many objects,
const BATCH: usize = 2000;
/// or bytes,
const BATCH_BYTES: u64 = 32 << 20;
/// or once its first object has waited this long.
const BATCH_AGE: Duration = Duration::from_secs(2);

/// What a copy did.
#[derive(Default)]
pub struct Tally {
    /// Objects copied, durable.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that took the place of an older one.
    pub replaced: u64,
    /// Objects left alone: there already.
    pub same: u64,
    /// Their bytes.
    pub same_bytes: u64,
    /// Objects that could not be copied.
    pub failed: u64,
    /// The exit code that these call for.
    pub code: u8,
}

/// Where objects go.
pub enum Into<'a> {
    /// Into this collection of a store's file.
    File(&'a Store, &'a str),
    /// Into a bucket.
    Bucket(BucketStore),
}

/// What is to be copied where.
pub struct Copy<'a> {
    /// Read from.
    pub from: End,
    /// What is there already.
    pub there: End,
    /// Written to.
    pub into: Into<'a>,
    /// Of these names.
    pub prefix: &'a [u8],
    /// Whether bytes are compared, not times.
    pub checksum: bool,
}

/// What the threads share.
struct Work<'a, 'm, 't> {
    copy: &'a Copy<'a>,
    names: Mutex<Names>,
    state: Mutex<State<'m, 't>>,
    /// Held by who streams a large object.
    large: Mutex<()>,
}

struct State<'m, 't> {
    tally: &'m mut Tally,
    meter: &'m mut Meter<'t>,
    /// What ended the copy.
    broken: Option<Failure>,
}

/// An object on its way into a transaction.
struct Ready {
    name: Vec<u8>,
    body: Body,
    size: u64,
    replaces: bool,
}

enum Body {
    Bytes(Vec<u8>, Attributes),
    Staged(Box<StagedObject>),
}

/// Why an object is not copied.
enum Problem {
    /// The others can go on: why, and the exit code.
    This(String, u8),
    /// No other would fare better.
    All(Failure),
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            error if error.is_corrupt() => Self::This(reason(&error), DAMAGED),
            Error::Invalid(_) | Error::Conflict { .. } | Error::OutcomeUnknown { .. } => {
                Self::This(reason(&error), ERROR)
            }
            error if is_full(&error) => Self::This(reason(&error), NO_SPACE),
            error => Self::All(error.into()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies; what ended it early, if something did.
pub fn run(copy: &Copy<'_>, tally: &mut Tally, meter: &mut Meter<'_>) -> Option<Failure> {
    let work = Work {
        copy,
        names: Mutex::new(Names::new(copy.prefix)),
        state: Mutex::new(State { tally, meter, broken: None }),
        large: Mutex::new(()),
    };
    let (send, receive) = sync_channel(TOGETHER);
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            let (work, send) = (&work, send.clone());
            scope.spawn(move || work.take(&send));
        }
        drop(send);
        if let Into::File(store, collection) = &copy.into {
            work.commit_all(store, collection, receive);
        }
    });
    work.state.into_inner().unwrap_or_else(PoisonError::into_inner).broken
}

impl Work<'_, '_, '_> {
    /// Takes names until there are none, or something ended the copy.
    fn take(&self, send: &SyncSender<Ready>) {
        loop {
            if lock(&self.state).broken.is_some() {
                return;
            }
            let next = lock(&self.names).next(&self.copy.from);
            let name = match next {
                Ok(Some(name)) => name,
                Ok(None) => return,
                Err(error) => return self.end(error.into()),
            };
            match self.one(&name, send) {
                Ok(()) => {}
                Err(Problem::This(why, code)) => self.failed(&name, &why, code),
                Err(Problem::All(failure)) => return self.end(failure),
            }
        }
    }

    fn end(&self, failure: Failure) {
        lock(&self.state).broken.get_or_insert(failure);
    }

    fn failed(&self, name: &[u8], why: &str, code: u8) {
        let mut state = lock(&self.state);
        state.tally.failed += 1;
        state.tally.code = state.tally.code.max(code);
        state.meter.complain(&format!("not copied: {}: {why}", name::escape(name)));
    }

    fn count(&self, change: impl FnOnce(&mut Tally)) {
        let mut state = lock(&self.state);
        let State { tally, meter, .. } = &mut *state;
        change(tally);
        meter.at(tally.objects + tally.same, tally.bytes + tally.same_bytes);
    }

    fn one(&self, name: &[u8], send: &SyncSender<Ready>) -> Result<(), Problem> {
        // Deleted since it was listed.
        let Some(mut held) = self.copy.from.find(name)? else { return Ok(()) };
        let _alone = (held.size > SMALL).then(|| lock(&self.large));
        let mut there = self.copy.there.find(name)?;
        let is_there = match &mut there {
            Some(there) if self.copy.checksum => held.equals(there)?,
            Some(there) => held.is_copied_by(there),
            None => false,
        };
        if is_there {
            self.count(|t| (t.same, t.same_bytes) = (t.same + 1, t.same_bytes + held.size));
            return Ok(());
        }
        let replaces = there.is_some();
        match &self.copy.into {
            Into::Bucket(store) => {
                into_bucket(store, name, &mut held)?;
                self.count(|t| done(t, held.size, replaces));
            }
            Into::File(store, _) => {
                let size = held.size;
                let ready =
                    Ready { name: name.to_vec(), body: read(store, name, held)?, size, replaces };
                // Who commits has ended after a failure, which it tells.
                let _ = send.send(ready);
            }
        }
        Ok(())
    }

    /// Makes transactions of what comes, until nothing more does.
    fn commit_all(&self, store: &Store, collection: &str, receive: Receiver<Ready>) {
        let (mut batch, mut bytes, mut since) = (Vec::new(), 0, Instant::now());
        loop {
            let left = match batch.is_empty() {
                true => Duration::MAX,
                false => BATCH_AGE.saturating_sub(since.elapsed()),
            };
            let got = match left {
                Duration::MAX => receive.recv().map_err(|_| RecvTimeoutError::Disconnected),
                left => receive.recv_timeout(left),
            };
            let is_last = matches!(got, Err(RecvTimeoutError::Disconnected));
            if let Ok(ready) = got {
                if batch.is_empty() {
                    since = Instant::now();
                }
                bytes += ready.size;
                batch.push(ready);
                if batch.len() < BATCH && bytes < BATCH_BYTES {
                    continue;
                }
            }
            if let Err(error) = commit(store, collection, &mut batch) {
                return self.end(error.into());
            }
            self.count(|t| batch.iter().for_each(|ready| done(t, ready.size, ready.replaces)));
            batch.clear();
            bytes = 0;
            if is_last {
                return;
            }
        }
    }
}

fn done(tally: &mut Tally, size: u64, replaces: bool) {
    tally.objects += 1;
    tally.bytes += size;
    tally.replaced += u64::from(replaces);
}

fn commit(store: &Store, collection: &str, batch: &mut [Ready]) -> holdall::Result<()> {
    if batch.is_empty() {
        return Ok(());
    }
    store.write(|tx| {
        let mut tx = open::target(tx, Some(collection))?;
        for ready in batch {
            let taken =
                std::mem::replace(&mut ready.body, Body::Bytes(Vec::new(), Attributes::new()));
            match taken {
                Body::Bytes(bytes, attributes) => {
                    let options = holdall::PutOptions::with_attributes(attributes);
                    tx.put_with(&ready.name, &bytes, &options)?;
                }
                Body::Staged(staged) => drop(staged.finish(&mut tx)?),
            }
        }
        Ok(())
    })
}

/// What becomes of an object in a transaction: its bytes, or a large one as it is staged.
fn read(store: &Store, name: &[u8], mut held: Held) -> Result<Body, Problem> {
    let attributes = std::mem::take(&mut held.attributes);
    if held.size <= SMALL {
        return Ok(Body::Bytes(held.read()?, attributes));
    }
    let options = holdall::PutOptions {
        expected_size: Some(held.size),
        ..holdall::PutOptions::with_attributes(attributes)
    };
    let mut staged = store.stage(Target::Name(name.to_vec()), options)?;
    held.each(&mut |piece| staged.push(piece).map(|()| true))?;
    Ok(Body::Staged(Box::new(staged)))
}

fn into_bucket(store: &BucketStore, name: &[u8], held: &mut Held) -> Result<(), Problem> {
    let not_text = |_| Problem::This("names in a bucket are UTF-8".into(), ERROR);
    let name = std::str::from_utf8(name).map_err(not_text)?;
    let attributes = held.attributes.clone();
    let options = holdall_bucket::store::PutOptions { attributes, ..Default::default() };
    if held.size <= SMALL {
        store.put_with(name, held.read()?, options)?;
        return Ok(());
    }
    let mut writer = store.writer(name, options)?;
    held.each(&mut |piece| writer.write_all(piece).map(|()| true).map_err(files::store_error))?;
    writer.finish()?;
    Ok(())
}
