//! What replay would have to copy within the volume: a resource of the log, as its bytes are.
//!
//! Owns: [`Copied`], how much each commit since the last checkpoint would ask for. Invariant:
//! the commits that replay can meet ask for [`most_copied`] bytes at most, so that recovery
//! may refuse a log that asks for more.

use holdall_core::Lsn;
use holdall_core::log_format::most_composed as most_copied;
use std::collections::VecDeque;

/// Bytes that one commit may ask for; what copies more is written in place and is synced. Replay of
/// that many takes some tenths of a second.
pub(super) const COPIED_MOST: u64 = 128 << 20;

/// Bytes that replay would copy, by commit.
#[derive(Debug, Default)]
pub struct Copied {
    commits: VecDeque<(Lsn, u64)>,
    /// Of all commits.
    all: u64,
    /// Of those that the last checkpoint begun does not bring in place.
    fresh: u64,
}

impl Copied {
    /// Whether a commit that asks for `bytes` may follow, in a log of `capacity` bytes.
    pub fn has_room(&self, bytes: u64, capacity: u64) -> bool {
        bytes == 0 || self.all == 0 || self.all + bytes <= most_copied(capacity)
    }

    /// Notes a commit, the newest.
    pub fn push(&mut self, lsn: Lsn, bytes: u64) {
        if bytes > 0 {
            self.commits.push_back((lsn, bytes));
            self.all += bytes;
            self.fresh += bytes;
        }
    }

    /// whether enough has gathered that a checkpoint should begin.
    pub fn is_much(&self, capacity: u64) -> bool {
        self.fresh > most_copied(capacity) / 2
    }

    /// A checkpoint begins that brings in place all commits up to `lsn`.
    pub fn begun(&mut self, lsn: Lsn) {
        self.fresh = self.commits.iter().rev().take_while(|c| c.0 > lsn).map(|c| c.1).sum();
    }

    /// It is complete.
    pub fn released(&mut self, lsn: Lsn) {
        while let Some((_, bytes)) = self.commits.front().filter(|c| c.0 <= lsn) {
            self.all -= bytes;
            self.commits.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_the_checkpoint_and_only_of_what_it_brought_in_place() {
        let (mut copied, mib) = (Copied::default(), 1 << 20);
        for lsn in [10, 20, 30] {
            assert!(copied.has_room(80 * mib, mib));
            copied.push(Lsn(lsn), 80 * mib);
        }
        copied.push(Lsn(31), 0);
        assert!(!copied.has_room(80 * mib, mib) && copied.has_room(16 * mib, mib));
        assert!(copied.has_room(80 * mib, 200 * mib), "a larger log");
        assert!(copied.has_room(0, mib) && copied.is_much(mib));
        copied.begun(Lsn(20));
        assert!(!copied.is_much(mib), "it is on its way");
        assert!(!copied.has_room(80 * mib, mib), "a crash would find it all");
        copied.released(Lsn(20));
        assert!(copied.has_room(80 * mib, mib));
        copied.begun(Lsn(30));
        copied.released(Lsn(30));
        assert_eq!((copied.all, copied.fresh), (0, 0));
    }
}
