//! Objects put: whole, streamed, appended to.

use crate::error::{from_store, through};
use crate::http::body::{self, Chunks, SMALL};
use crate::http::date;
use crate::http::digest::Sums;
use crate::http::digest::{Announced, Digested, Digests, sdk_algorithm};
use crate::objects::catalog::Bucket;
use crate::objects::condition;
use crate::objects::edit::{Condition, Edit, Edited};
use crate::objects::meta::{About, Meta, OfBytes};
use crate::objects::side;
use crate::s3::admit::Admitted;
use crate::s3::{Server, post, tagging};
use holdall::{Oid, PutMode, PutOptions, Target};
use s3s::dto::{
    ChecksumType, ETag, ObjectCannedACL, PutObjectInput, PutObjectOutput, StreamingBlob,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::ops::Range;

/// A body to be put somewhere, with what the client announced of it.
#[derive(Debug)]
pub struct Incoming {
    /// The bytes.
    pub body: StreamingBlob,
    /// How many, where the client says so.
    pub len: Option<u64>,
    /// Digests.
    pub announced: Announced,
}

/// Where a body goes: the object, what is kept of it, on which condition.
#[derive(Debug, Clone)]
pub struct Goal {
    /// The store, and the collection.
    pub bucket: Bucket,
    /// The name.
    pub key: String,
    /// The condition.
    pub mode: PutMode,
    /// What is kept of it. The digests are added.
    pub meta: Meta,
    /// Bucket and id of the unfinished upload that it is a part of.
    pub part_of: Option<(String, String)>,
    /// Whether what clients said of the object that was there, and not of its bytes, is kept.
    pub keeps: bool,
}

/// What a put came to.
#[derive(Debug, Clone)]
pub struct Stored {
    /// The ETag without quotes.
    pub etag: String,
    /// Checksums that were asked for.
    pub sums: Sums,
}

impl Goal {
    fn finished(&self, digested: Digested) -> Meta {
        let Digested { md5, sums } = digested;
        let of_bytes = OfBytes { etag: md5, sums, ..OfBytes::default() };
        Meta { of_bytes: Some(of_bytes), ..self.meta.clone() }
    }

    /// Takes over what clients said of the object that is there, where the put says nothing of it.
    fn keep(&self, tx: &mut holdall::WriteTx, meta: &mut Meta) -> holdall::Result<()> {
        if !self.keeps {
            return Ok(());
        }
        let Some(oid) = tx.collection(&self.bucket.name)?.lookup(&self.key)? else { return Ok(()) };
        let old = Meta::of(&tx.metadata(oid)?);
        let old = side::complete_in(tx, oid, old)?.about;
        meta.about = old.after_put(self.meta.about.clone());
        Ok(())
    }

    /// Refuses a part whose upload was ended while it came.
    fn check_upload(&self, tx: &mut holdall::WriteTx) -> holdall::Result<()> {
        let Some((bucket, id)) = &self.part_of else { return Ok(()) };
        let gone = || through(s3_error!(NoSuchUpload, "the upload was ended meanwhile"));
        side::upload_in(tx, bucket, id)?.map(drop).ok_or_else(gone)
    }

    /// Puts bytes at hand. Blocks for a commit.
    fn put_whole(&self, bytes: &[u8], announced: &Announced) -> S3Result<Stored> {
        let mut digests = Digests::for_body(announced)?;
        digests.update(bytes);
        let mut meta = self.finished(digests.finish(announced)?);
        self.bucket
            .served
            .store
            .write(|tx| {
                self.check_upload(tx)?;
                self.keep(tx, &mut meta)?;
                let (attributes, side) = meta.attributes(self.bucket.served.attribute_bytes);
                let options = PutOptions { mode: self.mode, attributes, ..PutOptions::default() };
                let oid = self.bucket.objects(tx)?.put_with(&self.key, bytes, &options)?;
                side::set(tx, oid, side.as_deref())
            })
            .map_err(from_store)?;
        Ok(stored(meta))
    }

    /// Puts bytes as they come. Nothing is locked until the last one is there. Blocks.
    fn put_stream(
        &self,
        chunks: &mut Chunks,
        len: Option<u64>,
        announced: &Announced,
    ) -> S3Result<Stored> {
        let mut digests = Digests::for_body(announced)?;
        let options = PutOptions { mode: self.mode, expected_size: len, ..PutOptions::default() };
        let store = &self.bucket.served.store;
        let mut staged = store.stage(Target::from(&self.key), options).map_err(from_store)?;
        while let Some(bytes) = chunks.next()? {
            digests.update(&bytes);
            staged.push(&bytes).map_err(from_store)?;
        }
        check_len(len, staged.len())?;
        let mut meta = self.finished(digests.finish(announced)?);
        let put = |tx: &mut holdall::WriteTx| {
            self.check_upload(tx)?;
            // Before the new bytes take the attributes of the old ones away.
            self.keep(tx, &mut meta)?;
            let mut objects = self.bucket.objects(tx)?;
            let oid: Oid = staged.finish(&mut objects)?;
            drop(objects);
            side::set_meta(tx, oid, &meta, self.bucket.served.attribute_bytes)
        };
        store.write(put).map_err(from_store)?;
        Ok(stored(meta))
    }
}

fn stored(meta: Meta) -> Stored {
    let OfBytes { etag, sums, .. } = meta.of_bytes.unwrap_or_default();
    Stored { etag, sums }
}

/// Refuses a body of another length than was announced.
///
/// # Errors
/// IncompleteBody.
pub fn check_len(announced: Option<u64>, got: u64) -> S3Result<()> {
    match announced {
        Some(len) if len != got => {
            Err(s3_error!(IncompleteBody, "{got} bytes came, {len} were announced"))
        }
        _ => Ok(()),
    }
}

impl Server {
    /// Brings a body to its goal.
    ///
    /// # Errors
    /// Those of the body, of its digests, of the condition, of the engine.
    pub async fn store(&self, goal: Goal, incoming: Incoming) -> S3Result<Stored> {
        let Incoming { body, len, announced } = incoming;
        let (most, idle) = (self.limits.body_bytes, self.limits.idle());
        if len.is_some_and(|len| len > most) {
            return Err(s3_error!(
                EntityTooLarge,
                "an object put at once has at most {most} bytes"
            ));
        }
        if len.is_some_and(|len| len <= SMALL) {
            let bytes = body::collect(body, SMALL, idle).await?;
            check_len(len, bytes.len() as u64)?;
            return body::blocking(move || goal.put_whole(&bytes, &announced)).await;
        }
        // Each takes memory and a thread for as long as its client sends.
        let slot = self.streams.take().await;
        let work = move |mut chunks: Chunks| goal.put_stream(&mut chunks, len, &announced);
        body::pump(body, &slot, (most, idle), work).await
    }

    pub(super) async fn put(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        let told = post::add_form(&mut req)?;
        let asked_for = Admitted::of(&req.extensions)?;
        let bucket = self.catalog.bucket(&req.input.bucket)?;
        let i = &req.input;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_read_acp, &i.grant_write_acp];
        let asked = self.asked_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants)?;
        let announced = asked_for.with_trailers(announced(&req));
        let input = req.input;
        tagging::check_key(&input.key)?;
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
                    "an append keeps what is said of the object; say it by a copy onto itself";
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
            ..expires(asked_for.expires.as_deref(), input.expires)
        };
        let meta = Meta { modified: None, content_type: input.content_type, about, of_bytes: None };
        let condition::Read { matches, matches_not, .. } = asked_for.conditions.clone();
        let mode = if matches.is_none() && matches_not.is_none() {
            PutMode::Overwrite
        } else {
            let (bucket, key) = (bucket.clone(), input.key.clone());
            body::blocking(move || {
                let reader = bucket.read().map_err(from_store)?;
                condition::mode(&reader, &key, matches.as_ref(), matches_not.as_ref())
            })
            .await?
        };
        let goal = Goal { bucket, key: input.key, mode, meta, part_of: None, keeps: false };
        let done = self.store(goal, Incoming { body, len, announced }).await?;
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
        let done = self.edit(edit, at..at, incoming).await?;
        let size = i64::try_from(done.size).ok();
        let e_tag = Some(ETag::Strong(done.etag));
        Ok(S3Response::new(PutObjectOutput { e_tag, size, ..Default::default() }))
    }

    /// Replaces a range of an object by a body.
    ///
    /// # Errors
    /// Those of the body, of its digests, of the condition, of the engine.
    pub async fn edit(
        &self,
        edit: Edit,
        range: Range<u64>,
        incoming: Incoming,
    ) -> S3Result<Edited> {
        let Incoming { body, len, announced } = incoming;
        let (most, idle) = (self.limits.body_bytes, self.limits.idle());
        if len.is_some_and(|len| len <= SMALL) {
            let bytes = body::collect(body, SMALL, idle).await?;
            check_len(len, bytes.len() as u64)?;
            return body::blocking(move || {
                let mut digests = Digests::for_body(&announced)?;
                digests.update(&bytes);
                digests.finish(&announced)?;
                edit.splice(range, &bytes)
            })
            .await;
        }
        let slot = self.streams.take().await;
        let work =
            move |mut chunks: Chunks| edit.splice_stream(range, &mut chunks, len, &announced);
        body::pump(body, &slot, (most, idle), work).await
    }
}

/// `aws-chunked` tells how the body travelled, not what it is.
pub fn stored_encoding(header: Option<String>) -> Option<String> {
    let header = header?;
    let kept: Vec<_> = header.split(',').map(str::trim).filter(|e| *e != "aws-chunked").collect();
    (!kept.is_empty()).then(|| kept.join(", "))
}

/// The header Content-MD5. One that is empty is there, and is no digest.
pub fn announced_md5(headers: &http::HeaderMap) -> Option<String> {
    let value = headers.get("content-md5")?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// What is kept of the header Expires: a date, or a text that is none, which is the past.
pub fn expires(header: Option<&str>, field: Option<s3s::dto::Timestamp>) -> About {
    let date = header.map_or(field, date::parse);
    let expires = date.map(|date| time::OffsetDateTime::from(date).unix_timestamp());
    let expires_text = header.filter(|_| expires.is_none()).map(str::to_owned);
    About { expires, expires_text, ..About::default() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_md5_is_no_digest() {
        let mut headers = http::HeaderMap::new();
        assert_eq!(announced_md5(&headers), None);
        headers.insert("content-md5", http::HeaderValue::from_static(""));
        let announced = Announced { md5: announced_md5(&headers), ..Announced::default() };
        let refused = Digests::for_body(&announced).err().unwrap();
        assert_eq!(*refused.code(), s3s::S3ErrorCode::InvalidDigest);
    }
}
