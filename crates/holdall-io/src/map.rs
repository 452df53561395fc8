//! What of a file is in the page cache, read without a system call.
//!
//! A `pread` of 4 KiB costs half as much again as the copy it makes. [`Map`] shows the file in
//! memory and copies from there what is known to be resident. To know it takes a call too
//! (`mincore`), which costs as much as it saves; so it is asked for a [`WINDOW`] at a time, if
//! reads come often, and believed for [`TRUSTED`].
//!
//! Owns: the mappings, and what is believed of each window.
//!
//! Invariants:
//! - A byte is touched only if all pages of its window (those before the end of the file)
//!   were in the page cache at most [`TRUSTED`] ago. A page that was dropped since is read
//!   by the touch: a wait, as the read by call would be. Only if the device fails in it as
//!   well, after it had delivered the page shortly before, does the process end by `SIGBUS`.
//!   The same if another program makes the file shorter in that time: it has to ignore the
//!   lock for that.
//! - `mincore` is right only for the owner of the file or may write it, and says "resident"
//!   of everything to others (Linux 5.2 and later). So it is asked each time about a page
//!   behind the end of the file as well, which cannot be.
//! - Making the file shorter goes through [`Map::cut`], which leaves no page behind the new end
//!   in the mappings.
//! - No advice is given about the mappings: one that says "random" would have the system
//!   ignore the use of the pages when it looks for some to drop.
//!
//! Threads: copying reads two words that change rarely, takes no lock and waits for nobody. One
//! thread at a time asks the system; others read by call meanwhile.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::mapping::{Mapping, page_bytes};

/// Bytes of which the system is asked at once: what one table of pages holds on most systems.
const WINDOW: u64 = 2 << 20;
/// Granularity of what is known of a window.
const GRAIN: u64 = 4096;
/// So long the answer is believed, in milliseconds.
const TRUSTED: u64 = 250;
/// A window that was resident is asked about again by a read that comes at most this many
/// milliseconds after its answer expired, or after the last read by call. Asking takes as long as
/// reading some 200 KiB, and pays only if several reads follow within [`TRUSTED`].
const SOON: u64 = TRUSTED / 8;
/// This much comes into a window before the system is first asked about it, in [`GRAIN`]s: its
/// length three times. Few reads in many windows are better done by calls; and so is what is read
/// for the first time, as each page that is touched first here costs the system a look, on some
/// virtual machines ten times as much as the page's copy.
const OFTEN: u64 = 3 * WINDOW / GRAIN;
/// What a read of few bytes counts, of which the call is the larger part: six are often.
const CALL: u64 = OFTEN / 6;
/// A read of this many bytes is worth asking by itself, once its window was resident.
const WORTH_ASKING: usize = 200 << 10;
/// Bytes of a read that counts as what it reads.
const LONG: usize = 16 << 10;
/// Bytes of the first mapping. The next is as long, and each later one as long as all before
/// it: none ever moves, and all together are less than twice as long as the file.
const FIRST: u64 = 64 << 20;
/// Mappings: up to 128 TiB, which is all addresses a process has on most systems.
const CHUNKS: usize = 22;

/// One file in memory.
#[derive(Debug, Default)]
pub(crate) struct Map {
    /// `Some(None)`: the system refused; not tried again.
    chunks: [OnceLock<Option<Chunk>>; CHUNKS],
    /// Held by who asks the system, and by who makes the file shorter until it is.
    asking: Mutex<()>,
}

#[derive(Debug)]
struct Chunk {
    mapping: Mapping,
    /// Behind this byte of it, zeros are in the place of the file.
    cut: AtomicUsize,
    windows: Box<[Window]>,
}

/// When the system was asked (upper bits, milliseconds), whether it ever was (a bit), what was
/// read since that is too long ago (11 bits, as [`OFTEN`] counts), and how many grains from the
/// front on are trusted (10 bits).
#[derive(Debug, Default)]
struct Window(AtomicU64);

const GRAINS_BITS: u32 = 10;
const READS_BITS: u32 = 11;
const READS: u64 = (1 << READS_BITS) - 1;
const ASKED: u64 = 1 << (GRAINS_BITS + READS_BITS);
const TIME_SHIFT: u32 = GRAINS_BITS + READS_BITS + 1;

impl Window {
    /// Whether its first `grains` are trusted at `now`. `None`: the system should be asked.
    /// If nothing is known, a read of `len` bytes counts.
    fn holds(&self, grains: u64, len: usize, now: u64) -> Option<bool> {
        let state = self.0.load(Relaxed);
        let trusted = state & ((1 << GRAINS_BITS) - 1);
        let age = now.saturating_sub(state >> TIME_SHIFT);
        if age <= TRUSTED {
            return Some(trusted >= grains);
        }
        if trusted > 0 {
            // It was resident when last asked for, and was touched since.
            if age <= TRUSTED + SOON || len >= WORTH_ASKING {
                return None;
            }
            let rest = state & ((1 << TIME_SHIFT) - 1);
            self.0.store((now - TRUSTED - 1) << TIME_SHIFT | rest, Relaxed);
            return Some(false);
        }
        let weight = if len < LONG { CALL } else { len as u64 / GRAIN };
        // One of two counted at once may be lost.
        let reads = (state >> GRAINS_BITS) & READS;
        if reads + weight >= OFTEN {
            return None;
        }
        self.0.store(state + (weight << GRAINS_BITS), Relaxed);
        Some(false)
    }

    /// Whether it was not read through since it was written or opened; if `count`, `grains`
    /// of it are read now.
    fn is_new(&self, grains: u64, count: bool) -> bool {
        let state = self.0.load(Relaxed);
        let reads = (state >> GRAINS_BITS) & READS;
        let new = state & ASKED == 0 && reads < WINDOW / GRAIN;
        if new && count {
            self.0.store(state + (grains << GRAINS_BITS), Relaxed);
        }
        new
    }

    fn set(&self, grains: u64, now: u64) {
        self.0.store(now << TIME_SHIFT | ASKED | grains, Relaxed);
    }
}

/// The mapping that holds byte `at`.
fn place(at: u64) -> usize {
    (at / FIRST).checked_ilog2().map_or(0, |log| log as usize + 1)
}

/// Where mapping `number` begins, and its bytes.
fn extent(number: usize) -> (u64, u64) {
    let len = FIRST << number.saturating_sub(1);
    (if number == 0 { 0 } else { len }, len)
}

/// Milliseconds of a clock that costs next to nothing to read; never 0 or near it.
fn now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0).saturating_add(1000);
    (seconds.saturating_mul(1000) + now.tv_nsec as u64 / 1_000_000) & (u64::MAX >> TIME_SHIFT)
}

impl Map {
    /// Fills `buf` with the bytes from `at` on, if all of them are known to be resident, and `sums`
    /// with those of its units; returns whether it did. What it fills in is for who checks it: see
    /// the module.
    pub(crate) fn read(&self, file: &File, at: u64, buf: &mut [u8], sums: &mut [u32]) -> bool {
        let Some(end) = at.checked_add(buf.len() as u64) else { return false };
        let number = place(at);
        let (start, len) = extent(number);
        // In one mapping, so that one copy does; windows it may span.
        if buf.is_empty() || end - start > len {
            return false;
        }
        let Some(chunk) = self.chunk(file, number) else { return false };
        let (at, end) = (at - start, end - start);
        let now = now();
        for w in at / WINDOW..=(end - 1) / WINDOW {
            let Some(window) = chunk.windows.get(w as usize) else { return false };
            let grains = (end.min((w + 1) * WINDOW) - w * WINDOW).div_ceil(GRAIN);
            let held = window.holds(grains, buf.len(), now);
            if !held.unwrap_or_else(|| self.ask(file, (number, at.max(w * WINDOW)), now) >= grains)
            {
                return false;
            }
        }
        chunk.mapping.copy(at as usize, buf, sums)
    }

    /// Whether any of the `len` bytes from `at` on lie in windows that were not read through
    /// since they were written or the file was opened, and are not in the page cache. If
    /// `count`, they are read now. `false` if that is not known.
    pub(crate) fn is_new(&self, file: &File, at: u64, len: u64, count: bool) -> bool {
        let end = at.saturating_add(len);
        // A look at three pages: the read before it read all of it.
        let pages = [at, at.saturating_add(len / 2), end.saturating_sub(1)];
        let new = self.any_new(file, at..end, false)
            && !pages.into_iter().all(|at| self.holds_page(file, at));
        if new && count {
            self.any_new(file, at..end, true);
        }
        new
    }

    /// Whether a window of the range was not read through; if `count`, it is read now.
    fn any_new(&self, file: &File, range: Range<u64>, count: bool) -> bool {
        let (mut next, mut new) = (range.start, false);
        while next < range.end {
            let start = extent(place(next)).0;
            let Some(chunk) = self.chunk(file, place(next)) else { return false };
            let window = chunk.windows.get(((next - start) / WINDOW) as usize);
            let Some(window) = window else { return false };
            let until = range.end.min((next / WINDOW + 1) * WINDOW);
            new |= window.is_new((until - next) / GRAIN, count);
            next = until;
        }
        new
    }

    /// Whether the page of byte `at` is in the page cache. Does not bring it there.
    fn holds_page(&self, file: &File, at: u64) -> bool {
        let Some(chunk) = self.chunk(file, place(at)) else { return false };
        let page = (at - extent(place(at)).0) as usize / page_bytes() * page_bytes();
        chunk.mapping.is_resident(page, 1, &mut [0])
    }

    /// Begins to bring the first of `len` bytes from `at` on closer to the processor.
    pub(crate) fn approach(&self, at: u64, len: usize) {
        let number = place(at);
        if let Some(Some(chunk)) = self.chunks.get(number).and_then(OnceLock::get) {
            chunk.mapping.approach((at - extent(number).0) as usize, len);
        }
    }

    fn chunk(&self, file: &File, number: usize) -> Option<&Chunk> {
        let chunk = self.chunks.get(number)?;
        let chunk = chunk.get_or_init(|| {
            let (start, len) = extent(number);
            let bytes = usize::try_from(len).ok()?;
            // One page more, which is never copied from: see `tells_truth`.
            let mapping = Mapping::new(file, start, bytes + page_bytes()).ok()?;
            let windows = (0..len / WINDOW).map(|_| Window::default()).collect();
            Some(Chunk { mapping, cut: AtomicUsize::new(bytes), windows })
        });
        chunk.as_ref()
    }

    /// Asks the system about the window of byte `at` of mapping `number`, and notes what it
    /// says: how many grains are trusted from now on.
    fn ask(&self, file: &File, (number, at): (usize, u64), now: u64) -> u64 {
        let Some(_asking) = self.asking.try_lock() else { return 0 };
        let Some(chunk) = self.chunk(file, number) else { return 0 };
        let Some(window) = chunk.windows.get((at / WINDOW) as usize) else { return 0 };
        let grains = self.resident_grains(file, chunk, (number, at)).unwrap_or(0);
        window.set(grains, now);
        grains
    }

    /// `None`: not all that the file has of the window is resident, or that is not known.
    fn resident_grains(
        &self,
        file: &File,
        chunk: &Chunk,
        (number, at): (usize, u64),
    ) -> Option<u64> {
        let page = at as usize / page_bytes() * page_bytes();
        if !chunk.mapping.is_resident(page, 1, &mut [0]) {
            // Spares the look at the others if nothing is: that takes 20 times as long.
            return None;
        }
        let file_len = file.metadata().ok()?.len();
        let (start, from) = (extent(number).0, at / WINDOW * WINDOW);
        let len = file_len.checked_sub(start + from)?.min(WINDOW) as usize;
        if from as usize + len > chunk.cut.load(Relaxed) {
            return None;
        }
        let mut seen = [0; (WINDOW / GRAIN) as usize];
        let resident = chunk.mapping.is_resident(from as usize, len, &mut seen);
        (resident && self.tells_truth(file, file_len)).then_some((len as u64).div_ceil(GRAIN))
    }

    /// Whether this process learns what is resident: of a page behind the end of the file,
    /// that it is not. Such a page is the last one of the mapping in which the file ends.
    fn tells_truth(&self, file: &File, file_len: u64) -> bool {
        let number = place(file_len);
        let Some(chunk) = self.chunk(file, number) else { return false };
        let behind = extent(number).1 as usize;
        !chunk.mapping.is_resident(behind, page_bytes(), &mut [1])
    }

    /// The bytes from `at` on were written past the cache, which dropped what it had of them.
    /// Who asks at the same moment may still trust a window for a while: its touches wait.
    pub(crate) fn forget(&self, at: u64, len: u64) {
        let end = at.saturating_add(len);
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some(Some(chunk)) = chunk.get() else { continue };
            let start = extent(number).0;
            let first = at.saturating_sub(start) / WINDOW;
            let windows = chunk.windows.iter().skip(usize::try_from(first).unwrap_or(usize::MAX));
            let count = end.saturating_sub(start).div_ceil(WINDOW).saturating_sub(first);
            for window in windows.take(usize::try_from(count).unwrap_or(usize::MAX)) {
                window.0.store(0, Relaxed);
            }
        }
    }

    /// Runs `shorten`, which cuts the file to `len` bytes, when nothing of what lies behind is
    /// in the mappings any more. Should the file grow again, what lies there is read by calls,
    /// as long as this map lives: somebody may still be about to copy what was there.
    ///
    /// # Errors
    /// Those of the operating system, `shorten` not having run; those of `shorten`.
    pub(crate) fn cut(&self, len: u64, shorten: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
        let _asking = self.asking.lock();
        let page = page_bytes() as u64;
        let len = len.div_ceil(page).saturating_mul(page);
        for (number, chunk) in self.chunks.iter().enumerate() {
            let Some(Some(chunk)) = chunk.get() else { continue };
            let (start, bytes) = extent(number);
            let at = len.saturating_sub(start).min(bytes) as usize;
            if at < chunk.cut.load(Relaxed) {
                chunk.mapping.cut(at, bytes as usize)?;
                chunk.cut.store(at, Relaxed);
            }
        }
        shorten()
    }
}

#[cfg(test)]
mod tests;
