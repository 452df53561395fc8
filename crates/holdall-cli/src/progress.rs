//! How far a long command is: a bar on a terminal, a line every few seconds elsewhere. The bar
//! has no colours.
//!
//! Owns: [`Meter`] (used by one thread) and [`Totals`] (filled by another, read by the
//! meter). All of it goes to standard error; standard output carries results only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::failure::complain;

/// Time between two lines if there is no terminal.
const EVERY: Duration = Duration::from_secs(5);
const COUNTING: &str = "{spinner} {msg}{decimal_bytes}, {decimal_bytes_per_sec}";
const KNOWN: &str = "{bar:30} {msg}{decimal_bytes} of {decimal_total_bytes}, \
                     {decimal_bytes_per_sec}, {eta} left";

/// What there is to do, once it has been counted.
#[derive(Default)]
pub struct Totals {
    files: AtomicU64,
    bytes: AtomicU64,
    known: AtomicBool,
}

impl Totals {
    /// Sets both totals; from here on the meter shows the time left.
    pub fn set(&self, files: u64, bytes: u64) {
        self.files.store(files, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
        self.known.store(true, Ordering::Release);
    }

    fn get(&self) -> Option<(u64, u64)> {
        let load = |n: &AtomicU64| n.load(Ordering::Relaxed);
        self.known.load(Ordering::Acquire).then(|| (load(&self.files), load(&self.bytes)))
    }
}

/// Shows progress in items and bytes.
pub struct Meter<'t> {
    totals: &'t Totals,
    /// What is counted beside bytes: "files", or nothing.
    items: Option<&'static str>,
    bar: Option<ProgressBar>,
    has_length: bool,
    started: Instant,
    said: Instant,
}

impl<'t> Meter<'t> {
    /// Starts the clock. Nothing is drawn if standard error is no terminal, or a dumb one.
    pub fn start(items: Option<&'static str>, totals: &'t Totals) -> Self {
        // A bar that cannot be drawn is hidden from its start.
        let bar = Some(ProgressBar::new_spinner()).filter(|bar| !bar.is_hidden());
        if let Some(bar) = &bar {
            set_style(bar, COUNTING);
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        let now = Instant::now();
        Self { totals, items, bar, has_length: false, started: now, said: now }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Shows that `count` items and `bytes` bytes are done.
    pub fn at(&mut self, count: u64, bytes: u64) {
        if let Some(bar) = &self.bar {
            if let Some((_, total)) = self.totals.get().filter(|_| !self.has_length) {
                self.has_length = true;
                bar.set_length(total);
                set_style(bar, KNOWN);
            }
            bar.set_position(bytes);
            bar.set_message(self.counted(count));
        } else if self.said.elapsed() >= EVERY {
            self.said = Instant::now();
            complain(&self.line(count, bytes));
        }
    }

    fn line(&self, count: u64, bytes: u64) -> String {
        let elapsed = self.elapsed();
        let speed = rate(bytes, elapsed);
        let done = self.counted(count);
        let head = format!("{done}{} MB, {speed:.1} MB/s", bytes / 1_000_000);
        match self.totals.get() {
            Some((total, total_bytes)) if bytes > 0 => {
                let left = total_bytes.saturating_sub(bytes) as f64 / bytes as f64;
                let seconds = left * elapsed.as_secs_f64();
                let (of, total_mb) = (self.counted(total), total_bytes / 1_000_000);
                format!("{head}, of {of}{total_mb} MB, about {seconds:.0} s left")
            }
            _ => head,
        }
    }

    /// `5 files, `, or nothing if only bytes are counted.
    fn counted(&self, count: u64) -> String {
        self.items.map_or_else(String::new, |items| format!("{count} {items}, "))
    }

    /// Writes a line on standard error without disturbing the bar.
    pub fn complain(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| complain(line)),
            None => complain(line),
        }
    }

    /// Removes the bar and gives the time taken.
    pub fn finish(&self) -> Duration {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        self.elapsed()
    }
}

fn set_style(bar: &ProgressBar, template: &str) {
    // A template that indicatif refuses would only cost the bar its looks.
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
}

/// Millions of bytes per second.
pub fn rate(bytes: u64, time: Duration) -> f64 {
    bytes as f64 / 1e6 / time.as_secs_f64().max(1e-3)
}
