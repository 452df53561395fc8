//! Latencies of single operations.
//!
//! Owns: the recorder (a histogram of high dynamic range, nanoseconds with three digits) and
//! what is kept of it.

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// What is kept of many latencies, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Operations.
    pub count: u64,
    /// Half took this or less.
    pub p50: f64,
    /// 99 of 100 took this or less.
    pub p99: f64,
    /// The longest.
    pub max: f64,
    /// The distribution: share of operations above, as 1 ÷ (1 − quantile), and microseconds.
    pub curve: Vec<(f64, f64)>,
}

/// Takes latencies. One for each thread; merge them afterwards.
#[derive(Debug, Clone)]
pub struct Recorder(Histogram<u64>);

impl Recorder {
    /// An empty one, for up to an hour. Cost: some hundred KiB.
    ///
    /// # Errors
    /// None in practice: the histogram's bounds are constants.
    pub fn new() -> Result<Self> {
        Ok(Self(Histogram::new_with_bounds(1, 3_600_000_000_000, 3)?))
    }

    /// Adds one.
    pub fn add(&mut self, time: Duration) {
        self.0.saturating_record(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX).max(1));
    }

    /// Runs `op` and adds how long it took, which is also returned.
    ///
    /// # Errors
    /// Those of `op`; nothing is added then.
    pub fn time(&mut self, op: impl FnOnce() -> Result<()>) -> Result<Duration> {
        let start = Instant::now();
        op()?;
        let time = start.elapsed();
        self.add(time);
        Ok(time)
    }

    /// Takes over all of another one.
    ///
    /// # Errors
    /// None in practice: all have the same bounds.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    /// What is kept; none without operations.
    pub fn summary(&self) -> Option<Latency> {
        let count = self.0.len();
        if count == 0 {
            return None;
        }
        let at = |q: f64| self.0.value_at_quantile(q) as f64 / 1e3;
        let mut curve = Vec::new();
        let mut above = 1.0;
        // Up to the share of one operation: beyond it there is only the longest.
        while above <= count as f64 {
            curve.push((above, at(1.0 - 1.0 / above)));
            above *= 10_f64.powf(0.25);
        }
        curve.push((count as f64, at(1.0)));
        Some(Latency { count, p50: at(0.5), p99: at(0.99), max: at(1.0), curve })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles() {
        let mut r = Recorder::new().unwrap();
        assert_eq!(r.summary(), None);
        (1..=1000).for_each(|us| r.add(Duration::from_micros(us)));
        let mut other = Recorder::new().unwrap();
        other.add(Duration::from_millis(50));
        r.merge(&other).unwrap();
        let s = r.summary().unwrap();
        assert_eq!(s.count, 1001);
        assert!((s.p50 - 501.0).abs() < 2.0, "{s:?}");
        assert!((s.p99 - 991.0).abs() < 3.0, "{s:?}");
        assert!((s.max - 50_000.0).abs() < 100.0, "{s:?}");
        assert!(s.curve.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
    }
}
