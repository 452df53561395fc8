//! Conditions of requests: on the ETag and on the time of the last change (RFC 9110 section 13).
//!
//! Owns: [`ETag`], [`ETagCondition`]; [`Read`], which a get or head evaluates; [`mode`], which
//! turns a put's into what the engine checks within the transaction.

use crate::http::date;
use crate::objects::meta::{Meta, etag_of};
use crate::refusal::{Refusal, Result, Why};
use holdall::{PutMode, Reader};
use http::HeaderMap;
use std::time::SystemTime;
use time::OffsetDateTime;

/// An ETag without its quotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ETag {
    /// Its text.
    pub value: String,
    /// Whether it says of much the same bytes only.
    pub weak: bool,
}

impl ETag {
    /// Whether the very bytes of an object with this ETag are meant.
    pub fn is(&self, etag: &str) -> bool {
        !self.weak && self.value == etag
    }
}

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
///
/// # Errors
/// [`NoETag`].
pub fn etag(item: &str) -> Result<ETag, NoETag> {
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
    Ok(ETag { value: value.into(), weak })
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

    /// What a header says whose ETags all have their quotes; `None` if they have not.
    pub fn quoted(text: &str) -> Option<Self> {
        let is_quoted = |item: &&str| item.strip_prefix("W/").unwrap_or(item).starts_with('"');
        let read = Self::parse_http_header(text.as_bytes()).ok()?;
        (read == Self::Any || items(text).iter().all(is_quoted)).then_some(read)
    }
}

/// As a header has it, so that it reads back as the same.
impl std::fmt::Display for ETagCondition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self::OneOf(etags) = self else { return f.write_str("*") };
        for (at, etag) in etags.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let weak = if etag.weak { "W/" } else { "" };
            write!(f, "{comma}{weak}\"{}\"", etag.value)?;
        }
        Ok(())
    }
}

/// A header's value; that of several headers of one name is a list of theirs.
fn text(headers: &HeaderMap, name: &str) -> Result<Option<String>> {
    let mut all = Vec::new();
    for value in headers.get_all(name) {
        let bad = |_| Why::BadValue.says(format!("{name} is not text"));
        all.push(value.to_str().map_err(bad)?.to_owned());
    }
    Ok((!all.is_empty()).then(|| all.join(", ")))
}

/// The ETags that a header names.
///
/// # Errors
/// BadValue.
pub fn etags(headers: &HeaderMap, name: &str) -> Result<Option<ETagCondition>> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let bad = |e| Why::BadValue.says(format!("{name}: {e}"));
    ETagCondition::parse_http_header(value.as_bytes()).map(Some).map_err(bad)
}

/// The date that a header says, in seconds since 1970.
///
/// # Errors
/// [`Why::BadValue`] for what is no date.
pub fn time(headers: &HeaderMap, name: &str) -> Result<Option<i64>> {
    let Some(value) = text(headers, name)? else { return Ok(None) };
    let bad = || Why::BadValue.says(format!("{name}: {value:?} is not a date of HTTP"));
    date::parse(&value).map(OffsetDateTime::unix_timestamp).map(Some).ok_or_else(bad)
}

/// Conditions of a read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Read {
    /// If-Match.
    pub matches: Option<ETagCondition>,
    /// If-None-Match.
    pub matches_not: Option<ETagCondition>,
    /// If-Modified-Since, in seconds since 1970.
    pub since: Option<i64>,
    /// If-Unmodified-Since.
    pub not_since: Option<i64>,
}

/// Whether an object with this ETag is one that If-Match names.
pub fn matches(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::OneOf(etags) => etags.iter().any(|e| e.is(etag)),
    }
}

/// Whether an object with this ETag is one that If-None-Match names.
pub fn matches_weakly(condition: &ETagCondition, etag: &str) -> bool {
    match condition {
        ETagCondition::Any => true,
        ETagCondition::OneOf(etags) => etags.iter().any(|e| e.value == etag),
    }
}

/// Whole seconds since 1970, as dates in headers have them.
pub fn seconds(time: SystemTime) -> i64 {
    let of = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    time.duration_since(SystemTime::UNIX_EPOCH).map_or_else(|e| -of(e.duration()), of)
}

impl Read {
    /// The conditions in the headers of a request.
    ///
    /// # Errors
    /// BadValue for what is neither an ETag nor a date. If-Modified-Since that is no date is
    /// none, as RFC 9110 has it: the answer is then whole.
    pub fn from_headers(headers: &HeaderMap) -> Result<Self> {
        Ok(Self {
            matches: etags(headers, "if-match")?,
            matches_not: etags(headers, "if-none-match")?,
            since: time(headers, "if-modified-since").unwrap_or_default(),
            not_since: time(headers, "if-unmodified-since")?,
        })
    }

    /// Refuses if a condition is not met.
    ///
    /// # Errors
    /// Unmet, NotModified.
    pub fn check(&self, meta: &Meta, etag: &str) -> Result<()> {
        let modified = seconds(meta.modified());
        match (&self.matches, &self.not_since) {
            (Some(wanted), _) if !matches(wanted, etag) => {
                return Err(Why::Unmet.says("the object has another ETag"));
            }
            (None, Some(time)) if modified > *time => {
                return Err(Why::Unmet.says("the object was changed since"));
            }
            _ => {}
        }
        match (&self.matches_not, &self.since) {
            (Some(known), _) if matches_weakly(known, etag) => Err(Why::NotModified.says("")),
            (None, Some(time)) if modified <= *time => Err(Why::NotModified.says("")),
            _ => Ok(()),
        }
    }

    /// As [`Read::check`] for the source of a copy, if a failure is always an error.
    ///
    /// # Errors
    /// Unmet.
    pub fn check_source(&self, meta: &Meta, etag: &str) -> Result<()> {
        let failed = |_| Why::Unmet.says("the source does not meet the conditions");
        self.check(meta, etag).map_err(failed)
    }
}

fn changed() -> Refusal {
    Why::Unmet.says("the object has another ETag")
}

/// What the engine is to check of a put under conditions, by the state it is sent against. The
/// engine refuses if the object changes between that state and the commit.
///
/// # Errors
/// Unmet; NoObject if an ETag is asked of an object that is not there.
pub fn mode(
    reader: &Reader,
    key: &str,
    matches_: Option<&ETagCondition>,
    matches_not: Option<&ETagCondition>,
) -> Result<PutMode> {
    if matches_.is_none() && matches_not.is_none() {
        return Ok(PutMode::Overwrite);
    }
    let there = match reader.metadata(key) {
        Ok(found) => Some(found),
        Err(holdall::Error::NotFound(_)) => None,
        Err(e) => return Err(e.into()),
    };
    let Some(found) = there else {
        return match matches_ {
            None => Ok(PutMode::Create),
            Some(_) => Err(Why::NoObject.says(format!("there is no object {key}"))),
        };
    };
    let etag = etag_of(&found);
    if matches_.is_some_and(|wanted| !matches(wanted, &etag)) {
        return Err(changed());
    }
    if matches_not.is_some_and(|not| matches_weakly(not, &etag)) {
        return Err(Why::Unmet.says("the object exists"));
    }
    Ok(PutMode::Update(found.version))
}

/// As [`mode`] for two requests whose conditions must all hold: one that began an upload, and the
/// one that completes it.
///
/// # Errors
/// As [`mode`].
pub fn mode_of_both(reader: &Reader, key: &str, [begun, now]: [&Read; 2]) -> Result<PutMode> {
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
            Read::from_headers(&headers).map(drop).map_err(|e| e.to_string())
        };
        of("if-modified-since", "never").unwrap();
        for name in ["if-match", "if-none-match", "if-unmodified-since"] {
            of(name, "a b").unwrap_err();
        }
    }
}
