//! Buckets, and objects deleted from them.

use crate::http::body;
use crate::objects::condition::{self, ETagCondition};
use crate::objects::meta::{Meta, etag_of};
use crate::objects::side;
use crate::refusal::Why;
use crate::s3::admit::{Admitted, refuse_version};
use crate::s3::amend::REGION;
use crate::s3::error::{blocking, from_store};
use crate::s3::{Server, timestamp};
use crate::users::{OWNER, User};
use holdall::WriteTx;
use s3s::dto::{
    Bucket, BucketCannedACL, CreateBucketInput, CreateBucketOutput, DeleteBucketInput,
    DeleteBucketOutput, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput,
    DeleteObjectsOutput, DeletedObject, ETag, Error, GetBucketLocationInput,
    GetBucketLocationOutput, HeadBucketInput, HeadBucketOutput, ListBucketsInput,
    ListBucketsOutput, ObjectIdentifier, Owner,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::sync::Arc;
use time::OffsetDateTime;

/// Most keys of a multi-delete, as S3 has it.
const MOST_DELETES: usize = 1000;

/// The owner of everything: S3's answers name one.
pub fn owner() -> Owner {
    Owner { display_name: Some(OWNER.into()), id: Some(OWNER.into()) }
}

impl Server {
    pub(super) async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        let i = &req.input;
        let grants = [
            &i.grant_full_control,
            &i.grant_read,
            &i.grant_write,
            &i.grant_read_acp,
            &i.grant_write_acp,
        ];
        let acl = self.asked_acl(i.acl.as_ref().map(BucketCannedACL::as_str), &grants)?;
        let asked = req.input.create_bucket_configuration.as_ref();
        if asked.is_some_and(|asked| asked.bucket.is_some() || asked.location.is_some()) {
            return Err(s3_error!(NotImplemented, "directory buckets are not offered"));
        }
        let name = req.input.bucket;
        let catalog = self.objects.catalog.clone();
        let wanted = name.clone();
        // One that is there already is the caller's: everything has one owner. In its first
        // region S3 answers so too.
        body::blocking(move || catalog.create(&wanted, acl)).await?;
        let location = Some(format!("/{name}"));
        Ok(S3Response::new(CreateBucketOutput { location }))
    }

    pub(super) async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        let (catalog, name) = (self.objects.catalog.clone(), req.input.bucket);
        let bucket = catalog.bucket(&name)?;
        body::blocking(move || bucket.give_up_all()).await?;
        body::blocking(move || catalog.delete(&name)).await?;
        Ok(S3Response::new(DeleteBucketOutput::default()))
    }

    pub(super) fn head_bucket(
        &self,
        req: &S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.objects.catalog.bucket(&req.input.bucket)?;
        let bucket_region = Some(REGION.to_owned());
        Ok(S3Response::new(HeadBucketOutput { bucket_region, ..Default::default() }))
    }

    pub(super) fn location(
        &self,
        req: &S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.objects.catalog.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketLocationOutput::default()))
    }

    pub(super) async fn list_buckets(
        &self,
        req: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        let user = req.extensions.get::<Arc<User>>().cloned();
        let (catalog, input) = (self.objects.catalog.clone(), req.input);
        blocking(move || {
            // All buckets lie in one region.
            let elsewhere = input.bucket_region.as_deref().is_some_and(|name| name != REGION);
            let prefix = input.prefix.clone().unwrap_or_default();
            let after = input.continuation_token.clone().unwrap_or_default();
            let most = usize::try_from(input.max_buckets.unwrap_or(10_000)).unwrap_or(0).max(1);
            let sees = |name: &String| user.as_ref().is_none_or(|user| user.sees(name));
            let mut names = catalog
                .names()
                .into_iter()
                .filter(|_| !elsewhere)
                .filter(|name| name.starts_with(&prefix) && *name > after && sees(name))
                .peekable();
            let mut buckets = Vec::new();
            while buckets.len() < most
                && let Some(name) = names.next()
            {
                let creation_date = catalog.created(&name)?.map(timestamp);
                buckets.push(Bucket { name: Some(name), creation_date, ..Default::default() });
            }
            let last = buckets.last().and_then(|b| b.name.clone());
            Ok(S3Response::new(ListBucketsOutput {
                continuation_token: last.filter(|_| names.peek().is_some()),
                buckets: Some(buckets),
                owner: Some(owner()),
                prefix: input.prefix,
            }))
        })
        .await
    }

    pub(super) async fn delete(
        &self,
        req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        let asked_for = Admitted::from_extensions(&req.extensions)?;
        let input = req.input;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        refuse_version(input.version_id.as_deref())?;
        let one = Doomed {
            key: input.key,
            etag: asked_for.conditions.matches.clone(),
            size: input.if_match_size,
            modified: input
                .if_match_last_modified_time
                .map(|at| OffsetDateTime::from(at).unix_timestamp()),
        };
        blocking(move || {
            bucket.served.write(|tx| one.delete(tx, &bucket.name)).map_err(from_store)
        })
        .await?;
        Ok(S3Response::new(DeleteObjectOutput::default()))
    }

    pub(super) async fn delete_many(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        let input = req.input;
        let bucket = self.objects.catalog.bucket(&input.bucket)?;
        let (objects, quiet) = (input.delete.objects, input.delete.quiet.unwrap_or(false));
        if objects.len() > MOST_DELETES {
            return Err(s3_error!(MalformedXML, "at most {MOST_DELETES} keys at a time"));
        }
        let (deleted, errors) = blocking(move || {
            bucket.served.write(|tx| delete_all(tx, &bucket.name, objects)).map_err(from_store)
        })
        .await?;
        Ok(S3Response::new(DeleteObjectsOutput {
            deleted: (!quiet).then_some(deleted),
            errors: (!errors.is_empty()).then_some(errors),
            ..Default::default()
        }))
    }
}

/// An object to be deleted, if it is what the client thinks.
struct Doomed {
    key: String,
    etag: Option<ETagCondition>,
    size: Option<i64>,
    /// In seconds since 1970.
    modified: Option<i64>,
}

impl Doomed {
    fn delete(&self, tx: &mut WriteTx, bucket: &str) -> holdall::Result<()> {
        if self.etag.is_some() || self.size.is_some() || self.modified.is_some() {
            let mut objects = tx.collection(bucket)?;
            let Some(oid) = objects.lookup(&self.key)? else {
                // What is not there is what the caller wants, whatever it was to be like.
                return Ok(());
            };
            let found = objects.metadata(oid)?;
            let size = self.size.is_none_or(|size| u64::try_from(size) == Ok(found.size));
            let etag = self.etag.as_ref();
            let modified = Meta::from_metadata(&found).modified();
            let time = self.modified.is_none_or(|at| at == condition::seconds(modified));
            if !size
                || !time
                || etag.is_some_and(|wanted| !condition::matches(wanted, &etag_of(&found)))
            {
                let text = Why::Unmet.says(format!("{} is not as expected", self.key));
                return Err(text.into());
            }
        }
        side::remove(tx, bucket, &self.key).map(drop)
    }
}

/// What the ETag of an entry names.
fn named(etag: ETag) -> ETagCondition {
    let weak = etag.as_strong().is_none();
    match etag.value() {
        "*" => ETagCondition::Any,
        value => ETagCondition::OneOf(vec![condition::ETag { value: value.to_owned(), weak }]),
    }
}

/// Deletes in one transaction: a key that is refused leaves the others alone.
fn delete_all(
    tx: &mut WriteTx,
    bucket: &str,
    objects: Vec<ObjectIdentifier>,
) -> holdall::Result<(Vec<DeletedObject>, Vec<Error>)> {
    let (mut deleted, mut errors) = (Vec::new(), Vec::new());
    for object in objects {
        let key = object.key.clone();
        let doomed = Doomed {
            key: object.key,
            etag: object.e_tag.map(named),
            size: object.size,
            modified: object.last_modified_time.map(|at| OffsetDateTime::from(at).unix_timestamp()),
        };
        let refused = match refuse_version(object.version_id.as_deref()) {
            Err(e) => Some(e),
            Ok(()) => match doomed.delete(tx, bucket) {
                Ok(()) => None,
                Err(e @ holdall::Error::Other(_)) => Some(from_store(e)),
                Err(e) => return Err(e),
            },
        };
        match refused {
            None => deleted.push(DeletedObject { key: Some(key), ..Default::default() }),
            Some(told) => errors.push(Error {
                code: Some(told.code().as_str().to_owned()),
                key: Some(key),
                message: told.message().map(str::to_owned),
                version_id: None,
            }),
        }
    }
    Ok((deleted, errors))
}
