//! The extension: range edits of objects over HTTP, which S3 has no words for.
//!
//! `POST /BUCKET/KEY?holdall=VERB` with the parameters of the verb; docs/serve.md lists them.
//! Signed like any request, conditional by If-Match and If-None-Match, durable when answered.

use crate::http::body;
use crate::http::digest::{Announced, Digests};
use crate::http::spelling::{digits, is_escaped, pairs};
use crate::objects::catalog::Bucket;
use crate::objects::condition::etags;
use crate::objects::edit::{Condition, Edit, Edited, Source};
use crate::s3::admit::Admitted;
use crate::s3::{Incoming, Server};
use crate::users::{Right, User, Users};
use http::{HeaderMap, HeaderValue, Response, Uri, header};
use percent_encoding::percent_decode_str;
use s3s::dto::StreamingBlob;
use s3s::path::S3Path;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

const JSON: &str = "application/json";

/// Answers the verbs.
#[derive(Debug, Clone)]
pub struct Verbs {
    /// The operations.
    pub server: Server,
    /// Who may call them.
    pub users: Users,
}

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
    /// The bucket of the object that is made, where it is not said.
    bucket: Option<String>,
    key: String,
    /// `A-B`, both included; all bytes where it is not said.
    range: Option<String>,
    etag: Option<String>,
}

/// What a request asks, by its line and headers.
struct Asked {
    bucket: String,
    key: String,
    parameters: BTreeMap<String, String>,
}

impl Asked {
    fn parse(uri: &Uri, host_bucket: Option<&str>) -> S3Result<Self> {
        let bad = || s3_error!(InvalidURI, "the path is not UTF-8");
        let path = percent_decode_str(uri.path()).decode_utf8().map_err(|_| bad())?;
        let parsed = s3s::path::parse_virtual_hosted_style(host_bucket, &path);
        let Ok(S3Path::Object { bucket, key }) = parsed else {
            return Err(s3_error!(InvalidRequest, "an edit names an object: /BUCKET/KEY"));
        };
        let parameters = parameters(uri.query().unwrap_or_default())?;
        Ok(Self { bucket: bucket.to_string(), key: key.to_string(), parameters })
    }

    fn verb(&self) -> &str {
        self.parameters.get("holdall").map_or("", String::as_str)
    }

    /// Refuses what the verb does not take: an edit that ignores a range would change other bytes.
    fn check(&self) -> S3Result<()> {
        let takes: &[&str] = match self.verb() {
            "insert" => &["at"],
            "delete" | "replace" => &["range"],
            "concat" => &[],
            other => {
                let verbs = "insert, delete, replace, concat";
                return Err(s3_error!(InvalidArgument, "holdall={other:?} is none of {verbs}"));
            }
        };
        // Those that begin with `x-` sign the address, or are the client's own.
        let known = |name: &str| {
            name == "holdall"
                || takes.contains(&name)
                || name.to_ascii_lowercase().starts_with("x-")
        };
        match self.parameters.keys().find(|name| !known(name)) {
            Some(name) => Err(s3_error!(InvalidArgument, "{} takes no {name}", self.verb())),
            None => Ok(()),
        }
    }

    /// The bytes that the edit replaces.
    fn range(&self) -> S3Result<Range<u64>> {
        let get = |name: &str| {
            let missing = || s3_error!(InvalidArgument, "{} needs {name}", self.verb());
            self.parameters.get(name).ok_or_else(missing)
        };
        match self.verb() {
            "insert" => {
                let at = get("at")?;
                let bad = || s3_error!(InvalidArgument, "at={at:?} is not a number of bytes");
                let at = digits(at).ok_or_else(bad)?;
                Ok(at..at)
            }
            _ => inclusive(get("range")?),
        }
    }
}

/// The parameters of a query.
fn parameters(query: &str) -> S3Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    if !is_escaped(query) {
        return Err(s3_error!(InvalidURI, "a % of the query is followed by no two digits"));
    }
    for (name, value) in pairs(query) {
        if parameters.insert(name.clone(), value).is_some() {
            return Err(s3_error!(InvalidArgument, "the parameter {name} is there twice"));
        }
    }
    Ok(parameters)
}

/// `A-B`, both included.
fn inclusive(text: &str) -> S3Result<Range<u64>> {
    let parse = || {
        let (first, last) = text.split_once('-')?;
        let (first, last) = (digits(first)?, digits(last)?);
        (first <= last).then_some(first..last.checked_add(1)?)
    };
    let bad = || s3_error!(InvalidArgument, "range={text:?} does not have the form FIRST-LAST");
    parse().ok_or_else(bad)
}

fn condition(headers: &HeaderMap) -> S3Result<Condition> {
    let (matches, matches_not) = (etags(headers, "if-match")?, etags(headers, "if-none-match")?);
    Ok(Condition { matches, matches_not, ..Condition::default() })
}

fn incoming(headers: &HeaderMap, body: StreamingBlob, announced: Announced) -> Incoming {
    let len = headers.get(header::CONTENT_LENGTH);
    let len = len.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    Incoming { body, len, announced }
}

/// What an edit is answered, and the new ETag as a header.
fn answer(done: &Edited) -> (Body, Option<HeaderValue>) {
    let answer = Answer { etag: format!("\"{}\"", done.etag), size: done.size };
    let text = serde_json::to_vec(&answer).unwrap_or_default();
    (Body::from(bytes::Bytes::from(text)), HeaderValue::from_str(&answer.etag).ok())
}

impl Verbs {
    /// Edits an object of WebDAV by the parameters of a query, under a condition.
    ///
    /// # Errors
    /// As over S3.
    pub async fn edit(
        &self,
        bucket: Bucket,
        (key, query): (String, &str),
        condition: Condition,
        user: &Arc<User>,
        (headers, announced, body): (&HeaderMap, Announced, Body),
    ) -> S3Result<Response<Body>> {
        let asked = Asked { bucket: bucket.name.clone(), key, parameters: parameters(query)? };
        let incoming = incoming(headers, StreamingBlob::from(body), announced);
        let done = self.perform(bucket, &asked, user, condition, incoming).await?;
        let (body, etag) = answer(&done);
        let mut response = Response::new(body);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        response.headers_mut().extend(etag.map(|etag| (header::ETAG, etag)));
        Ok(response)
    }

    async fn perform(
        &self,
        bucket: Bucket,
        asked: &Asked,
        user: &Arc<User>,
        condition: Condition,
        incoming: Incoming,
    ) -> S3Result<Edited> {
        asked.check()?;
        let create = asked.verb() == "concat";
        let edit = Edit { bucket, key: asked.key.clone(), condition, create };
        match asked.verb() {
            "insert" | "replace" => self.server.edit(edit, asked.range()?, incoming).await,
            "delete" => {
                let range = asked.range()?;
                body::blocking(move || edit.splice(range, &bytes::Bytes::new())).await
            }
            _ => self.concat(edit, incoming, user).await,
        }
    }

    async fn concat(&self, edit: Edit, incoming: Incoming, user: &Arc<User>) -> S3Result<Edited> {
        let most = u64::try_from(self.server.limits.xml_bytes).unwrap_or(u64::MAX);
        let bytes = body::collect(incoming.body, most, self.server.limits.idle()).await?;
        let mut digests = Digests::for_body(&incoming.announced)?;
        digests.update(&bytes);
        digests.finish(&incoming.announced)?;
        let bad = |e: serde_json::Error| s3_error!(InvalidRequest, "the body of concat: {e}");
        let concat: Concat = serde_json::from_slice(&bytes).map_err(bad)?;
        let mut sources = Vec::with_capacity(concat.parts.len());
        for part in concat.parts {
            let bucket = part.bucket.unwrap_or_else(|| edit.bucket.name.clone());
            Users::check(user, Right::Read, &bucket)?;
            let from = self.server.catalog.bucket(&bucket)?;
            if !Arc::ptr_eq(&from.served.path, &edit.bucket.served.path) {
                let text = "its bucket lies in another store; copy the object first";
                return Err(s3_error!(InvalidRequest, "part {:?}: {text}", part.key));
            }
            let range = part.range.as_deref().map(inclusive).transpose()?;
            let etag = part.etag.map(|etag| etag.trim_matches('"').to_owned());
            sources.push(Source { bucket, key: part.key, range, etag });
        }
        body::blocking(move || edit.concat(&sources)).await
    }
}

impl Verbs {
    /// Whether a request may edit.
    ///
    /// # Errors
    /// AccessDenied; InvalidRequest where no object is named.
    pub fn check_access(&self, req: &S3Request<Body>) -> S3Result<()> {
        let user = self.users.of(req.credentials.as_ref())?;
        let admitted = Admitted::of(&req.extensions)?;
        let asked = Asked::parse(&req.uri, admitted.host_bucket.as_deref())?;
        Users::check(&user, Right::Write, &asked.bucket)
    }

    /// Edits.
    ///
    /// # Errors
    /// Those of the request, of its body, of the engine.
    pub async fn call(&self, mut req: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let admitted = Admitted::of(&req.extensions)?;
        let asked = Asked::parse(&req.uri, admitted.host_bucket.as_deref())?;
        let user = self.users.of(req.credentials.as_ref())?;
        crate::s3::check_key(&asked.key)?;
        let bucket = self.server.catalog.bucket(&asked.bucket)?;
        let body = StreamingBlob::from(std::mem::take(&mut req.input));
        let announced = admitted.with_trailers(Announced::of_headers(&req.headers)?);
        let incoming = incoming(&req.headers, body, announced);
        let done = self.perform(bucket, &asked, &user, condition(&req.headers)?, incoming).await?;
        let (body, etag) = answer(&done);
        let mut response = S3Response::new(body);
        response.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
        response.headers.extend(etag.map(|etag| (header::ETAG, etag)));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_is_taken_apart() {
        let uri = "/photos/a%20b?holdall=insert&at=17".parse().unwrap();
        let asked = Asked::parse(&uri, None).unwrap();
        assert_eq!((asked.bucket.as_str(), asked.key.as_str()), ("photos", "a b"));
        assert_eq!(asked.range().unwrap(), 17..17);
        let refused = |uri: &str| Asked::parse(&uri.parse().unwrap(), None).is_err();
        assert!(refused("/photos?holdall=insert") && refused("/photos/%ff?holdall=insert"));
        let by_host = Asked::parse(&"/a/b?holdall=insert".parse().unwrap(), Some("photos"));
        let by_host = by_host.unwrap();
        assert_eq!((by_host.bucket.as_str(), by_host.key.as_str()), ("photos", "a/b"));
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
