//! Multipart uploads: begun, filled, listed, given up.
//!
//! Each part is an object of the system collection. `complete.rs` makes them one.

use crate::http::digest::{Announced, named};
use crate::http::{body, digest::Sums};
use crate::objects::condition::{self, ETagCondition};
use crate::objects::meta::{About, Meta, OfBytes};
use crate::objects::put::{Goal, Incoming};
use crate::objects::side::{self, SYSTEM, Upload};
use crate::objects::{catalog::Bucket, place::check_key};
use crate::refusal::Refusal;
use crate::s3::admit::Admitted;
use crate::s3::bucket::owner;
use crate::s3::error::{blocking, from_store};
use crate::s3::list::{Writer, common};
use crate::s3::put::stored_encoding;
use crate::s3::{Server, length, tagging, timestamp};
use holdall::PutMode;
use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, ChecksumAlgorithm, ChecksumType,
    CreateMultipartUploadInput, CreateMultipartUploadOutput, ETag, Initiator,
    ListMultipartUploadsInput, ListMultipartUploadsOutput, ListPartsInput, ListPartsOutput,
    MultipartUpload, ObjectCannedACL, Owner, Part, StreamingBlob, UploadPartInput,
    UploadPartOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::time::SystemTime;

/// Highest number of a part, as S3 has it.
const MOST_PARTS: i32 = 10_000;

/// Refuses numbers that no part may have.
///
/// # Errors
/// InvalidArgument.
pub fn check_number(number: i32) -> S3Result<()> {
    if (1..=MOST_PARTS).contains(&number) {
        return Ok(());
    }
    Err(s3_error!(InvalidArgument, "a part's number lies between 1 and {MOST_PARTS}"))
}

/// An unfinished upload of this key. Blocks.
///
/// # Errors
/// NoSuchUpload.
pub fn find_upload(bucket: &Bucket, key: &str, id: &str) -> S3Result<Upload> {
    let reader = bucket.served.read()?;
    let found = side::upload(&reader, &bucket.name, id).map_err(from_store)?;
    let gone = || s3_error!(NoSuchUpload, "there is no such upload; it was ended, or never begun");
    found.filter(|upload| upload.key == key).ok_or_else(gone)
}

/// The conditions that an upload was begun under.
///
/// # Errors
/// InternalError for a record that was not written here.
pub fn conditions_of(upload: &Upload) -> S3Result<condition::Read> {
    let read = |text: &Option<String>| {
        let read = text.as_ref().map(|text| ETagCondition::parse_http_header(text.as_bytes()));
        read.transpose().map_err(|e| Refusal::internal(&format!("the upload's condition: {e}")))
    };
    let (matches, matches_not) = (read(&upload.matches)?, read(&upload.matches_not)?);
    Ok(condition::Read { matches, matches_not, ..condition::Read::default() })
}

fn initiator() -> Initiator {
    let Owner { display_name, id } = owner();
    Initiator { display_name, id }
}

fn new_id() -> S3Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|e| Refusal::internal(&e))?;
    Ok(crate::http::digest::hex(&bytes))
}

impl Server {
    pub(super) async fn begin_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let input = req.input;
        let i = &input;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_read_acp, &i.grant_write_acp];
        let acl = self.asked_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants)?;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        check_key(&input.key)?;
        let algorithm = input.checksum_algorithm.as_ref().map(|a| a.as_str().to_owned());
        let kind = checksum_kind(algorithm.as_deref(), input.checksum_type.as_ref())?;
        let mut upload = Upload {
            key: input.key.clone(),
            begun: 0,
            content_type: input.content_type,
            about: About {
                cache_control: input.cache_control,
                disposition: input.content_disposition,
                encoding: stored_encoding(input.content_encoding),
                language: input.content_language,
                user: tagging::user_metadata(input.metadata)?,
                tags: tagging::parse_header(input.tagging.as_deref())?,
                acl: acl.unwrap_or_default(),
                ..About::expiring(asked_for.expires.as_deref(), None)
            },
            algorithm,
            kind: kind.clone(),
            matches: asked_for.conditions.matches.as_ref().map(ToString::to_string),
            matches_not: asked_for.conditions.matches_not.as_ref().map(ToString::to_string),
        };
        upload.begin(SystemTime::now());
        let (id, most) = (new_id()?, self.objects.limits.uploads);
        let made = id.clone();
        blocking(move || {
            let store = &bucket.served.store;
            let reader = store.read().map_err(from_store)?;
            // What does not hold now is refused before parts are sent for nothing.
            let condition::Read { matches, matches_not, .. } = &asked_for.conditions;
            let objects = bucket.read().map_err(from_store)?;
            condition::mode(&objects, &upload.key, matches.as_ref(), matches_not.as_ref())?;
            if side::count_uploads(&reader, &bucket.name).map_err(from_store)? >= most {
                tracing::warn!(bucket = bucket.name, most, "unfinished uploads at their limit");
                return Err(s3_error!(SlowDown, "the bucket has {most} unfinished uploads"));
            }
            store
                .write(|tx| {
                    drop(bucket.objects(tx)?);
                    side::put_upload(tx, &bucket.name, &id, &upload)
                })
                .map_err(from_store)
        })
        .await?;
        Ok(S3Response::new(CreateMultipartUploadOutput {
            bucket: Some(input.bucket),
            key: Some(input.key),
            upload_id: Some(made),
            checksum_algorithm: input.checksum_algorithm,
            checksum_type: kind.map(ChecksumType::from),
            ..Default::default()
        }))
    }

    pub(super) async fn put_part(
        &self,
        req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        check_number(req.input.part_number)?;
        let bucket = self.objects.catalog.bucket(&req.input.bucket)?;
        let (key, id) = (req.input.key.clone(), req.input.upload_id.clone());
        let looked = bucket.clone();
        let upload = blocking(move || find_upload(&looked, &key, &id)).await?;
        let announced = Announced::of_headers(&req.headers)?;
        let mut announced = Admitted::from_extensions(&req.extensions)?.with_trailers(announced);
        announced.algorithms.extend(upload.algorithm.clone());
        check_algorithm(&announced, upload.algorithm.as_deref())?;
        let input = req.input;
        let len = input.content_length.and_then(|n| u64::try_from(n).ok());
        let body = input.body.unwrap_or_else(|| StreamingBlob::new(body::Whole(None)));
        let goal = Goal {
            bucket: Bucket { name: SYSTEM.into(), served: bucket.served },
            key: side::part_name(&input.upload_id, input.part_number),
            mode: PutMode::Overwrite,
            meta: Meta::default(),
            keeps: false,
            part_of: Some((bucket.name, input.upload_id)),
        };
        let done = self.objects.store(goal, Incoming { body, len, announced }).await?;
        Ok(S3Response::new(UploadPartOutput {
            e_tag: Some(ETag::Strong(done.etag)),
            checksum_crc32: done.sums.crc32,
            checksum_crc32c: done.sums.crc32c,
            checksum_crc64nvme: done.sums.crc64nvme,
            checksum_sha1: done.sums.sha1,
            checksum_sha256: done.sums.sha256,
            ..Default::default()
        }))
    }

    pub(super) async fn abort(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        let input = req.input;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        blocking(move || {
            find_upload(&bucket, &input.key, &input.upload_id)?;
            bucket.give_up(&input.upload_id)?;
            Ok(())
        })
        .await?;
        Ok(S3Response::new(AbortMultipartUploadOutput::default()))
    }

    pub(super) async fn list_parts(
        &self,
        req: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        let input = req.input;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        let after = input.part_number_marker.unwrap_or(0);
        let most = input.max_parts.unwrap_or(1000).clamp(0, 1000);
        let (key, id) = (input.key.clone(), input.upload_id.clone());
        let (upload, parts, more) = blocking(move || {
            let upload = find_upload(&bucket, &key, &id)?;
            let reader = bucket.served.read()?;
            let all = side::parts(&reader, &id).map_err(from_store)?;
            let mut rest = all.into_iter().filter(|(number, _)| *number > after).peekable();
            let mut parts = Vec::new();
            while parts.len() < usize::try_from(most).unwrap_or(0)
                && let Some((number, oid)) = rest.next()
            {
                parts.push((number, reader.metadata(oid).map_err(from_store)?));
            }
            Ok((upload, parts, rest.peek().is_some()))
        })
        .await?;
        let part = |(number, metadata): (i32, holdall::Metadata)| {
            let meta = Meta::from_metadata(&metadata);
            let etag = meta.etag(metadata.version);
            let modified = meta.modified();
            let OfBytes { sums, .. } = meta.of_bytes.unwrap_or_default();
            Part {
                checksum_crc32: sums.crc32,
                checksum_crc32c: sums.crc32c,
                checksum_crc64nvme: sums.crc64nvme,
                checksum_sha1: sums.sha1,
                checksum_sha256: sums.sha256,
                e_tag: Some(ETag::Strong(etag)),
                last_modified: Some(timestamp(modified)),
                part_number: Some(number),
                size: Some(length(metadata.size)),
            }
        };
        let parts: Vec<Part> = parts.into_iter().map(part).collect();
        Ok(S3Response::new(ListPartsOutput {
            bucket: Some(input.bucket),
            checksum_algorithm: upload.algorithm.map(ChecksumAlgorithm::from),
            checksum_type: upload.kind.map(ChecksumType::from),
            is_truncated: Some(more),
            key: Some(input.key),
            max_parts: Some(most),
            next_part_number_marker: parts.last().and_then(|p| p.part_number),
            initiator: Some(initiator()),
            owner: Some(owner()),
            part_number_marker: Some(after),
            parts: Some(parts),
            upload_id: Some(input.upload_id),
            ..Default::default()
        }))
    }

    pub(super) async fn list_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> S3Result<S3Response<ListMultipartUploadsOutput>> {
        let input = req.input;
        let writer = Writer::new(input.encoding_type.as_ref())?;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        let all = blocking(move || {
            let reader = bucket.served.read()?;
            side::uploads(&reader, Some(&bucket.name)).map_err(from_store)
        })
        .await?;
        let most = input.max_uploads.unwrap_or(1000).clamp(0, 1000);
        let prefix = input.prefix.clone().unwrap_or_default();
        let after = (
            input.key_marker.clone().unwrap_or_default(),
            input.upload_id_marker.clone().unwrap_or_default(),
        );
        let page = uploads_page(all, &prefix, input.delimiter.as_deref(), &after, most);
        let next = page.more.then(|| page.last.clone()).flatten();
        let next_key = next.as_ref().map(|(key, _)| writer.marker(key.as_bytes())).transpose()?;
        let upload = |(id, upload): (String, Upload)| MultipartUpload {
            initiated: Some(timestamp(upload.begun())),
            key: Some(writer.name(upload.key.as_bytes())),
            upload_id: Some(id),
            checksum_algorithm: upload.algorithm.map(ChecksumAlgorithm::from),
            checksum_type: upload.kind.map(ChecksumType::from),
            initiator: Some(initiator()),
            owner: Some(owner()),
            ..Default::default()
        };
        Ok(S3Response::new(ListMultipartUploadsOutput {
            bucket: Some(input.bucket),
            common_prefixes: common(page.prefixes, writer),
            delimiter: input.delimiter,
            encoding_type: input.encoding_type,
            is_truncated: Some(page.more),
            key_marker: input.key_marker,
            max_uploads: Some(most),
            next_key_marker: next_key,
            next_upload_id_marker: next.map(|(_, id)| id),
            prefix: input.prefix,
            upload_id_marker: input.upload_id_marker,
            uploads: Some(page.uploads.into_iter().map(upload).collect()),
            ..Default::default()
        }))
    }
}

/// A page of a listing of uploads.
#[derive(Debug, Default)]
struct UploadsPage {
    uploads: Vec<(String, Upload)>,
    prefixes: Vec<Vec<u8>>,
    last: Option<(String, String)>,
    more: bool,
}

fn uploads_page(
    all: Vec<(String, String, Upload)>,
    prefix: &str,
    delimiter: Option<&str>,
    after: &(String, String),
    most: i32,
) -> UploadsPage {
    let mut sorted: Vec<_> =
        all.into_iter().map(|(_, id, upload)| ((upload.key.clone(), id), upload)).collect();
    sorted.sort_by(|a, b| a.0.cmp(&b.0));
    let mut page = UploadsPage::default();
    for (place, upload) in sorted {
        let passed = if after.1.is_empty() { place.0 <= after.0 } else { place <= *after };
        let Some(rest) = place.0.strip_prefix(prefix) else { continue };
        if passed && !after.0.is_empty() {
            continue;
        }
        if page.uploads.len() + page.prefixes.len() >= usize::try_from(most).unwrap_or(0) {
            page.more = most > 0;
            return page;
        }
        let cut = delimiter.filter(|d| !d.is_empty()).and_then(|d| Some(rest.find(d)? + d.len()));
        match cut {
            Some(cut) => {
                let common = &place.0.as_bytes()[..prefix.len() + cut];
                if page.prefixes.last().is_none_or(|last| last != common) {
                    page.prefixes.push(common.to_vec());
                }
            }
            None => page.uploads.push((place.1.clone(), upload)),
        }
        page.last = Some(place);
    }
    page
}

/// Refuses a part whose checksum is by another algorithm than its upload was begun with: the
/// object's would not be made of it.
fn check_algorithm(announced: &Announced, begun: Option<&str>) -> S3Result<()> {
    let Some(begun) = begun else { return Ok(()) };
    let given = named(&announced.sums).into_iter().filter(|(_, sum)| sum.is_some());
    let given = given.map(|(name, _)| name).chain(announced.trailing.iter().copied());
    let mut given = given.chain(announced.algorithms.iter().map(String::as_str));
    match given.find(|name| *name != begun) {
        Some(other) => {
            Err(s3_error!(InvalidRequest, "the upload's checksums are by {begun}, not by {other}"))
        }
        None => Ok(()),
    }
}

/// What the object's checksum is to be of, if parts have one.
fn checksum_kind(
    algorithm: Option<&str>,
    asked: Option<&ChecksumType>,
) -> S3Result<Option<String>> {
    let Some(algorithm) = algorithm else {
        return match asked {
            None => Ok(None),
            Some(_) => Err(s3_error!(InvalidRequest, "name x-amz-checksum-algorithm, too")),
        };
    };
    if !named(&Sums::default()).iter().any(|(known, _)| *known == algorithm) {
        return Err(s3_error!(InvalidRequest, "{algorithm} is no algorithm for checksums"));
    }
    let usual = if algorithm == "CRC64NVME" { "FULL_OBJECT" } else { "COMPOSITE" };
    let kind = asked.map_or(usual, ChecksumType::as_str);
    let whole = kind == "FULL_OBJECT";
    if !whole && kind != "COMPOSITE" {
        return Err(s3_error!(InvalidRequest, "{kind} is no type of checksums"));
    }
    if (whole && algorithm.starts_with("SHA")) || (!whole && algorithm == "CRC64NVME") {
        return Err(s3_error!(InvalidRequest, "{algorithm} has no checksum of type {kind}"));
    }
    Ok(Some(kind.to_owned()))
}
