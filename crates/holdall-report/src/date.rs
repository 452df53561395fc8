//! Dates for people, UTC.
//!
//! Owns: the calendar. Times before 1970 are negative; leap seconds do not exist, as in Unix time.

use std::time::{SystemTime, UNIX_EPOCH};

const NANOS: i128 = 1_000_000_000;

/// `2024-02-29T12:00:00Z` for nanoseconds since 1970; whole seconds, rounded down.
pub fn seconds(nanos: i128) -> String {
    format!("{}Z", without_zone(nanos.div_euclid(NANOS)))
}

/// `2024-02-29T12:00:00.250Z`: with milliseconds, rounded down.
pub fn millis(time: SystemTime) -> String {
    let millis = since_1970(time).div_euclid(1_000_000);
    format!("{}.{:03}Z", without_zone(millis.div_euclid(1000)), millis.rem_euclid(1000))
}

/// Nanoseconds since the start of 1970, UTC.
pub fn since_1970(time: SystemTime) -> i128 {
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
        Err(before) => i128::try_from(before.duration().as_nanos()).map_or(i128::MIN, |n| -n),
    }
}

fn without_zone(seconds: i128) -> String {
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
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}", days + 1)
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
    use std::time::Duration;

    #[test]
    fn dates_of_known_seconds() {
        for (at, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_208_000, "2024-02-29T12:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-11_644_473_600, "1601-01-01T00:00:00Z"),
        ] {
            assert_eq!(seconds(at * NANOS), text);
        }
        assert_eq!(seconds(-1), "1969-12-31T23:59:59Z");
        assert!(seconds(i128::MAX).ends_with('Z'));
    }

    #[test]
    fn dates_with_milliseconds_are_rounded_down() {
        let after = UNIX_EPOCH + Duration::from_micros(1_709_208_000_012_999);
        assert_eq!(millis(after), "2024-02-29T12:00:00.012Z");
        assert_eq!(millis(UNIX_EPOCH - Duration::from_micros(1)), "1969-12-31T23:59:59.999Z");
        let farthest = UNIX_EPOCH + Duration::from_millis(u64::MAX);
        assert_eq!(millis(farthest), "584556019-04-03T14:25:51.615Z");
    }
}
