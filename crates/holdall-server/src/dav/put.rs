//! Objects written: whole, or a range of them.

use crate::dav::error::{Result, blocking, refusal};
use crate::dav::{Dav, Head, get, no_body};
use crate::http::answer::{empty, set};
use crate::http::{header::list, spelling::digits};
use crate::objects::edit::{Condition, Edit};
use crate::objects::meta::{About, Meta};
use crate::objects::node::{self, Node};
use crate::objects::put::{Goal, Incoming};
use crate::objects::{catalog::Bucket, place::text};
use crate::refusal::{Refusal, Why};
use crate::users::Right;
use holdall::PutMode;
use http::{HeaderName, Response, StatusCode, header};
use s3s::Body;
use s3s::dto::StreamingBlob;
use std::ops::Range;
use std::time::{Duration, SystemTime};

/// The media type of a partial put by PATCH, as SabreDAV has it.
const PATCHES: &str = "application/x-sabredav-partialupdate";

/// The time that a client wants an object to have.
pub const MTIME: HeaderName = HeaderName::from_static("x-oc-mtime");

/// Where a partial put begins, by its header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    At(u64),
    /// This many bytes before the end.
    Before(u64),
    /// Behind the last byte.
    End,
}

/// `bytes FIRST-LAST/SIZE`, of a body of `len` bytes: where it begins, and the size that the object
/// has afterwards, if that is given.
fn content_range(text: &str, len: Option<u64>) -> Option<(Start, Option<u64>)> {
    let (unit, rest) = text.split_once(' ')?;
    let (range, size) = rest.trim().split_once('/')?;
    let size = if size == "*" { None } else { Some(digits(size)?) };
    let known = unit.eq_ignore_ascii_case("bytes");
    known.then(|| first_last(range, len)).flatten().map(|start| (start, size))
}

fn first_last(range: &str, len: Option<u64>) -> Option<Start> {
    let (first, last) = range.split_once('-')?;
    let (first, last) = (digits(first)?, digits(last)?);
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
        ("", last) => digits(last).map(Start::Before),
        (first, "") => digits(first).map(Start::At),
        _ => first_last(range, len),
    }
}

impl Start {
    /// The bytes of an object that a body of `len` bytes takes the place of.
    fn range(self, size: u64, len: u64) -> Result<Range<u64>> {
        let outside = || {
            refusal(
                StatusCode::RANGE_NOT_SATISFIABLE,
                format!("the range begins outside the {size} bytes"),
            )
        };
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
    /// How many bytes come, if that is given.
    ///
    /// # Errors
    /// Status 400 for what is no number, or not the one that HTTP says.
    fn length(&self) -> Result<Option<u64>> {
        let bad = || refusal(StatusCode::BAD_REQUEST, "the length of the body cannot be read");
        let read = |text: &str| digits(text).ok_or_else(bad);
        // Finder sends large bodies without a length, and says it here.
        let named = self.text("x-expected-entity-length").map(read).transpose()?;
        let sent = self.text(header::CONTENT_LENGTH).map(read).transpose()?;
        match (sent, named) {
            (Some(sent), Some(named)) if sent != named => Err(bad()),
            (sent, named) => Ok(sent.or(named)),
        }
    }

    /// Where a partial put begins, and the size that the object has afterwards if that is given;
    /// `None` for one of the whole object.
    fn start(&self) -> Result<Option<(Start, Option<u64>)>> {
        let bad = || refusal(StatusCode::BAD_REQUEST, "the range cannot be read");
        if self.method.as_str() == "PATCH" {
            if self.text(header::CONTENT_TYPE) != Some(PATCHES) {
                let text = format!("a PATCH has the type {PATCHES}");
                return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
            if self.length()?.is_none() {
                return Err(refusal(StatusCode::LENGTH_REQUIRED, "a PATCH tells its length"));
            }
            let text = self.text("x-update-range").ok_or_else(bad)?;
            let start = update_range(text, self.length()?).ok_or_else(bad)?;
            return Ok(Some((start, None)));
        }
        let Some(text) = self.text(header::CONTENT_RANGE) else { return Ok(None) };
        // They would be of all bytes.
        for name in ["content-encoding", "content-language", "x-oc-mtime"] {
            if self.headers.contains_key(name) {
                let text = format!("the header {name} is not of a part");
                return Err(refusal(StatusCode::NOT_IMPLEMENTED, text));
            }
        }
        content_range(text, self.length()?).ok_or_else(bad).map(Some)
    }

    /// The name of the object that is written.
    ///
    /// # Errors
    /// Status 405 if the path is a collection's or a folder's.
    pub fn object(&self) -> Result<String> {
        match &self.place.key {
            Some(key) if !self.place.slash => Ok(text(key.clone())?),
            _ => {
                let text = "objects lie in collections, and have no slash at their ends: \
                            /-/dav/COLLECTION/NAME";
                Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text))
            }
        }
    }

    /// The time that a client wants the object to have, as ownCloud's clients say it.
    ///
    /// # Errors
    /// Status 400 for what is no number of seconds.
    pub fn modified(&self) -> Result<Option<SystemTime>> {
        let Some(text) = self.text(MTIME) else { return Ok(None) };
        let seconds = |text: &str| digits(text).map(Duration::from_secs);
        let at = match text.strip_prefix('-') {
            Some(before) => seconds(before).and_then(|s| SystemTime::UNIX_EPOCH.checked_sub(s)),
            None => seconds(text).and_then(|s| SystemTime::UNIX_EPOCH.checked_add(s)),
        };
        let bad = || refusal(StatusCode::BAD_REQUEST, "X-OC-Mtime is a number of seconds");
        at.ok_or_else(bad).map(Some)
    }

    /// What a put says of its object. Cache-Control of a request belongs to the request.
    fn about(&self) -> Result<About> {
        Ok(About {
            encoding: list(&self.headers, "content-encoding")?,
            language: list(&self.headers, "content-language")?,
            disposition: self.text(header::CONTENT_DISPOSITION).map(str::to_owned),
            ..About::expiring(self.text(header::EXPIRES), None)
        })
    }
}

impl Dav {
    /// What a put finds, and what must still hold at its commit.
    async fn target(&self, head: &Head, pinned: bool) -> Result<Target> {
        let (catalog, head) = (self.objects.catalog.clone(), head.clone());
        blocking(move || {
            let none = |e: Refusal| match e.why {
                Why::NoBucket => refusal(StatusCode::CONFLICT, "no such collection"),
                _ => e.into(),
            };
            let bucket = node::collection(&catalog, &head.place).map_err(none)?;
            let mut reader = bucket.read()?;
            let node = node::look(&mut reader, &head.place)?;
            if node.is_folder() {
                let text = "it is a folder; a body has no place there";
                return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text));
            }
            if !node.is_there() && !node::has_parent(&mut reader, &head.place)? {
                return Err(refusal(StatusCode::CONFLICT, "its folder is not there"));
            }
            let version = head.check_conditions(&node, pinned)?;
            let mode = match version {
                Some(version) => PutMode::Update(version),
                None if pinned || head.conditions.any() => PutMode::Create,
                None => PutMode::Overwrite,
            };
            Ok(Target { bucket, node, mode })
        })
        .await
    }

    pub(super) async fn put(&self, head: Head, body: Body) -> Result<Response<Body>> {
        head.check(Right::Write)?;
        head.object()?;
        let start = head.start()?;
        head.modified()?;
        let pinned = self.may_change(&head, &head.path, false).await?;
        let target = self.target(&head, pinned).await?;
        let len = head.length()?;
        let body = if len == Some(0) { no_body() } else { StreamingBlob::from(body) };
        let announced = head.announced.clone();
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
    ) -> Result<Response<Body>> {
        let there = target.node.is_there();
        let kind = head.text(header::CONTENT_TYPE).map(str::to_owned);
        let asked = head.modified()?;
        let meta = Meta {
            modified: asked,
            content_type: kind.or_else(|| Some(get::media_type(head.place.name()))),
            about: head.about()?,
            of_bytes: None,
        };
        let goal = Goal {
            bucket: target.bucket,
            key: head.object()?,
            mode: target.mode,
            meta,
            part_of: None,
            keeps: there,
        };
        let done = self.objects.store(goal, incoming).await?;
        let status = if there { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        let mut response = empty(status);
        set(&mut response, header::ETAG, &format!("\"{}\"", done.etag));
        if asked.is_some() {
            set(&mut response, MTIME, "accepted");
        }
        Ok(response)
    }

    async fn put_range(
        &self,
        head: Head,
        target: Target,
        (start, size): (Start, Option<u64>),
        incoming: Incoming,
    ) -> Result<Response<Body>> {
        let Some(found) = target.node.metadata() else {
            return Err(refusal(StatusCode::NOT_FOUND, "only an object that is there has ranges"));
        };
        let needs = || refusal(StatusCode::LENGTH_REQUIRED, "a partial put tells its length");
        let len = incoming.len.ok_or_else(needs)?;
        let range = start.range(found.size, len)?;
        let after = found.size.max(range.start.saturating_add(len));
        if size.is_some_and(|size| size != after) {
            let text = "the size of Content-Range is another one";
            return Err(refusal(
                StatusCode::RANGE_NOT_SATISFIABLE,
                format!("the object has {after} bytes then; {text}"),
            ));
        }
        let version = match target.mode {
            PutMode::Update(version) => Some(version),
            _ => None,
        };
        let condition = Condition { size: Some(found.size), version, ..Condition::default() };
        let key = head.object()?;
        let edit = Edit { bucket: target.bucket, key, condition, create: false };
        let done = self.objects.edit(edit, range, incoming).await?;
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
        assert_eq!(content_range("bytes 5-9/*", Some(5)), Some((Start::At(5), None)));
        assert_eq!(content_range("Bytes 5-9/20", None), Some((Start::At(5), Some(20))));
        for bad in [
            "bytes 5-9",
            "bytes 9-5/*",
            "bytes 5-9/*x",
            "5-9/*",
            "bytes a-b/*",
            "bytes +2-+6/*",
            "bytes 2-6/+9",
            "bytes 2-6/",
            "items 2-6/*",
        ] {
            assert_eq!(content_range(bad, None), None, "{bad}");
        }
        assert_eq!(content_range("bytes 5-9/*", Some(4)), None);
        assert_eq!(update_range("bytes=+3-", Some(1)), None);
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
