//! Conditions of WebDAV's requests (RFC 9110 section 13): lists of ETags and times.
//!
//! Owns: [`Conditions`]. What is no list of ETags is refused, lest a change be made without the
//! condition that its client wrote. So is what is no date, of a change; for a read it is not there, as
//! the standard has it.

use crate::dav::Head;
use crate::dav::error::{Result, refusal};
use crate::http::header::single;
use crate::objects::meta::Meta;
use crate::objects::node::Node;
use http::{HeaderMap, HeaderName, StatusCode, header};
use std::time::SystemTime;

/// ETags of a header.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ETags {
    /// Any.
    Any,
    /// These: without quotes, and whether each is weak.
    These(Vec<(String, bool)>),
}

impl ETags {
    fn parse(text: &str) -> Option<Self> {
        if text.trim() == "*" {
            return Some(Self::Any);
        }
        let (mut rest, mut found) = (text.trim(), Vec::new());
        while !rest.is_empty() {
            if let Some(behind) = rest.strip_prefix(',') {
                rest = behind.trim_start();
                continue;
            }
            let (weak, quoted) = match rest.strip_prefix("W/") {
                Some(quoted) => (true, quoted),
                None => (false, rest),
            };
            let (etag, behind) = quoted.strip_prefix('"')?.split_once('"')?;
            found.push((etag.to_owned(), weak));
            rest = behind.trim_start();
            if !rest.is_empty() && !rest.starts_with(',') {
                return None;
            }
        }
        (!found.is_empty()).then_some(Self::These(found))
    }

    /// Whether an ETag is among them; a weak one counts only where `weakly`.
    fn hold(&self, etag: Option<&str>, weakly: bool) -> bool {
        match self {
            Self::Any => true,
            Self::These(known) => {
                known.iter().any(|(known, weak)| (weakly || !weak) && Some(known.as_str()) == etag)
            }
        }
    }
}

/// Conditions of a request's headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions {
    matches: Option<ETags>,
    matches_not: Option<ETags>,
    /// Seconds since 1970.
    since: Option<i64>,
    not_since: Option<i64>,
}

/// What conditions are held against: what lies at the place.
#[derive(Debug, Clone, Copy)]
pub struct Found<'f> {
    /// The ETag without quotes; folders have none.
    pub etag: Option<&'f str>,
    /// The last change, if it is known.
    pub modified: Option<SystemTime>,
}

/// What conditions are held against, of something that is there.
#[derive(Debug, Clone)]
pub struct Is {
    etag: Option<String>,
    modified: Option<SystemTime>,
}

impl Is {
    /// It, for conditions.
    pub fn found(&self) -> Found<'_> {
        Found { etag: self.etag.as_deref(), modified: self.modified }
    }
}

/// What conditions are held against; none where there is nothing.
pub fn is(node: &Node) -> Option<Is> {
    let modified = node.metadata().map(|m| Meta::of(m).modified());
    node.is_there().then(|| Is { etag: node.etag(), modified })
}

/// Whole seconds since 1970, as dates in headers have them.
fn seconds(time: SystemTime) -> i64 {
    let of = |d: std::time::Duration| i64::try_from(d.as_secs()).unwrap_or(i64::MAX);
    time.duration_since(SystemTime::UNIX_EPOCH).map_or_else(|e| -of(e.duration()), of)
}

fn date(text: &str) -> Option<i64> {
    let time = crate::http::date::parse(text)?;
    Some(time.unix_timestamp())
}

fn etags(headers: &HeaderMap, name: HeaderName) -> Result<Option<ETags>> {
    let bad = || {
        refusal(
            StatusCode::BAD_REQUEST,
            format!("{name} holds no list of ETags: \"A\", \"B\" or *"),
        )
    };
    let mut lines = Vec::new();
    for line in headers.get_all(&name) {
        lines.push(line.to_str().map_err(|_| bad())?);
    }
    if lines.is_empty() {
        return Ok(None);
    }
    ETags::parse(&lines.join(",")).map(Some).ok_or_else(bad)
}

impl Conditions {
    /// Reads headers of a request that changes something or does not.
    ///
    /// # Errors
    /// InvalidArgument where a header holds no list of ETags, or of a change no date.
    pub fn of(headers: &HeaderMap, changes: bool) -> Result<Self> {
        let time = |name: &str| single(headers, name).map(|text| text.map(date));
        let not_since = time(header::IF_UNMODIFIED_SINCE.as_str())?;
        if changes && not_since == Some(None) {
            return Err(refusal(StatusCode::BAD_REQUEST, "If-Unmodified-Since is no date of HTTP"));
        }
        Ok(Self {
            matches: etags(headers, header::IF_MATCH)?,
            matches_not: etags(headers, header::IF_NONE_MATCH)?,
            since: time(header::IF_MODIFIED_SINCE.as_str())?.flatten(),
            not_since: not_since.flatten(),
        })
    }

    /// Whether there is one that a change must meet.
    pub fn any(&self) -> bool {
        self.matches.is_some() || self.matches_not.is_some() || self.not_since.is_some()
    }

    fn before(&self, found: Option<Found<'_>>) -> Result<()> {
        let etag = found.and_then(|found| found.etag);
        match (&self.matches, self.not_since) {
            (Some(wanted), _) if found.is_none() || !wanted.hold(etag, false) => {
                Err(refusal(StatusCode::PRECONDITION_FAILED, "no ETag of If-Match is the object's"))
            }
            (None, Some(time)) => match found.map(|found| found.modified.map(seconds)) {
                Some(Some(modified)) if modified > time => {
                    Err(refusal(StatusCode::PRECONDITION_FAILED, "the object was changed since"))
                }
                Some(None) => Err(refusal(
                    StatusCode::PRECONDITION_FAILED,
                    "nobody knows when it was changed",
                )),
                None => Err(refusal(StatusCode::PRECONDITION_FAILED, "there is nothing any more")),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Refuses a read whose conditions are not met.
    ///
    /// # Errors
    /// PreconditionFailed, NotModified.
    pub fn check_read(&self, found: Found<'_>) -> Result<()> {
        self.before(Some(found))?;
        match (&self.matches_not, self.since) {
            (Some(known), _) if known.hold(found.etag, true) => {
                Err(refusal(StatusCode::NOT_MODIFIED, ""))
            }
            (None, Some(time)) if found.modified.is_some_and(|at| seconds(at) <= time) => {
                Err(refusal(StatusCode::NOT_MODIFIED, ""))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a change whose conditions what is there does not meet.
    ///
    /// # Errors
    /// PreconditionFailed.
    pub fn check_change(&self, found: Option<Found<'_>>) -> Result<()> {
        self.before(found)?;
        match (&self.matches_not, found) {
            (Some(known), Some(found)) if known.hold(found.etag, true) => {
                Err(refusal(StatusCode::PRECONDITION_FAILED, "If-None-Match names what is there"))
            }
            _ => Ok(()),
        }
    }
}

/// Whether the header If-Range lets a range be answered: it names the object's ETag, which is no
/// weak one, or the second of its last change.
pub fn range_holds(head: &Head, found: Found<'_>) -> bool {
    let Some(line) = head.headers.get(header::IF_RANGE) else { return true };
    let Ok(text) = line.to_str() else { return false };
    match ETags::parse(text) {
        Some(ETags::These(known)) => {
            known.len() == 1 && ETags::These(known).hold(found.etag, false)
        }
        Some(ETags::Any) => false,
        None => date(text).is_some_and(|time| found.modified.map(seconds) == Some(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nothing_else() {
        let these = |list: &[(&str, bool)]| {
            let own = list.iter().map(|(etag, weak)| ((*etag).to_owned(), *weak));
            Some(ETags::These(own.collect()))
        };
        assert_eq!(ETags::parse(" * "), Some(ETags::Any));
        assert_eq!(ETags::parse("\"a\""), these(&[("a", false)]));
        assert_eq!(ETags::parse("W/\"a,b\" , ,\"\""), these(&[("a,b", true), ("", false)]));
        for bad in ["", ",", "a", "\"a", "\"a\" \"b\"", "*,\"a\"", "W/a", "w/\"a\"", "\"a\"x"] {
            assert_eq!(ETags::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn weak_etags_keep_a_copy_fresh_and_change_nothing() {
        let weak = ETags::parse("W/\"a\"").unwrap();
        assert!(weak.hold(Some("a"), true) && !weak.hold(Some("a"), false));
        assert!(ETags::Any.hold(None, false));
    }
}
