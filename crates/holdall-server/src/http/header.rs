//! Headers of requests, read whole or refused: a value that is not text, or one of two, would
//! otherwise be taken for none, and its request done without what it asked.
//!
//! Owns: [`single`], [`list`], [`ByteRange`].

use crate::http::spelling::digits;
use crate::refusal::{Result, Why};
use http::{HeaderMap, HeaderValue, header};
use std::ops::Range;

fn text<'h>(name: &str, value: &'h HeaderValue) -> Result<&'h str> {
    value
        .to_str()
        .map_err(|_| Why::BadValue.says(format!("the header {name} is not text in ASCII")))
}

/// The value of a header that a request has once; `None` if it is missing.
///
/// # Errors
/// BadValue if it is there twice, or is not text.
pub fn single<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(Why::BadValue.says(format!("the header {name} is there twice")));
    }
    text(name, value).map(Some)
}

/// The value of a header that is a list; several headers of its name are one list.
///
/// # Errors
/// BadValue if it is not text.
pub fn list(headers: &HeaderMap, name: &str) -> Result<Option<String>> {
    let values = headers.get_all(name).iter().map(|value| text(name, value));
    let values = values.collect::<Result<Vec<_>>>()?;
    Ok((!values.is_empty()).then(|| values.join(", ")))
}

/// The bytes that the header Range asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ByteRange {
    /// From one byte on, up to another one if it is given.
    From(u64, Option<u64>),
    /// The last ones: this many.
    Last(u64),
}

impl ByteRange {
    /// What a header says. All bytes are the answer to several ranges, and to what HTTP does not
    /// know (RFC 9110 section 14.2).
    pub fn parse(text: &str) -> Option<Self> {
        let (unit, set) = text.split_once('=')?;
        let (first, last) = set.trim().split_once('-')?;
        let number = |text: &str| {
            // One that is too great lies behind all bytes.
            let great = || text.len() > 1 && text.bytes().all(|byte| byte.is_ascii_digit());
            digits(text).or_else(|| great().then_some(u64::MAX))
        };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        if first.is_empty() {
            return Some(Self::Last(number(last)?));
        }
        let first = number(first)?;
        let last = if last.is_empty() { None } else { Some(number(last)?) };
        last.is_none_or(|last| first <= last).then_some(Self::From(first, last))
    }

    /// Which of `size` bytes it means; `None` if it means none of them.
    pub fn within(self, size: u64) -> Option<Range<u64>> {
        let range = match self {
            Self::From(first, last) => first..last.map_or(size, |last| last.saturating_add(1)),
            Self::Last(count) => size.saturating_sub(count)..size,
        };
        let range = range.start..range.end.min(size);
        (!range.is_empty()).then_some(range)
    }
}

/// Refuses a body whose transfer is coded in a way that nobody here decodes.
///
/// # Errors
/// Status 501; BadValue if the header is not text.
pub fn check_transfer(headers: &HeaderMap) -> Result<()> {
    match list(headers, header::TRANSFER_ENCODING.as_str())? {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("chunked") => {
            let text = format!("Transfer-Encoding {coding} is not decoded: send chunked");
            Err(Why::NotOffered.says(text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_whole_or_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!((single(&headers, "a").unwrap(), list(&headers, "a").unwrap()), (None, None));
        headers.append("a", HeaderValue::from_static("1"));
        assert_eq!(single(&headers, "a").unwrap(), Some("1"));
        headers.append("a", HeaderValue::from_static("2"));
        assert!(single(&headers, "a").is_err());
        assert_eq!(list(&headers, "a").unwrap().unwrap(), "1, 2");
        headers.insert("a", HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(single(&headers, "a").is_err() && list(&headers, "a").is_err());
    }

    #[test]
    fn ranges_that_http_does_not_know_are_all_bytes() {
        let range = ByteRange::parse;
        assert_eq!(range("bytes=0-9"), Some(ByteRange::From(0, Some(9))));
        let great = range("Bytes= 0-99999999999999999999");
        assert_eq!(great, Some(ByteRange::From(0, Some(u64::MAX))));
        assert_eq!(range("bytes=0-"), Some(ByteRange::From(0, None)));
        assert_eq!(range("bytes=-5"), Some(ByteRange::Last(5)));
        for none in [
            "bytes=5-2",
            "bytes=0-1,3-4",
            "bytes=a-b",
            "bytes=-",
            "bytes=",
            "lines=0-1",
            "0-1",
            "bytes=+1-2",
        ] {
            assert_eq!(range(none), None, "{none}");
        }
    }

    #[test]
    fn a_range_lies_within_the_bytes_or_outside() {
        let within = |range: ByteRange| range.within(10);
        assert_eq!(within(ByteRange::From(2, Some(4))), Some(2..5));
        assert_eq!(within(ByteRange::From(9, Some(u64::MAX))), Some(9..10));
        assert_eq!(within(ByteRange::From(0, None)), Some(0..10));
        assert_eq!(within(ByteRange::Last(3)), Some(7..10));
        assert_eq!(within(ByteRange::Last(11)), Some(0..10));
        for outside in [ByteRange::From(10, None), ByteRange::From(u64::MAX, Some(u64::MAX))] {
            assert_eq!(within(outside), None);
        }
        assert_eq!(within(ByteRange::Last(0)), None);
        assert_eq!(ByteRange::From(0, None).within(0), None);
    }

    #[test]
    fn a_transfer_is_chunked_or_refused() {
        for (coding, done) in [("chunked", true), ("Chunked", true), ("gzip, chunked", false)] {
            let mut headers = HeaderMap::new();
            headers.insert("transfer-encoding", HeaderValue::from_static(coding));
            assert_eq!(check_transfer(&headers).is_ok(), done, "{coding}");
        }
    }
}
