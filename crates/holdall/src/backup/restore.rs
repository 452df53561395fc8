//! Making a store from a backup and the increments that follow it.
//!
//! Owns: which part builds on which. Parts are given in any order; the first is whole.

use super::info::{BackupId, BackupInfo, BackupProgress, First, first_bytes, no_backup};
use super::state::{Sink, State};
use super::store_file::{StoreFile, raised};
use super::stream::In;
use crate::engine::Options;
use crate::maintain::{Progress, VerifyReport};
use crate::txn::io_error;
use holdall_core::superblock::{Stamp, Superblock};
use holdall_core::{Error, Lsn, PageNo, Result};
use holdall_io::{Disk, NewFile};
use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Bytes of a stream that are read at once.
const AT_ONCE: usize = 1 << 20;

/// A part of what a store is restored from.
pub enum BackupPart {
    /// A file: a backup that is a store, or a stream.
    File(PathBuf),
    /// A stream, and what it is called in errors.
    Stream(Box<dyn Read + Send>, String),
}

impl fmt::Debug for BackupPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "File({})", path.display()),
            Self::Stream(_, name) => write!(f, "Stream({name})"),
        }
    }
}

impl From<PathBuf> for BackupPart {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

/// What a restore came to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The backup whose state the store has.
    pub id: Option<BackupId>,
    /// Milliseconds since 1970 UTC when it was taken.
    pub time: u64,
    /// Bytes of pages written.
    pub written: u64,
    /// The check of the store.
    pub verified: VerifyReport,
}

/// Makes a store in a new file from `parts`: one whole backup, and increments each of which builds on
/// one of the others. The store has the state of the last. Its name appears once it is whole, verified
/// and durable. It begins a history of its own, in which it remembers the marks of before; no log
/// of another life of it is taken for its own. Cost: reads all parts once, and the store for the check.
///
/// # Errors
/// [`Error::Exists`] if something has that name; [`Error::Invalid`] if the parts do not belong together,
/// naming what is missing; [`Error::NotAStore`] if one is no backup; [`Error::Corrupt`] naming what is
/// damaged; [`Error::Cancelled`] if `progress` ended it; [`Error::Full`], [`Error::Io`]. Then there is
/// no such file.
pub fn restore(
    path: impl AsRef<Path>,
    parts: impl IntoIterator<Item = BackupPart>,
    progress: BackupProgress<'_>,
) -> Result<RestoreReport> {
    let path = path.as_ref();
    let chain = in_order(parts.into_iter().map(Part::open).collect::<Result<_>>()?)?;
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => Error::Exists(path.display().to_string()),
        _ => io_error(format!("making {}", path.display()), e),
    };
    let new = NewFile::begin(path).map_err(failed)?;
    let like = chain.first().and_then(|part| part.metadata.clone());
    let disk = new.disk().map_err(failed)?;
    let (stamp, written) = put_together(chain, &disk, progress)?;
    let verified = Options::default().open_read_only(new.path())?.verify()?;
    if let Some(problem) = verified.problems.first() {
        return Err(Error::corrupt("the restored store", problem.to_string()));
    }
    new.publish(like.as_ref()).map_err(failed)?;
    let id = stamp.map(|stamp| BackupId(stamp.mark.id));
    Ok(RestoreReport { id, time: stamp.map_or(0, |stamp| stamp.time), written, verified })
}

/// As [`restore`](restore()), on any empty disk, which is not verified.
///
/// # Errors
/// As [`restore`](restore()).
#[doc(hidden)]
pub fn restore_on(disk: &dyn Disk, parts: impl IntoIterator<Item = BackupPart>) -> Result<()> {
    let chain = in_order(parts.into_iter().map(Part::open).collect::<Result<_>>()?)?;
    put_together(chain, disk, &mut |_| ControlFlow::Continue(())).map(drop)
}

/// Makes a store of all parts. Returns of what backup it is, and the bytes of pages written.
fn put_together(
    chain: Vec<Part>,
    disk: &dyn Disk,
    progress: BackupProgress<'_>,
) -> Result<(Option<Stamp>, u64)> {
    let mut to = Written { disk, file: None, bytes: 0, progress, ended: false };
    let mut last = None;
    for part in chain {
        last = Some(part.copy(&mut to)?);
    }
    let sb = last.ok_or_else(|| Error::Invalid("a restore needs a backup".into()))?;
    let (stamp, written) = (sb.stamp, to.bytes);
    let sb = raised(Superblock { stamp: None, ..sb }, Lsn(0))?;
    StoreFile::new(disk, sb.page_size).finish(&sb)?;
    disk.sync().map_err(|e| io_error("syncing the new store", e))?;
    Ok((stamp, written))
}

/// A part that was looked at.
struct Part {
    info: BackupInfo,
    /// Bytes of a page, pages of a space.
    sizes: (u32, u32),
    name: String,
    metadata: Option<std::fs::Metadata>,
    from: Source,
}

enum Source {
    Store(PathBuf),
    Stream(In<Box<dyn Read + Send>>),
}

impl Part {
    fn open(part: BackupPart) -> Result<Self> {
        let (from, name): (Box<dyn Read + Send>, _) = match part {
            BackupPart::Stream(from, name) => (from, name),
            BackupPart::File(path) => {
                let name = path.display().to_string();
                let file =
                    File::open(&path).map_err(|e| Error::io(format!("reading {name}"), e))?;
                if let First::Store(sb) = first_bytes(&path)? {
                    let metadata = file.metadata().ok();
                    return Self::store(path, name, &sb, metadata);
                }
                (Box::new(BufReader::with_capacity(AT_ONCE, file)), name)
            }
        };
        let stream = In::new(from, &name)?;
        let sizes = (stream.head.page_size, stream.head.space_pages);
        let info = BackupInfo::of_head(&stream.head);
        Ok(Self { info, sizes, name, metadata: None, from: Source::Stream(stream) })
    }

    fn store(
        path: PathBuf,
        name: String,
        sb: &Superblock,
        metadata: Option<std::fs::Metadata>,
    ) -> Result<Self> {
        let why = "it is a store of its own, or was opened for writing since it was a backup";
        let stamp = sb.stamp.ok_or_else(|| no_backup(&path, why))?;
        let id = Some(BackupId(stamp.mark.id));
        let info = BackupInfo { store: sb.store_id, id, base: None, time: stamp.time };
        let sizes = (sb.page_size, sb.space_pages);
        Ok(Self { info, sizes, name, metadata, from: Source::Store(path) })
    }

    /// Copies its pages. Returns the superblock of the state that is there then.
    fn copy(self, to: &mut Written<'_, '_>) -> Result<Superblock> {
        to.file = Some(StoreFile::new(to.disk, self.sizes.0));
        let path = match self.from {
            Source::Stream(stream) => return stream.copy(to),
            Source::Store(path) => path,
        };
        let store = Options::default().open_read_only(&path)?;
        let reader = store.read()?;
        let mut state = State::new(&reader.state)?;
        let mut go_on = |_| ControlFlow::Continue(());
        for space in 0..state.spaces {
            state.copy(space, &|_| None, to, &mut go_on)?;
        }
        Ok(reader.state.view.inner.pager.volume.superblock())
    }
}

/// The parts in the order in which they build on each other.
fn in_order(parts: Vec<Part>) -> Result<Vec<Part>> {
    let (mut whole, mut others): (Vec<Part>, Vec<Part>) =
        parts.into_iter().partition(|part| part.info.base.is_none());
    let first = match (whole.pop(), whole.pop()) {
        (Some(first), None) => first,
        (Some(one), Some(other)) => {
            let text = format!("{} and {} are both whole backups", other.name, one.name);
            return Err(Error::Invalid(text));
        }
        (None, _) => return Err(Error::Invalid("none of these is a whole backup".into())),
    };
    let mut chain = vec![first];
    while let Some(last) = chain.last() {
        let (store, sizes, id) = (last.info.store, last.sizes, last.info.id);
        if let Some(other) =
            others.iter().find(|part| part.info.store != store || part.sizes != sizes)
        {
            let text = format!("{} is of another store than {}", other.name, last.name);
            return Err(Error::Invalid(text));
        }
        match others.iter().position(|part| id.is_some() && part.info.base == id) {
            Some(next) => chain.push(others.remove(next)),
            None => break,
        }
    }
    let Some(left) = others.first() else { return Ok(chain) };
    let base = left.info.base.map_or_else(String::new, |base| base.to_string());
    let text = match chain.iter().any(|part| part.info.id == left.info.base) {
        true => format!("{} and another one build on the same backup, {base}", left.name),
        false => format!("{} builds on backup {base}, which is not among these", left.name),
    };
    Err(Error::Invalid(text))
}

/// The new file, and how far it is.
struct Written<'d, 'p> {
    disk: &'d dyn Disk,
    file: Option<StoreFile<'d>>,
    bytes: u64,
    progress: BackupProgress<'p>,
    ended: bool,
}

impl Sink for Written<'_, '_> {
    fn put(&mut self, first: PageNo, bytes: &[u8]) -> Result<()> {
        self.bytes += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            file.put(first, bytes)?;
        }
        self.ended |= (self.progress)(Progress { done: self.bytes, total: 0 }).is_break();
        if self.ended { Err(Error::Cancelled) } else { Ok(()) }
    }
}
