//! Conditions of requests: on the ETag and on the time of the last change (RFC 9110 section 13).
//!
//! Owns: [`ETagCondition`]; [`Read`], which a get or head evaluates; [`mode`], which turns a put's
//! into what the engine checks within the transaction.

use crate::http::date;
use crate::objects::meta::{Meta, etag_of};
use holdall::{PutMode, Reader};
use http::{HeaderMap, HeaderName};
use s3s::dto::{ETag, Timestamp};
use s3s::{S3Error, S3Result, s3_error};
use std::time::SystemTime;

/// What a header names: any object, or one of these ETags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ETagCondition {
    /// `*`.
    Any,
    /// ETags, of which those that are weak match for readers only.
    OneOf(Vec<ETag>),
}

/// Why a text names no ETags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it holds neither ETags nor a star")]
pub struct NoETag;

/// Cuts a list at its commas outside of quotes.
fn items(list: &str) -> Vec<&str> {
    let (mut quoted, mut start, mut items) = (false, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        if byte == b'"' {
            quoted = !quoted;
        } else if byte == b',' && !quoted {
            items.push(&list[start..at]);
            start = at + 1;
        }
    }
    items.push(&list[start..]);
    items.into_iter().map(str::trim).filter(|item| !item.is_empty()).collect()
}

/// An ETag; S3's clients leave the quotes out at times.
fn etag(item: &str) -> Result<ETag, NoETag> {
    let (weak, value) = item.strip_prefix("W/").map_or((false, item), |value| (true, value));
    let inside = value.strip_prefix('"').and_then(|v| v.strip_suffix('"'));
    let value = match inside {
        Some(inside) => inside,
        None if weak || value == "*" => return Err(NoETag),
        None => value,
    };
    if value.contains(['"', ' ']) || value.contains(char::is_control) {
        return Err(NoETag);
    }
    Ok(if weak { ETag::Weak(value.into()) } else { ETag::Strong(value.into()) })
}

impl ETagCondition {
    /// What a header says.
    ///
    /// # Errors
    /// [`NoETag`].
    pub fn parse_http_header(value: &[u8]) -> Result<Self, NoETag> {
        let text = std::str::from_utf8(value).map_err(|_| NoETag)?.trim();
        if text == "*" {
            return Ok(Self::Any);
        }
        let etags: Vec<ETag> = items(text).into_iter().map(etag).collect::<Result<_, _>>()?;
        if etags.is_empty() { Err(NoETag) } else { Ok(Self::OneOf(etags)) }
    }
}

/// As a header has it, so that it reads back as the same.
impl std::fmt::Display for ETagCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::OneOf(etags) = self else { return f.write_str("*") };
        for (at, etag) in etags.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let weak = if etag.as_strong().is_some() { "" } else { "W/" };
            write!(f, "{comma}{weak}\"{}\"", etag.value())?;
        }
        Ok(())
    }
}

/// A header's value; that of several headers of one name is a list of theirs.
fn text(headers: &HeaderMap, name: &str) -> S3Result<Option<String>> {
    let mut all = Vec::new();
    for value in headers.get_all(name) {
        let bad = |_| s3_error!(InvalidArgument, "{name} is not text");
        all.push(value.to_str().map_err(bad)?.to_owned());
    }
    Ok((!all.is_empty()).then(|| all.join(", ")))
}

/// The ETags that a header names.
///
/// # Errors
/// InvalidArgument.
pub fn etags(headers: &HeaderMap, name: &str) -> S3Result<Option<ETagCondition>> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let bad = |e| s3_error!(InvalidArgument, "{name}: {e}");
    ETagCondition::parse_http_header(value.as_bytes()).map(Some).map_err(bad)
}

fn time(headers: &HeaderMap, name: &str) -> S3Result<Option<Timestamp>> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let bad = || s3_error!(InvalidArgument, "{name}: {value:?} is not a date of HTTP");
    date::parse(&value).map(Some).ok_or_else(bad)
}

/// Conditions of a read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// If-Match.
    pub matches: Option<ETagCondition>,
    /// If-None-Match.
    pub matches_not: Option<ETagCondition>,
    /// If-Modified-Since.
    pub since: Option<Timestamp>,
    /// If-Unmodified-Since.
    pub not_since: Option<Timestamp>,
}

/// Whether an object with this ETag is one that If-Match names.
pub fn matches(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::OneOf(etags) => etags.iter().any(|e| e.as_strong() == Some(etag)),
    }
}

/// Whether an object with this ETag is one that If-None-Match names.
pub fn matches_weakly(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::OneOf(etags) => etags.iter().any(|e| e.value() == etag),
    }
}

/// Whole seconds since 1970, as dates in headers have them.
fn seconds(time: SystemTime) -> i64 {
    let of = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    time.duration_since(SystemTime::UNIX_EPOCH).map_or_else(|e| -of(e.duration()), of)
}

fn stamp(time: &Timestamp) -> i64 {
    time::OffsetDateTime::from(time.clone()).unix_timestamp()
}

/// Whether two times are the same second.
pub fn is_at(given: &Timestamp, modified: SystemTime) -> bool {
    stamp(given) == seconds(modified)
}

impl Read {
    /// The conditions in the headers of a request.
    ///
    /// # Errors
    /// InvalidArgument for what is neither an ETag nor a date. If-Modified-Since that is no date is
    /// none, as RFC 9110 has it: the answer is then whole.
    pub fn of(headers: &HeaderMap) -> S3Result<Self> {
        Ok(Self {
            matches: etags(headers, "if-match")?,
            matches_not: etags(headers, "if-none-match")?,
            since: time(headers, "if-modified-since").unwrap_or_default(),
            not_since: time(headers, "if-unmodified-since")?,
        })
    }

    /// The conditions on a copy's source.
    ///
    /// # Errors
    /// As [`Read::of`].
    pub fn of_source(headers: &HeaderMap) -> S3Result<Self> {
        Ok(Self {
            matches: etags(headers, "x-amz-copy-source-if-match")?,
            matches_not: etags(headers, "x-amz-copy-source-if-none-match")?,
            since: time(headers, "x-amz-copy-source-if-modified-since")?,
            not_since: time(headers, "x-amz-copy-source-if-unmodified-since")?,
        })
    }

    /// Refuses where a condition is not met.
    ///
    /// # Errors
    /// PreconditionFailed, NotModified.
    pub fn check(&self, meta: &Meta, etag: &str) -> S3Result<()> {
        let modified = seconds(meta.modified());
        match (&self.matches, &self.not_since) {
            (Some(wanted), _) if !matches(wanted, etag) => {
                return Err(s3_error!(PreconditionFailed, "the object has another ETag"));
            }
            (None, Some(time)) if modified > stamp(time) => {
                return Err(s3_error!(PreconditionFailed, "the object was changed since"));
            }
            _ => {}
        }
        match (&self.matches_not, &self.since) {
            (Some(known), _) if matches_weakly(known, etag) => Err(s3_error!(NotModified)),
            (None, Some(time)) if modified <= stamp(time) => Err(s3_error!(NotModified)),
            _ => Ok(()),
        }
    }

    /// As [`Read::check`] for the source of a copy, where a failure is always an error.
    ///
    /// # Errors
    /// PreconditionFailed.
    pub fn check_source(&self, meta: &Meta, etag: &str) -> S3Result<()> {
        let failed = |_| s3_error!(PreconditionFailed, "the source does not meet the conditions");
        self.check(meta, etag).map_err(failed)
    }
}

/// What a range's client has: the range is of use to it only if the object is still that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfRange {
    /// An ETag.
    Is(ETag),
    /// The time of the last change.
    At(Timestamp),
    /// Neither: nothing is that.
    Never,
}

impl IfRange {
    /// What the header says.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get("if-range")?.to_str().unwrap_or_default().trim();
        if let Some(at) = date::parse(value) {
            return Some(Self::At(at));
        }
        Some(etag(value).map_or(Self::Never, Self::Is))
    }

    /// Whether the object is still the one that the client has.
    pub fn holds(&self, meta: &Meta, etag: &str) -> bool {
        match self {
            Self::Is(wanted) => wanted.as_strong() == Some(etag),
            Self::At(time) => is_at(time, meta.modified()),
            Self::Never => false,
        }
    }
}

/// Headers that hold conditions, and are read here rather than by `s3s`.
pub fn is_condition(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(name, "if-match" | "if-none-match" | "if-modified-since" | "if-unmodified-since")
        || name.starts_with("x-amz-copy-source-if-")
}

fn changed() -> S3Error {
    s3_error!(PreconditionFailed, "the object has another ETag")
}

/// What the engine is to check of a put under conditions, by the state it is sent against. The
/// engine refuses where the object changes between that state and the commit.
///
/// # Errors
/// PreconditionFailed; NoSuchKey where an ETag is asked of an object that is not there.
pub fn mode(
    reader: &Reader,
    key: &str,
    matches_: Option<&ETagCondition>,
    matches_not: Option<&ETagCondition>,
) -> S3Result<PutMode> {
    if matches_.is_none() && matches_not.is_none() {
        return Ok(PutMode::Overwrite);
    }
    let there = match reader.metadata(key) {
        Ok(found) => Some(found),
        Err(holdall::Error::NotFound(_)) => None,
        Err(e) => return Err(crate::error::from_store(e)),
    };
    let Some(found) = there else {
        return match matches_ {
            None => Ok(PutMode::Create),
            Some(_) => Err(s3_error!(NoSuchKey, "there is no object {key}")),
        };
    };
    let etag = etag_of(&found);
    if matches_.is_some_and(|wanted| !matches(wanted, &etag)) {
        return Err(changed());
    }
    if matches_not.is_some_and(|not| matches_weakly(not, &etag)) {
        return Err(s3_error!(PreconditionFailed, "the object exists"));
    }
    Ok(PutMode::Update(found.version))
}

/// As [`mode`] for two requests whose conditions must all hold: one that began an upload, and the
/// one that completes it.
///
/// # Errors
/// As [`mode`].
pub fn mode_of_both(reader: &Reader, key: &str, [begun, now]: [&Read; 2]) -> S3Result<PutMode> {
    let of = |c: &Read| mode(reader, key, c.matches.as_ref(), c.matches_not.as_ref());
    // Of one state both ask for the same object, or for none, if they ask at all.
    match of(begun)? {
        PutMode::Overwrite => of(now),
        asked => of(now).map(|_| asked),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Option<ETagCondition> {
        ETagCondition::parse_http_header(text.as_bytes()).ok()
    }

    #[test]
    fn a_condition_reads_back_as_it_was_written() {
        for text in ["*", "\"a\"", "\"a,b\", W/\"c\", \"\""] {
            let read = parse(text).unwrap();
            assert_eq!(read.to_string(), text);
            assert_eq!(parse(&read.to_string()), Some(read));
        }
    }

    #[test]
    fn lists_of_etags_are_read() {
        let list = parse("\"a\", W/\"b,c\" ,d").unwrap();
        assert!(matches(&list, "a") && matches(&list, "d") && !matches(&list, "b"));
        assert!(!matches(&list, "b,c") && matches_weakly(&list, "b,c"));
        assert_eq!(parse(" * "), Some(ETagCondition::Any));
        for bad in ["", " ", ",", "*, \"a\"", "W/a", "\"a", "a b", "\"a\" \"b\""] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn a_condition_that_is_none_is_refused_or_as_http_has_it() {
        let of = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, value.parse().unwrap());
            Read::of(&headers).and(Read::of_source(&headers)).map(drop).map_err(|e| e.to_string())
        };
        of("if-modified-since", "never").unwrap();
        for name in [
            "if-match",
            "if-none-match",
            "if-unmodified-since",
            "x-amz-copy-source-if-match",
            "x-amz-copy-source-if-modified-since",
        ] {
            of(name, "a b").unwrap_err();
        }
    }
}
