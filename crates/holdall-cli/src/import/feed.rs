//! Reads files ahead of the transaction that stores them.
//!
//! Owns: [`Feed`], shared by the reader threads ([`Feed::read`]) and the one thread that
//! takes events ([`Feed::next`]) in the order of the walk.
//!
//! Invariants: what waits to be taken holds at most [`BUDGET`] bytes, plus one delivery of
//! the chunk being waited for; a reader holds at most [`DELIVERY`] bytes and one file more.
//! The chunk that the taker waits for may always deliver, so nobody waits in a circle.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use holdall::{Attributes, Error, FileId, Reader, Store};

use super::walk::{Found, Walk};
use crate::files::{self, IN_MEMORY};
use crate::{name, open, time};

/// Reader threads: one may wait for the disk while the other copies.
pub const READERS: usize = 2;
/// Bytes that may wait to be taken.
const BUDGET: usize = 24 << 20;
/// Bytes a reader gathers before it delivers a part of a chunk.
const DELIVERY: usize = 1 << 20;
/// Bytes an event takes beside its name and content, roughly.
const EVENT: usize = 512;

/// A file to store.
pub struct Incoming {
    /// Name of the object.
    pub name: Vec<u8>,
    /// Where its bytes are.
    pub content: Content,
    /// Size when it was looked at.
    pub size: u64,
    /// Time and mode.
    pub attributes: Attributes,
    /// Whether an object of that name is there already.
    pub replaces: bool,
}

/// The bytes of a file, or where to read them.
pub enum Content {
    /// All of them.
    Bytes(Vec<u8>),
    /// Too many for memory: to be streamed from here.
    Path(PathBuf),
}

/// What a reader says about one directory entry.
pub enum Event {
    /// To be stored.
    File(Incoming),
    /// Stored already, same size and time: its size.
    Same(u64),
    /// Not a regular file: name, what it is.
    Skipped(Vec<u8>, &'static str),
    /// A file of the store itself: its name.
    Own(Vec<u8>),
    /// Could not be read: name, why.
    Failed(Vec<u8>, String),
    /// The store could not be asked; the import cannot go on.
    Broken(Error),
}

impl Event {
    fn cost(&self) -> usize {
        EVENT
            + match self {
                Self::File(file) => match &file.content {
                    Content::Bytes(bytes) => file.name.len() + bytes.len(),
                    Content::Path(path) => file.name.len() + path.as_os_str().len(),
                },
                Self::Failed(name, why) => name.len() + why.len(),
                Self::Skipped(name, _) | Self::Own(name) => name.len(),
                Self::Same(_) | Self::Broken(_) => 0,
            }
    }
}

/// The queue between readers and taker.
pub struct Feed<'s> {
    walk: Mutex<Walk>,
    state: Mutex<State>,
    changed: Condvar,
    store: &'s Store,
    /// Where to look for files that are stored already; `None` if there can be none.
    known: Option<(&'s Store, Option<&'s str>)>,
}

#[derive(Default)]
struct State {
    chunks: BTreeMap<u64, Chunk>,
    /// Number of the chunk to be taken from next.
    next: u64,
    /// Bytes waiting in `chunks`.
    held: usize,
    /// Readers still at work.
    live: usize,
    stop: bool,
}

#[derive(Default)]
struct Chunk {
    events: Vec<Event>,
    cost: usize,
    done: bool,
}

/// Locks; a thread that panicked has left nothing half done that matters to the others.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'s> Feed<'s> {
    /// A feed for exactly [`READERS`] readers.
    pub fn new(walk: Walk, store: &'s Store, known: Option<(&'s Store, Option<&'s str>)>) -> Self {
        let state = Mutex::new(State { live: READERS, ..State::default() });
        Self { walk: Mutex::new(walk), state, changed: Condvar::new(), store, known }
    }

    /// Runs a reader to the end of the walk, or until the feed is stopped.
    pub fn read(&self) {
        let _leave = OnDrop(|| {
            lock(&self.state).live -= 1;
            self.changed.notify_all();
        });
        loop {
            // The guard must not live through the reading.
            let chunk = lock(&self.walk).next_chunk();
            let Some((number, found)) = chunk else { return };
            if !self.read_chunk(number, found) {
                return;
            }
        }
    }

    /// Ends the readers once the returned value is dropped.
    pub fn stop_on_drop(&self) -> impl Drop + '_ {
        OnDrop(|| {
            lock(&self.state).stop = true;
            self.changed.notify_all();
        })
    }

    /// The next events in the order of the walk; `None` at its end.
    pub fn next(&self) -> Option<Vec<Event>> {
        let mut state = lock(&self.state);
        loop {
            let number = state.next;
            let Some(chunk) = state.chunks.get_mut(&number) else {
                if state.live == 0 {
                    return None;
                }
                state = self.wait(state);
                continue;
            };
            let events = std::mem::take(&mut chunk.events);
            let cost = std::mem::take(&mut chunk.cost);
            let done = chunk.done;
            if done {
                state.chunks.remove(&number);
                state.next += 1;
            }
            state.held -= cost;
            if done || !events.is_empty() {
                self.changed.notify_all();
            }
            if !events.is_empty() {
                return Some(events);
            }
            if !done {
                if state.live == 0 {
                    return None;
                }
                state = self.wait(state);
            }
        }
    }

    fn wait<'g>(&self, guard: MutexGuard<'g, State>) -> MutexGuard<'g, State> {
        self.changed.wait(guard).unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the reader shall go on.
    fn read_chunk(&self, number: u64, found: Vec<Found>) -> bool {
        let reader = match self.snapshot() {
            Ok(reader) => reader,
            Err(error) => {
                self.deliver(number, vec![Event::Broken(error)], EVENT, true);
                return false;
            }
        };
        let (mut events, mut cost) = (Vec::with_capacity(found.len()), 0);
        for found in found {
            let event = event(found, self.store, reader.as_ref());
            cost += event.cost();
            events.push(event);
            if cost >= DELIVERY {
                let part = std::mem::take(&mut events);
                if !self.deliver(number, part, std::mem::take(&mut cost), false) {
                    return false;
                }
            }
        }
        self.deliver(number, events, cost, true)
    }

    /// A new snapshot for each chunk: one kept for hours would hold on to old pages.
    fn snapshot(&self) -> Result<Option<Reader>, Error> {
        let Some((store, collection)) = self.known else { return Ok(None) };
        match open::reader(store, collection) {
            Err(Error::NotFound(_)) => Ok(None),
            other => other.map(Some),
        }
    }

    /// Waits for room, then queues; false if the feed was stopped.
    fn deliver(&self, number: u64, events: Vec<Event>, cost: usize, done: bool) -> bool {
        let mut state = lock(&self.state);
        loop {
            if state.stop {
                return false;
            }
            let waited_for = state.next == number
                && state.chunks.get(&number).is_none_or(|chunk| chunk.events.is_empty());
            if waited_for || state.held + cost <= BUDGET {
                break;
            }
            state = self.wait(state);
        }
        state.held += cost;
        let chunk = state.chunks.entry(number).or_default();
        chunk.events.extend(events);
        chunk.cost += cost;
        chunk.done = done;
        self.changed.notify_all();
        true
    }
}

/// Runs its function when dropped, also when a thread unwinds.
struct OnDrop<F: FnMut()>(F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

fn event(found: Found, store: &Store, reader: Option<&Reader>) -> Event {
    let (name, path) = match found {
        Found::Skipped(name, kind) => return Event::Skipped(name, kind),
        Found::Failed(name, why) => return Event::Failed(name, why),
        Found::File(name, path) => (name, path),
    };
    if name.len() > name::MAX_NAME {
        let why = format!("its name of {} bytes is longer than {}", name.len(), name::MAX_NAME);
        return Event::Failed(name, why);
    }
    let replaces = match reader.map(|reader| compare(reader, &name, &path)) {
        None | Some(Ok(Known::Absent)) => false,
        Some(Ok(Known::Changed)) => true,
        Some(Ok(Known::Same(size))) => return Event::Same(size),
        Some(Err(error)) => return Event::Broken(error),
    };
    match read_file(&path, store) {
        Ok(None) => Event::Own(name),
        Ok(Some((content, data))) => Event::File(Incoming {
            size: match &content {
                Content::Bytes(bytes) => bytes.len() as u64,
                Content::Path(_) => data.len(),
            },
            attributes: files::attributes(&data),
            name,
            content,
            replaces,
        }),
        Err(error) => Event::Failed(name, error.to_string()),
    }
}

enum Known {
    Absent,
    Changed,
    Same(u64),
}

/// Whether an object of this name is there, and has the file's size and time.
fn compare(reader: &Reader, name: &[u8], path: &Path) -> Result<Known, Error> {
    let Some(oid) = reader.lookup(name)? else { return Ok(Known::Absent) };
    let stored = reader.metadata(oid)?;
    let mtime = stored.attributes.get(files::MTIME).and_then(|text| time::parse(text));
    // A file that cannot be looked at is reported when it cannot be opened either.
    let Ok(data) = fs::symlink_metadata(path) else { return Ok(Known::Changed) };
    let same = mtime.is_some() && files::mtime(&data) == mtime && data.len() == stored.size;
    Ok(if same { Known::Same(stored.size) } else { Known::Changed })
}

/// Reads a file that fits in memory; `None` for a file of the store itself. Time and size are taken before the bytes, so that a
/// file changed meanwhile differs from what is stored and is taken again by the next run.
fn read_file(path: &Path, store: &Store) -> io::Result<Option<(Content, Metadata)>> {
    let (file, data) = files::open_regular(path)?;
    if store.is_own_file(FileId::of(&data))? {
        return Ok(None);
    }
    let size = data.len();
    if size > IN_MEMORY {
        return Ok(Some((Content::Path(path.into()), data)));
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // Some files of the system have a size of 0 and content all the same.
    let limit = if size == 0 { IN_MEMORY } else { size };
    file.take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == IN_MEMORY && size == 0 {
        return Ok(Some((Content::Path(path.into()), data)));
    }
    Ok(Some((Content::Bytes(bytes), data)))
}
