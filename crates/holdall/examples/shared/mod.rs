//! What the example programs and their tests share: counting writes, times of edits, the form
//! of an object.
//!
//! Owns no state. Threads: none; [`written`] counts the whole process.

use anyhow::{Result, ensure};
use holdall::{Layout, Store};
use std::fmt;
use std::io::Read;
use std::time::{Duration, Instant};

/// Bytes of a read or write of much data.
pub const BYTES_AT_ONCE: usize = 1 << 20;

/// Bytes this process handed over in write calls so far, all files and threads together.
/// None if the system does not say: it needs Linux's /proc/self/io.
pub fn written() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    io.lines().find_map(|line| line.strip_prefix("wchar:")?.trim().parse().ok())
}

/// Times and written bytes of a number of like steps.
#[derive(Debug, Default)]
pub struct Steps {
    times: Vec<Duration>,
    /// Bytes written in each; shorter than `times` if the system does not say.
    written: Vec<u64>,
}

impl Steps {
    /// Runs one step and keeps its figures; those of a failed one are not kept.
    pub fn run<T>(&mut self, step: impl FnOnce() -> Result<T>) -> Result<T> {
        let (before, start) = (written(), Instant::now());
        let value = step()?;
        self.times.push(start.elapsed());
        if let (Some(before), Some(after)) = (before, written()) {
            self.written.push(after.saturating_sub(before));
        }
        Ok(value)
    }

    /// Median number of bytes written in a step.
    pub fn median_written(&self) -> Option<u64> {
        let mut all = self.written.clone();
        all.sort_unstable();
        all.get(all.len() / 2).copied()
    }
}

impl fmt::Display for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut times = self.times.clone();
        times.sort_unstable();
        let (Some(most), Some(median)) = (times.last(), times.get(times.len() / 2)) else {
            return write!(f, "none");
        };
        write!(f, "{}: median {}, max {}", times.len(), millis(*median), millis(*most))?;
        match (self.median_written(), self.written.iter().max()) {
            (Some(median), Some(most)) => {
                write!(f, "; written: median {}, max {}", show(median), show(*most))
            }
            _ => write!(f, "; written: not known on this system"),
        }
    }
}

/// How an object lies in its store.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    /// Its size in bytes.
    pub size: u64,
    segments: u64,
    nodes: u64,
    levels: u8,
    /// Bytes of the pages of its segments and nodes; 0 for one that is inside its record.
    pub taken: u64,
}

impl Form {
    /// The form that object `name` has now.
    pub fn of(store: &Store, name: &str) -> Result<Self> {
        let reader = store.read()?;
        let (metadata, of) = (reader.metadata(name)?, reader.segments(name)?);
        let levels = match metadata.layout {
            Layout::Small => 0,
            Layout::Large { levels, .. } => levels,
        };
        let taken = (of.pages + of.nodes) * store.stat()?.page_size as u64;
        let (size, segments, nodes) = (metadata.size, of.segments, of.nodes);
        Ok(Self { size, segments, nodes, levels, taken })
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { size, segments, nodes, levels, taken } = *self;
        write!(f, "{size} bytes, {segments} segments, {nodes} nodes in {levels} levels")?;
        if taken > 0 {
            // The object's last bytes may lie in its record: then this is over 100 %.
            write!(f, ", utilization {:.1} %", size as f64 * 100.0 / taken as f64)?;
        }
        Ok(())
    }
}

/// Hash of all that `source` still gives.
pub fn hash_of(mut source: impl Read) -> Result<blake3::Hash> {
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; BYTES_AT_ONCE]);
    loop {
        match source.read(&mut piece)? {
            0 => return Ok(hasher.finalize()),
            n => hasher.update(&piece[..n]),
        };
    }
}

/// Checks every page and every byte of the store.
pub fn verify(store: &Store) -> Result<()> {
    let report = store.verify()?;
    ensure!(report.problems.is_empty(), "verify found: {:?}", report.problems);
    Ok(())
}

/// A time in milliseconds.
pub fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// A number of bytes in the largest unit that leaves three digits.
pub fn show(bytes: u64) -> String {
    let scaled = |unit: u32| bytes as f64 / f64::from(1_u32 << unit);
    match bytes {
        0..10_000 => format!("{bytes} B"),
        10_000..10_000_000 => format!("{:.1} KiB", scaled(10)),
        _ => format!("{:.1} MiB", scaled(20)),
    }
}
