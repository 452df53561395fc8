//! Dates of headers, in the three forms that HTTP has (RFC 9110 section 5.6.7), and in RFC 3339.

use s3s::dto::{Timestamp, TimestampFormat};
use std::time::SystemTime;
use time::{Date, Month, OffsetDateTime, Time};

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The date that a text is; `None` if it is none.
pub fn parse(text: &str) -> Option<OffsetDateTime> {
    let stamp = || Timestamp::parse(TimestampFormat::DateTime, text.trim()).ok();
    parts(text.trim()).or_else(|| stamp().map(OffsetDateTime::from))
}

/// A time as headers have it; `None` beyond the years that they can hold.
pub fn text(time: SystemTime) -> Option<String> {
    let mut text = Vec::new();
    Timestamp::from(time).format(TimestampFormat::HttpDate, &mut text).ok()?;
    String::from_utf8(text).ok()
}

fn parts(text: &str) -> Option<OffsetDateTime> {
    let words: Vec<&str> = text.split([' ', ',', '-']).filter(|word| !word.is_empty()).collect();
    let (day, month, year, clock) = match words[..] {
        [_, day, month, year, clock, "GMT" | "UTC"] => (day, month, year, clock),
        // The form of asctime names no zone.
        [_, month, day, clock, year] => (day, month, year, clock),
        _ => return None,
    };
    let number = |text: &str| -> Option<u16> {
        let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        sound.then(|| text.parse().ok()).flatten()
    };
    let month = MONTHS.iter().position(|name| *name == month)? + 1;
    let month = Month::try_from(u8::try_from(month).ok()?).ok()?;
    let year = match (year.len(), number(year)?) {
        (4, year) => year,
        // Two digits are a year that lies at most 50 years ahead: by now one of 1977 to 2076.
        (2, year) if year >= 77 => 1900 + year,
        (2, year) => 2000 + year,
        _ => return None,
    };
    let mut clock = clock.split(':').map(|part| u8::try_from(number(part)?).ok());
    let time = Time::from_hms(clock.next()??, clock.next()??, clock.next()??.min(59)).ok()?;
    if clock.next().is_some() {
        return None;
    }
    let day = u8::try_from(number(day)?).ok()?;
    let date = Date::from_calendar_date(i32::from(year), month, day).ok()?;
    Some(date.with_time(time).assume_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(text: &str) -> Option<i64> {
        parse(text).map(OffsetDateTime::unix_timestamp)
    }

    #[test]
    fn the_forms_of_http_are_one_date() {
        for text in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
            "1994-11-06T08:49:37Z",
        ] {
            assert_eq!(seconds(text), Some(784_111_777), "{text}");
        }
        let at = parse("1994-11-06T08:49:37Z").unwrap();
        assert_eq!(super::text(at.into()).unwrap(), "Sun, 06 Nov 1994 08:49:37 GMT");
        for bad in ["0", "", "-1", "never", "Sun, 36 Nov 1994 08:49:37 GMT", "06 Nov 1994"] {
            assert_eq!(seconds(bad), None, "{bad}");
        }
    }
}
