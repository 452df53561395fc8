//! Objects put: whole, streamed, appended to.

use crate::http::body::{self};
use crate::http::digest::Sums;
use crate::http::digest::{Announced, announced_md5, sdk_algorithm};
use crate::objects::edit::{Condition, Edit};
use crate::objects::meta::{About, Meta};
use crate::objects::put::{Goal, Incoming, Stored};
use crate::objects::{catalog::Bucket, condition, place::check_key};
use crate::s3::admit::Admitted;
use crate::s3::{Server, post, tagging};
use holdall::PutMode;
use s3s::dto::{
    ChecksumType, ETag, ObjectCannedACL, PutObjectInput, PutObjectOutput, StreamingBlob,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

impl Server {
    pub(super) async fn put(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let told = post::add_form(&mut req)?;
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let bucket = self.objects.catalog.bucket(&req.input.bucket)?;
        let i = &req.input;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_read_acp, &i.grant_write_acp];
        let asked = self.asked_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants)?;
        let announced = asked_for.with_trailers(announced(&req));
        let input = req.input;
        check_key(&input.key)?;
        let len = input.content_length.and_then(|n| u64::try_from(n).ok());
        let body = input.body.unwrap_or_else(|| StreamingBlob::new(body::Whole(None)));
        if let Some(offset) = input.write_offset_bytes {
            if asked.is_some_and(|acl| !acl.is_private()) {
                let text = "an append keeps the object's ACL; put another one by itself";
                return Err(s3_error!(InvalidRequest, "{text}"));
            }
            let told = input.metadata.is_some()
                || input.tagging.is_some()
                || input.cache_control.is_some()
                || input.content_disposition.is_some()
                || input.content_language.is_some()
                || asked_for.expires.is_some();
            if told {
                let text =
                    "an append keeps the object's properties; change them by a copy onto itself";
                return Err(s3_error!(InvalidRequest, "{text}"));
            }
            let incoming = Incoming { body, len, announced };
            let conditions = asked_for.conditions.clone();
            return self.append(bucket, (input.key, offset), conditions, incoming).await;
        }
        let about = About {
            cache_control: input.cache_control,
            disposition: input.content_disposition,
            encoding: stored_encoding(input.content_encoding),
            language: input.content_language,
            user: tagging::user_metadata(input.metadata)?,
            tags: tagging::parse_header(input.tagging.as_deref())?,
            acl: asked.unwrap_or_default(),
            ..About::expiring(asked_for.expires.as_deref(), input.expires.map(Into::into))
        };
        let meta = Meta { modified: None, content_type: input.content_type, about, of_bytes: None };
        let condition::Read { matches, matches_not, .. } = asked_for.conditions.clone();
        let mode = if matches.is_none() && matches_not.is_none() {
            PutMode::Overwrite
        } else {
            let (bucket, key) = (bucket.clone(), input.key.clone());
            body::blocking(move || {
                let reader = bucket.read()?;
                condition::mode(&reader, &key, matches.as_ref(), matches_not.as_ref())
            })
            .await?
        };
        let goal = Goal { bucket, key: input.key, mode, meta, part_of: None, keeps: false };
        let done = self.objects.store(goal, Incoming { body, len, announced }).await?;
        let mut response = S3Response::new(output(done));
        response.extensions = told;
        Ok(response)
    }

    /// Adds a body at the end of an object, where that lies at `offset`.
    async fn append(
        &self,
        bucket: Bucket,
        (key, offset): (String, i64),
        conditions: condition::Read,
        incoming: Incoming,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let at = u64::try_from(offset)
            .map_err(|_| s3_error!(InvalidArgument, "x-amz-write-offset-bytes is negative"))?;
        let condition::Read { matches, matches_not, .. } = conditions;
        let condition = Condition { matches, matches_not, size: Some(at), version: None };
        let edit = Edit { bucket, key, condition, create: at == 0 };
        let done = self.objects.edit(edit, at..at, incoming).await?;
        let size = i64::try_from(done.size).ok();
        let e_tag = Some(ETag::Strong(done.etag));
        Ok(S3Response::new(PutObjectOutput { e_tag, size, ..Default::default() }))
    }
}

/// `aws-chunked` says how the body travelled, not what it is.
pub fn stored_encoding(header: Option<String>) -> Option<String> {
    let header = header?;
    let kept: Vec<_> = header.split(',').map(str::trim).filter(|e| *e != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(", "))
}

fn announced(req: &S3Request<PutObjectInput>) -> Announced {
    let input = &req.input;
    let own = input.checksum_algorithm.iter().map(|a| a.as_str().to_owned());
    Announced {
        md5: announced_md5(&req.headers).or_else(|| input.content_md5.clone()),
        sums: Sums {
            crc32: input.checksum_crc32.clone(),
            crc32c: input.checksum_crc32c.clone(),
            crc64nvme: input.checksum_crc64nvme.clone(),
            sha1: input.checksum_sha1.clone(),
            sha256: input.checksum_sha256.clone(),
        },
        algorithms: own.chain(sdk_algorithm(&req.headers)).collect(),
        ..Announced::default()
    }
}

fn output(done: Stored) -> PutObjectOutput {
    let Stored { etag: value, sums } = done;
    let summed = !sums.is_empty();
    PutObjectOutput {
        e_tag: Some(ETag::Strong(value)),
        checksum_crc32: sums.crc32,
        checksum_crc32c: sums.crc32c,
        checksum_crc64nvme: sums.crc64nvme,
        checksum_sha1: sums.sha1,
        checksum_sha256: sums.sha256,
        checksum_type: summed.then(|| ChecksumType::from_static(ChecksumType::FULL_OBJECT)),
        ..Default::default()
    }
}
