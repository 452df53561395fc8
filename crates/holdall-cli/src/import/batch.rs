//! Stores files in batches, one transaction each, and counts what happened.
//!
//! Owns: [`Importer`] and [`Tally`]. One thread. Invariant: a file counts as stored only
//! once the transaction that stored it is durable.

use std::io::Write;
use std::time::{Duration, Instant};

use holdall::{Error, FileId, PutOptions, Result, Store, Target, WriteTx};

use super::feed::{Content, Event, Feed, Incoming};
use crate::failure::{Failure, Outcome, reason};
use crate::files::{self, CopyError};
use crate::name::escape;
use crate::open;
use crate::progress::Meter;

/// A batch is committed at this many files,
const BATCH_FILES: usize = 2000;
/// or this many bytes,
const BATCH_BYTES: u64 = 32 << 20;
/// or once its first file has waited this long.
const BATCH_AGE: Duration = Duration::from_secs(2);

/// What an import did.
#[derive(Default)]
pub struct Tally {
    /// Files stored, durable.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Those of them that took the place of an older content.
    pub replaced: u64,
    /// Files left alone: stored already with the same size and time.
    pub same: u64,
    /// Their bytes.
    pub same_bytes: u64,
    /// Symbolic links left out.
    pub links: u64,
    /// Devices, pipes and sockets left out.
    pub special: u64,
    /// Files of the store itself left out.
    pub own: u64,
    /// Files and directories that could not be read or stored.
    pub failed: u64,
    /// Transactions acknowledged.
    pub batches: u64,
}

/// Takes events and stores files.
pub struct Importer<'s, 't> {
    /// The store.
    pub store: &'s Store,
    /// Collection, `None` for the default one.
    pub collection: Option<&'s str>,
    /// Progress and complaints.
    pub meter: Meter<'t>,
    /// Counts.
    pub tally: Tally,
    /// Say how many files each batch acknowledged, and name what is skipped.
    pub verbose: bool,
    /// Print the last name of each batch.
    pub report_acks: bool,
}

/// The files that wait for the next transaction.
struct Batch {
    files: Vec<Incoming>,
    bytes: u64,
    since: Instant,
}

impl Batch {
    fn new() -> Self {
        Self { files: Vec::new(), bytes: 0, since: Instant::now() }
    }

    fn push(&mut self, file: Incoming) {
        if self.files.is_empty() {
            self.since = Instant::now();
        }
        self.bytes += file.size;
        self.files.push(file);
    }

    fn is_due(&self) -> bool {
        self.files.len() >= BATCH_FILES
            || self.bytes >= BATCH_BYTES
            || (!self.files.is_empty() && self.since.elapsed() >= BATCH_AGE)
    }
}

impl Importer<'_, '_> {
    /// Stores all that the feed gives; on return every file counted is durable.
    pub fn run(&mut self, feed: &Feed<'_>) -> Outcome {
        let mut batch = Batch::new();
        while let Some(events) = feed.next() {
            for event in events {
                self.take(event, &mut batch)?;
            }
        }
        self.commit(&mut batch)
    }

    fn take(&mut self, event: Event, batch: &mut Batch) -> Outcome {
        match event {
            Event::File(file) => {
                // What waits is not held up by one file that takes long.
                if file.size >= BATCH_BYTES {
                    self.commit(batch)?;
                }
                batch.push(file);
            }
            Event::Same(size) => {
                self.tally.same += 1;
                self.tally.same_bytes += size;
                self.show(0, 0);
            }
            Event::Skipped(name, kind) => {
                let count =
                    if kind == "link" { &mut self.tally.links } else { &mut self.tally.special };
                *count += 1;
                if self.verbose {
                    self.meter.complain(&format!("skipped: {}: {kind}", escape(&name)));
                }
            }
            Event::Own(name) => {
                self.tally.own += 1;
                if self.verbose {
                    let name = escape(&name);
                    self.meter.complain(&format!("skipped: {name}: a file of the store itself"));
                }
            }
            Event::Failed(name, why) => self.failed(&name, &why),
            Event::Broken(error) => return Err(error.into()),
        }
        if batch.is_due() { self.commit(batch) } else { Ok(()) }
    }

    fn failed(&mut self, name: &[u8], why: &str) {
        self.tally.failed += 1;
        self.meter.complain(&format!("not imported: {}: {why}", escape(name)));
    }

    fn show(&mut self, files: u64, bytes: u64) {
        let t = &self.tally;
        self.meter.at(t.files + t.same + files, t.bytes + t.same_bytes + bytes);
    }

    fn commit(&mut self, batch: &mut Batch) -> Outcome {
        let files = std::mem::replace(batch, Batch::new()).files;
        self.store_files(&files)
    }

    /// Stores `files`, in halves where they are too much for one transaction or where one of
    /// them is refused, so that the others are stored all the same.
    fn store_files(&mut self, files: &[Incoming]) -> Outcome {
        let Some(last) = files.last() else { return Ok(()) };
        let mut unread = Vec::new();
        let (store, collection) = (self.store, self.collection);
        let outcome = store.write(|tx| {
            let mut tx = open::target(tx, collection)?;
            let (mut count, mut bytes) = (0, 0);
            for (at, file) in files.iter().enumerate() {
                match self.store_file(&mut tx, file, bytes)? {
                    Ok(size) => (count, bytes) = (count + 1, bytes + size),
                    Err(why) => unread.push((at, why)),
                }
                self.show(count, bytes);
            }
            Ok((count, bytes))
        });
        match outcome {
            Ok((count, bytes)) => {
                for (at, why) in &unread {
                    self.failed(files.get(*at).map_or(&[], |file| &file.name), why);
                }
                let is_read = |at: &usize| unread.iter().all(|(failed, _)| failed != at);
                let replaced = (0..files.len())
                    .filter(is_read)
                    .filter_map(|at| files.get(at))
                    .filter(|f| f.replaces);
                self.tally.replaced += replaced.count() as u64;
                self.acknowledge(count, bytes, &last.name)
            }
            Err(Error::TooLarge(_) | Error::Invalid(_)) if files.len() > 1 => {
                let (first, second) = files.split_at(files.len() / 2);
                self.store_files(first)?;
                self.store_files(second)
            }
            Err(error @ (Error::TooLarge(_) | Error::Invalid(_))) => {
                self.failed(&last.name, &reason(&error));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Puts one file; gives its size, or why it could not be read. `before` counts the bytes
    /// that this transaction has put already.
    fn store_file(
        &mut self,
        tx: &mut WriteTx,
        file: &Incoming,
        before: u64,
    ) -> Result<std::result::Result<u64, String>> {
        let path = match &file.content {
            Content::Bytes(bytes) => {
                tx.put_with(
                    &file.name,
                    bytes,
                    &PutOptions::with_attributes(file.attributes.clone()),
                )?;
                return Ok(Ok(bytes.len() as u64));
            }
            Content::Path(path) => path,
        };
        let mut from = match files::open_regular(path) {
            // Put in its place since it was looked at.
            Ok((_, data)) if self.store.is_own_file(FileId::of(&data))? => {
                return Ok(Err("it is a file of the store itself".to_owned()));
            }
            Ok((from, _)) => from,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let expected_size = (file.size > 0).then_some(file.size);
        let attributes = file.attributes.clone();
        let options = PutOptions { expected_size, attributes, ..PutOptions::default() };
        let mut writer = tx.writer(Target::Name(file.name.clone()), options)?;
        let limit = expected_size.unwrap_or(u64::MAX);
        let mut moved = before;
        let mut show = |bytes| {
            moved += bytes;
            self.show(0, moved);
        };
        match files::copy(&mut from, &mut writer, limit, &mut show) {
            Ok(size) => {
                writer.finish()?;
                Ok(Ok(size))
            }
            Err(CopyError::Read(error)) => Ok(Err(error.to_string())),
            Err(CopyError::Write(error)) => Err(files::store_error(error)),
        }
    }

    fn acknowledge(&mut self, files: u64, bytes: u64, last: &[u8]) -> Outcome {
        self.tally.files += files;
        self.tally.bytes += bytes;
        self.tally.batches += 1;
        self.show(0, 0);
        if self.verbose {
            self.meter.complain(&format!("acknowledged {files} files"));
        }
        if self.report_acks {
            let mut out = std::io::stdout().lock();
            let said = writeln!(out, "ack {}", escape(last)).and_then(|()| out.flush());
            match said.map_err(|e| Failure::stdout(&e)) {
                // Nobody listens any more; the files are to be stored all the same.
                Err(Failure::Pipe) => self.report_acks = false,
                other => other?,
            }
        }
        Ok(())
    }
}
