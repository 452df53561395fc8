//! Times as the store keeps them: nanoseconds since 1970 as decimal text.
//!
//! Owns: the way between `SystemTime` and the attribute `mtime`; dates are those of
//! `holdall-report`. Times before 1970 are negative; leap seconds do not exist, as in Unix time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use holdall_report::date::{seconds as date, since_1970 as to_nanos};

const NANOS: i128 = 1_000_000_000;

/// The time `nanos` after the start of 1970; `None` if the system cannot hold it.
pub fn from_nanos(nanos: i128) -> Option<SystemTime> {
    let seconds = u64::try_from(nanos.unsigned_abs() / NANOS.unsigned_abs()).ok()?;
    let rest = u32::try_from(nanos.unsigned_abs() % NANOS.unsigned_abs()).ok()?;
    let distance = Duration::new(seconds, rest);
    if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
}

/// Reads the text of an attribute; `None` unless it is a decimal number.
pub fn parse(text: &[u8]) -> Option<i128> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_round_trip() {
        for nanos in [0, 1, -1, 1_709_208_000_123_456_789, -1_500_000_001] {
            assert_eq!(to_nanos(from_nanos(nanos).unwrap()), nanos);
        }
        assert_eq!(parse(b"-12"), Some(-12));
        assert_eq!(parse(b"12s"), None);
    }
}
