//! Files that were so young when they were read that their times could not tell of a change.
//!
//! Owns: the second look at them, once at the end, when the clock of the file system must have
//! moved on. A file is what was read if it still has the bytes that are stored and its times
//! can be trusted now, or if it has only grown behind them.

use std::thread;
use std::time::{Duration, Instant};

use holdall::{Error, Reader};

use super::batch::Importer;
use super::compare::{self, Problem};
use super::source::Opened;
use super::walk::Place;
use crate::failure::Outcome;
use crate::files::CHUNK;
use crate::open;

/// How often a file is looked at again.
const ROUNDS: usize = 2;
/// The note on one that did change.
const TORN: &str = "it changes while it is read, and what is stored may be torn: import again when \
                    nobody writes to it";

/// A file to be looked at again.
pub struct Young {
    /// Its object's name.
    pub name: Vec<u8>,
    /// Where it lies.
    pub place: Place,
    /// From when on its times show any change before.
    pub until: Instant,
}

/// What another look says.
enum Verdict {
    /// It is stored as it was at one moment.
    Whole,
    /// It was changed again, as far as its times can say: how long until they say more.
    Young(Duration),
    /// What is stored may be torn, or nobody knows: why.
    Torn(String),
}

/// Looks at the young files once their times can be trusted, and names those that changed. Cost: up
/// to some seconds of waiting, and reading these files and their objects.
///
/// # Errors
/// Those of the store.
pub fn settle(importer: &mut Importer<'_, '_>) -> Outcome {
    for _ in 0..ROUNDS {
        let young = std::mem::take(&mut importer.young);
        let Some(until) = young.iter().map(|file| file.until).max() else { return Ok(()) };
        thread::sleep(until.saturating_duration_since(Instant::now()));
        let reader = open::reader(importer.store, importer.collection)?;
        let mut buffer = vec![0; CHUNK];
        for file in young {
            match compare(&reader, &file, &mut buffer) {
                Ok(Verdict::Whole) => {}
                Ok(Verdict::Young(limit)) => {
                    importer.young.push(Young { until: Instant::now() + limit, ..file });
                }
                Ok(Verdict::Torn(why)) => importer.failed(&file.name, &why),
                Err(error) => return Err(error.into()),
            }
        }
    }
    for file in std::mem::take(&mut importer.young) {
        importer.failed(&file.name, TORN);
    }
    Ok(())
}

fn compare(reader: &Reader, file: &Young, buffer: &mut [u8]) -> Result<Verdict, Error> {
    match compared(reader, file, buffer) {
        Ok(verdict) => Ok(verdict),
        Err(Problem::File(error)) => {
            let why =
                format!("it cannot be looked at again ({error}), and was changed just before");
            Ok(Verdict::Torn(why))
        }
        Err(Problem::Store(error)) => Err(error),
    }
}

fn compared(reader: &Reader, file: &Young, buffer: &mut [u8]) -> Result<Verdict, Problem> {
    let Some(oid) = reader.lookup(&file.name)? else { return Ok(Verdict::Whole) };
    let object = reader.open(oid)?;
    let opened = Opened::open(&file.place)?;
    let grew = opened.data.len() > object.size();
    if !compare::begins_with(&opened, &object, buffer)? {
        return Ok(Verdict::Torn(TORN.to_owned()));
    }
    if grew {
        return Ok(Verdict::Whole);
    }
    let young = opened.young().filter(|_| !opened.is_ahead());
    match young {
        Some(limit) => Ok(Verdict::Young(limit)),
        None if opened.is_unchanged()? => Ok(Verdict::Whole),
        None => Ok(Verdict::Torn(TORN.to_owned())),
    }
}
