//! When commits were made, as far as the age of a snapshot needs it.
//!
//! Owns: [`Times`], a short list of LSNs with the time at which each was the newest. Times come
//! from the caller, so that a simulation sets them. Memory: at most 48 KiB.

use holdall_core::Lsn;
use std::collections::VecDeque;
use std::time::Duration;

/// Commits closer together than this share an entry.
const STEP: Duration = Duration::from_millis(10);
/// Entries; beyond, neighbours become one.
const MOST_ENTRIES: usize = 2048;

/// Groups of commits: the last one's LSN and the time of the first, ascending.
#[derive(Debug, Default)]
pub(crate) struct Times {
    entries: VecDeque<(Lsn, Duration)>,
    now: Duration,
}

impl Times {
    /// Commit `lsn` was the newest at `now`.
    pub(crate) fn note(&mut self, lsn: Lsn, now: Duration) {
        self.now = self.now.max(now);
        if let Some((last, first_at)) = self.entries.back_mut()
            && (*last >= lsn || now < *first_at + STEP)
        {
            *last = lsn.max(*last);
            return;
        }
        if self.entries.len() >= MOST_ENTRIES {
            let all: Vec<_> = self.entries.drain(..).collect();
            let pair = |both: &[(Lsn, Duration)]| {
                let (last, _) = both[both.len() - 1];
                (last, both[0].1)
            };
            self.entries.extend(all.chunks(2).map(pair));
        }
        self.entries.push_back((lsn, now));
    }

    /// How long before the last noted time a commit first replaced the state at `lsn`.
    pub(crate) fn since_replaced(&self, lsn: Lsn) -> Duration {
        let after = self.entries.partition_point(|(last, _)| *last <= lsn);
        self.entries.get(after).map_or(Duration::ZERO, |(_, at)| self.now.saturating_sub(*at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_about_right_and_memory_is_bounded() {
        let mut times = Times::default();
        assert_eq!(times.since_replaced(Lsn(5)), Duration::ZERO);
        for n in 1..20_000 {
            times.note(Lsn(n), Duration::from_millis(7 * n));
        }
        assert!(times.entries.len() <= MOST_ENTRIES);
        for n in [1, 100, 7000, 19_000] {
            let (found, right) = (times.since_replaced(Lsn(n)), 7 * (19_999 - n - 1));
            let off = Duration::from_millis(right).abs_diff(found);
            assert!(off < Duration::from_secs(2), "{n}: {found:?} for {right} ms");
        }
        assert_eq!(times.since_replaced(Lsn(30_000)), Duration::ZERO);
    }
}
