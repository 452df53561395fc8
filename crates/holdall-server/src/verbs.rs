//! The extension: range edits of objects over HTTP, which S3 has no words for.
//!
//! `POST /BUCKET/KEY?holdall=VERB` with the parameters of the verb; docs/serve.md lists them.
//! Signed like any request, conditional by If-Match and If-None-Match, durable when answered.

use crate::body;
use crate::catalog::Bucket;
use crate::digest::Announced;
use crate::edit::{Condition, Edit, Edited, Source};
use crate::s3::{Incoming, Server};
use crate::users::{Right, User, Users};
use http::{HeaderMap, HeaderValue, Method, Response, Uri, header};
use percent_encoding::percent_decode_str;
use s3s::dto::{ETagCondition, StreamingBlob};
use s3s::path::S3Path;
use s3s::route::S3Route;
use s3s::{Body, S3Request, S3Response, S3Result, TrailingHeaders, s3_error};
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
    fn parse(uri: &Uri) -> S3Result<Self> {
        let bad = || s3_error!(InvalidURI, "the path is not UTF-8");
        let path = percent_decode_str(uri.path()).decode_utf8().map_err(|_| bad())?;
        let parsed = s3s::path::parse_path_style(&path);
        let Ok(S3Path::Object { bucket, key }) = parsed else {
            return Err(s3_error!(InvalidRequest, "an edit names an object: /BUCKET/KEY"));
        };
        let parameters = parameters(uri.query().unwrap_or_default())?;
        Ok(Self { bucket: bucket.to_string(), key: key.to_string(), parameters })
    }

    fn verb(&self) -> &str {
        self.parameters.get("holdall").map_or("", String::as_str)
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
                let at = at.parse().map_err(|_| {
                    s3_error!(InvalidArgument, "at={at:?} is not a number of bytes")
                })?;
                Ok(at..at)
            }
            _ => inclusive(get("range")?),
        }
    }
}

/// The parameters of a query.
fn parameters(query: &str) -> S3Result<BTreeMap<String, String>> {
    let mut parameters = BTreeMap::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let value = percent_decode_str(value).decode_utf8();
        let bad = |_| s3_error!(InvalidURI, "the parameter {name} is not UTF-8");
        parameters.insert(name.to_owned(), value.map_err(bad)?.into_owned());
    }
    Ok(parameters)
}

/// `A-B`, both included.
fn inclusive(text: &str) -> S3Result<Range<u64>> {
    let parse = || {
        let (first, last) = text.split_once('-')?;
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..last.checked_add(1)?)
    };
    let bad = || s3_error!(InvalidArgument, "range={text:?} does not have the form FIRST-LAST");
    parse().ok_or_else(bad)
}

fn condition(headers: &HeaderMap) -> S3Result<Condition> {
    let read = |name| {
        let Some(value) = headers.get(&name) else { return Ok(None) };
        let bad = |_| s3_error!(InvalidArgument, "{name} holds no ETag");
        ETagCondition::parse_http_header(value.as_bytes()).map(Some).map_err(bad)
    };
    let (matches, matches_not) = (read(header::IF_MATCH)?, read(header::IF_NONE_MATCH)?);
    Ok(Condition { matches, matches_not, ..Condition::default() })
}

fn incoming(
    headers: &HeaderMap,
    body: StreamingBlob,
    trailers: Option<TrailingHeaders>,
) -> Incoming {
    let len = headers.get(header::CONTENT_LENGTH);
    let len = len.and_then(|v| v.to_str().ok()).and_then(|v| v.parse().ok());
    let md5 = headers.get("content-md5").and_then(|v| v.to_str().ok()).map(str::to_owned);
    let mut announced = Announced { md5, trailers, ..Announced::default() };
    announced.add_trailer_names(headers);
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
        (headers, body): (&HeaderMap, Body),
    ) -> S3Result<Response<Body>> {
        let asked = Asked { bucket: bucket.name.clone(), key, parameters: parameters(query)? };
        let incoming = incoming(headers, StreamingBlob::from(body), None);
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
        let create = asked.verb() == "concat";
        let edit = Edit { bucket, key: asked.key.clone(), condition, create };
        match asked.verb() {
            "insert" | "replace" => self.server.edit(edit, asked.range()?, incoming).await,
            "delete" => {
                let range = asked.range()?;
                body::blocking(move || edit.splice(range, &bytes::Bytes::new())).await
            }
            "concat" => self.concat(edit, incoming, user).await,
            other => {
                let verbs = "insert, delete, replace, concat";
                Err(s3_error!(InvalidArgument, "holdall={other:?} is none of {verbs}"))
            }
        }
    }

    async fn concat(&self, edit: Edit, incoming: Incoming, user: &Arc<User>) -> S3Result<Edited> {
        let most = u64::try_from(self.server.limits.xml_bytes).unwrap_or(u64::MAX);
        let bytes = body::collect(incoming.body, most, self.server.limits.idle()).await?;
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

#[async_trait::async_trait]
impl S3Route for Verbs {
    fn is_match(
        &self,
        method: &Method,
        uri: &Uri,
        _: &HeaderMap,
        _: &mut http::Extensions,
    ) -> bool {
        let named = |q: &str| q.split('&').any(|p| p == "holdall" || p.starts_with("holdall="));
        method == Method::POST && uri.query().is_some_and(named)
    }

    async fn check_access(&self, req: &mut S3Request<Body>) -> S3Result<()> {
        let user = self.users.of(req.credentials.as_ref())?;
        Users::check(&user, Right::Write, &Asked::parse(&req.uri)?.bucket)?;
        req.extensions.insert(user);
        Ok(())
    }

    async fn call(&self, mut req: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let asked = Asked::parse(&req.uri)?;
        let user = self.users.of(req.credentials.as_ref())?;
        crate::s3::check_key(&asked.key)?;
        let bucket = self.server.catalog.bucket(&asked.bucket)?;
        let body = StreamingBlob::from(std::mem::take(&mut req.input));
        let incoming = incoming(&req.headers, body, req.trailing_headers.clone());
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
        let asked = Asked::parse(&uri).unwrap();
        assert_eq!((asked.bucket.as_str(), asked.key.as_str()), ("photos", "a b"));
        assert_eq!(asked.range().unwrap(), 17..17);
        assert!(Asked::parse(&"/photos?holdall=insert".parse().unwrap()).is_err());
        assert!(Asked::parse(&"/photos/%ff?holdall=insert".parse().unwrap()).is_err());
    }

    #[test]
    fn ranges_are_inclusive_and_ordered() {
        assert_eq!(inclusive("0-9").unwrap(), 0..10);
        for bad in ["", "1", "9-0", "a-b", "-1-2", "0-18446744073709551615"] {
            assert!(inclusive(bad).is_err(), "{bad}");
        }
    }
}
