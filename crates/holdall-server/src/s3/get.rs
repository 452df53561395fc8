//! Objects read: get, head, attributes.

use crate::http::body::{Outgoing, Whole};
use crate::http::{date, digest::Sums};
use crate::objects::meta::{Meta, OfBytes, PartInfo};
use crate::objects::{catalog::Bucket, side};
use crate::refusal::Refusal;
use crate::s3::access::Seen;
use crate::s3::admit::{Admitted, IfRange};
use crate::s3::error::{blocking, custom, from_store};
use crate::s3::{Server, length, timestamp};
use bytes::Bytes;
use holdall::{Metadata, Object, Reader};
use http::{StatusCode, header};
use s3s::dto::{
    Checksum, ChecksumMode, ChecksumType, ETag, GetObjectAttributesInput,
    GetObjectAttributesOutput, GetObjectAttributesParts, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ObjectPart, StorageClass, StreamingBlob, Timestamp,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::ops::Range;
use std::sync::Arc;

/// Bytes up to which an answer is read in one step with the object's metadata.
const AT_ONCE: u64 = 64 << 10;

/// An object that was found, with what is kept of it.
#[derive(Debug)]
pub struct Found {
    /// The state it was found in.
    pub reader: Reader,
    /// What the engine knows.
    pub metadata: Metadata,
    /// What S3 keeps.
    pub meta: Meta,
    /// The ETag without quotes.
    pub etag: String,
}

/// Finds an object, in the state in which an ACL opened it or in the newest one. Blocks.
///
/// # Errors
/// NoSuchKey, those of the engine.
pub fn find(bucket: &Bucket, key: &str, seen: Option<&Seen>) -> S3Result<Found> {
    let reader = match seen {
        None => bucket.read(),
        Some(Seen(reader)) => reader.collection(&bucket.name),
    };
    let reader = reader.map_err(from_store)?;
    let metadata = match reader.metadata(key) {
        Err(holdall::Error::NotFound(_)) => {
            return Err(s3_error!(NoSuchKey, "there is no object {key}"));
        }
        other => other.map_err(from_store)?,
    };
    let meta = side::meta(&reader, &metadata).map_err(from_store)?;
    let etag = meta.etag(metadata.version);
    Ok(Found { reader, metadata, meta, etag })
}

/// What a get or head asks for.
struct Wanted {
    seen: Option<Seen>,
    asked: Arc<Admitted>,
    part: Option<i32>,
    checksums: bool,
}

/// The bytes an answer holds.
enum Bytes_ {
    None,
    Whole(Bytes),
    Stream(Object),
}

/// What both answers have.
struct Answer {
    found: Found,
    range: Range<u64>,
    partial: bool,
    parts_count: Option<i32>,
    /// Checksums of what is answered, and what they are of.
    sums: (Sums, Option<ChecksumType>),
    bytes: Bytes_,
}

impl Wanted {
    /// Finds the object and the range asked for; reads a short range at once. Blocks.
    fn answer(&self, bucket: &Bucket, key: &str, read: bool) -> S3Result<Answer> {
        let found = find(bucket, key, self.seen.as_ref())?;
        let told = |e: Refusal| with_validators(e.into(), &found);
        self.asked.conditions.check(&found.meta, &found.etag).map_err(told)?;
        let size = found.metadata.size;
        let (range, partial, parts_count) =
            self.range(&found, size).map_err(|e| with_size(e, size))?;
        let bytes = if !read {
            Bytes_::None
        } else if range.end - range.start <= AT_ONCE {
            let bytes = found.reader.get_range(found.metadata.oid, range.clone());
            Bytes_::Whole(bytes.map_err(from_store)?.unwrap_or_default().into())
        } else {
            Bytes_::Stream(found.reader.open(found.metadata.oid).map_err(from_store)?)
        };
        let sums = self.sums(found.meta.of_bytes.as_ref(), partial);
        Ok(Answer { found, range, partial, parts_count, sums, bytes })
    }

    /// The checksums of the whole, or of the part that is asked for; none of a range.
    fn sums(&self, of_bytes: Option<&OfBytes>, partial: bool) -> (Sums, Option<ChecksumType>) {
        let Some(of_bytes) = of_bytes.filter(|_| self.checksums) else {
            return (Sums::default(), None);
        };
        let part = of_bytes.parts.iter().find(|part| Some(part.number) == self.part);
        match part {
            Some(part) => checksums(Some(&OfBytes { sums: part.sums.clone(), ..of_bytes.clone() })),
            None if partial && !of_bytes.parts.is_empty() => (Sums::default(), None),
            None if partial && self.part.is_none() => (Sums::default(), None),
            None => checksums(Some(of_bytes)),
        }
    }

    fn range(&self, found: &Found, size: u64) -> S3Result<(Range<u64>, bool, Option<i32>)> {
        if let Some(number) = self.part {
            let (range, count) = part_range(found.meta.of_bytes.as_ref(), number, size)?;
            // No header Content-Range names no byte.
            let partial = !range.is_empty();
            return Ok((range, partial, count));
        }
        let holds = |known: &IfRange| known.holds(&found.meta, &found.etag);
        let range = self.asked.range.filter(|_| self.asked.if_range.as_ref().is_none_or(holds));
        let Some(range) = range else { return Ok((0..size, false, None)) };
        let outside = || s3_error!(InvalidRange, "the range does not lie inside {size} bytes");
        Ok((range.within(size).ok_or_else(outside)?, true, None))
    }
}

/// An answer that nothing changed names what.
fn with_validators(mut e: s3s::S3Error, found: &Found) -> s3s::S3Error {
    if *e.code() == s3s::S3ErrorCode::NotModified {
        let mut headers = http::HeaderMap::new();
        let about = &found.meta.about;
        let modified = found.meta.modified();
        let told = [
            (header::ETAG, Some(format!("\"{}\"", found.etag))),
            (header::LAST_MODIFIED, date::text(modified)),
            (header::CACHE_CONTROL, about.cache_control.clone()),
            (header::EXPIRES, about.expires_text()),
        ];
        for (name, text) in told {
            headers.extend(text.and_then(|t| t.parse().ok()).map(|value| (name, value)));
        }
        e.set_headers(headers);
    }
    e
}

/// An answer that there are no such bytes gives how many there are.
fn with_size(mut e: s3s::S3Error, size: u64) -> s3s::S3Error {
    if let Ok(range) = format!("bytes */{size}").parse() {
        let mut headers = http::HeaderMap::new();
        headers.insert(header::CONTENT_RANGE, range);
        e.set_headers(headers);
    }
    e
}

/// Headers of an answer that `s3s` has no words for.
fn more_headers(found: &Found) -> http::HeaderMap {
    let text = found.meta.about.expires_text.as_ref();
    let text = text.and_then(|text| text.parse().ok());
    text.into_iter().map(|value| (header::EXPIRES, value)).collect()
}

/// Where part `number` lies in an object, and how many there are.
fn part_range(
    of_bytes: Option<&OfBytes>,
    number: i32,
    size: u64,
) -> S3Result<(Range<u64>, Option<i32>)> {
    let parts: &[PartInfo] = of_bytes.map_or(&[], |b| &b.parts);
    let none = || {
        let text = format!("there is no part {number}");
        custom("InvalidPartNumber", StatusCode::RANGE_NOT_SATISFIABLE, text)
    };
    if parts.is_empty() {
        return if number == 1 { Ok((0..size, None)) } else { Err(none()) };
    }
    let mut start = 0;
    for part in parts {
        let end = start + part.size;
        if part.number == number {
            return Ok((start..end, i32::try_from(parts.len()).ok()));
        }
        start = end;
    }
    Err(none())
}

fn asks_checksums(mode: Option<&ChecksumMode>) -> bool {
    mode.is_some_and(|mode| mode.as_str() == ChecksumMode::ENABLED)
}

/// Checksums with what they are of.
fn checksums(of_bytes: Option<&OfBytes>) -> (Sums, Option<ChecksumType>) {
    let Some(of_bytes) = of_bytes.filter(|b| !b.sums.is_empty()) else {
        return (Sums::default(), None);
    };
    let kind = if of_bytes.composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT };
    (of_bytes.sums.clone(), Some(ChecksumType::from_static(kind)))
}

impl Server {
    /// Finds an object.
    ///
    /// # Errors
    /// NoSuchBucket, NoSuchKey, those of the engine.
    pub async fn find(&self, bucket: &str, key: String) -> S3Result<Found> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || find(&bucket, &key, None)).await
    }

    async fn answer(
        &self,
        bucket: &str,
        key: String,
        wanted: Wanted,
        read: bool,
    ) -> S3Result<Answer> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || wanted.answer(&bucket, &key, read)).await
    }

    pub(super) async fn get(
        &self,
        req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let asked = Admitted::from_extensions(&req.extensions)?;
        let (input, seen) = (req.input, req.extensions.get::<Seen>().cloned());
        let wanted = Wanted {
            seen,
            asked,
            part: input.part_number,
            checksums: asks_checksums(input.checksum_mode.as_ref()),
        };
        let overridden = input.response_expires.is_some();
        let answer = self.answer(&input.bucket, input.key, wanted, true).await?;
        let Answer { found, range, partial, parts_count, sums, bytes } = answer;
        let len = range.end - range.start;
        let body = match bytes {
            Bytes_::Stream(object) => {
                StreamingBlob::new(Outgoing::new(object, range.start, range.end))
            }
            Bytes_::Whole(bytes) => StreamingBlob::new(Whole(Some(bytes))),
            Bytes_::None => StreamingBlob::new(Whole(None)),
        };
        let head = head(&found, sums, partial.then_some(range), parts_count);
        let mut response = S3Response::new(GetObjectOutput {
            body: Some(body),
            accept_ranges: head.accept_ranges,
            cache_control: head.cache_control,
            checksum_crc32: head.checksum_crc32,
            checksum_crc32c: head.checksum_crc32c,
            checksum_crc64nvme: head.checksum_crc64nvme,
            checksum_sha1: head.checksum_sha1,
            checksum_sha256: head.checksum_sha256,
            checksum_type: head.checksum_type,
            content_disposition: head.content_disposition,
            content_encoding: head.content_encoding,
            content_language: head.content_language,
            content_length: Some(length(len)),
            content_range: head.content_range,
            content_type: head.content_type,
            e_tag: head.e_tag,
            expires: head.expires,
            last_modified: head.last_modified,
            metadata: head.metadata,
            parts_count: head.parts_count,
            tag_count: i32::try_from(found.meta.about.tags.len()).ok().filter(|n| *n > 0),
            ..Default::default()
        });
        // An answer with headers of the address's choice has those.
        if overridden {
            return Ok(response);
        }
        response.headers = more_headers(&found);
        Ok(response)
    }

    pub(super) async fn head(
        &self,
        req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let asked = Admitted::from_extensions(&req.extensions)?;
        let (input, seen) = (req.input, req.extensions.get::<Seen>().cloned());
        let wanted = Wanted {
            seen,
            asked,
            part: input.part_number,
            checksums: asks_checksums(input.checksum_mode.as_ref()),
        };
        let answer = self.answer(&input.bucket, input.key, wanted, false).await?;
        let Answer { found, range, partial, parts_count, sums, .. } = answer;
        let len = range.end - range.start;
        let mut output = head(&found, sums, partial.then_some(range), parts_count);
        output.content_length = Some(length(len));
        let tags = found.meta.about.tags.len();
        let mut response = S3Response::new(output);
        response.headers = more_headers(&found);
        if tags > 0 {
            response.headers.insert("x-amz-tagging-count", tags.into());
        }
        Ok(response)
    }

    pub(super) async fn attributes(
        &self,
        req: S3Request<GetObjectAttributesInput>,
    ) -> S3Result<S3Response<GetObjectAttributesOutput>> {
        let input = req.input;
        let found = self.find(&input.bucket, input.key).await?;
        // Clients send one header line with commas, or several.
        let names = input.object_attributes.iter().flat_map(|a| a.as_str().split(','));
        let names: Vec<String> = names.map(|name| name.trim().to_owned()).collect();
        let asked = |name: &str| names.iter().any(|asked| asked == name);
        let (sums, checksum_type) = checksums(found.meta.of_bytes.as_ref());
        let checksum = Checksum {
            checksum_crc32: sums.crc32,
            checksum_crc32c: sums.crc32c,
            checksum_crc64nvme: sums.crc64nvme,
            checksum_sha1: sums.sha1,
            checksum_sha256: sums.sha256,
            checksum_type,
        };
        let summed = checksum.checksum_type.is_some();
        let parts = found.meta.of_bytes.as_ref().filter(|b| !b.parts.is_empty());
        let most = input.max_parts.unwrap_or(1000).clamp(0, 1000);
        let after = input.part_number_marker.unwrap_or(0);
        Ok(S3Response::new(GetObjectAttributesOutput {
            checksum: (asked("Checksum") && summed).then_some(checksum),
            e_tag: asked("ETag").then(|| ETag::Strong(found.etag.clone())),
            last_modified: Some(timestamp(found.meta.modified())),
            object_parts: parts
                .filter(|_| asked("ObjectParts"))
                .map(|b| object_parts(b, after, most)),
            object_size: asked("ObjectSize").then(|| length(found.metadata.size)),
            storage_class: asked("StorageClass")
                .then(|| StorageClass::from_static(StorageClass::STANDARD)),
            ..Default::default()
        }))
    }
}

fn object_parts(of_bytes: &OfBytes, after: i32, most: i32) -> GetObjectAttributesParts {
    let mut rest = of_bytes.parts.iter().filter(|part| part.number > after).peekable();
    let mut parts = Vec::new();
    while parts.len() < usize::try_from(most).unwrap_or(0)
        && let Some(part) = rest.next()
    {
        parts.push(ObjectPart {
            checksum_crc32: part.sums.crc32.clone(),
            checksum_crc32c: part.sums.crc32c.clone(),
            checksum_crc64nvme: part.sums.crc64nvme.clone(),
            checksum_sha1: part.sums.sha1.clone(),
            checksum_sha256: part.sums.sha256.clone(),
            part_number: Some(part.number),
            size: Some(length(part.size)),
        });
    }
    GetObjectAttributesParts {
        is_truncated: Some(rest.peek().is_some()),
        max_parts: Some(most),
        next_part_number_marker: parts.last().and_then(|part| part.part_number),
        part_number_marker: Some(after),
        total_parts_count: i32::try_from(of_bytes.parts.len()).ok(),
        parts: Some(parts),
    }
}

fn head(
    found: &Found,
    (sums, checksum_type): (Sums, Option<ChecksumType>),
    range: Option<Range<u64>>,
    parts_count: Option<i32>,
) -> HeadObjectOutput {
    let Found { metadata, meta, etag, .. } = found;
    let about = &meta.about;
    let expires = about.expires.filter(|_| about.expires_text.is_none());
    let expires = expires.and_then(|s| time::OffsetDateTime::from_unix_timestamp(s).ok());
    let content_type =
        meta.content_type.clone().unwrap_or_else(|| "application/octet-stream".into());
    HeadObjectOutput {
        accept_ranges: Some("bytes".into()),
        cache_control: about.cache_control.clone(),
        checksum_crc32: sums.crc32,
        checksum_crc32c: sums.crc32c,
        checksum_crc64nvme: sums.crc64nvme,
        checksum_sha1: sums.sha1,
        checksum_sha256: sums.sha256,
        checksum_type,
        content_disposition: about.disposition.clone(),
        content_encoding: about.encoding.clone(),
        content_language: about.language.clone(),
        content_range: range
            .map(|r| format!("bytes {}-{}/{}", r.start, r.end.saturating_sub(1), metadata.size)),
        content_type: Some(content_type),
        e_tag: Some(ETag::Strong(etag.clone())),
        expires: expires.map(Timestamp::from),
        last_modified: Some(timestamp(meta.modified())),
        metadata: (!about.user.is_empty()).then(|| about.user.clone().into_iter().collect()),
        parts_count,
        ..Default::default()
    }
}
