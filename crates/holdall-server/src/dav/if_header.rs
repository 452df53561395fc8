//! The header If of WebDAV (RFC 4918 section 10.4): lists of lock tokens and ETags, one of which
//! must hold.

use crate::dav::error::{Error, Result, refusal};
use http::StatusCode;

/// What one condition asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asks {
    /// That a lock of this token covers the resource.
    Token(String),
    /// That it has this ETag, which nothing has if it is weak: a change needs a strong one.
    ETag {
        /// Without quotes.
        etag: String,
        /// Whether it is weak.
        weak: bool,
    },
}

/// A list, all of whose conditions must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// The resource that it is about; that of the request if none is named.
    pub resource: Option<String>,
    /// Conditions, and whether each is negated.
    pub conditions: Vec<(bool, Asks)>,
}

/// The lists of a header. Parsing costs its length.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IfHeader(pub Vec<List>);

fn bad() -> Error {
    refusal(StatusCode::BAD_REQUEST, "the header If cannot be read")
}

/// What lies between `open`, at which the text begins, and `close`, and what follows.
fn enclosed(text: &str, open: char, close: char) -> Result<(&str, &str)> {
    text.strip_prefix(open).and_then(|rest| rest.split_once(close)).ok_or_else(bad)
}

impl IfHeader {
    /// Reads a header.
    ///
    /// # Errors
    /// Status 400.
    pub fn parse(text: &str) -> Result<Self> {
        let (mut rest, mut resource, mut lists) = (text.trim(), None, Vec::new());
        while !rest.is_empty() {
            if rest.starts_with('<') {
                let (uri, after) = enclosed(rest, '<', '>')?;
                (resource, rest) = (Some(uri.to_owned()), after.trim_start());
            }
            rest = rest.strip_prefix('(').ok_or_else(bad)?.trim_start();
            let mut conditions = Vec::new();
            while !rest.starts_with(')') {
                let not = rest.get(..3).is_some_and(|word| word.eq_ignore_ascii_case("not"));
                rest = if not { rest[3..].trim_start() } else { rest };
                let (asks, after) = if rest.starts_with('<') {
                    let (token, after) = enclosed(rest, '<', '>')?;
                    (Asks::Token(token.to_owned()), after)
                } else {
                    let inside = rest.strip_prefix('[').ok_or_else(bad)?.trim_start();
                    let strong = inside.strip_prefix("W/");
                    let (etag, after) = enclosed(strong.unwrap_or(inside), '"', '"')?;
                    let after = after.trim_start().strip_prefix(']').ok_or_else(bad)?;
                    (Asks::ETag { etag: etag.to_owned(), weak: strong.is_some() }, after)
                };
                conditions.push((not, asks));
                rest = after.trim_start();
            }
            if conditions.is_empty() {
                return Err(bad());
            }
            rest = rest[1..].trim_start();
            lists.push(List { resource: resource.clone(), conditions });
        }
        if lists.is_empty() { Err(bad()) } else { Ok(Self(lists)) }
    }

    /// All tokens named, whether their condition is negated or not.
    pub fn tokens(&self) -> Vec<String> {
        let token = |(_, asks): &(bool, Asks)| match asks {
            Asks::Token(token) => Some(token.clone()),
            Asks::ETag { .. } => None,
        };
        self.0.iter().flat_map(|list| &list.conditions).filter_map(token).collect()
    }

    /// Whether one of the lists holds by what `holds` says of each resource and condition. Where it
    /// knows nothing, the list does not hold, negated or not.
    ///
    /// # Errors
    /// Those of `holds`.
    pub fn check(
        &self,
        mut holds: impl FnMut(Option<&str>, &Asks) -> Result<Option<bool>>,
    ) -> Result<bool> {
        for list in &self.0 {
            let mut all = true;
            for (not, asks) in &list.conditions {
                all = all && holds(list.resource.as_deref(), asks)? == Some(!*not);
            }
            if all {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_with_their_resources() {
        let header =
            "<http://h/-/dav/c/a> (<urn:1> [\"e1\"]) (Not <DAV:no-lock>) </c> ([W/\"e2\"])";
        let read = IfHeader::parse(header).unwrap();
        assert_eq!(read.0.len(), 3);
        assert_eq!(read.tokens(), ["urn:1", "DAV:no-lock"]);
        assert_eq!(read.0[1].resource.as_deref(), Some("http://h/-/dav/c/a"));
        let weak = Asks::ETag { etag: "e2".into(), weak: true };
        assert_eq!(read.0[2].conditions, [(false, weak)]);
        let no_lock = |_: Option<&str>, asks: &Asks| Ok(Some(*asks == Asks::Token("urn:1".into())));
        assert!(read.check(no_lock).unwrap());
        assert!(!read.check(|_, _| Ok(None)).unwrap());
        let odd = IfHeader::parse("([ \"a]b\" ])").unwrap();
        assert_eq!(odd.0[0].conditions[0].1, Asks::ETag { etag: "a]b".into(), weak: false });
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for bad in [
            "", "()", "(", "(<a)", "<a>", "(a)", "(Not)", "(<a>) x", "([e)", "<é", "(né", "([e])",
            "([\"e])",
        ] {
            assert!(IfHeader::parse(bad).is_err(), "{bad}");
        }
    }
}
