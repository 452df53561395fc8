//! Objects read.

use crate::dav::conditions::{Found, range_holds};
use crate::dav::error::{Result, blocking, refusal};
use crate::dav::{Dav, Head};
use crate::http::answer::{empty, set};
use crate::http::{body::Outgoing, date, header::ByteRange};
use crate::objects::node::{self, Node};
use crate::objects::{condition::seconds, meta::Meta, side};
use crate::users::Right;
use bytes::Bytes;
use http::{Method, Response, StatusCode, header};
use s3s::Body;
use s3s::dto::StreamingBlob;
use std::ops::Range;

/// Bytes up to which an answer is read in one step with the object's metadata.
const AT_ONCE: u64 = 64 << 10;

/// The one range that is asked for; `None` if all bytes are, several ranges, or what is none.
fn range(head: &Head, found: &Found, size: u64) -> Result<Option<Range<u64>>> {
    let Some(text) = head.text(header::RANGE) else { return Ok(None) };
    if !range_holds(head, found) {
        return Ok(None);
    }
    let Some(asked) = ByteRange::parse(text) else { return Ok(None) };
    let outside = || {
        let text = format!("the range does not lie inside {size} bytes");
        let mut e = refusal(StatusCode::RANGE_NOT_SATISFIABLE, text);
        if let Ok(value) = format!("bytes */{size}").parse() {
            e.headers.insert(header::CONTENT_RANGE, value);
        }
        e
    };
    asked.within(size).map(Some).ok_or_else(outside)
}

/// The media type of a name.
pub fn media_type(key: &[u8]) -> String {
    let name = String::from_utf8_lossy(key);
    mime_guess::from_path(name.as_ref()).first_or_octet_stream().to_string()
}

/// Keeps a browser from running what it is shown: an object is nobody's page.
pub fn confine(response: &mut Response<Body>) {
    set(response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(
        response,
        header::CONTENT_SECURITY_POLICY,
        "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; media-src 'self'",
    );
}

impl Dav {
    /// Answers a get or head of an object. A folder has no bytes.
    pub(super) async fn get(&self, head: Head) -> Result<Response<Body>> {
        if head.place.collection.is_some() {
            head.check(Right::Read)?;
        }
        let catalog = self.objects.catalog.clone();
        blocking(move || {
            let node = if head.place.key.is_none() {
                node::find(&catalog, &head.place)?
            } else {
                let bucket = node::collection(&catalog, &head.place)?;
                let mut reader = bucket.read()?;
                let node = node::look(&mut reader, &head.place)?;
                match node {
                    Node::File(found) => return answer(&head, &reader, *found),
                    // S3 may give a folder's marker bytes; its path is the folder's.
                    Node::Folder(Some(found)) if head.place.slash && found.size > 0 => {
                        return answer(&head, &reader, *found);
                    }
                    node => node,
                }
            };
            if node.is_there() {
                let text = "it is a folder: list it with PROPFIND";
                return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text));
            }
            Err(refusal(StatusCode::NOT_FOUND, "there is nothing"))
        })
        .await
    }
}

/// Sets what a client, or a cache, knows an object's state by, and how long it holds.
fn validators(response: &mut Response<Body>, meta: &Meta, etag: &str) {
    set(response, header::ETAG, &format!("\"{etag}\""));
    if let Some(modified) = date::text(meta.modified()) {
        set(response, header::LAST_MODIFIED, &modified);
    }
    let expires = meta.about.expires_text();
    let kept = [(header::CACHE_CONTROL, &meta.about.cache_control), (header::EXPIRES, &expires)];
    for (name, text) in kept {
        text.iter().for_each(|text| set(response, name.clone(), text));
    }
}

/// Answers with an object that was found. Blocks.
fn answer(
    head: &Head,
    reader: &holdall::Reader,
    found: holdall::Metadata,
) -> Result<Response<Body>> {
    let (size, version) = (found.size, found.version);
    let meta = side::meta(reader, &found)?;
    let etag = meta.etag(version);
    let is = Found { etag: Some(etag.clone()), modified: Some(seconds(meta.modified())) };
    let mut response = empty(StatusCode::OK);
    validators(&mut response, &meta, &etag);
    if let Err(mut e) = head.conditions.check_read(&is) {
        *e.headers = response.headers().clone();
        return Err(e);
    }
    let part = range(head, &is, size)?;
    if let Some(part) = &part {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
        let text = format!("bytes {}-{}/{size}", part.start, part.end.saturating_sub(1));
        set(&mut response, header::CONTENT_RANGE, &text);
    }
    let Range { start, end } = part.unwrap_or(0..size);
    let kind = meta.content_type.clone().unwrap_or_else(|| media_type(head.place.name()));
    set(&mut response, header::CONTENT_TYPE, &kind);
    set(&mut response, header::CONTENT_LENGTH, &(end - start).to_string());
    set(&mut response, header::ACCEPT_RANGES, "bytes");
    let form = [
        (header::CONTENT_ENCODING, &meta.about.encoding),
        (header::CONTENT_LANGUAGE, &meta.about.language),
    ];
    for (name, text) in form {
        text.iter().for_each(|text| set(&mut response, name.clone(), text));
    }
    confine(&mut response);
    if head.method == Method::HEAD || start == end {
        return Ok(response);
    }
    *response.body_mut() = if end - start <= AT_ONCE {
        let bytes = reader.get_range(found.oid, start..end)?;
        Body::from(Bytes::from(bytes.unwrap_or_default()))
    } else {
        let object = reader.open(found.oid)?;
        Body::from(StreamingBlob::new(Outgoing::new(object, start, end)))
    };
    Ok(response)
}
