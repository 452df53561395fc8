//! Copies of objects: within a store their segments are shared, between stores bytes are moved.

use crate::http::digest::{Announced, Digested, Digests, named};
use crate::objects::meta::{About, Meta, OfBytes};
use crate::objects::{
    acl::Acl, catalog::Bucket, condition, edit::copy_bytes, place::check_key, side,
};
use crate::refusal::Why;
use crate::s3::access::Seen;
use crate::s3::admit::{Admitted, refuse_version};
use crate::s3::error::{blocking, from_store};
use crate::s3::get::{Found, find};
use crate::s3::put::stored_encoding;
use crate::s3::{Server, tagging, timestamp};
use holdall::{Oid, Target, WriteTx};
use s3s::dto::{
    ChecksumType, CopyObjectInput, CopyObjectOutput, CopyObjectResult, CopySource, ETag,
    MetadataDirective, ObjectCannedACL, TaggingDirective,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;
use std::io::Read as _;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

/// Bucket and key of a copy's source. That it may be read was checked.
///
/// # Errors
/// NotImplemented for sources that are no bucket of this server, NoSuchVersion.
pub fn source(from: &CopySource) -> S3Result<(String, String)> {
    let CopySource::Bucket { bucket, key, version_id } = from else {
        return Err(s3_error!(NotImplemented, "a copy's source is BUCKET/KEY"));
    };
    refuse_version(version_id.as_deref())?;
    Ok((bucket.to_string(), key.to_string()))
}

/// Digests of a range. Cost: it is read once.
///
/// # Errors
/// InvalidRequest for an unknown algorithm, those of the engine.
pub fn digest_of(
    object: &mut holdall::Object,
    range: &Range<u64>,
    algorithms: Vec<String>,
) -> S3Result<Digested> {
    let announced = Announced { algorithms, ..Announced::default() };
    let mut digests = Digests::for_body(&announced)?;
    let (mut at, mut buffer) = (range.start, vec![0; 1 << 20]);
    while at < range.end {
        let most = usize::try_from(range.end - at).unwrap_or(usize::MAX).min(buffer.len());
        let n = object.read_at(at, &mut buffer[..most]).map_err(from_store)?;
        if n == 0 {
            return Err(s3_error!(InvalidRange, "the object ends at byte {at}"));
        }
        digests.update(&buffer[..n]);
        at += n as u64;
    }
    Ok(digests.finish(&announced)?)
}

impl Server {
    pub(super) async fn copy(
        &self,
        req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        let (from_bucket, from_key) = source(&req.input.copy_source)?;
        let seen = req.extensions.get::<Seen>().cloned();
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let i = &req.input;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_read_acp, &i.grant_write_acp];
        let acl = self.asked_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants)?;
        let input = req.input;
        let (from, to) = (
            self.objects.catalog.bucket(&from_bucket)?,
            self.objects.catalog.bucket(&input.bucket)?,
        );
        check_key(&input.key)?;
        let replaces = |d: Option<&str>| d == Some("REPLACE");
        let new_meta = replaces(input.metadata_directive.as_ref().map(MetadataDirective::as_str));
        let new_tags = replaces(input.tagging_directive.as_ref().map(TaggingDirective::as_str));
        if from_bucket == input.bucket && from_key == input.key && !new_meta && !new_tags {
            let text = "a copy of an object onto itself must replace its metadata";
            return Err(s3_error!(InvalidRequest, "{text}"));
        }
        let tags = tagging::parse_header(input.tagging.as_deref())?;
        let user = tagging::user_metadata(input.metadata)?;
        let about = About {
            cache_control: input.cache_control,
            disposition: input.content_disposition,
            encoding: stored_encoding(input.content_encoding),
            language: input.content_language,
            user,
            tags: tags.clone(),
            acl: acl.unwrap_or_default(),
            ..About::expiring(asked_for.expires.as_deref(), None)
        };
        let plan = Copying {
            from,
            from_key,
            seen,
            to,
            key: input.key,
            acl: acl.unwrap_or_default(),
            conditions: asked_for.of_source.clone(),
            target: asked_for.conditions.clone(),
            algorithm: input.checksum_algorithm.map(|a| a.as_str().to_owned()),
            about: new_meta.then_some((input.content_type, about)),
            tags: new_tags.then_some(tags),
        };
        let result = blocking(move || plan.run()).await?;
        let output = CopyObjectOutput { copy_object_result: Some(result), ..Default::default() };
        Ok(S3Response::new(output))
    }
}

/// A copy to be made.
struct Copying {
    from: Bucket,
    from_key: String,
    seen: Option<Seen>,
    to: Bucket,
    key: String,
    /// The copy's ACL: the source's is not copied.
    acl: Acl,
    conditions: condition::Read,
    /// Conditions on what is there.
    target: condition::Read,
    /// The checksum that the copy is to have.
    algorithm: Option<String>,
    /// Media type and the copy's other properties, in place of the source's.
    about: Option<(Option<String>, About)>,
    /// Tags in place of the source's.
    tags: Option<BTreeMap<String, String>>,
}

impl Copying {
    /// Makes the copy. Blocks for a commit.
    fn run(self) -> S3Result<CopyObjectResult> {
        let found = find(&self.from, &self.from_key, self.seen.as_ref())?;
        self.conditions.check_source(&found.meta, &found.etag)?;
        let reader = self.to.read().map_err(from_store)?;
        let condition::Read { matches, matches_not, .. } = &self.target;
        let mode = condition::mode(&reader, &self.key, matches.as_ref(), matches_not.as_ref())?;
        let mut meta = self.meta(&found.meta);
        self.add_sum(&found, &mut meta)?;
        let most = self.to.served.attribute_bytes;
        let written = self.to.served.write(|tx| {
            self.to.objects(tx)?.check_put(&self.key, mode)?;
            let oid = if Arc::ptr_eq(&self.from.served.path, &self.to.served.path) {
                self.share(tx, &found)?
            } else {
                let object = found.reader.open(found.metadata.oid)?;
                let (size, to) = (object.size(), Target::from(&self.key));
                copy_bytes(tx, &self.to, object.take(size), size, to)?
            };
            side::set_meta(tx, oid, &meta, most)?;
            let made = tx.metadata(oid)?;
            Ok((meta.etag(made.version), made.modified))
        });
        let (etag, modified) = written.map_err(from_store)?;
        Ok(copied(meta, etag, modified))
    }

    /// What is kept of the copy.
    fn meta(&self, source: &Meta) -> Meta {
        let mut meta = Meta { modified: None, ..source.clone() };
        if let Some((content_type, about)) = &self.about {
            let tags = std::mem::take(&mut meta.about.tags);
            meta.content_type.clone_from(content_type);
            meta.about = About { tags, ..about.clone() };
        }
        if let Some(tags) = &self.tags {
            meta.about.tags.clone_from(tags);
        }
        meta.about.acl = self.acl;
        // The copy was not completed from the upload.
        if let Some(of_bytes) = &mut meta.of_bytes {
            of_bytes.upload = None;
        }
        meta
    }

    /// Adds the checksum that is asked for. Cost: the object is read, unless it has the checksum.
    fn add_sum(&self, found: &Found, meta: &mut Meta) -> S3Result<()> {
        let Some(algorithm) = &self.algorithm else { return Ok(()) };
        let of_bytes = meta.of_bytes.get_or_insert_default();
        let has =
            named(&of_bytes.sums).iter().any(|(name, sum)| name == algorithm && sum.is_some());
        if has && !of_bytes.composite {
            return Ok(());
        }
        let mut object = found.reader.open(found.metadata.oid).map_err(from_store)?;
        let size = object.size();
        let digested = digest_of(&mut object, &(0..size), vec![algorithm.clone()])?;
        if of_bytes.etag.is_empty() {
            of_bytes.etag = digested.md5;
        }
        (of_bytes.sums, of_bytes.composite) = (digested.sums, false);
        Ok(())
    }

    /// Copies within a store: the two share their segments.
    fn share(&self, tx: &mut WriteTx, found: &Found) -> holdall::Result<Oid> {
        let in_source = tx.collection(&self.from.name)?.lookup(&self.from_key)?;
        let gone = || Why::NoObject.says(format!("there is no object {}", self.from_key));
        let oid = in_source.ok_or_else(gone)?;
        if tx.metadata(oid)?.version != found.metadata.version {
            let text = "the source was changed meanwhile; try again";
            return Err(Why::Conflict.says(text).into());
        }
        if self.from.name == self.to.name && self.from_key == self.key {
            return Ok(oid);
        }
        self.to.objects(tx)?.copy(oid, Target::from(&self.key))
    }
}

fn copied(meta: Meta, etag: String, modified: Option<SystemTime>) -> CopyObjectResult {
    let OfBytes { sums, composite, .. } = meta.of_bytes.unwrap_or_default();
    let kind = if composite { ChecksumType::COMPOSITE } else { ChecksumType::FULL_OBJECT };
    CopyObjectResult {
        checksum_type: (!sums.is_empty()).then(|| ChecksumType::from_static(kind)),
        checksum_crc32: sums.crc32,
        checksum_crc32c: sums.crc32c,
        checksum_crc64nvme: sums.crc64nvme,
        checksum_sha1: sums.sha1,
        checksum_sha256: sums.sha256,
        e_tag: Some(ETag::Strong(etag)),
        last_modified: modified.map(timestamp),
    }
}
