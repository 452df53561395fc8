//! Taking a backup.
//!
//! Owns: [`Backup`]: in what order a store is marked, a state opened and copied. If the state is given
//! up meanwhile, the rest comes from a newer one, with what changed since the mark of what was
//! copied before. So all of the backup is of the last of these states.

use super::info::{BackupId, BackupProgress, now};
use super::pieces::{BackupHead, BackupPieces, Reached, Whole};
use super::state::{Sink, State};
use super::store_file::{self, StoreFile};
use super::stream::{In, Out};
use crate::engine::Options;
use crate::maintain::{DefragOptions, Progress, VerifyReport};
use crate::read::Reader;
use crate::store::Store;
use crate::txn::io_error;
use holdall_core::backup_stream::Head;
use holdall_core::mark::{self, Mark};
use holdall_core::mutation::{self, Mutation};
use holdall_core::superblock::Superblock;
use holdall_core::{Error, Lsn, PageNo, Result};
use holdall_io::{Disk, NewFile};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of a stream that are written at once.
const AT_ONCE: usize = 1 << 20;
/// States in a row that may be given up before they get further than the one before.
const MOST_IDLE: u32 = 8;

/// Where the states of a backup come from.
#[doc(hidden)]
pub trait BackupSource {
    /// Marks the newest state, as [`Store::mark_backup`]; `None` if the store can only be read.
    ///
    /// # Errors
    /// As [`Store::mark_backup`].
    fn mark(&mut self, forget: &[[u8; 16]]) -> Result<Option<Mark>>;

    /// The newest durable state.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn state(&mut self) -> Result<Reader>;

    /// Whether an increment can build on this backup.
    ///
    /// # Errors
    /// As [`Store::read`].
    fn remembers(&mut self, id: BackupId) -> Result<bool> {
        Ok(marks(&self.state()?)?.iter().any(|mark| mark.id == id.0))
    }
}

impl<S: BackupSource + ?Sized> BackupSource for Box<S> {
    fn mark(&mut self, forget: &[[u8; 16]]) -> Result<Option<Mark>> {
        (**self).mark(forget)
    }

    fn state(&mut self) -> Result<Reader> {
        (**self).state()
    }
}

impl Reader {
    /// The number of the store, as [`Store::id`].
    #[doc(hidden)]
    pub fn store_id(&self) -> [u8; 16] {
        self.state.view.inner.pager.volume.superblock().store_id
    }

    /// The LSN of the newest commit that it sees.
    #[doc(hidden)]
    pub fn newest_commit(&self) -> u64 {
        self.state.snapshot.lsn().0
    }
}

impl BackupSource for Store {
    fn mark(&mut self, forget: &[[u8; 16]]) -> Result<Option<Mark>> {
        if self.is_writable() { self.mark_backup(forget).map(Some) } else { Ok(None) }
    }

    fn state(&mut self) -> Result<Reader> {
        self.read()
    }
}

/// What a backup came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackupReport {
    /// Its number; `None` if no increment can build on it.
    pub id: Option<BackupId>,
    /// Bytes of pages that the store has in use.
    pub in_use: u64,
    /// Bytes of pages that were copied.
    pub copied: u64,
    /// The check of the backup, if it was asked for and the backup is a store.
    pub verified: Option<VerifyReport>,
    /// The newest commit that is in it.
    #[doc(hidden)]
    pub state: Lsn,
}

/// How a backup is taken.
///
/// ```
/// use holdall::{Backup, Store};
/// # let dir = std::env::temp_dir().join(format!("holdall-backup-{}", std::process::id()));
/// # let _ = std::fs::remove_dir_all(&dir);
/// # std::fs::create_dir_all(&dir).unwrap();
/// let mut store = Store::create(dir.join("photos.holdall"))?;
/// store.write(|tx| tx.put("a", b"1"))?;
/// let whole = dir.join("monday.holdall");
/// Backup::new().to_file(&mut store, &whole, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// store.write(|tx| tx.put("b", b"2"))?;
/// let base = holdall::BackupInfo::read(&whole)?.id.unwrap();
/// let more = dir.join("tuesday.increment");
/// Backup::new().base(base).to_file(&mut store, &more, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// let parts = [whole.into(), more.into()];
/// holdall::restore(dir.join("again"), parts, &mut |_| std::ops::ControlFlow::Continue(()))?;
/// assert_eq!(Store::open(dir.join("again"))?.get("b")?.unwrap(), b"2");
/// # drop(store);
/// # std::fs::remove_dir_all(&dir).unwrap();
/// # Ok::<(), holdall::Error>(())
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Backup {
    base: Option<BackupId>,
    forget: Vec<[u8; 16]>,
    resumed: Option<(BackupHead, Reached, u64)>,
    rate: Option<u64>,
    verify: bool,
    compact: bool,
}

impl Default for Backup {
    fn default() -> Self {
        let (forget, verify, compact) = (Vec::new(), true, false);
        Self { base: None, forget, resumed: None, rate: None, verify, compact }
    }
}

impl Backup {
    /// A whole backup that is verified.
    pub fn new() -> Self {
        Self::default()
    }

    /// An increment: only what changed since the backup of this number.
    pub fn base(mut self, base: BackupId) -> Self {
        self.base = Some(base);
        self
    }

    /// The store need not remember this backup any more: no increment will build on it.
    pub fn forget(mut self, backup: BackupId) -> Self {
        self.forget.push(backup.0);
        self
    }

    /// Goes on with a backup that was broken off: of its stream there is the head, and all pieces
    /// up to this place, with this many pages.
    #[doc(hidden)]
    pub fn resume(mut self, head: BackupHead, reached: Reached, pages: u64) -> Self {
        self.resumed = Some((head, reached, pages));
        self
    }

    /// Copies at most this many bytes a second, so that the disk has time for others. Default: as
    /// many as it gives.
    pub fn rate(mut self, bytes: u64) -> Self {
        self.rate = Some(bytes.max(1));
        self
    }

    /// Whether the backup is read once more and held against its checksums; a whole one that is a
    /// store is verified as [`Store::verify`] does. Default: yes.
    pub fn verify(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Whether the file of a whole backup is put in order and made as small as its content allows, as
    /// [`Store::defrag`] does. It is a store of its own then: no increment builds on it. Default: no.
    pub fn compact(mut self, compact: bool) -> Self {
        self.compact = compact;
        self
    }

    /// Takes a backup into a new file at `path`, while the store is being written: a whole one as the
    /// file of a store, which can be opened, an increment as a stream. Its name appears once it is
    /// whole, verified and durable. Cost: reads what it copies once, and the part of it that
    /// is written meanwhile once more; a checkpoint is not needed.
    ///
    /// # Errors
    /// [`Error::Exists`] if something has that name; [`Error::NotFound`] if the store does not remember
    /// the base: it is of another store, or of another history of this one, or 128 backups were
    /// taken since; [`Error::Corrupt`] naming what is damaged; [`Error::Cancelled`] if
    /// `progress` ended it; [`Error::Full`], [`Error::Io`]. Then there is no such file.
    pub fn to_file(
        self,
        source: &mut dyn BackupSource,
        path: impl AsRef<Path>,
        progress: BackupProgress<'_>,
    ) -> Result<BackupReport> {
        let path = path.as_ref();
        self.check_compact(self.base.is_none())?;
        let failed = |e| new_file_error(path, e);
        let new = NewFile::begin(path).map_err(failed)?;
        let mut report = match self.base {
            Some(_) => self.increment_to(source, &new, progress)?,
            None => self.whole_to(source, &new, progress)?,
        };
        let like = source.state()?.file_metadata()?;
        if let Some(checked) = report.verified.as_mut().filter(|checked| !checked.is_sound()) {
            let first = checked.problems.first();
            let text = first.map_or_else(String::new, ToString::to_string);
            return Err(Error::corrupt("the backup", text));
        }
        new.publish(like.as_ref()).map_err(failed)?;
        Ok(report)
    }

    fn whole_to(
        self,
        source: &mut dyn BackupSource,
        new: &NewFile,
        progress: BackupProgress<'_>,
    ) -> Result<BackupReport> {
        let disk = new.disk().map_err(|e| io_error("making the backup", e))?;
        let mut taken = self.begin(source)?;
        taken.rate = self.rate;
        let mut file = StoreFile::new(&disk, taken.head.page_size);
        let mut sb = taken.copy(source, &mut file, progress)?;
        if self.compact {
            (sb.stamp, taken.head.mark) = (None, None);
        }
        file.finish(&sb)?;
        disk.sync().map_err(|e| io_error("syncing the backup", e))?;
        if self.compact {
            pack(new.path(), progress)?;
        }
        let verified = match self.verify {
            true => Some(Options::default().open_read_only(new.path())?.verify()?),
            false => None,
        };
        Ok(BackupReport { verified, ..taken.report() })
    }

    fn increment_to(
        self,
        source: &mut dyn BackupSource,
        new: &NewFile,
        progress: BackupProgress<'_>,
    ) -> Result<BackupReport> {
        let (verify, to) = (self.verify, BufWriter::with_capacity(AT_ONCE, new.file()));
        let report = self.to_stream(source, to, progress)?;
        if verify {
            let name = "the backup";
            let file = File::open(new.path()).map_err(|e| Error::io("reading the backup", e))?;
            In::new(BufReader::with_capacity(AT_ONCE, file), name)?.copy(&mut Nowhere)?;
        }
        Ok(report)
    }

    /// Takes a backup as a stream, whole or an increment.
    ///
    /// # Errors
    /// As [`Backup::to_file`].
    pub fn to_stream(
        self,
        source: &mut dyn BackupSource,
        to: impl Write,
        progress: BackupProgress<'_>,
    ) -> Result<BackupReport> {
        self.check_compact(false)?;
        let mut whole = Whole(to);
        let report = self.to_pieces(source, &mut whole, progress)?;
        whole.0.flush().map_err(|e| io_error("writing the backup", e))?;
        Ok(report)
    }

    /// Takes a backup in pieces.
    ///
    /// # Errors
    /// As [`Backup::to_file`]; those of `pieces`.
    #[doc(hidden)]
    pub fn to_pieces(
        self,
        source: &mut dyn BackupSource,
        pieces: &mut dyn BackupPieces,
        progress: BackupProgress<'_>,
    ) -> Result<BackupReport> {
        let mut taken = match self.resumed {
            Some((head, reached, pages)) => Taken::go_on(source, head.0, reached, pages)?,
            None => {
                let taken = self.begin(source)?;
                pieces.head(&BackupHead(taken.head))?;
                taken
            }
        };
        taken.rate = self.rate;
        let mut out = Out::new(pieces, taken.head.page_size, taken.pages);
        let sb = taken.copy(source, &mut out, progress)?;
        out.finish(&sb)?;
        Ok(taken.report())
    }

    /// Only what is a store can be packed.
    fn check_compact(&self, is_store: bool) -> Result<()> {
        if !self.compact || is_store {
            return Ok(());
        }
        Err(Error::Invalid("only a whole backup in a file can be compact".into()))
    }

    /// Marks the store. The base is looked for first: what is refused leaves no mark.
    fn begin(&self, source: &mut dyn BackupSource) -> Result<Taken> {
        let reader = source.state()?;
        let known = marks(&reader)?;
        let base = self.base.map(|id| {
            let found = known.iter().find(|mark| mark.id == id.0).copied();
            found.ok_or_else(|| unknown(id))
        });
        let base = base.transpose()?;
        let mark = source.mark(&self.forget)?;
        let sb = reader.state.view.inner.pager.volume.superblock();
        let head = Head {
            store_id: sb.store_id,
            page_size: sb.page_size,
            space_pages: sb.space_pages,
            base,
            mark,
            time: now(),
        };
        Ok(Taken::new(head))
    }
}

/// Makes the store at `path` as small as its content allows.
fn pack(path: &Path, progress: BackupProgress<'_>) -> Result<()> {
    let store = Options::default().open(path)?;
    let options = DefragOptions::default();
    let mut ended = false;
    let done = store.defrag(&options, &mut |_| {
        // How far it is nobody knows.
        ended |= progress(Progress::default()).is_break();
        if ended { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    let closed = store.close();
    done?;
    closed?;
    if ended { Err(Error::Cancelled) } else { Ok(()) }
}

fn new_file_error(path: &Path, e: std::io::Error) -> Error {
    match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.display().to_string()),
        _ => io_error(format!("making {}", path.display()), e),
    }
}

fn unknown(id: BackupId) -> Error {
    Error::NotFound(format!(
        "backup {id} among those that the store remembers: it is of another store or history, or \
         128 were taken since; take a whole one"
    ))
}

fn marks(reader: &Reader) -> Result<Vec<Mark>> {
    let state = State::new(&reader.state)?;
    mark::all(&state.root, reader.state.view.inner.root)
}

/// A backup under way.
struct Taken {
    head: Head,
    /// What was copied.
    reached: Reached,
    in_use: u64,
    copied: u64,
    /// Pages that a run before copied.
    pages: u64,
    /// What it is of, once all is copied.
    state: Lsn,
    rate: Option<u64>,
    begun: Instant,
}

impl Taken {
    fn new(head: Head) -> Self {
        let reached = Reached::default();
        let (state, begun) = (Lsn(0), Instant::now());
        Self { head, reached, in_use: 0, copied: 0, pages: 0, state, rate: None, begun }
    }

    /// One that was broken off. The store must remember its mark: what changed since then in what was
    /// copied is copied again.
    fn go_on(
        source: &mut dyn BackupSource,
        head: Head,
        reached: Reached,
        pages: u64,
    ) -> Result<Self> {
        let mark = head.mark.ok_or_else(|| Error::Invalid("a backup without a mark".into()))?;
        if !marks(&source.state()?)?.contains(&mark) {
            return Err(unknown(BackupId(mark.id)));
        }
        Ok(Self { reached, pages, ..Self::new(head) })
    }

    fn report(&self) -> BackupReport {
        let id = self.head.mark.map(|mark| BackupId(mark.id));
        let (in_use, copied, state) = (self.in_use, self.copied, self.state);
        BackupReport { id, in_use, copied, verified: None, state }
    }

    /// Copies all pages. Returns the superblock of the state that they make.
    fn copy(
        &mut self,
        source: &mut dyn BackupSource,
        sink: &mut dyn Sink,
        progress: BackupProgress<'_>,
    ) -> Result<Superblock> {
        let mut idle = 0;
        loop {
            let reader = source.state()?;
            let mut state = State::new(&reader.state)?;
            let before = self.reached;
            match self.copy_state(&mut state, sink, progress) {
                // What was copied counts: of it only what changed since the mark is copied again.
                Err(Error::SnapshotTooOld { .. })
                    if self.head.mark.is_some() && state.is_gone() && idle < MOST_IDLE =>
                {
                    idle = if self.reached > before { 0 } else { idle + 1 };
                }
                Err(e) => return Err(e),
                Ok(()) => {
                    self.state = reader.state.snapshot.lsn();
                    return store_file::superblock(&state, self.head.mark, self.head.time);
                }
            }
        }
    }

    fn copy_state(
        &mut self,
        state: &mut State<'_>,
        sink: &mut dyn Sink,
        progress: BackupProgress<'_>,
    ) -> Result<()> {
        let (total, _) = state.in_use()?;
        self.in_use = total;
        let (base, own) =
            (self.head.base.map(|mark| mark.lsn), self.head.mark.map(|mark| mark.lsn));
        let first = self.reached;
        let (copied, reached) = (&mut self.copied, &mut self.reached);
        let mut counted = Counted { sink, copied, reached, pace: (self.rate, self.begun) };
        let mut done = 0;
        let mut tell = |bytes: u64| -> ControlFlow<()> {
            done += bytes;
            progress(Progress { done: done.min(total), total })
        };
        for space in 0..state.spaces {
            let since = |granule| -> Option<Lsn> {
                let again = Reached { space, granule } < first;
                if again && mutation::is(Mutation::R60Again) {
                    return Some(Lsn(u64::MAX));
                }
                if again { own } else { base }
            };
            state.copy(space, &since, &mut counted, &mut tell)?;
        }
        Ok(())
    }
}

struct Counted<'s> {
    sink: &'s mut dyn Sink,
    copied: &'s mut u64,
    reached: &'s mut Reached,
    /// Most bytes a second, and since when.
    pace: (Option<u64>, Instant),
}

impl Sink for Counted<'_> {
    fn put(&mut self, first: PageNo, bytes: &[u8]) -> Result<()> {
        *self.copied += bytes.len() as u64;
        self.sink.put(first, bytes)
    }

    fn reached(&mut self, place: Reached) -> Result<()> {
        *self.reached = place.max(*self.reached);
        self.sink.reached(*self.reached)?;
        if let (Some(rate), begun) = self.pace {
            let due = Duration::from_secs_f64(*self.copied as f64 / rate as f64);
            std::thread::sleep(due.saturating_sub(begun.elapsed()));
        }
        Ok(())
    }
}

/// Where what is only checked goes.
struct Nowhere;

impl Sink for Nowhere {
    fn put(&mut self, _: PageNo, _: &[u8]) -> Result<()> {
        Ok(())
    }
}
