//! Stores files in batches, one transaction each, and counts what happened.
//!
//! Owns: [`Importer`] and [`Tally`]. One thread. Invariant: a file counts as stored only
//! once the transaction that stored it is durable.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use holdall::{Error, ObjectsMut, PutOptions, Result, Store};

use super::feed::{self, Event, Feed, Incoming};
use super::settle::{self, Young};
use super::source::{self, ATTEMPTS, CHANGES, Content};
use super::stream::{self, Done};
use super::{refresh, walk};
use crate::failure::{Failure, NO_SPACE, Outcome, is_full, reason};
use crate::files::IN_MEMORY;
use crate::name::escape;
use crate::progress::Meter;
use crate::{dirs, open};

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
    /// Files whose bytes are stored already, and whose mode or time was stored now.
    pub updated: u64,
    /// Files left alone: stored already.
    pub same: u64,
    /// Their bytes.
    pub same_bytes: u64,
    /// Symbolic links left out.
    pub links: u64,
    /// Devices, pipes and sockets left out.
    pub special: u64,
    /// Files of the store itself left out.
    pub own: u64,
    /// Files and directories that `--exclude` leaves out.
    pub excluded: u64,
    /// Files that `--max-size` leaves out.
    pub large: u64,
    /// Objects that `--delete` removed.
    pub deleted: u64,
    /// Files and directories that could not be read or stored.
    pub failed: u64,
    /// Those of them that are directories.
    pub unread_dirs: u64,
    /// Those of them that the store has no room for.
    pub without_room: u64,
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
    /// Files that `verbose` has spoken of.
    pub acknowledged: u64,
    /// The imported directory.
    pub root: Arc<OwnedFd>,
    /// What stands before all names.
    pub prefix: Vec<u8>,
    /// Stored files that are to be looked at again.
    pub young: Vec<Young>,
    /// The directory whose objects last got new modes.
    pub refreshed: Option<Vec<u8>>,
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
        self.bytes = self.bytes.saturating_add(file.size());
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
        self.commit(&mut batch)?;
        settle::settle(self)
    }

    fn take(&mut self, event: Event, batch: &mut Batch) -> Outcome {
        match event {
            Event::File(file) => {
                // What waits is not held up by one file that takes long.
                if file.size() >= BATCH_BYTES {
                    self.commit(batch)?;
                }
                if matches!(file.source.content, Content::StreamedSparse(_)) {
                    self.commit(batch)?;
                    return self.store_sparse(&file);
                }
                batch.push(file);
            }
            Event::Same(size) => {
                self.tally.same += 1;
                self.tally.same_bytes += size;
                self.show(0, 0);
            }
            Event::Skipped(name, kind) => {
                let t = &mut self.tally;
                *match kind {
                    walk::LINK => &mut t.links,
                    walk::EXCLUDED => &mut t.excluded,
                    feed::LARGE => &mut t.large,
                    walk::TEMPORARY => &mut t.own,
                    _ => &mut t.special,
                } += 1;
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
            Event::Unread(name, why) => {
                self.tally.unread_dirs += 1;
                let root: &[u8] = b"the directory itself";
                self.failed(if name.is_empty() { root } else { &name }, &why);
            }
            Event::Stale(name) => {
                // Before what follows can be taken for a refresh that came to its end.
                self.commit(batch)?;
                let is_done = self.refreshed.as_ref().is_some_and(|dir| name.starts_with(dir));
                if !is_done {
                    refresh::all_below(self, &name)?;
                    self.refreshed = Some(name);
                }
            }
            Event::Broken(error) => return Err(error.into()),
        }
        if batch.is_due() { self.commit(batch) } else { Ok(()) }
    }

    /// Counts and names what is not stored.
    pub fn failed(&mut self, name: &[u8], why: &str) {
        self.tally.failed += 1;
        self.meter.complain(&format!("not imported: {}: {why}", escape(name)));
    }

    fn show(&mut self, files: u64, bytes: u64) {
        let t = &self.tally;
        let done = t.bytes.saturating_add(t.same_bytes).saturating_add(bytes);
        self.meter.at(t.files + t.updated + t.same + files, done);
    }

    fn commit(&mut self, batch: &mut Batch) -> Outcome {
        let files = std::mem::replace(batch, Batch::new()).files;
        self.store_files(&files)
    }

    /// Stores `files`, in halves if they are too much for one transaction or if one of
    /// them is refused, so that the others are stored all the same.
    fn store_files(&mut self, files: &[Incoming]) -> Outcome {
        let Some(last) = files.last() else { return Ok(()) };
        let (mut unread, mut done) = (Vec::new(), Vec::new());
        let (store, collection) = (self.store, self.collection);
        let outcome = store.write(|tx| {
            let mut tx = open::target(tx, collection)?;
            let (mut count, mut bytes) = (0, 0);
            for (at, file) in files.iter().enumerate() {
                match self.store_file(&mut tx, file, bytes)? {
                    Ok(stored) => {
                        (count, bytes) = (count + 1, bytes + stored.size);
                        done.push((at, stored));
                    }
                    Err(why) => unread.push((at, why)),
                }
                self.show(count, bytes);
            }
            Ok(())
        });
        match outcome {
            Ok(()) => {
                let named = |at: usize| files.get(at);
                for (at, why) in unread {
                    if let Some(file) = named(at) {
                        self.failed(&file.name, &why);
                    }
                }
                for (at, stored) in done {
                    if let Some(file) = named(at) {
                        self.count(file, &stored);
                    }
                }
                self.acknowledge(&last.name)
            }
            Err(error) if is_refusal(&error) && files.len() > 1 => {
                let (first, second) = files.split_at(files.len() / 2);
                self.store_files(first)?;
                self.store_files(second)
            }
            Err(error) if is_refusal(&error) => self.note_refused(last, error),
            Err(error) => Err(error.into()),
        }
    }

    /// Names a file that the store has refused. A large one may be too much for the room that
    /// is left; without room for a small one no other would fare better.
    fn note_refused(&mut self, file: &Incoming, error: Error) -> Outcome {
        let why = reason(&error);
        if !is_full(&error) {
            self.failed(&file.name, &why);
            return Ok(());
        }
        self.tally.without_room += 1;
        if file.size() > IN_MEMORY {
            self.failed(&file.name, &why);
            return Ok(());
        }
        self.failed(
            &file.name,
            &format!("{why}: the import ends here; free room and run it again"),
        );
        Err(Failure::Reported(NO_SPACE))
    }

    fn count(&mut self, file: &Incoming, stored: &Done) {
        if let Some(limit) = stored.young {
            let (name, place) = (file.name.clone(), file.place.clone());
            self.young.push(Young { name, place, until: Instant::now() + limit });
        }
        if dirs::is_short(&file.source.attributes) && !file.is_quiet {
            let name = escape(&file.name);
            let what = "stored without the modes of the first directories above it, for which";
            self.meter.complain(&format!("{name}: {what} its attributes have no room"));
        }
        let t = &mut self.tally;
        match file.source.content {
            Content::Kept(_) if file.is_quiet => {
                t.same += 1;
                t.same_bytes += file.source.size;
            }
            Content::Kept(_) => t.updated += 1,
            _ => {
                t.files += 1;
                t.bytes = t.bytes.saturating_add(file.source.size);
                t.replaced += u64::from(file.replaces);
            }
        }
    }

    /// Puts one file; gives how many bytes were written, or why it could not be read. `before`
    /// counts the bytes that this transaction has put already.
    fn store_file(
        &mut self,
        tx: &mut ObjectsMut,
        file: &Incoming,
        before: u64,
    ) -> Result<std::result::Result<Done, String>> {
        match &file.source.content {
            Content::Bytes(bytes) => {
                let options = PutOptions::with_attributes(file.source.attributes.clone());
                tx.put_with(&file.name, bytes, &options)?;
            }
            Content::Kept(all) => tx.set_attributes(&file.name, all)?,
            Content::Pieces(pieces) => {
                let hints = source::hints(source::has_short_holes(pieces));
                tx.put_with(&file.name, &[], &PutOptions { hints, ..PutOptions::default() })?;
                let mut object = tx.open(&file.name)?;
                for (start, piece) in pieces {
                    object.write_at(*start, piece)?;
                }
                object.set_len(file.source.size)?;
                object.finish()?;
                // Only now: a change of the bytes drops their time.
                tx.set_attributes(&file.name, &file.source.attributes)?;
            }
            Content::Streamed | Content::StreamedSparse(_) => {
                let (store, mut moved) = (self.store, before);
                let mut show = |bytes| {
                    moved += bytes;
                    self.show(0, moved);
                };
                return stream::store(store, tx, file, &mut show);
            }
        }
        Ok(Ok(Done { size: file.size(), young: file.source.young }))
    }

    /// Stores a file with holes whose bytes are too many for memory, in a transaction of its own:
    /// if it cannot be read to its end, nothing of it is left.
    fn store_sparse(&mut self, file: &Incoming) -> Outcome {
        let (store, collection) = (self.store, self.collection);
        let mut unread = None;
        for _ in 0..ATTEMPTS {
            let mut moved = 0;
            let mut show = |bytes| {
                moved += bytes;
                self.show(0, moved);
            };
            let mut done = None;
            let outcome = store.write(|tx| {
                let mut tx = open::target(tx, collection)?;
                match stream::store_sparse(store, &mut tx, file, &mut show)? {
                    Ok(stored) => (done, unread) = (Some(stored), None),
                    Err(why) => unread = Some(why),
                }
                // The reason is kept beside it.
                unread.as_ref().map_or(Ok(()), |why| Err(Error::Invalid(why.clone())))
            });
            match (outcome, &unread) {
                (Ok(()), _) => {
                    if let Some(stored) = done {
                        self.count(file, &stored);
                    }
                    return self.acknowledge(&file.name);
                }
                (Err(_), Some(why)) if why == CHANGES => {}
                (Err(error), _) if is_refusal(&error) => return self.note_refused(file, error),
                (Err(error), _) => return Err(error.into()),
            }
        }
        self.failed(&file.name, CHANGES);
        Ok(())
    }

    fn acknowledge(&mut self, last: &[u8]) -> Outcome {
        self.tally.batches += 1;
        self.show(0, 0);
        if self.verbose {
            let t = &self.tally;
            let files = t.files + t.updated;
            self.meter.complain(&format!("acknowledged {} files", files - self.acknowledged));
            self.acknowledged = files;
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

/// Whether the store refuses what was to be stored, and goes on working.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::TooLarge(_) | Error::Invalid(_)) || is_full(error)
}
