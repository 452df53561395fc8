//! Reads a file as it was at one moment.
//!
//! Owns: what a file's times say about its bytes. A file that is written to while it is read has
//! another time or size afterwards; it is read once more, and then named.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, SystemTime};

use holdall::{Attributes, FileId, Hints, Store};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use super::walk::Place;
use crate::dirs::DIRS;
use crate::files::{self, CTIME, IN_MEMORY, MODE, MTIME, ctime};
use crate::time;

/// How long after a change the clock of a file system may show the same time still: FAT counts
/// by two seconds.
const COARSE: Duration = Duration::from_secs(3);
/// The same of a file system that counts in smaller steps than 10 ms: the system's clock ticks a
/// hundred times a second at least.
const FINE: Duration = Duration::from_millis(40);
/// Nanoseconds of the largest step between [`FINE`] and seconds: that of exFAT.
const STEP: i64 = 10_000_000;
/// How often a file is read that changes meanwhile.
pub const ATTEMPTS: usize = 2;
/// What to say of one that always changes.
pub const CHANGES: &str = "it changes while it is read: import again when nobody writes to it";

/// The bytes of a file, or where to read them.
pub enum Content {
    /// All of them.
    Bytes(Vec<u8>),
    /// All that is not in a hole, and where it begins.
    Pieces(Vec<(u64, Vec<u8>)>),
    /// Too many for memory: to be streamed.
    Streamed,
    /// As [`Content::Streamed`], with holes; whether short ones were seen.
    StreamedSparse(bool),
    /// Those that are stored; the attributes to store instead.
    Kept(Attributes),
}

/// A file as it was read.
pub struct Source {
    /// Its bytes.
    pub content: Content,
    /// Its length.
    pub size: u64,
    /// What import stores about it.
    pub attributes: Attributes,
    /// If its times could not tell of a change while it was read: how long after they can.
    pub young: Option<Duration>,
}

/// What a look at a file gives.
pub enum Look {
    /// Its bytes.
    Source(Source),
    /// It belongs to the store itself.
    Own,
    /// It is larger than the user wants.
    Large,
}

/// A file that is open, as it was when it was opened.
pub struct Opened {
    /// To read from.
    pub file: File,
    /// Its size and times.
    pub data: Metadata,
    now: SystemTime,
}

impl Opened {
    /// Opens a regular file.
    pub fn open(place: &Place) -> io::Result<Self> {
        let now = SystemTime::now();
        let (file, data) = place.open()?;
        Ok(Self { file, data, now })
    }

    /// Whether it belongs to the store.
    pub fn is_own(&self, store: &Store) -> io::Result<bool> {
        Ok(store.is_own_file(FileId::from_metadata(&self.data))?)
    }

    /// Whether it is now as it was then, as far as its size and times say.
    pub fn is_unchanged(&self) -> io::Result<bool> {
        let now = self.file.metadata()?;
        let same_time = files::mtime(&now) == files::mtime(&self.data);
        Ok(now.len() == self.data.len() && same_time && ctime(&now) == ctime(&self.data))
    }

    /// If it had changed so shortly before that another change may bear the same times: how long
    /// after the last one none can. A clock that is ahead of ours says nothing.
    pub fn young(&self) -> Option<Duration> {
        let is_coarse = self.data.ctime_nsec() % STEP == 0;
        let limit = if is_coarse { COARSE } else { FINE };
        let age = time::to_nanos(self.now) - ctime(&self.data);
        (age < limit.as_nanos() as i128).then_some(limit)
    }

    /// Whether its last change lies after now, by more than a clock is coarse.
    pub fn is_ahead(&self) -> bool {
        ctime(&self.data) - time::to_nanos(self.now) > COARSE.as_nanos() as i128
    }

    /// The attributes import stores.
    pub fn attributes(&self, place: &Place) -> Attributes {
        attributes(&self.data, self.now, place)
    }

    /// Whether there is a hole in it.
    pub fn is_sparse(&self) -> io::Result<bool> {
        let size = self.data.len();
        // Less room than bytes; also if the file system compresses them.
        let is_short = self.data.blocks().saturating_mul(512) < size;
        Ok(is_short && self.next_data(0)? != Some(0..size))
    }

    /// The first stretch at or behind `from` that is no hole. If the file system does not know
    /// holes, all is one stretch.
    pub fn next_data(&self, from: u64) -> io::Result<Option<Range<u64>>> {
        let size = self.data.len();
        if from >= size {
            return Ok(None);
        }
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(from)) {
            Ok(start) if start >= size => return Ok(None),
            Ok(start) => start.max(from),
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::NOTSUP | Errno::NOSYS) => return Ok(Some(from..size)),
            Err(e) => return Err(e.into()),
        };
        let end = rustix::fs::seek(&self.file, SeekFrom::Hole(start)).unwrap_or(size).min(size);
        // One that was cut meanwhile has no hole behind its data; what is read then says so.
        Ok(Some(start..if end > start { end } else { size }))
    }
}

fn attributes(data: &Metadata, now: SystemTime, place: &Place) -> Attributes {
    let mut attributes = Attributes::new();
    let mtime = files::mtime(data);
    if let Some(nanos) = mtime {
        attributes.insert(MTIME.into(), nanos.to_string().into_bytes());
    }
    let changed = ctime(data);
    let last = mtime.map_or(changed, |mtime| mtime.max(changed));
    // The next change may bear the same times.
    if time::to_nanos(now) - last < COARSE.as_nanos() as i128 {
        attributes.insert(CTIME.into(), b"0".into());
    } else if mtime != Some(changed) {
        attributes.insert(CTIME.into(), changed.to_string().into_bytes());
    }
    attributes.insert(MODE.into(), format!("{:o}", files::mode(data)).into_bytes());
    if let Some(dirs) = &place.dirs {
        attributes.insert(DIRS.into(), dirs.to_vec());
    }
    attributes
}

/// The attributes that a look at the path gives, without opening the file.
pub fn attributes_now(data: &Metadata, place: &Place) -> Attributes {
    attributes(data, SystemTime::now(), place)
}

/// Reads a file that fits in memory, without its holes.
pub fn examine(place: &Place, store: &Store, most: u64) -> io::Result<Look> {
    for _ in 0..ATTEMPTS {
        let opened = Opened::open(place)?;
        let size = opened.data.len();
        if opened.is_own(store)? {
            return Ok(Look::Own);
        }
        if size > most {
            return Ok(Look::Large);
        }
        let content = read(&opened)?;
        if !opened.is_unchanged()? {
            continue;
        }
        let size = match &content {
            Content::Bytes(bytes) => bytes.len() as u64,
            _ => size,
        };
        if size > most {
            return Ok(Look::Large);
        }
        let attributes = opened.attributes(place);
        return Ok(Look::Source(Source { content, size, attributes, young: opened.young() }));
    }
    Err(io::Error::other(CHANGES))
}

fn read(opened: &Opened) -> io::Result<Content> {
    let size = opened.data.len();
    if opened.is_sparse()? {
        return read_pieces(opened);
    }
    if size > IN_MEMORY {
        return Ok(Content::Streamed);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    // Some files of the system have a size of 0 and content all the same.
    // Whole pages: not all of them give odd numbers of bytes.
    let limit = if size == 0 { IN_MEMORY + 4096 } else { size };
    let mut file = &opened.file;
    // Looking for holes has moved it.
    if size > 0 {
        rustix::fs::seek(file, SeekFrom::Start(0))?;
    }
    file.by_ref().take(limit).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > IN_MEMORY && size == 0 && opened.is_unchanged()? {
        let text = format!("it has no size, but more than {IN_MEMORY} bytes: it may have no end");
        return Err(io::Error::other(text));
    }
    Ok(Content::Bytes(bytes))
}

fn read_pieces(opened: &Opened) -> io::Result<Content> {
    let mut pieces = Vec::new();
    let (mut at, mut total) = (0, 0);
    while let Some(data) = opened.next_data(at)? {
        total += data.end - data.start;
        if total > IN_MEMORY {
            return Ok(Content::StreamedSparse(has_short_holes(&pieces)));
        }
        let mut piece = vec![0; usize::try_from(data.end - data.start).unwrap_or(0)];
        let got = read_at(&opened.file, &mut piece, data.start)?;
        // It was cut meanwhile, which its size says.
        piece.truncate(got);
        pieces.push((data.start, piece));
        at = data.end;
    }
    Ok(Content::Pieces(pieces))
}

/// Shorter holes are stored as zeros, unless a hint asks for short segments.
const SHORT_HOLE: u64 = 128 << 10;

/// Whether a hole between two pieces is a short one.
pub fn has_short_holes(pieces: &[(u64, Vec<u8>)]) -> bool {
    pieces.windows(2).any(|pair| match pair {
        [(start, bytes), (next, _)] => next - start - (bytes.len() as u64) < SHORT_HOLE,
        _ => false,
    })
}

/// How an object with such holes is to lie: no segment then takes in pages of holes beside it. It
/// pays with more segments when it is edited, so others do not get it.
pub fn hints(has_short_holes: bool) -> Option<Hints> {
    has_short_holes.then(|| Hints { threshold: Some(1), ..Hints::default() })
}

/// Fills `buffer` from `at` on, as far as there are bytes.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    let mut done = 0;
    while let Some(room) = buffer.get_mut(done..).filter(|room| !room.is_empty()) {
        match file.read_at(room, at + done as u64) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened(bytes: &[u8]) -> (tempfile::TempDir, Place, Opened) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), bytes).unwrap();
        let root = files::open_directory(dir.path()).unwrap().into();
        let place = Place { root, below: "file".into(), dirs: None };
        let opened = Opened::open(&place).unwrap();
        (dir, place, opened)
    }

    #[test]
    fn what_was_written_meanwhile_shows() {
        let (dir, _, opened) = opened(b"one");
        assert!(opened.is_unchanged().unwrap());
        std::fs::write(dir.path().join("file"), b"more").unwrap();
        assert!(!opened.is_unchanged().unwrap());
    }

    #[test]
    fn a_file_is_young_until_a_clock_must_have_moved_on() {
        let (_dir, _, mut opened) = opened(b"one");
        let changed = files::ctime(&opened.data);
        let is_coarse = opened.data.ctime_nsec() % STEP == 0;
        let limit = if is_coarse { COARSE } else { FINE };
        for (nanos, young) in
            [(-5_000_000_000, Some(limit)), (0, Some(limit)), (3_000_000_000, None)]
        {
            opened.now = time::from_nanos(changed + nanos).unwrap();
            assert_eq!((opened.young(), opened.is_ahead()), (young, nanos < 0), "{nanos}");
        }
    }

    #[test]
    fn times_are_trusted_once_a_clock_must_have_moved_on() {
        let (_dir, place, mut opened) = opened(b"one");
        let changed = files::ctime(&opened.data);
        let at = |nanos: i128| time::from_nanos(changed + nanos).unwrap();
        let marked = |opened: &Opened| opened.attributes(&place).get(CTIME).cloned();
        for nanos in [-5_000_000_000, 0, 2_900_000_000] {
            opened.now = at(nanos);
            assert_eq!(marked(&opened).as_deref(), Some(&b"0"[..]), "{nanos}");
        }
        opened.now = at(3_000_000_000);
        assert_eq!(marked(&opened), None);
        // A time set by hand is not that of the change.
        opened.file.set_modified(time::from_nanos(5).unwrap()).unwrap();
        opened.data = opened.file.metadata().unwrap();
        let changed = files::ctime(&opened.data);
        opened.now = time::from_nanos(changed + 3_000_000_000).unwrap();
        assert_eq!(marked(&opened), Some(changed.to_string().into_bytes()));
    }
}
