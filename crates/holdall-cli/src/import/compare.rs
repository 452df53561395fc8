//! Whether a file is stored already.
//!
//! Owns: what is believed. Size and time speak for the bytes if they are those that were stored
//! and nothing about the file has changed since (`ctime`), and if the file was not too young then.
//! Else the bytes themselves are compared.

use std::io::ErrorKind;
use std::ops::Range;

use holdall::{Attributes, Error, Metadata, Object, Reader};

use super::source::{ATTEMPTS, CHANGES, Content, Opened, Source, read_at};
use super::walk::Place;
use crate::dirs::{self, DIRS, Dirs};
use crate::files::{self, CHUNK, CTIME, MODE, MTIME, ctime};
use crate::time;

/// What import itself stores about a file.
const OURS: [&str; 4] = [MTIME, CTIME, MODE, DIRS];

/// Whether the file's size and times say that its bytes are those stored.
pub fn is_trusted(size: u64, stored: &Attributes, file: &std::fs::Metadata) -> bool {
    let read = |key| stored.get(key).map(|text| time::parse(text));
    let mtime = files::mtime(file);
    // Stored by something that does not know whether the file was young.
    let by_import = stored.contains_key(MODE);
    let same_ctime = match read(CTIME) {
        None => mtime == Some(ctime(file)),
        Some(stored) => stored == Some(ctime(file)),
    };
    by_import
        && size == file.len()
        && mtime.is_some()
        && read(MTIME).flatten() == mtime
        && same_ctime
}

/// Whether the file's size and time of change are those stored.
pub fn is_alike(stored: &Metadata, size: u64, attributes: &Attributes) -> bool {
    stored.size == size && stored.attributes.get(MTIME) == attributes.get(MTIME)
}

/// What the object's attributes become if its file has `new` ones; `None` if they are the same.
/// They take at most `most` bytes if `dirs` can be shortened for that.
pub fn updated(stored: &Attributes, new: &Attributes, most: usize) -> Option<Attributes> {
    if OURS.iter().all(|key| stored.get(*key) == new.get(*key)) {
        return None;
    }
    let mut all = stored.clone();
    all.retain(|key, _| !OURS.contains(&key.as_str()));
    all.extend(new.clone());
    dirs::fit(&mut all, most);
    (all != *stored).then_some(all)
}

/// Whether a change of attributes is one that users see.
pub fn is_visible(stored: &Attributes, new: &Attributes) -> bool {
    let differs = |key: &str| stored.get(key) != new.get(key);
    differs(MTIME) || differs(MODE) || Dirs::from_attributes(stored) != Dirs::from_attributes(new)
}

/// Why two contents could not be compared.
pub enum Problem {
    /// The file.
    File(std::io::Error),
    /// The store.
    Store(Error),
}

impl From<std::io::Error> for Problem {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

/// Whether the object's bytes are those of the file. The attributes of a file that is streamed
/// are those of when it was read.
pub fn is_same(
    reader: &Reader,
    stored: &Metadata,
    source: &mut Source,
    place: &Place,
) -> Result<bool, Problem> {
    if stored.size != source.size {
        return Ok(false);
    }
    let object = reader.open(stored.oid)?;
    let mut buffer = vec![0; CHUNK];
    match &source.content {
        Content::Bytes(bytes) => holds(&object, 0, bytes, &mut buffer),
        Content::Pieces(pieces) => {
            let mut at = 0;
            for (start, piece) in pieces {
                if !is_blank(&object, at..*start, &mut buffer)?
                    || !holds(&object, *start, piece, &mut buffer)?
                {
                    return Ok(false);
                }
                at = start + piece.len() as u64;
            }
            is_blank(&object, at..source.size, &mut buffer)
        }
        Content::Streamed | Content::StreamedSparse(_) => {
            for _ in 0..ATTEMPTS {
                let opened = Opened::open(place)?;
                let same = object.size() == opened.data.len()
                    && begins_with(&opened, &object, &mut buffer)?;
                if opened.is_unchanged()? {
                    source.attributes = opened.attributes(place);
                    return Ok(same);
                }
            }
            Err(std::io::Error::other(CHANGES).into())
        }
        Content::Kept(_) => Ok(true),
    }
}

/// Whether the file begins with the bytes of the object. `buffer` is for work, of any length.
pub fn begins_with(opened: &Opened, object: &Object, buffer: &mut [u8]) -> Result<bool, Problem> {
    let size = object.size();
    if opened.data.len() < size {
        return Ok(false);
    }
    let mut at = 0;
    let mut bytes = vec![0; CHUNK];
    while let Some(data) = opened.next_data(at)?.filter(|data| data.start < size) {
        let data = data.start..data.end.min(size);
        if !is_blank(object, at..data.start, buffer)? {
            return Ok(false);
        }
        at = data.start;
        while at < data.end {
            let want = usize::try_from(data.end - at).unwrap_or(CHUNK).min(CHUNK);
            let room = bytes.get_mut(..want).unwrap_or_default();
            let got = read_at(&opened.file, room, at)?;
            let read = room.get(..got).unwrap_or_default();
            if got < want || !holds(object, at, read, buffer)? {
                return Ok(false);
            }
            at += got as u64;
        }
    }
    is_blank(object, at..size, buffer)
}

/// Whether the object has `bytes` at `start`.
fn holds(object: &Object, start: u64, bytes: &[u8], buffer: &mut [u8]) -> Result<bool, Problem> {
    let mut at = start;
    for piece in bytes.chunks(buffer.len().max(1)) {
        let Some(room) = buffer.get_mut(..piece.len()) else { return Ok(false) };
        if read_object(object, at, room)? != piece.len() || room != piece {
            return Ok(false);
        }
        at += piece.len() as u64;
    }
    Ok(true)
}

/// Whether the object has nothing but zeros in `range`.
fn is_blank(object: &Object, range: Range<u64>, buffer: &mut [u8]) -> Result<bool, Problem> {
    let mut at = range.start;
    while at < range.end {
        let hole = object.hole(at..range.end)?.unwrap_or(range.end..range.end);
        while at < hole.start {
            let want = usize::try_from(hole.start - at).unwrap_or(CHUNK).min(buffer.len());
            let room = buffer.get_mut(..want).unwrap_or_default();
            let got = read_object(object, at, room)?;
            if got == 0 || room.iter().take(got).any(|byte| *byte != 0) {
                return Ok(false);
            }
            at += got as u64;
        }
        at = hole.end;
    }
    Ok(true)
}

fn read_object(object: &Object, at: u64, room: &mut [u8]) -> Result<usize, Problem> {
    match object.read_at(at, room) {
        // Damaged bytes are not the file's; it is stored anew.
        Err(error) if error.is_corrupt() => Ok(0),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::UnexpectedEof => Ok(0),
        other => Ok(other?),
    }
}
