//! Reads files ahead of the transaction that stores them.
//!
//! Owns: [`Feed`], shared by the reader threads ([`Feed::read`]) and the one thread that
//! takes events ([`Feed::next`]) in the order of the walk.
//!
//! Invariants: what waits to be taken holds at most [`BUDGET`] bytes, plus one delivery of
//! the chunk being waited for; a reader holds at most [`DELIVERY`] bytes and one file more.
//! The chunk that the taker waits for may always deliver, so nobody waits in a circle.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use holdall::{Attributes, Error, Metadata, Reader, Store};

use super::source::{self, Content, Look, Source, attributes_now};
use super::walk::{Found, Place, Walk, What};
use super::{compare, refresh};
use crate::{name, open};

/// Reader threads: one may wait for the disk while the other copies.
pub const READERS: usize = 2;
/// Bytes that may wait to be taken.
const BUDGET: usize = 24 << 20;
/// Bytes a reader gathers before it delivers a part of a chunk.
const DELIVERY: usize = 1 << 20;
/// Bytes an event takes beside its name and content, roughly.
const EVENT: usize = 512;

/// The note on a file above `--max-size`.
pub const LARGE: &str = "larger than --max-size";

/// A file to store.
pub struct Incoming {
    /// Name of the object.
    pub name: Vec<u8>,
    /// Where the file lies.
    pub place: Place,
    /// Its bytes, size and attributes when it was looked at.
    pub source: Source,
    /// Whether an object of that name is there already.
    pub replaces: bool,
    /// Whether only attributes change, and none that users see.
    pub is_quiet: bool,
}

impl Incoming {
    /// Bytes that will be written to the store.
    pub fn size(&self) -> u64 {
        match &self.source.content {
            Content::Kept(_) => 0,
            Content::Pieces(pieces) => pieces.iter().map(|(_, bytes)| bytes.len() as u64).sum(),
            _ => self.source.size,
        }
    }
}

/// What the user wants of an import.
#[derive(Default)]
pub struct Choices {
    /// Store all files, whatever is stored.
    pub force: bool,
    /// Compare the bytes of files that have the size of what is stored.
    pub checksum: bool,
    /// Leave out files above this many bytes.
    pub max_size: Option<u64>,
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
    /// A directory that could not be read: name, why.
    Unread(Vec<u8>, String),
    /// A directory of whose mode objects below it have an older one: its name.
    Stale(Vec<u8>),
    /// The store could not be asked; the import cannot go on.
    Broken(Error),
}

impl Event {
    fn cost(&self) -> usize {
        EVENT
            + match self {
                Self::File(file) => {
                    let held = match &file.source.content {
                        Content::Streamed | Content::StreamedSparse(_) => 0,
                        _ => usize::try_from(file.size()).unwrap_or(usize::MAX),
                    };
                    file.name.len() + file.place.below.as_os_str().len() + held
                }
                Self::Failed(name, why) | Self::Unread(name, why) => name.len() + why.len(),
                Self::Skipped(name, _) | Self::Own(name) | Self::Stale(name) => name.len(),
                Self::Same(_) | Self::Broken(_) => 0,
            }
    }
}

/// The queue between readers and taker.
pub struct Feed<'s> {
    walk: Mutex<Walk<'s>>,
    state: Mutex<FeedState>,
    changed: Condvar,
    store: &'s Store,
    /// Where to look for files that are stored already; `None` if there can be none.
    known: Option<(&'s Store, Option<&'s str>)>,
    choices: &'s Choices,
}

#[derive(Default)]
struct FeedState {
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
    pub fn new(
        walk: Walk<'s>,
        store: &'s Store,
        known: Option<(&'s Store, Option<&'s str>)>,
        choices: &'s Choices,
    ) -> Self {
        let state = Mutex::new(FeedState { live: READERS, ..FeedState::default() });
        Self { walk: Mutex::new(walk), state, changed: Condvar::new(), store, known, choices }
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

    fn wait<'g>(&self, guard: MutexGuard<'g, FeedState>) -> MutexGuard<'g, FeedState> {
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
            let Some(event) = self.event(found, reader.as_ref()) else { continue };
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

    /// What is to be printed about what the walk met; of a directory mostly nothing.
    fn event(&self, found: Found, reader: Option<&Reader>) -> Option<Event> {
        let name = found.name;
        Some(match found.what {
            What::Skipped(kind) => Event::Skipped(name, kind),
            What::Unread(why) => Event::Unread(name, why),
            What::File(place) => self.met(name, place, reader),
            What::Directory(bits) => match refresh::is_stale(reader?, &name, bits) {
                Ok(false) => return None,
                Ok(true) => Event::Stale(name),
                Err(error) => Event::Broken(error),
            },
        })
    }

    fn met(&self, name: Vec<u8>, place: Place, reader: Option<&Reader>) -> Event {
        if name.len() > name::MAX_NAME {
            let why = format!("its name of {} bytes is longer than {}", name.len(), name::MAX_NAME);
            return Event::Failed(name, why);
        }
        let stored = reader.map(|reader| stored(reader, &name)).transpose();
        match stored {
            Ok(stored) => self.file(name, place, reader.zip(stored.flatten())),
            Err(error) => Event::Broken(error),
        }
    }

    /// What is to be done about a file, of which `known` is stored.
    fn file(&self, name: Vec<u8>, place: Place, known: Option<(&Reader, Metadata)>) -> Event {
        if let Some((_, stored)) = known.as_ref().filter(|_| self.believes())
            && let Ok(data) = place.data()
            && compare::is_trusted(stored.size, &stored.attributes, &data)
        {
            return self.keep(name, stored, attributes_now(&data, &place), place);
        }
        let most = self.choices.max_size.unwrap_or(u64::MAX);
        let mut source = match source::examine(&place, self.store, most) {
            Ok(Look::Source(source)) => source,
            Ok(Look::Own) => return Event::Own(name),
            Ok(Look::Large) => return Event::Skipped(name, LARGE),
            Err(error) => return Event::Failed(name, error.to_string()),
        };
        let replaces = known.is_some();
        if let Some((reader, stored)) = known.filter(|_| !self.choices.force)
            && (self.choices.checksum
                || compare::is_alike(&stored, source.size, &source.attributes))
        {
            match compare::is_same(reader, &stored, &mut source, &place) {
                Ok(true) => return self.keep(name, &stored, source.attributes, place),
                Ok(false) => {}
                Err(compare::Problem::File(error)) => {
                    return Event::Failed(name, error.to_string());
                }
                Err(compare::Problem::Store(error)) => return Event::Broken(error),
            }
        }
        Event::File(Incoming { name, place, source, replaces, is_quiet: false })
    }

    /// A file whose bytes are stored already.
    fn keep(&self, name: Vec<u8>, stored: &Metadata, new: Attributes, place: Place) -> Event {
        let most = self.store.attribute_bytes();
        let Some(all) = compare::updated(&stored.attributes, &new, most) else {
            return Event::Same(stored.size);
        };
        let is_quiet = !compare::is_visible(&stored.attributes, &new);
        let (content, size) = (Content::Kept(all), stored.size);
        let source = Source { content, size, attributes: new, young: None };
        Event::File(Incoming { name, place, source, replaces: true, is_quiet })
    }

    /// Whether sizes and times are enough.
    fn believes(&self) -> bool {
        !self.choices.force && !self.choices.checksum
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

/// What is stored under a name.
fn stored(reader: &Reader, name: &[u8]) -> Result<Option<Metadata>, Error> {
    reader.lookup(name)?.map(|oid| reader.metadata(oid)).transpose()
}
