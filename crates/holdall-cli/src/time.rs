//! Times as the store keeps them: nanoseconds since 1970 as decimal text.
//!
//! Owns: the way between `SystemTime`, the attribute `mtime`, and a date for people.
//! Times before 1970 are negative; leap seconds do not exist, as in Unix time.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANOS: i128 = 1_000_000_000;

/// Nanoseconds since the start of 1970, UTC.
pub fn to_nanos(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |n| -n),
    }
}

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

/// `2024-02-29T12:00:00Z`, whole seconds, rounded down.
pub fn date(nanos: i128) -> String {
    let seconds = nanos.div_euclid(NANOS);
    let (mut days, clock) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // The calendar repeats every 400 years of 146,097 days; only the last cycle is walked.
    let mut year = 1970 + 400 * days.div_euclid(146_097);
    days = days.rem_euclid(146_097);
    while days >= year_days(year) {
        days -= year_days(year);
        year += 1;
    }
    let mut month = 1;
    while days >= month_days(year, month) {
        days -= month_days(year, month);
        month += 1;
    }
    let (hour, minute, second) = (clock / 3600, clock / 60 % 60, clock % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

fn is_leap(year: i128) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn year_days(year: i128) -> i128 {
    if is_leap(year) { 366 } else { 365 }
}

fn month_days(year: i128, month: i128) -> i128 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_known_seconds() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-11_644_473_600, "1601-01-01T00:00:00Z"),
        ] {
            assert_eq!(date(seconds * NANOS), text);
        }
        assert_eq!(date(-1), "1969-12-31T23:59:59Z");
        assert!(date(i128::MAX).ends_with('Z'));
    }

    #[test]
    fn times_round_trip() {
        for nanos in [0, 1, -1, 1_709_208_000_123_456_789, -1_500_000_001] {
            assert_eq!(to_nanos(from_nanos(nanos).unwrap()), nanos);
        }
        assert_eq!(parse(b"-12"), Some(-12));
        assert_eq!(parse(b"12s"), None);
    }
}
