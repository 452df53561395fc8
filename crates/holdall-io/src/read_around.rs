//! Whether a small read that has to wait for the device brings its neighbourhood along.
//!
//! A read of one page costs the device nearly as much as one of some dozen pages beside each
//! other. If a file is small beside the memory, its pages will soon all be in the page
//! cache, and reading it in large pieces brings them there at a fraction of the cost; if it
//! is large and the places are drawn evenly, what was read around is not asked for before it
//! is gone from the cache.
//!
//! Owns: what was spent and what it brought. Every byte read around is paid from a credit; a
//! read found in the cache earns about what a wait costs. A file up to a sixteenth of the
//! memory starts with its own length: it may be read once in whole, in pieces that grow with
//! the number of waits, so that a few single reads stay cheap; beside the largest it is swept
//! once from its start, which is not paid. Any other starts with
//! [`TRIAL`], in pieces of [`LEAST_PIECE`].
//!
//! Threads: counters without order between them; lost or doubled counts change how much is
//! read around, never what is read.

use crate::disk::Near;
use std::ops::Range;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

/// The smallest piece.
const LEAST_PIECE: u64 = 64 << 10;
/// The largest piece.
const MOST_PIECE: u64 = 8 << 20;
/// What may be read around on trial, in bytes.
const TRIAL: i64 = 16 << 20;
/// What a read found in the cache earns: the bytes a device transfers in the time of a seek.
const EARNED: i64 = 64 << 10;
/// Part of the memory that a file may have to be read in whole.
const SHARE: u64 = 16;
/// This many reads found in the cache make up for one that waited.
const CALM: u64 = 256;
/// After this many waits pieces are twice as large.
const DOUBLES: u64 = 3;
/// Waits beyond which no more are counted: pieces are largest well before.
const MOST_WAITS: u64 = 32;

/// One file's account.
#[derive(Debug)]
pub(crate) struct ReadAround {
    /// Bytes of memory; 0 if that is not known.
    memory: u64,
    /// By kind of neighbourhood.
    accounts: [Account; 2],
}

#[derive(Debug)]
struct Account {
    /// Bytes that may be read around beyond [`Account::granted`]; negative: spent.
    balance: AtomicI64,
    /// Reads that waited, less those that did not.
    waits: AtomicU64,
    /// Reads that did not.
    found: AtomicU64,
    /// The last piece.
    start: AtomicU64,
    end: AtomicU64,
    /// How far the file was swept, see [`ReadAround::sweep`].
    swept: AtomicU64,
}

impl Account {
    fn new() -> Self {
        let (balance, waits, found) = (AtomicI64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        // No piece begins at the largest offset.
        let (start, end) = (AtomicU64::new(u64::MAX), AtomicU64::new(0));
        Self { balance, waits, found, start, end, swept: AtomicU64::new(0) }
    }
}

impl ReadAround {
    /// For a machine with `memory` bytes.
    pub(crate) fn new(memory: u64) -> Self {
        Self { memory, accounts: [Account::new(), Account::new()] }
    }

    fn account(&self, near: Near) -> &Account {
        &self.accounts[usize::from(near == Near::Many)]
    }

    /// Notes a read that did not wait.
    pub(crate) fn note(&self, near: Near) {
        let account = self.account(near);
        // Never above zero: what is earned gives back what was spent.
        if account.balance.load(Relaxed) < 0 {
            account.balance.fetch_add(EARNED, Relaxed);
        }
        let waits = account.waits.load(Relaxed) > 0;
        if waits && account.found.fetch_add(1, Relaxed).is_multiple_of(CALM) {
            account.waits.fetch_sub(1, Relaxed);
        }
    }

    /// Notes that a read at `offset` has to wait, in a file of `len` bytes. Returns what should
    /// be read with it, if anything.
    pub(crate) fn piece(&self, near: Near, offset: u64, len: u64) -> Option<Range<u64>> {
        let account = self.account(near);
        if (account.start.load(Relaxed)..=account.end.load(Relaxed)).contains(&offset) {
            // On its way. Or read in order: the system sees that and reads ahead by itself.
            return None;
        }
        let whole = near == Near::Many && len <= self.memory / SHARE;
        let (granted, size) = if whole {
            let waits = account.waits.load(Relaxed).min(MOST_WAITS) + 1;
            account.waits.store(waits, Relaxed);
            let size = (LEAST_PIECE << (waits / DOUBLES)).min(MOST_PIECE);
            (i64::try_from(len).unwrap_or(i64::MAX), size)
        } else {
            (TRIAL, LEAST_PIECE)
        };
        if account.balance.load(Relaxed).saturating_add(granted) < 0 {
            return None;
        }
        let start = offset / size * size;
        let end = start.saturating_add(size).min(len);
        if end <= offset {
            return None;
        }
        account.balance.fetch_sub((end - start) as i64, Relaxed);
        account.start.store(start, Relaxed);
        account.end.store(end, Relaxed);
        Some(start..end)
    }

    /// What else to ask for behind a `piece` for which a read waits: where pieces are largest,
    /// most of the file will be asked for, and while it is read in order beside them the device
    /// has work when nobody waits. Once over a file of `len` bytes.
    pub(crate) fn sweep(&self, near: Near, piece: &Range<u64>, len: u64) -> Option<Range<u64>> {
        let account = self.account(near);
        if piece.end - piece.start < MOST_PIECE || account.swept.load(Relaxed) >= len {
            return None;
        }
        let start = account.swept.fetch_add(MOST_PIECE, Relaxed);
        let end = start.saturating_add(MOST_PIECE).min(len);
        (start < end).then_some(start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: u64 = 16 << 30;
    const FILE: u64 = 256 << 20;

    /// Reads 8 KiB at `places`, of which the cache holds what was read around so far and
    /// keeps it. Returns pieces and bytes read around.
    fn run(file: u64, near: Near, places: impl Iterator<Item = u64>) -> (u64, u64) {
        let around = ReadAround::new(MEMORY);
        let mut cached: Vec<Range<u64>> = Vec::new();
        let (mut pieces, mut bytes) = (0, 0);
        for at in places {
            if cached.iter().any(|r| r.contains(&at)) {
                around.note(near);
            } else if let Some(piece) = around.piece(near, at, file) {
                assert!(piece.contains(&at) && piece.end <= file, "{at} in {piece:?}");
                pieces += 1;
                bytes += piece.end - piece.start;
                cached.push(piece);
            }
        }
        (pieces, bytes)
    }

    fn scattered(file: u64, n: u64) -> impl Iterator<Item = u64> {
        let draw = move |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) % (file / 8192);
        (1..=n).map(move |i| draw(i) * 8192)
    }

    #[test]
    fn a_small_file_is_soon_read_in_whole_and_at_most_twice() {
        let (pieces, bytes) = run(FILE, Near::Many, scattered(FILE, 4000));
        assert!(pieces < 300, "{pieces} pieces");
        assert!((FILE * 9 / 10..FILE * 2).contains(&bytes), "{bytes} bytes");
    }

    #[test]
    fn a_few_reads_stay_cheap() {
        let (pieces, bytes) = run(FILE, Near::Many, scattered(FILE, 10));
        assert!(pieces <= 10 && bytes <= 4 << 20, "{pieces} pieces, {bytes} bytes");
    }

    #[test]
    fn in_a_large_file_it_ends_when_nothing_is_found() {
        for near in [Near::Few, Near::Many] {
            let (_, bytes) = run(1 << 40, near, scattered(1 << 40, 100_000));
            assert!(bytes <= TRIAL as u64 + LEAST_PIECE, "{near:?}: {bytes} bytes");
        }
    }

    #[test]
    fn it_goes_on_where_neighbours_are_asked_for() {
        // Eight neighbours each, at places far apart.
        let places = (0..4000_u64).flat_map(|i| (0..8).map(move |k| (i << 25) + k * 8192));
        let (pieces, _) = run(1 << 40, Near::Few, places);
        assert_eq!(pieces, 4000);
    }

    #[test]
    fn beside_the_largest_pieces_the_file_is_swept_once() {
        let around = ReadAround::new(MEMORY);
        let mut swept = Vec::new();
        for at in scattered(FILE, 1000) {
            let Some(piece) = around.piece(Near::Many, at, FILE) else { continue };
            let more = around.sweep(Near::Many, &piece, FILE);
            assert!(more.is_none() || piece.end - piece.start == MOST_PIECE, "{piece:?}");
            swept.extend(more);
        }
        assert!(swept.windows(2).all(|pair| pair[0].end == pair[1].start), "{swept:?}");
        assert_eq!(swept.first().unwrap().start, 0);
        // The pieces themselves have brought the rest, or the credit is used up.
        assert!((FILE * 3 / 4..=FILE).contains(&swept.last().unwrap().end), "{swept:?}");
        let around = ReadAround::new(MEMORY);
        let piece = around.piece(Near::Many, 0, FILE).unwrap();
        assert_eq!(around.sweep(Near::Many, &piece, FILE), None, "a few reads stay cheap");
    }

    #[test]
    fn what_is_read_in_order_is_left_to_the_system() {
        let around = ReadAround::new(MEMORY);
        let piece = around.piece(Near::Many, 0, FILE).unwrap();
        assert_eq!(around.piece(Near::Many, 8192, FILE), None, "on its way");
        assert_eq!(around.piece(Near::Many, piece.end, FILE), None);
        assert!(around.piece(Near::Many, piece.end + 8192, FILE).is_some());
    }

    #[test]
    fn nothing_lies_behind_the_end() {
        let around = ReadAround::new(MEMORY);
        assert_eq!(around.piece(Near::Few, FILE, FILE), None);
        assert_eq!(around.piece(Near::Many, u64::MAX, FILE), None);
        let unknown = ReadAround::new(0);
        assert_eq!(unknown.piece(Near::Many, 8192, 100_000), Some(0..65_536));
    }
}
