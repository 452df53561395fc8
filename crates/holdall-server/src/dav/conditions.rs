//! Conditions of WebDAV's requests (RFC 9110 section 13): lists of ETags and times.
//!
//! Owns: [`Conditions`]. What is no list of ETags is refused, lest a change be made without the
//! condition that its client wrote. So is what is no date, of a change; for a read it is not there,
//! as the standard has it.

use crate::dav::Head;
use crate::dav::error::{Error, Result, refusal};
use crate::http::date;
use crate::http::header::{list, single};
use crate::objects::condition::{ETagCondition, Read, matches, matches_weakly, seconds};
use crate::objects::{meta::Meta, node::Node};
use http::{HeaderMap, HeaderName, StatusCode, header};
use time::OffsetDateTime;

/// Conditions of a request's headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Conditions(Read);

/// What conditions are held against: what lies at the place.
#[derive(Debug, Clone, Default)]
pub struct Found {
    /// The ETag without quotes; folders have none.
    pub etag: Option<String>,
    /// The last change in seconds since 1970, if it is known.
    pub modified: Option<i64>,
}

impl Found {
    /// Of a node; none if there is nothing.
    pub fn from_node(node: &Node) -> Option<Self> {
        let modified = node.metadata().map(|m| seconds(Meta::from_metadata(m).modified()));
        node.is_there().then(|| Self { etag: node.etag(), modified })
    }

    /// Whether a list names its ETag; a weak one counts only if `weakly`.
    fn is_in(&self, list: &ETagCondition, weakly: bool) -> bool {
        let named = if weakly { matches_weakly } else { matches };
        self.etag.as_ref().map_or(*list == ETagCondition::Any, |etag| named(list, etag))
    }
}

fn seconds_of(text: &str) -> Option<i64> {
    date::parse(text).map(OffsetDateTime::unix_timestamp)
}

fn etags(headers: &HeaderMap, name: &HeaderName) -> Result<Option<ETagCondition>> {
    let Some(text) = list(headers, name.as_str())? else { return Ok(None) };
    let told = format!("{name} holds no list of ETags: \"A\", \"B\" or *");
    let bad = || refusal(StatusCode::BAD_REQUEST, told);
    ETagCondition::quoted(&text).map(Some).ok_or_else(bad)
}

/// Status 412: a condition does not hold.
pub fn precondition_failed(text: &str) -> Error {
    refusal(StatusCode::PRECONDITION_FAILED, text)
}

fn unmet(text: &str) -> Result<()> {
    Err(precondition_failed(text))
}

impl Conditions {
    /// Reads headers of a request that changes something or does not.
    ///
    /// # Errors
    /// Status 400 if a header holds no list of ETags, or of a change no date.
    pub fn from_headers(headers: &HeaderMap, changes: bool) -> Result<Self> {
        let time =
            |name: HeaderName| single(headers, name.as_str()).map(|text| text.map(seconds_of));
        let not_since = time(header::IF_UNMODIFIED_SINCE)?;
        if changes && not_since == Some(None) {
            return Err(refusal(StatusCode::BAD_REQUEST, "If-Unmodified-Since is no date of HTTP"));
        }
        Ok(Self(Read {
            matches: etags(headers, &header::IF_MATCH)?,
            matches_not: etags(headers, &header::IF_NONE_MATCH)?,
            since: time(header::IF_MODIFIED_SINCE)?.flatten(),
            not_since: not_since.flatten(),
        }))
    }

    /// Whether there is one that a change must meet.
    pub fn any(&self) -> bool {
        self.0.matches.is_some() || self.0.matches_not.is_some() || self.0.not_since.is_some()
    }

    fn before(&self, found: Option<&Found>) -> Result<()> {
        match (&self.0.matches, self.0.not_since, found) {
            (Some(list), _, found) if found.is_none_or(|found| !found.is_in(list, false)) => {
                unmet("no ETag of If-Match is the object's")
            }
            (None, Some(_), None) => unmet("there is nothing any more"),
            (None, Some(time), Some(found)) => match found.modified {
                None => unmet("nobody knows when it was changed"),
                Some(modified) if modified > time => unmet("the object was changed since"),
                Some(_) => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// Refuses a read whose conditions are not met.
    ///
    /// # Errors
    /// Status 412 or 304.
    pub fn check_read(&self, found: &Found) -> Result<()> {
        self.before(Some(found))?;
        let fresh = match (&self.0.matches_not, self.0.since) {
            (Some(list), _) => found.is_in(list, true),
            (None, Some(time)) => found.modified.is_some_and(|at| at <= time),
            (None, None) => false,
        };
        if fresh { Err(refusal(StatusCode::NOT_MODIFIED, "")) } else { Ok(()) }
    }

    /// Refuses a change whose conditions what is there does not meet.
    ///
    /// # Errors
    /// Status 412.
    pub fn check_change(&self, found: Option<&Found>) -> Result<()> {
        self.before(found)?;
        match (&self.0.matches_not, found) {
            (Some(list), Some(found)) if found.is_in(list, true) => {
                unmet("If-None-Match names what is there")
            }
            _ => Ok(()),
        }
    }
}

/// Whether the header If-Range lets a range be answered: it names the object's ETag, which is no
/// weak one, or the second of its last change.
pub fn range_holds(head: &Head, found: &Found) -> bool {
    let Some(line) = head.headers.get(header::IF_RANGE) else { return true };
    let Ok(text) = line.to_str() else { return false };
    match ETagCondition::quoted(text) {
        Some(ETagCondition::Any) => false,
        Some(ETagCondition::OneOf(etags)) => match (&etags[..], &found.etag) {
            ([one], Some(etag)) => one.is(etag),
            _ => false,
        },
        None => seconds_of(text).is_some_and(|time| found.modified == Some(time)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_nothing_else() {
        for list in ["*", "\"a\"", "W/\"a,b\", \"\""] {
            assert_eq!(ETagCondition::quoted(list).unwrap().to_string(), list);
        }
        let spaced = ETagCondition::quoted("W/\"a,b\" , ,\"\"").unwrap();
        assert_eq!(spaced.to_string(), "W/\"a,b\", \"\"");
        for bad in ["", ",", "a", "\"a", "\"a\" \"b\"", "*,\"a\"", "W/a", "w/\"a\"", "\"a\"x"] {
            assert_eq!(ETagCondition::quoted(bad), None, "{bad}");
        }
    }

    #[test]
    fn weak_etags_keep_a_copy_fresh_and_change_nothing() {
        let weak = ETagCondition::quoted("W/\"a\"").unwrap();
        let found = Found { etag: Some("a".into()), modified: None };
        assert!(found.is_in(&weak, true) && !found.is_in(&weak, false));
        assert!(Found::default().is_in(&ETagCondition::Any, false));
    }
}
