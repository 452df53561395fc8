//! The extension: range edits of objects over HTTP, which neither S3 nor WebDAV has words for.
//!
//! `POST /BUCKET/KEY?holdall=VERB` with the parameters of the verb; docs/serve.md lists them.
//! Conditional by If-Match and If-None-Match, durable when answered.
//!
//! Owns: [`Asked`].

use crate::http::body;
use crate::http::digest::Announced;
use crate::http::spelling::{digits, sound_pairs};
use crate::objects::catalog::Bucket;
use crate::objects::edit::{Condition, Edit, Edited, Source};
use crate::objects::put::{Incoming, Objects};
use crate::refusal::{Result, Why};
use crate::users::{Right, User, Users};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header};
use s3s::Body;
use s3s::dto::StreamingBlob;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What an edit is answered.
#[derive(Debug, Serialize)]
struct Answer {
    etag: String,
    size: u64,
}

/// The body of `concat`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Concat {
    parts: Vec<ConcatPart>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConcatPart {
    /// The bucket of the object that is made, if it is not said.
    bucket: Option<String>,
    key: String,
    /// `A-B`, both included; all bytes if it is not said.
    range: Option<String>,
    etag: Option<String>,
}

/// What a request asks.
#[derive(Debug)]
pub struct Asked {
    key: String,
    parameters: BTreeMap<String, String>,
}

/// A body as the headers of its request announce it.
pub fn incoming(headers: &HeaderMap, body: StreamingBlob, announced: Announced) -> Incoming {
    let len = headers.get(header::CONTENT_LENGTH);
    let len = len.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    Incoming { body, len, announced }
}

/// What an edit is answered: a body, and its headers.
pub fn answer(done: &Edited) -> (Body, HeaderMap) {
    let answer = Answer { etag: format!("\"{}\"", done.etag), size: done.size };
    let text = serde_json::to_vec(&answer).unwrap_or_default();
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.extend(answer.etag.parse().ok().map(|etag| (header::ETAG, etag)));
    (Body::from(Bytes::from(text)), headers)
}

impl Asked {
    /// What a query asks of an object.
    ///
    /// # Errors
    /// [`Why::BadAddress`], [`Why::BadValue`] for a parameter that is there twice.
    pub fn parse(key: String, query: Option<&str>) -> Result<Self> {
        let bad = || Why::BadAddress.says("a % of the query is no escape, or not of UTF-8");
        let mut parameters = BTreeMap::new();
        for (name, value) in sound_pairs(query.unwrap_or_default()).ok_or_else(bad)? {
            if parameters.contains_key(&name) {
                return Err(Why::BadValue.says(format!("the parameter {name} is there twice")));
            }
            parameters.insert(name, value);
        }
        Ok(Self { key, parameters })
    }

    fn verb(&self) -> &str {
        self.parameters.get("holdall").map_or("", String::as_str)
    }

    /// Refuses what the verb does not take: an edit that ignores a range would change other bytes.
    /// Parameters that begin with `x-` sign the address, or are the client's own, if it is
    /// `signed`.
    ///
    /// # Errors
    /// [`Why::BadValue`].
    pub fn check(&self, signed: bool) -> Result<()> {
        let takes: &[&str] = match self.verb() {
            "insert" => &["at"],
            "delete-range" | "splice" => &["range"],
            "concat" => &[],
            other => {
                let verbs = "insert, delete-range, splice, concat";
                return Err(Why::BadValue.says(format!("holdall={other:?} is none of {verbs}")));
            }
        };
        let known = |name: &str| {
            name == "holdall"
                || takes.contains(&name)
                || (signed && name.to_ascii_lowercase().starts_with("x-"))
        };
        match self.parameters.keys().find(|name| !known(name)) {
            Some(name) => Err(Why::BadValue.says(format!("{} takes no {name}", self.verb()))),
            None => Ok(()),
        }
    }

    /// The bytes that the edit replaces.
    fn range(&self) -> Result<Range<u64>> {
        let get = |name: &str| {
            let missing = || Why::BadValue.says(format!("{} needs {name}", self.verb()));
            self.parameters.get(name).ok_or_else(missing)
        };
        match self.verb() {
            "insert" => {
                let at = get("at")?;
                let bad = || Why::BadValue.says(format!("at={at:?} is not a number of bytes"));
                let at = digits(at).ok_or_else(bad)?;
                Ok(at..at)
            }
            _ => inclusive(get("range")?),
        }
    }
}

/// `A-B`, both included.
fn inclusive(text: &str) -> Result<Range<u64>> {
    let parse = || {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (digits(first)?, digits(last)?);
        (first <= last).then_some(first..last.checked_add(1)?)
    };
    let bad = || Why::BadValue.says(format!("range={text:?} does not have the form FIRST-LAST"));
    parse().ok_or_else(bad)
}

impl Objects {
    /// Makes an edit of an object of `bucket`.
    ///
    /// # Errors
    /// Those of the parameters, of the body, of the condition, of the engine.
    pub async fn perform(
        &self,
        bucket: Bucket,
        asked: &Asked,
        user: &Arc<User>,
        condition: Condition,
        incoming: Incoming,
    ) -> Result<Edited> {
        asked.check(true)?;
        let create = asked.verb() == "concat";
        let edit = Edit { bucket, key: asked.key.clone(), condition, create };
        match asked.verb() {
            "insert" | "splice" => self.edit(edit, asked.range()?, incoming).await,
            "delete-range" => {
                let range = asked.range()?;
                body::blocking(move || edit.splice(range, &Bytes::new())).await
            }
            _ => self.concat(edit, incoming, user).await,
        }
    }

    async fn concat(&self, edit: Edit, incoming: Incoming, user: &Arc<User>) -> Result<Edited> {
        let most = u64::try_from(self.limits.xml_bytes).unwrap_or(u64::MAX);
        let bytes = body::collect(incoming.body, most, self.limits.idle()).await?;
        incoming.announced.check(&bytes)?;
        let bad = |e: serde_json::Error| Why::Invalid.says(format!("the body of concat: {e}"));
        let concat: Concat = serde_json::from_slice(&bytes).map_err(bad)?;
        let mut sources = Vec::with_capacity(concat.parts.len());
        for part in concat.parts {
            let bucket = part.bucket.unwrap_or_else(|| edit.bucket.name.clone());
            Users::check(user, Right::Read, &bucket)?;
            let from = self.catalog.bucket(&bucket)?;
            if !Arc::ptr_eq(&from.served.path, &edit.bucket.served.path) {
                let text = "its bucket lies in another store; copy the object first";
                return Err(Why::Invalid.says(format!("part {:?}: {text}", part.key)));
            }
            let range = part.range.as_deref().map(inclusive).transpose()?;
            let etag = part.etag.map(|etag| etag.trim_matches('"').to_owned());
            sources.push(Source { bucket, key: part.key, range, etag });
        }
        body::blocking(move || edit.concat(&sources)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_where_an_edit_is_made() {
        let asked = Asked::parse("a".into(), Some("holdall=insert&at=17")).unwrap();
        assert_eq!(asked.range().unwrap(), 17..17);
    }

    #[test]
    fn ranges_are_inclusive_and_ordered() {
        assert_eq!(inclusive("0-9").unwrap(), 0..10);
        for bad in ["", "1", "9-0", "a-b", "-1-2", "+1-2", "1-+2", "1- 2", "0-18446744073709551615"]
        {
            assert!(inclusive(bad).is_err(), "{bad}");
        }
    }
}
