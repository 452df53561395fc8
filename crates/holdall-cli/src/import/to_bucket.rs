//! Importing into a bucket: many files under way together, each object by itself.
//!
//! Owns: [`run`]. As many threads as requests take files from one walk. A file is stored whole or not
//! at all; one that is there already by size and times is left alone, so that an import that was killed
//! goes on. A large file has many requests of its own, and so one at a time is streamed.

use std::io::{self, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use holdall::Error;
use holdall_bucket::blocking::{BucketStore, Object};
use holdall_bucket::store::PutOptions;

use super::batch::Tally;
use super::compare::is_trusted;
use super::feed::{self, Choices};
use super::source::{ATTEMPTS, CHANGES, Opened, read_at};
use super::walk::{self, Found, Place, Walk, What};
use crate::failure::{Failure, reason};
use crate::files::{CHUNK, MTIME};
use crate::name;
use crate::progress::{Meter, Totals};

/// Files under way together.
const TOGETHER: usize = 16;
/// Bytes that the attributes of an object in a bucket may take.
pub const MAX_ATTRIBUTES: usize = 4096;
/// Bytes of a file that is held in memory.
const SMALL: u64 = 8 << 20;

/// What the threads share.
struct Import<'a> {
    store: &'a BucketStore,
    choices: &'a Choices,
    verbose: bool,
    walk: Mutex<Walk<'a>>,
    state: Mutex<State<'a>>,
    /// Held by who streams a large file.
    large: Mutex<()>,
}

struct State<'a> {
    tally: Tally,
    meter: Meter<'a>,
    /// What ended the import.
    broken: Option<Failure>,
}

/// What came of a file.
enum Stored {
    /// It is stored now; whether in place of another object.
    Now(u64, bool),
    /// It was there, and its times were stored.
    Updated(u64),
    Same(u64),
    Large,
}

/// Why a file is not stored.
enum Problem {
    /// The others can go on.
    This(String),
    /// No other would fare better.
    All(Failure),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Error>() {
            Ok(error) => error.into(),
            Err(error) => Self::This(error.to_string()),
        }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Invalid(_) | Error::Conflict { .. } | Error::OutcomeUnknown { .. } => {
                Self::This(reason(&error))
            }
            error => Self::All(error.into()),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Imports what the walk meets; returns the counts, the time taken, and what ended it early. Those it
/// leaves out are named if `verbose`.
pub fn run(
    store: &BucketStore,
    walk: Walk<'_>,
    choices: &Choices,
    verbose: bool,
) -> (Tally, Duration, Option<Failure>) {
    let totals = Totals::default();
    let (tally, meter) = (Tally::default(), Meter::start(Some("files"), &totals));
    let import = Import {
        store,
        choices,
        verbose,
        walk: Mutex::new(walk),
        state: Mutex::new(State { tally, meter, broken: None }),
        large: Mutex::new(()),
    };
    thread::scope(|scope| {
        for _ in 0..TOGETHER {
            scope.spawn(|| import.work());
        }
    });
    let State { tally, meter, broken } =
        import.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    (tally, meter.finish(), broken)
}

impl Import<'_> {
    /// Takes files until there are none, or something ended the import.
    fn work(&self) {
        loop {
            if lock(&self.state).broken.is_some() {
                return;
            }
            let Some(Found { name, what }) = lock(&self.walk).next() else { return };
            match what {
                What::Directory(_) => {}
                What::Skipped(kind) => self.skipped(&name, kind),
                What::Unread(why) => {
                    lock(&self.state).tally.unread_dirs += 1;
                    self.failed(&name, &why);
                }
                What::File(place) => match self.file(&name, &place) {
                    Ok(stored) => self.count(&name, stored),
                    Err(Problem::This(why)) => self.failed(&name, &why),
                    Err(Problem::All(failure)) => lock(&self.state).broken = Some(failure),
                },
            }
        }
    }

    fn count(&self, name: &[u8], stored: Stored) {
        let mut state = lock(&self.state);
        let State { tally: t, meter, .. } = &mut *state;
        match stored {
            Stored::Now(bytes, replaced) => {
                t.files += 1;
                t.batches += 1;
                t.bytes += bytes;
                t.replaced += u64::from(replaced);
            }
            Stored::Updated(bytes) => {
                t.updated += 1;
                t.same += 1;
                t.same_bytes += bytes;
            }
            Stored::Same(bytes) => {
                t.same += 1;
                t.same_bytes += bytes;
            }
            Stored::Large => {
                drop(state);
                return self.skipped(name, feed::LARGE);
            }
        }
        meter.at(t.files + t.same, t.bytes + t.same_bytes);
    }

    fn skipped(&self, name: &[u8], kind: &'static str) {
        let mut state = lock(&self.state);
        let t = &mut state.tally;
        *match kind {
            walk::LINK => &mut t.links,
            walk::EXCLUDED => &mut t.excluded,
            feed::LARGE => &mut t.large,
            walk::TEMPORARY => &mut t.own,
            _ => &mut t.special,
        } += 1;
        if self.verbose {
            state.meter.complain(&format!("skipped: {}: {kind}", name::escape(name)));
        }
    }

    fn failed(&self, name: &[u8], why: &str) {
        let mut state = lock(&self.state);
        state.tally.failed += 1;
        state.meter.complain(&format!("not imported: {}: {why}", name::escape(name)));
    }

    fn file(&self, name: &[u8], place: &Place) -> Result<Stored, Problem> {
        let text = std::str::from_utf8(name)
            .map_err(|_| Problem::This("names in a bucket are UTF-8".into()))?;
        let found = match self.choices.force {
            true => self.store.open(text)?,
            false => match self.compare(text, place)? {
                Ok(stored) => return Ok(stored),
                Err(found) => found,
            },
        };
        for _ in 0..ATTEMPTS {
            let opened = Opened::open(place)?;
            if self.choices.max_size.is_some_and(|most| opened.data.len() > most) {
                return Ok(Stored::Large);
            }
            if let Some(bytes) = self.put(text, place, &opened)? {
                return Ok(Stored::Now(bytes, found.is_some()));
            }
        }
        Err(Problem::This(CHANGES.into()))
    }

    /// What came of it if the file is stored already; else the object in its place.
    fn compare(
        &self,
        name: &str,
        place: &Place,
    ) -> Result<Result<Stored, Option<Object>>, Problem> {
        let Some(mut object) = self.store.open(name)? else { return Ok(Err(None)) };
        let info = object.info();
        let opened = Opened::open(place)?;
        if is_trusted(info.size, &info.attributes, &opened.data) {
            return Ok(Ok(Stored::Same(info.size)));
        }
        let attributes = opened.attributes(place);
        let alike =
            info.size == opened.data.len() && info.attributes.get(MTIME) == attributes.get(MTIME);
        // The times of a young file do not speak for its bytes.
        if !alike || !self.has_bytes(&mut object, &opened)? || !opened.is_unchanged()? {
            return Ok(Err(Some(object)));
        }
        self.store.set_attributes(name, attributes)?;
        Ok(Ok(Stored::Updated(info.size)))
    }

    /// Whether the object has the bytes of the file.
    fn has_bytes(&self, object: &mut Object, opened: &Opened) -> Result<bool, Problem> {
        let _alone = (object.size() > SMALL).then(|| lock(&self.large));
        let mut at = 0;
        let mut buffer = Vec::new();
        for piece in object.pieces(0..object.size())? {
            let piece = piece?;
            buffer.resize(piece.len(), 0);
            let got = read_at(&opened.file, &mut buffer, at)?;
            if buffer.get(..got) != Some(&piece) {
                return Ok(false);
            }
            at += got as u64;
        }
        Ok(true)
    }

    /// Stores a file; `None` if it changed meanwhile, and nothing is stored then.
    fn put(&self, name: &str, place: &Place, opened: &Opened) -> Result<Option<u64>, Problem> {
        let attributes = opened.attributes(place);
        let options = PutOptions { attributes, ..PutOptions::default() };
        let size = opened.data.len();
        let mut file = &opened.file;
        if size <= SMALL {
            let mut bytes = Vec::new();
            // Some files of the system have a size of 0 and content all the same.
            file.take(SMALL).read_to_end(&mut bytes)?;
            if !opened.is_unchanged()? {
                return Ok(None);
            }
            let stored = bytes.len() as u64;
            self.store.put_with(name, bytes, options)?;
            return Ok(Some(stored));
        }
        let _alone = lock(&self.large);
        let mut writer = self.store.writer(name, options)?;
        let mut buffer = vec![0; CHUNK];
        let mut left = size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(CHUNK).min(CHUNK);
            let got = file.read(buffer.get_mut(..most).unwrap_or_default())?;
            if got == 0 {
                return Ok(None);
            }
            writer.write_all(buffer.get(..got).unwrap_or_default())?;
            left -= got as u64;
        }
        if !opened.is_unchanged()? {
            return Ok(None);
        }
        writer.finish()?;
        Ok(Some(size))
    }
}
