//! Objects written: whole, or a range of them.

use crate::body;
use crate::catalog::Bucket;
use crate::condition;
use crate::condition::ETagCondition;
use crate::dav::node::{self, Node};
use crate::dav::{Dav, Head, empty, get, no_body, refusal, set};
use crate::digest::Announced;
use crate::edit::{Condition, Edit};
use crate::error::from_store;
use crate::meta::Meta;
use crate::s3::{Goal, Incoming, check_key};
use crate::users::Right;
use holdall::PutMode;
use http::{Response, StatusCode, header};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3ErrorCode, S3Result, s3_error};
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The media type of a partial put by PATCH, as SabreDAV has it.
const PATCHES: &str = "application/x-sabredav-partialupdate";

/// A name that may be written: UTF-8, so that S3 can reach it, too.
///
/// # Errors
/// InvalidRequest.
pub fn text(key: &[u8]) -> S3Result<String> {
    let bad = |_| s3_error!(InvalidRequest, "a name that is written is UTF-8");
    let key = String::from_utf8(key.to_vec()).map_err(bad)?;
    check_key(&key)?;
    Ok(key)
}

/// Where a partial put begins, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    At(u64),
    /// So many bytes before the end.
    Before(u64),
    /// Behind the last byte.
    End,
}

/// `bytes FIRST-LAST/SIZE`, of a body of `len` bytes.
fn content_range(text: &str, len: Option<u64>) -> Option<Start> {
    let (range, _) = text.strip_prefix("bytes ")?.split_once('/')?;
    first_last(range, len)
}

fn first_last(range: &str, len: Option<u64>) -> Option<Start> {
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
    let size = last.checked_sub(first)?.checked_add(1)?;
    len.is_none_or(|len| len == size).then_some(Start::At(first))
}

/// The header X-Update-Range: `append`, `bytes=A-B`, `bytes=A-`, `bytes=-N`.
fn update_range(text: &str, len: Option<u64>) -> Option<Start> {
    if text.trim() == "append" {
        return Some(Start::End);
    }
    let range = text.trim().strip_prefix("bytes=")?;
    match range.split_once('-')? {
        ("", last) => last.parse().ok().map(Start::Before),
        (first, "") => first.parse().ok().map(Start::At),
        _ => first_last(range, len),
    }
}

impl Start {
    /// The bytes of an object that a body of `len` bytes takes the place of.
    fn range(self, size: u64, len: u64) -> S3Result<Range<u64>> {
        let outside = || s3_error!(InvalidRange, "the range begins outside the {size} bytes");
        let start = match self {
            Self::At(at) => at,
            Self::Before(n) => size.checked_sub(n).ok_or_else(outside)?,
            Self::End => size,
        };
        if start > size {
            return Err(outside());
        }
        Ok(start..start.saturating_add(len).min(size))
    }
}

/// What a put is sent against.
struct Target {
    bucket: Bucket,
    node: Node,
    mode: PutMode,
}

impl Head {
    fn length(&self) -> Option<u64> {
        // Finder sends large bodies without a length, and says it here.
        let named = || self.text("x-expected-entity-length");
        self.text(header::CONTENT_LENGTH).or_else(named)?.parse().ok()
    }

    /// Where a partial put begins; `None` for one of the whole object.
    fn start(&self) -> S3Result<Option<Start>> {
        let bad = || refusal(StatusCode::BAD_REQUEST, "the range cannot be read");
        if self.method.as_str() == "PATCH" {
            if self.text(header::CONTENT_TYPE) != Some(PATCHES) {
                let text = format!("a PATCH has the type {PATCHES}");
                return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
            if self.length().is_none() {
                return Err(refusal(StatusCode::LENGTH_REQUIRED, "a PATCH tells its length"));
            }
            let text = self.text("x-update-range").ok_or_else(bad)?;
            return update_range(text, self.length()).ok_or_else(bad).map(Some);
        }
        let Some(text) = self.text(header::CONTENT_RANGE) else { return Ok(None) };
        content_range(text, self.length()).ok_or_else(bad).map(Some)
    }

    fn etags(&self) -> (Option<ETagCondition>, Option<ETagCondition>) {
        let read = |name| {
            let value: &http::HeaderValue = self.headers.get(name)?;
            ETagCondition::parse_http_header(value.as_bytes()).ok()
        };
        (read(header::IF_MATCH), read(header::IF_NONE_MATCH))
    }

    /// The time that a client wants the object to have, as ownCloud's clients say it.
    fn modified(&self) -> Option<SystemTime> {
        let seconds = self.text("x-oc-mtime")?.parse().ok()?;
        SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds))
    }
}

impl Dav {
    /// What a put finds, and what must still hold at its commit.
    async fn target(&self, head: &Head, pinned: bool) -> S3Result<Target> {
        let (catalog, head) = (self.server.catalog.clone(), head.clone());
        body::blocking(move || {
            let none = |e: s3s::S3Error| match e.code() {
                S3ErrorCode::NoSuchBucket => refusal(StatusCode::CONFLICT, "no such collection"),
                _ => e,
            };
            let bucket = node::collection(&catalog, &head.place).map_err(none)?;
            let mut reader = bucket.read().map_err(from_store)?;
            let node = node::look(&mut reader, &head.place).map_err(from_store)?;
            if node.is_folder() {
                let text = "it is a folder; a body has no place there";
                return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text));
            }
            if !node.is_there()
                && !node::has_parent(&mut reader, &head.place).map_err(from_store)?
            {
                return Err(refusal(StatusCode::CONFLICT, "its folder is not there"));
            }
            let (matches, not) = head.etags();
            let key = text(&head.place.key)?;
            let mode = condition::mode(&reader, &key, matches.as_ref(), not.as_ref());
            let mut mode = mode.map_err(|e| match e.code() {
                S3ErrorCode::NoSuchKey => s3_error!(PreconditionFailed, "there is no such object"),
                _ => e,
            })?;
            if pinned {
                mode = node.metadata().map_or(PutMode::Create, |m| PutMode::Update(m.version));
            }
            Ok(Target { bucket, node, mode })
        })
        .await
    }

    pub(super) async fn put(&self, head: Head, body: Body) -> S3Result<Response<Body>> {
        head.check(Right::Write)?;
        if head.place.key.is_empty() {
            let text = "objects lie in collections: /-/dav/COLLECTION/NAME";
            return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text));
        }
        let start = head.start()?;
        let pinned = self.may_change(&head, &head.path, false).await?;
        let target = self.target(&head, pinned).await?;
        let len = head.length();
        let body = if len == Some(0) { no_body() } else { StreamingBlob::from(body) };
        let announced =
            Announced { md5: head.text("content-md5").map(str::to_owned), ..Announced::default() };
        let incoming = Incoming { body, len, announced };
        match start {
            None => self.put_whole(head, target, incoming).await,
            Some(start) => self.put_range(head, target, start, incoming).await,
        }
    }

    async fn put_whole(
        &self,
        head: Head,
        target: Target,
        incoming: Incoming,
    ) -> S3Result<Response<Body>> {
        let there = target.node.is_there();
        let kind = head.text(header::CONTENT_TYPE).map(str::to_owned);
        let asked = head.modified();
        let meta = Meta {
            modified: Some(asked.unwrap_or_else(SystemTime::now)),
            content_type: kind.or_else(|| Some(get::media_type(&head.place.key))),
            ..Meta::default()
        };
        let goal = Goal {
            bucket: target.bucket,
            key: text(&head.place.key)?,
            mode: target.mode,
            meta,
            part_of: None,
            keeps: there,
        };
        let done = self.server.store(goal, incoming).await?;
        let status = if there { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        let mut response = empty(status);
        set(&mut response, header::ETAG, &format!("\"{}\"", done.etag));
        if asked.is_some() {
            set(&mut response, header::HeaderName::from_static("x-oc-mtime"), "accepted");
        }
        Ok(response)
    }

    async fn put_range(
        &self,
        head: Head,
        target: Target,
        start: Start,
        incoming: Incoming,
    ) -> S3Result<Response<Body>> {
        let Some(found) = target.node.metadata() else {
            return Err(refusal(StatusCode::NOT_FOUND, "only an object that is there has ranges"));
        };
        let needs = || refusal(StatusCode::LENGTH_REQUIRED, "a partial put tells its length");
        let len = incoming.len.ok_or_else(needs)?;
        let range = start.range(found.size, len)?;
        let (matches, matches_not) = head.etags();
        let condition = Condition { matches, matches_not, size: Some(found.size) };
        let key = text(&head.place.key)?;
        let edit = Edit { bucket: target.bucket, key, condition, create: false };
        let done = self.server.edit(edit, range, incoming).await?;
        let mut response = empty(StatusCode::NO_CONTENT);
        set(&mut response, header::ETAG, &format!("\"{}\"", done.etag));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_partial_puts_are_read() {
        assert_eq!(content_range("bytes 5-9/*", Some(5)), Some(Start::At(5)));
        assert_eq!(content_range("bytes 5-9/20", None), Some(Start::At(5)));
        for bad in ["bytes 5-9", "bytes 9-5/*", "bytes 5-9/*x", "5-9/*", "bytes a-b/*"] {
            assert_eq!(content_range(bad, Some(4)), None, "{bad}");
        }
        assert_eq!(update_range("append", Some(1)), Some(Start::End));
        assert_eq!(update_range("bytes=-3", Some(9)), Some(Start::Before(3)));
        assert_eq!(update_range("bytes=3-", Some(9)), Some(Start::At(3)));
        assert_eq!(update_range("bytes=3-4", Some(2)), Some(Start::At(3)));
        assert_eq!(update_range("bytes=3-4", Some(9)), None);
        assert_eq!(update_range("bytes=0-18446744073709551615", None), None);
    }

    #[test]
    fn a_partial_put_replaces_what_lies_there_and_goes_on_behind_the_end() {
        assert_eq!(Start::At(3).range(10, 4).unwrap(), 3..7);
        assert_eq!(Start::At(8).range(10, 4).unwrap(), 8..10);
        assert_eq!(Start::End.range(10, 4).unwrap(), 10..10);
        assert_eq!(Start::Before(2).range(10, 4).unwrap(), 8..10);
        assert!(Start::At(11).range(10, 1).is_err() && Start::Before(11).range(10, 1).is_err());
    }
}
