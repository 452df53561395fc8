//! How often each value of something came.
//!
//! Owns: [`Recorder`], which counts values, and [`Distribution`], what it had counted at a moment.

use histogram::{AtomicHistogram, Histogram};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// A power of two of values is divided into 2³ classes: a value is known to an eighth.
const GROUPING: u8 = 3;
/// Values are below 2⁴⁴: nanoseconds of almost five hours.
const POWER: u8 = 44;
const MOST: u64 = (1 << POWER) - 1;

/// Counts values, from any thread.
pub(crate) struct Recorder {
    values: AtomicHistogram,
    sum: AtomicU64,
}

impl Default for Recorder {
    #[expect(clippy::expect_used, reason = "fails for other constants only")]
    fn default() -> Self {
        let values = AtomicHistogram::new(GROUPING, POWER).expect("a possible histogram");
        Self { values, sum: AtomicU64::new(0) }
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.load())
    }
}

impl Recorder {
    /// Counts one more value. Cost: two additions to memory that threads share.
    pub(crate) fn record(&self, value: u64) {
        // Only values beyond the greatest are refused.
        let _ = self.values.increment(value.min(MOST));
        self.sum.fetch_add(value, Relaxed);
    }

    /// Counts the nanoseconds since `begun`.
    pub(crate) fn record_since(&self, begun: Instant) {
        self.record(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }

    /// What was counted so far.
    pub(crate) fn load(&self) -> Distribution {
        // First the sum: a value counted meanwhile must not make the mean too great.
        let sum = self.sum.load(Relaxed);
        Distribution { values: self.values.load(), sum }
    }
}

/// How often each value of something came, since the store was opened. Values are known to an
/// eighth.
#[derive(Clone, PartialEq, Eq)]
pub struct Distribution {
    values: Histogram,
    sum: u64,
}

impl Distribution {
    /// How many there were.
    pub fn count(&self) -> u64 {
        self.classes().map(|(_, count)| count).sum()
    }

    /// The sum of all.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Their mean; 0 if there were none.
    pub fn mean(&self) -> f64 {
        let count = self.count();
        if count == 0 { 0.0 } else { self.sum as f64 / count as f64 }
    }

    /// The value that a share of `q`, 0 to 1, was not above: 0.5 gives the median, 1 the greatest.
    /// Rounded up by an eighth at most; 0 if there were none.
    pub fn quantile(&self, q: f64) -> u64 {
        let found = self.values.quantile_bucket(q.clamp(0.0, 1.0)).ok().flatten();
        found.map_or(0, |class| class.end())
    }

    /// What came since `before` was counted.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let values = self.values.checked_sub(&before.values);
        let sum = self.sum.saturating_sub(before.sum);
        // Of another opening: all of it is new.
        values.map_or_else(|_| self.clone(), |values| Self { values, sum })
    }

    /// Each class of values that came: its greatest value, and how many came. In order.
    pub fn classes(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let all = self.values.iter().filter(|class| class.count() > 0);
        all.map(|class| (class.end(), class.count()))
    }
}

/// As its sum and its classes.
#[cfg(feature = "serde")]
impl serde::Serialize for Distribution {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        (self.sum, self.classes().collect::<Vec<_>>()).serialize(to)
    }
}

#[cfg(feature = "serde")]
impl<'de> serde::Deserialize<'de> for Distribution {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        use serde::de::Error;
        let (sum, classes) = <(u64, Vec<(u64, u64)>)>::deserialize(from)?;
        let mut values = Histogram::new(GROUPING, POWER).map_err(D::Error::custom)?;
        for (value, count) in classes {
            values.add(value, count).map_err(D::Error::custom)?;
        }
        Ok(Self { values, sum })
    }
}

impl std::fmt::Debug for Distribution {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [median, tail, most] = [0.5, 0.99, 1.0].map(|q| self.quantile(q));
        write!(f, "{} values, mean {:.1}, ", self.count(), self.mean())?;
        write!(f, "half up to {median}, 99 % up to {tail}, all up to {most}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_known_to_an_eighth() {
        let recorder = Recorder::default();
        let none = recorder.load();
        assert_eq!((none.count(), none.quantile(0.5), none.mean()), (0, 0, 0.0));
        (1..=1000).for_each(|value| recorder.record(value));
        let all = recorder.load();
        assert_eq!((all.count(), all.sum(), all.mean()), (1000, 500_500, 500.5));
        for (q, value) in [(0.001, 1), (0.5, 500), (0.99, 990), (1.0, 1000), (7.0, 1000)] {
            let found = all.quantile(q);
            assert!(found >= value && found <= value + value / 8, "{found} for {value}");
        }
        let counted: u64 = all.classes().map(|(_, count)| count).sum();
        assert_eq!(counted, 1000);
        recorder.record(u64::MAX);
        assert_eq!(recorder.load().quantile(1.0), MOST);
    }

    #[test]
    fn threads_count_together() {
        let recorder = Recorder::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let recorder = &recorder;
                scope.spawn(move || (0..1000).for_each(|_| recorder.record(thread)));
            }
        });
        let classes: Vec<_> = recorder.load().classes().collect();
        assert_eq!(classes, [(0, 1000), (1, 1000), (2, 1000), (3, 1000)]);
    }
}
