//! Reading many bytes of an object.
//!
//! Owns: in which pieces they are read, what the system learns before, and the threads that
//! read what is new: where one checks its piece and copies it, the device delivers the others'.
//!
//! Threads: those made here end before the call does.

use crate::object::ObjectBody;
use crate::segment_tree::DataRead;
use holdall_core::{Error, Oid, Result};
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread::{self, Builder};

/// Bytes of an object read at a time, if one thread reads them.
const BYTES_PER_STEP: usize = 4 << 20;

/// Bytes that are read ahead of a sequential read, if they lie in several segments.
const AHEAD: u64 = 8 << 20;

/// Bytes that each of several threads reads at a time, and beyond which there are several.
const PART: usize = 1 << 20;

/// Threads that read what is new, with the caller: one that checks, and requests for the device
/// meanwhile.
const READERS: usize = 3;

/// Threads made for that at a time, in the whole process: more would only wait for the device.
const MOST_HELPERS: usize = 8;

static HELPERS: AtomicUsize = AtomicUsize::new(0);

/// One of [`MOST_HELPERS`], counted there.
struct Helper<'a>(&'a AtomicUsize);

impl<'a> Helper<'a> {
    fn new(all: &'a AtomicUsize) -> Option<Self> {
        let more = |n| (n < MOST_HELPERS).then_some(n + 1);
        all.fetch_update(Relaxed, Relaxed, more).is_ok().then(|| Self(all))
    }
}

impl Drop for Helper<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Reads up to `buf.len()` bytes from `offset`, and says how many there are: none beyond the end.
pub(crate) fn read_up_to<D: DataRead + Sync + ?Sized>(
    pages: &D,
    (whole, oid): (&ObjectBody, Oid),
    offset: u64,
    buf: &mut [u8],
) -> Result<usize> {
    let left = whole.size().saturating_sub(offset);
    let n = buf.len().min(usize::try_from(left).unwrap_or(usize::MAX));
    if n > 0 {
        read_to(pages, (whole, oid), offset, &mut buf[..n])?;
    }
    Ok(n)
}

/// Reads the bytes of `range` that there are.
pub(crate) fn read_range<D: DataRead + Sync + ?Sized>(
    pages: &D,
    whole: &ObjectBody,
    oid: Oid,
    range: Range<u64>,
) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    read_range_into(pages, whole, oid, range, &mut bytes)?;
    Ok(bytes)
}

/// As [`read_range`], in place of what `bytes` holds.
pub(crate) fn read_range_into<D: DataRead + Sync + ?Sized>(
    pages: &D,
    whole: &ObjectBody,
    oid: Oid,
    range: Range<u64>,
    bytes: &mut Vec<u8>,
) -> Result<()> {
    let (start, end, size) = (range.start, range.end, whole.size());
    if start > end {
        return Err(Error::Range { object: oid.to_string(), start, end, size });
    }
    let (start, end) = (start.min(size), end.min(size));
    let len = usize::try_from(end - start)
        .map_err(|_| Error::Invalid(format!("{} bytes do not fit memory", end - start)))?;
    // What it holds is written over; zeroing it first would cost as much again.
    bytes.truncate(len);
    bytes.try_reserve_exact(len - bytes.len()).map_err(|_| {
        Error::Invalid(format!("no memory for {len} bytes; open it and read parts"))
    })?;
    // Piece by piece, so that memory is still in the cache when the data comes.
    let mut at = 0;
    while at < len {
        let from = start + at as u64;
        let next = len.min(at + BYTES_PER_STEP);
        if len - at > PART && whole.is_new(pages, from..start + next as u64) {
            bytes.resize(len, 0);
            return read_new(pages, (whole, oid), from, &mut bytes[at..]);
        }
        if bytes.len() < next {
            bytes.resize(next, 0);
        }
        whole.read_at(pages, oid, from, &mut bytes[at..next])?;
        at = next;
    }
    Ok(())
}

/// Fills `buf` with the bytes from `from` on, all of which exist.
pub(crate) fn read_to<D: DataRead + Sync + ?Sized>(
    pages: &D,
    (whole, oid): (&ObjectBody, Oid),
    from: u64,
    buf: &mut [u8],
) -> Result<()> {
    let next = from.saturating_add(buf.len().min(BYTES_PER_STEP) as u64);
    if buf.len() > PART && whole.is_new(pages, from..next) {
        return read_new(pages, (whole, oid), from, buf);
    }
    whole.read_at(pages, oid, from, buf)
}

/// As [`read_to`], by several threads, each a part at a time: read, checked and copied by one.
/// The error is that of the first part with one, as if one thread read them in order.
fn read_new<D: DataRead + Sync + ?Sized>(
    pages: &D,
    (whole, oid): (&ObjectBody, Oid),
    from: u64,
    buf: &mut [u8],
) -> Result<()> {
    let readers = READERS.min(buf.len().div_ceil(PART));
    // The parts end at multiples of their length in the object: mostly at ends of pages.
    let first = (PART - (from % PART as u64) as usize).min(buf.len());
    let (head, rest) = buf.split_at_mut(first);
    let rest = rest.chunks_mut(PART).enumerate();
    let rest = rest.map(|(i, part)| (from + (first + i * PART) as u64, part));
    let parts = Mutex::new([(from, head)].into_iter().chain(rest));
    let failed: Mutex<Option<(u64, Error)>> = Mutex::new(None);
    let work = &|| {
        // What comes before the part that failed was taken before it: it is read to its end.
        while failed.lock().is_none() {
            let next = parts.lock().next();
            let Some((at, part)) = next else { return };
            if let Err(e) = whole.read_at(pages, oid, at, part) {
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(first, _)| at < *first) {
                    *failed = Some((at, e));
                }
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..readers {
            let Some(helper) = Helper::new(&HELPERS) else { break };
            let help = move || {
                let _counted = helper;
                work();
            };
            // If there are no more threads, those there are read all.
            if Builder::new().spawn_scoped(scope, help).is_err() {
                break;
            }
        }
        work();
    });
    failed.into_inner().map_or(Ok(()), |(_, e)| Err(e))
}

/// How far a sequential read has announced what comes next.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ahead {
    until: u64,
}

impl Ahead {
    /// The bytes from the start of `range` on are read next, up to `at_once` in one go, and
    /// those behind them up to its end. Tells so some pieces ahead, one at a time.
    pub(crate) fn tell<D: DataRead + ?Sized>(
        &mut self,
        pages: &D,
        whole: &ObjectBody,
        range: Range<u64>,
        at_once: usize,
    ) {
        let (at, end, piece) = (range.start, range.end, BYTES_PER_STEP as u64);
        if at.saturating_add(piece) <= self.until || self.until.max(at) >= end {
            return;
        }
        let from = self.until.max(at);
        self.until = at.saturating_add(AHEAD).min(end);
        whole.prefetch(pages, (from..self.until, at_once as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_help_than_may() {
        let all = AtomicUsize::new(0);
        let most: Vec<Helper<'_>> = std::iter::from_fn(|| Helper::new(&all)).collect();
        assert_eq!(most.len(), MOST_HELPERS);
        drop(most);
        assert!(Helper::new(&all).is_some(), "who is done makes room");
        assert_eq!(all.load(Relaxed), 0);
    }
}
