//! Writing files with holes.
//!
//! Owns no state. What was never written of an object becomes a hole, and so does each block that
//! holds nothing but zeros: a store keeps no holes shorter than a page, a file does.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};

use holdall::{Error, Object};

use crate::files::{CHUNK, CopyError};

/// Called with each number of bytes that were written or passed over; its error ends the copy.
pub type Moved<'m> = &'m mut dyn FnMut(u64) -> io::Result<()>;

/// The bytes that a hole is made of in the file's file system, 4 KiB at most.
fn block(file: &File) -> io::Result<usize> {
    Ok(usize::try_from(file.metadata()?.blksize()).unwrap_or(4096).clamp(512, 4096))
}

/// Writes `bytes` into an empty file, from its start.
///
/// # Errors
/// Those of the system.
pub fn write(file: &File, bytes: &[u8]) -> io::Result<()> {
    let block = block(file)?;
    write_at(file, bytes, 0, block)?;
    // The last block as `write_at` counts them, which may be a part of one.
    end(file, bytes.len() as u64, bytes.chunks(block).next_back())
}

/// Gives a file its length, if it may end in a hole: if its last bytes are zeros.
fn end(file: &File, size: u64, last: Option<&[u8]>) -> io::Result<()> {
    if last.is_some_and(is_blank) { file.set_len(size) } else { Ok(()) }
}

fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Writes `bytes` at `at`, but for whole blocks of the file that are zeros.
fn write_at(file: &File, bytes: &[u8], at: u64, block: usize) -> io::Result<()> {
    let head = usize::try_from(at.next_multiple_of(block as u64) - at).unwrap_or(0);
    let (head, rest) = bytes.split_at(head.min(bytes.len()));
    // What is to be written, from its first byte on.
    let mut begins = 0;
    let mut done = head.len();
    if is_blank(head) {
        begins = done;
    }
    let put = |from: usize, to: usize| match bytes.get(from..to) {
        Some(run) if !run.is_empty() => file.write_all_at(run, at + from as u64),
        _ => Ok(()),
    };
    for piece in rest.chunks(block) {
        if is_blank(piece) {
            put(begins, done)?;
            begins = done + piece.len();
        }
        done += piece.len();
    }
    put(begins, done)
}

/// Writes pieces, one behind the other, into a file that is empty, from its start; returns how many
/// bytes they have.
///
/// # Errors
/// Which side failed.
pub fn write_pieces<B: AsRef<[u8]>>(
    pieces: impl Iterator<Item = holdall::Result<B>>,
    to: &File,
    moved: Moved<'_>,
) -> Result<u64, CopyError> {
    let block = block(to).map_err(CopyError::Write)?;
    let mut at = 0;
    for piece in pieces {
        let piece = piece.map_err(|e| CopyError::Read(e.into()))?;
        let bytes = piece.as_ref();
        write_at(to, bytes, at, block).map_err(CopyError::Write)?;
        at += bytes.len() as u64;
        moved(bytes.len() as u64).map_err(CopyError::Write)?;
    }
    to.set_len(at).map_err(CopyError::Write)?;
    Ok(at)
}

/// Copies the bytes `range` of an object into a file that is empty, from its start. What was
/// never written costs neither time nor room.
///
/// # Errors
/// Which side failed.
pub fn copy(
    object: &Object,
    range: Range<u64>,
    to: &File,
    moved: Moved<'_>,
) -> Result<u64, CopyError> {
    let read = |e: Error| CopyError::Read(e.into());
    let block = block(to).map_err(CopyError::Write)?;
    let mut buffer = vec![0; CHUNK];
    let mut at = range.start;
    while at < range.end {
        let hole = object.hole(at..range.end).map_err(read)?.unwrap_or(range.end..range.end);
        while at < hole.start {
            let want = usize::try_from(hole.start - at).unwrap_or(CHUNK).min(buffer.len());
            let room = buffer.get_mut(..want).unwrap_or_default();
            let got = object.read_at(at, room).map_err(read)?;
            if got == 0 {
                return Err(CopyError::Read(io::ErrorKind::UnexpectedEof.into()));
            }
            let bytes = room.get(..got).unwrap_or_default();
            write_at(to, bytes, at - range.start, block).map_err(CopyError::Write)?;
            at += got as u64;
            moved(got as u64).map_err(CopyError::Write)?;
        }
        moved(hole.end - hole.start).map_err(CopyError::Write)?;
        at = hole.end;
    }
    to.set_len(range.end - range.start).map_err(CopyError::Write)?;
    Ok(range.end - range.start)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn content(mut file: &File) -> Vec<u8> {
        let mut found = Vec::new();
        std::io::Seek::rewind(&mut file).unwrap();
        file.read_to_end(&mut found).unwrap();
        found
    }

    #[test]
    fn blocks_of_zeros_are_passed_over_and_all_bytes_are_there() {
        for (size, data) in [
            (0, &[][..]),
            (1, &[]),
            (100_000, &[]),
            (100_000, &[0, 99_999]),
            (20_480, &[4096, 8191, 12_288]),
            (20_481, &[20_480]),
            (9000, &[8999]),
            (9000, &[8191]),
            (69_120, &[65_535]),
            (9000, &[4095, 4096]),
        ] {
            let mut bytes = vec![0; size];
            for at in data {
                bytes[*at] = 7;
            }
            let file = tempfile::tempfile().unwrap();
            write(&file, &bytes).unwrap();
            assert!(content(&file) == bytes, "{size} {data:?}");
            // At a place that is no multiple of a block.
            let file = tempfile::tempfile().unwrap();
            file.set_len(size as u64 + 777).unwrap();
            write_at(&file, &bytes, 777, 4096).unwrap();
            assert!(content(&file)[777..] == bytes, "{size} {data:?}");
            let kept = data.len() as u64 * 2 * 4096;
            assert!(file.metadata().unwrap().blocks() * 512 <= kept + 8192, "{size} {data:?}");
        }
    }
}
