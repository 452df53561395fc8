//! Completing a multipart upload, and parts that are copies.
//!
//! The parts' segments become the object's: no byte is copied beside a few at each seam.

use crate::http::digest::{Digested, begin, named};
use crate::http::{digest::Sums, spelling::digits};
use crate::objects::meta::{Meta, OfBytes, PartInfo, etag_of};
use crate::objects::side::{self, SYSTEM, Upload};
use crate::objects::{catalog::Bucket, condition, edit::copy_bytes};
use crate::refusal::Why;
use crate::s3::access::Seen;
use crate::s3::admit::Admitted;
use crate::s3::copy::{digest_of, source};
use crate::s3::error::{blocking, from_store};
use crate::s3::get::find;
use crate::s3::list::address;
use crate::s3::multipart::{check_number, conditions_of, find_upload};
use crate::s3::parts::{Asked, check_kind, check_part, check_sums, etag_of_parts, number_of};
use crate::s3::repeated::repeated;
use crate::s3::{Server, timestamp};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crc_fast::CrcAlgorithm;
use holdall::{Key, Oid, PutMode, Target, WriteTx};
use s3s::dto::{
    ChecksumType, CompleteMultipartUploadInput, CompleteMultipartUploadOutput, CopyPartResult,
    ETag, UploadPartCopyInput, UploadPartCopyOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::sync::Arc;

/// Least bytes of a part that is not the last, as S3 has it.
const LEAST_PART: u64 = 5 << 20;

/// A part that the client names, found.
#[derive(Debug, Clone)]
struct Found {
    info: PartInfo,
    oid: Oid,
    etag: String,
}

/// An upload to be completed.
struct Completion {
    bucket: Bucket,
    key: String,
    id: String,
    upload: Upload,
    mode: PutMode,
    asked: Asked,
}

impl Server {
    pub(super) async fn complete(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let input = req.input;
        let size = input.mpu_object_size.map(u64::try_from).transpose();
        let size =
            size.map_err(|_| s3_error!(InvalidRequest, "x-amz-mp-object-size is negative"))?;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        let (name, key) = (input.bucket.clone(), input.key.clone());
        let of_bytes = blocking(move || {
            let asked = Asked {
                parts: input.multipart_upload.and_then(|u| u.parts).unwrap_or_default(),
                size,
                sums: Sums {
                    crc32: input.checksum_crc32,
                    crc32c: input.checksum_crc32c,
                    crc64nvme: input.checksum_crc64nvme,
                    sha1: input.checksum_sha1,
                    sha256: input.checksum_sha256,
                },
                kind: input.checksum_type,
            };
            let conditions = &asked_for.conditions;
            let upload = match find_upload(&bucket, &input.key, &input.upload_id) {
                Err(e) => {
                    let place = (&*input.key, &*input.upload_id);
                    return repeated(&bucket, place, &asked, conditions)?.ok_or(e);
                }
                Ok(upload) => upload,
            };
            let reader = bucket.read().map_err(from_store)?;
            let begun = conditions_of(&upload)?;
            let mode = condition::mode_of_both(&reader, &input.key, [&begun, conditions])?;
            check_kind(asked.kind.as_ref(), upload.kind.as_deref())?;
            let (key, id) = (input.key, input.upload_id);
            let completion = Completion { bucket, key, id, upload, mode, asked };
            completion.run()
        })
        .await?;
        let OfBytes { etag, sums, composite, .. } = of_bytes;
        let kind = if composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT };
        Ok(S3Response::new(CompleteMultipartUploadOutput {
            location: address(&name, &key),
            bucket: Some(name),
            key: Some(key),
            e_tag: Some(ETag::Strong(etag)),
            checksum_type: (!sums.is_empty()).then(|| ChecksumType::from_static(kind)),
            checksum_crc32: sums.crc32,
            checksum_crc32c: sums.crc32c,
            checksum_crc64nvme: sums.crc64nvme,
            checksum_sha1: sums.sha1,
            checksum_sha256: sums.sha256,
            ..Default::default()
        }))
    }

    pub(super) async fn copy_part(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        let (from_bucket, from_key) = source(&req.input.copy_source)?;
        let seen = req.extensions.get::<Seen>().cloned();
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let input = req.input;
        check_number(input.part_number)?;
        let (from, to) = (
            self.objects.catalog.bucket(&from_bucket)?,
            self.objects.catalog.bucket(&input.bucket)?,
        );
        let conditions = asked_for.of_source.clone();
        let result = blocking(move || {
            let upload = find_upload(&to, &input.key, &input.upload_id)?;
            let found = find(&from, &from_key, seen.as_ref())?;
            conditions.check_source(&found.meta, &found.etag)?;
            let size = found.metadata.size;
            let range = copied_range(input.copy_source_range.as_deref(), size)?;
            let mut object = found.reader.open(found.metadata.oid).map_err(from_store)?;
            let algorithms = upload.algorithm.into_iter().collect();
            let Digested { md5, sums } = digest_of(&mut object, &range, algorithms)?;
            let of_bytes = OfBytes { etag: md5.clone(), sums: sums.clone(), ..OfBytes::default() };
            let meta = Meta { of_bytes: Some(of_bytes), ..Meta::default() };
            let name = side::part_name(&input.upload_id, input.part_number);
            let most = to.served.attribute_bytes;
            let parts = Bucket { name: SYSTEM.into(), served: to.served.clone() };
            let write = |tx: &mut WriteTx| {
                let oid = if Arc::ptr_eq(&from.served.path, &to.served.path) {
                    if tx.metadata(found.metadata.oid)?.version != found.metadata.version {
                        let text = "the source was changed meanwhile; try again";
                        return Err(Why::Conflict.says(text).into());
                    }
                    let oid = tx.collection(SYSTEM)?.put(&name, &[])?;
                    tx.copy_range(found.metadata.oid, range.clone(), oid, 0)?;
                    oid
                } else {
                    let at = SeekFrom::Start(range.start);
                    object.seek(at).map_err(|e| holdall::Error::Invalid(e.to_string()))?;
                    let len = range.end - range.start;
                    copy_bytes(tx, &parts, (&mut object).take(len), len, Target::from(&name))?
                };
                side::set_meta(tx, oid, &meta, most)?;
                Ok(tx.metadata(oid)?.modified)
            };
            let modified = to.served.write(write)?;
            Ok(CopyPartResult {
                e_tag: Some(ETag::Strong(md5)),
                last_modified: modified.map(timestamp),
                checksum_crc32: sums.crc32,
                checksum_crc32c: sums.crc32c,
                checksum_crc64nvme: sums.crc64nvme,
                checksum_sha1: sums.sha1,
                checksum_sha256: sums.sha256,
            })
        })
        .await?;
        Ok(S3Response::new(UploadPartCopyOutput {
            copy_part_result: Some(result),
            ..Default::default()
        }))
    }
}

fn copied_range(header: Option<&str>, size: u64) -> S3Result<Range<u64>> {
    let Some(header) = header else { return Ok(0..size) };
    let bad = || s3_error!(InvalidArgument, "x-amz-copy-source-range has the form bytes=A-B");
    let (first, last) =
        header.strip_prefix("bytes=").and_then(|r| r.split_once('-')).ok_or_else(bad)?;
    let (first, last) = digits(first).zip(digits(last)).ok_or_else(bad)?;
    if first > last || last >= size {
        return Err(s3_error!(InvalidRange, "bytes {first} to {last} do not lie inside {size}"));
    }
    Ok(first..last + 1)
}

impl Completion {
    /// Makes the object in one transaction. Blocks for a commit. Cost: in proportion to the
    /// number of segments.
    fn run(self) -> S3Result<OfBytes> {
        let reader = self.bucket.served.read()?;
        let there = side::parts(&reader, &self.id).map_err(from_store)?;
        let mut by_number = BTreeMap::new();
        for (number, oid) in &there {
            let metadata = reader.metadata(*oid).map_err(from_store)?;
            let sums = Meta::from_metadata(&metadata).of_bytes.unwrap_or_default().sums;
            let info = PartInfo { number: *number, size: metadata.size, sums };
            by_number.insert(*number, Found { info, oid: *oid, etag: etag_of(&metadata) });
        }
        let parts = self.choose(&by_number)?;
        let of_bytes = self.of_bytes(&parts)?;
        let meta = Meta {
            modified: None,
            content_type: self.upload.content_type.clone(),
            about: self.upload.about.clone(),
            of_bytes: Some(of_bytes.clone()),
        };
        self.bucket.served.write(|tx| self.install(tx, &parts, &there, &meta))?;
        Ok(of_bytes)
    }

    fn install(
        &self,
        tx: &mut WriteTx,
        parts: &[Found],
        there: &[(i32, Oid)],
        meta: &Meta,
    ) -> holdall::Result<()> {
        let gone = || Why::NoUpload.says("the upload was ended meanwhile");
        side::upload_in(tx, &self.bucket.name, &self.id)?.ok_or_else(gone)?;
        for part in parts {
            let now = tx.metadata(part.oid).map_err(|_| gone())?;
            if etag_of(&now) != part.etag {
                let text = "a part was uploaded again meanwhile";
                return Err(Why::BadPart.says(text).into());
            }
        }
        let mut objects = self.bucket.objects(tx)?;
        objects.check_put(&self.key, self.mode)?;
        let keys: Vec<Key<'_>> = parts.iter().map(|part| part.oid.into()).collect();
        let oid = objects.concat(&keys, Target::from(&self.key))?;
        drop(objects);
        side::set_meta(tx, oid, meta, self.bucket.served.attribute_bytes)?;
        side::drop_upload(tx, &self.bucket.name, &self.id, there).map(drop)
    }

    /// The parts that the client names, in its order, which must be ascending.
    fn choose(&self, there: &BTreeMap<i32, Found>) -> S3Result<Vec<Found>> {
        if self.asked.parts.is_empty() {
            return Err(s3_error!(MalformedXML, "name at least one part"));
        }
        let mut chosen: Vec<Found> = Vec::with_capacity(self.asked.parts.len());
        for part in &self.asked.parts {
            let (number, etag) = number_of(part)?;
            if chosen.last().is_some_and(|last| last.info.number >= number) {
                return Err(s3_error!(InvalidPartOrder, "name parts in ascending order"));
            }
            let missing = || s3_error!(InvalidPart, "part {number} was not uploaded");
            let found = there.get(&number).ok_or_else(missing)?;
            if etag != found.etag {
                return Err(s3_error!(InvalidPart, "part {number} has another ETag"));
            }
            check_part(part, &found.info.sums)?;
            chosen.push(found.clone());
        }
        let but_last = &chosen[..chosen.len() - 1];
        if let Some(short) = but_last.iter().find(|part| part.info.size < LEAST_PART) {
            let number = short.info.number;
            return Err(s3_error!(EntityTooSmall, "part {number} has less than 5 MiB"));
        }
        let size: u64 = chosen.iter().map(|part| part.info.size).sum();
        if self.asked.size.is_some_and(|announced| announced != size) {
            return Err(s3_error!(InvalidRequest, "the parts have {size} bytes together"));
        }
        Ok(chosen)
    }

    /// ETag and checksum of the whole, from those of the parts.
    fn of_bytes(&self, parts: &[Found]) -> S3Result<OfBytes> {
        let composite = self.upload.kind.as_deref() == Some("COMPOSITE");
        let sums = match self.upload.algorithm.as_deref() {
            None => Sums::default(),
            Some(algorithm) if composite => of_parts(algorithm, parts)?,
            Some(algorithm) => of_whole(algorithm, parts)?,
        };
        check_sums(&self.asked.sums, &sums, composite)?;
        Ok(OfBytes {
            etag: etag_of_parts(parts.iter().map(|part| &*part.etag)),
            sums,
            composite,
            upload: Some(self.id.clone()),
            parts: parts.iter().map(|part| part.info.clone()).collect(),
            ..OfBytes::default()
        })
    }
}

/// A part's checksum by this algorithm, as bytes.
fn raw<'p>(algorithm: &'p str) -> impl Fn(&Found) -> S3Result<Vec<u8>> + 'p {
    move |part| {
        let all = named(&part.info.sums);
        let found = all.into_iter().find(|(name, _)| *name == algorithm).and_then(|(_, sum)| sum);
        let number = part.info.number;
        let missing = || s3_error!(InvalidPart, "part {number} has no {algorithm}");
        found.and_then(|sum| STANDARD.decode(sum).ok()).ok_or_else(missing)
    }
}

fn with(algorithm: &str, sum: String) -> Sums {
    let mut sums = Sums::default();
    *sums.place(algorithm) = Some(sum);
    sums
}

/// The checksum of the parts' checksums.
fn of_parts(algorithm: &str, parts: &[Found]) -> S3Result<Sums> {
    let all: Vec<u8> = parts.iter().map(raw(algorithm)).collect::<S3Result<Vec<_>>>()?.concat();
    let unknown = || s3_error!(InvalidRequest, "{algorithm} is no algorithm for checksums");
    let mut sum = begin(algorithm).ok_or_else(unknown)?;
    sum.update(&all);
    Ok(with(algorithm, format!("{}-{}", sum.finish(), parts.len())))
}

/// The checksum of all bytes, put together from those of the parts; for CRCs only.
fn of_whole(algorithm: &str, parts: &[Found]) -> S3Result<Sums> {
    let (kind, width) = match algorithm {
        "CRC32" => (CrcAlgorithm::Crc32IsoHdlc, 4),
        "CRC32C" => (CrcAlgorithm::Crc32Iscsi, 4),
        _ => (CrcAlgorithm::Crc64Nvme, 8),
    };
    let value = |bytes: &[u8]| bytes.iter().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
    let (raw, mut whole) = (raw(algorithm), None);
    for part in parts {
        let sum = value(&raw(part)?);
        whole = Some(match whole {
            None => sum,
            Some(before) => crc_fast::checksum_combine(kind, before, sum, part.info.size),
        });
    }
    let bytes = whole.unwrap_or(0).to_be_bytes();
    Ok(with(algorithm, STANDARD.encode(&bytes[8 - width..])))
}
