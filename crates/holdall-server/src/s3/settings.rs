//! Settings of buckets: tags, which are kept, and what is never set, which is answered as S3
//! answers it.

use crate::objects::records;
use crate::s3::error::{blocking, custom, from_store};
use crate::s3::{Answer, Server, tagging};
use http::StatusCode;
use s3s::dto::{
    DeleteBucketTaggingInput, DeleteBucketTaggingOutput, GetBucketTaggingInput,
    GetBucketTaggingOutput, PutBucketTaggingInput, PutBucketTaggingOutput, Tag,
};
use s3s::{S3Error, S3Request, S3Response, s3_error};
use std::collections::BTreeMap;

/// What a get of a setting that no bucket has is answered: clients that ask for all settings
/// take it as an empty one.
#[derive(Debug, Clone, Copy)]
pub enum Unset {
    /// Encryption by the server.
    Encryption,
    /// Rules by age.
    Lifecycle,
    /// Who owns what others put.
    Ownership,
    /// A policy.
    Policy,
    /// The block of public access.
    PublicAccess,
    /// Replication.
    Replication,
    /// A web site.
    Website,
}

impl Unset {
    fn error(self) -> S3Error {
        match self {
            Self::Encryption => s3_error!(ServerSideEncryptionConfigurationNotFoundError),
            Self::Lifecycle => s3_error!(NoSuchLifecycleConfiguration),
            Self::Ownership => s3_error!(OwnershipControlsNotFoundError),
            Self::Policy => s3_error!(NoSuchBucketPolicy),
            Self::Replication => s3_error!(ReplicationConfigurationNotFoundError),
            Self::Website => s3_error!(NoSuchWebsiteConfiguration),
            Self::PublicAccess => {
                let code = "NoSuchPublicAccessBlockConfiguration";
                custom(code, StatusCode::NOT_FOUND, "nothing is blocked, nor public by itself")
            }
        }
    }
}

impl Server {
    /// Tells that a bucket, which is there, has no such setting.
    pub(super) fn unset<T>(&self, bucket: &str, what: Unset) -> Answer<T> {
        self.objects.catalog.bucket(bucket)?;
        Err(what.error())
    }

    pub(super) async fn bucket_tags(
        &self,
        req: S3Request<GetBucketTaggingInput>,
    ) -> Answer<GetBucketTaggingOutput> {
        let bucket = self.objects.catalog.bucket(&req.input.bucket)?;
        let tags = blocking(move || {
            let reader = bucket.served.read()?;
            records::bucket_tags(&reader, &bucket.name).map_err(from_store)
        })
        .await?;
        let tags = tags.ok_or_else(|| s3_error!(NoSuchTagSet, "the bucket has no tags"))?;
        let tag = |(key, value)| Tag { key: Some(key), value: Some(value) };
        let tag_set = tags.into_iter().map(tag).collect();
        Ok(S3Response::new(GetBucketTaggingOutput { tag_set }))
    }

    pub(super) async fn put_bucket_tags(
        &self,
        req: S3Request<PutBucketTaggingInput>,
    ) -> Answer<PutBucketTaggingOutput> {
        let tags = tagging::check_bucket_tags(req.input.tagging.tag_set)?;
        self.set_bucket_tags(&req.input.bucket, Some(tags)).await?;
        Ok(S3Response::new(PutBucketTaggingOutput::default()))
    }

    pub(super) async fn delete_bucket_tags(
        &self,
        req: S3Request<DeleteBucketTaggingInput>,
    ) -> Answer<DeleteBucketTaggingOutput> {
        self.set_bucket_tags(&req.input.bucket, None).await?;
        Ok(S3Response::new(DeleteBucketTaggingOutput::default()))
    }

    async fn set_bucket_tags(
        &self,
        bucket: &str,
        tags: Option<BTreeMap<String, String>>,
    ) -> s3s::S3Result<()> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || {
            Ok(bucket.change(|tx| records::set_bucket_tags(tx, &bucket.name, tags.as_ref()))?)
        })
        .await
    }
}
