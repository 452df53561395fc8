//! S3's operations on top of the engine.
//!
//! Owns: [`Server`], which `s3s` calls with requests whose signature and rights were checked.
//! What is not here is answered NotImplemented by `s3s`.

pub mod access;
mod acl;
pub mod admit;
pub mod amend;
mod bucket;
mod complete;
mod copy;
mod cors;
pub mod cross;
pub mod door;
pub mod edit_verbs;
mod elements;
mod error;
pub mod form;
mod frames;
mod get;
mod grants;
mod hooks;
mod list;
mod message;
mod multipart;
mod parts;
mod post;
mod put;
mod repeated;
mod settings;
mod tagging;

pub use hooks::BucketNames;
pub use post::name_file;

use crate::objects::put::Objects;
use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};
use settings::Unset;
use std::time::SystemTime;

/// Answers S3's operations. Clones share all.
#[derive(Debug, Clone)]
pub struct Server {
    /// What is served.
    pub objects: Objects,
    /// Whether ACLs that open something are taken.
    pub public_acls: bool,
}

/// A number of bytes as S3's types have it.
pub fn length(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// A time as S3's types have it.
pub fn timestamp(time: SystemTime) -> Timestamp {
    Timestamp::from(time)
}

type Answer<T> = S3Result<S3Response<T>>;

#[async_trait::async_trait]
impl S3 for Server {
    async fn create_bucket(&self, req: S3Request<CreateBucketInput>) -> Answer<CreateBucketOutput> {
        self.create_bucket(req).await
    }

    async fn delete_bucket(&self, req: S3Request<DeleteBucketInput>) -> Answer<DeleteBucketOutput> {
        self.delete_bucket(req).await
    }

    async fn head_bucket(&self, req: S3Request<HeadBucketInput>) -> Answer<HeadBucketOutput> {
        self.head_bucket(&req)
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> Answer<GetBucketLocationOutput> {
        self.location(&req)
    }

    async fn get_bucket_versioning(
        &self,
        req: S3Request<GetBucketVersioningInput>,
    ) -> Answer<GetBucketVersioningOutput> {
        self.objects.catalog.bucket(&req.input.bucket)?;
        Ok(S3Response::new(GetBucketVersioningOutput::default()))
    }

    async fn get_bucket_acl(
        &self,
        req: S3Request<GetBucketAclInput>,
    ) -> Answer<GetBucketAclOutput> {
        self.bucket_acl(req).await
    }

    async fn put_bucket_acl(
        &self,
        req: S3Request<PutBucketAclInput>,
    ) -> Answer<PutBucketAclOutput> {
        self.put_bucket_acl(req).await
    }

    async fn put_object_acl(
        &self,
        req: S3Request<PutObjectAclInput>,
    ) -> Answer<PutObjectAclOutput> {
        self.put_object_acl(req).await
    }

    async fn get_object_acl(
        &self,
        req: S3Request<GetObjectAclInput>,
    ) -> Answer<GetObjectAclOutput> {
        self.object_acl(req).await
    }

    async fn get_bucket_cors(
        &self,
        req: S3Request<GetBucketCorsInput>,
    ) -> Answer<GetBucketCorsOutput> {
        self.bucket_cors(req).await
    }

    async fn put_bucket_cors(
        &self,
        req: S3Request<PutBucketCorsInput>,
    ) -> Answer<PutBucketCorsOutput> {
        self.put_bucket_cors(req).await
    }

    async fn delete_bucket_cors(
        &self,
        req: S3Request<DeleteBucketCorsInput>,
    ) -> Answer<DeleteBucketCorsOutput> {
        self.delete_bucket_cors(req).await
    }

    async fn get_bucket_encryption(
        &self,
        req: S3Request<GetBucketEncryptionInput>,
    ) -> Answer<GetBucketEncryptionOutput> {
        self.unset(&req.input.bucket, Unset::Encryption)
    }

    async fn get_bucket_lifecycle_configuration(
        &self,
        req: S3Request<GetBucketLifecycleConfigurationInput>,
    ) -> Answer<GetBucketLifecycleConfigurationOutput> {
        self.unset(&req.input.bucket, Unset::Lifecycle)
    }

    async fn get_bucket_ownership_controls(
        &self,
        req: S3Request<GetBucketOwnershipControlsInput>,
    ) -> Answer<GetBucketOwnershipControlsOutput> {
        self.unset(&req.input.bucket, Unset::Ownership)
    }

    async fn get_bucket_policy(
        &self,
        req: S3Request<GetBucketPolicyInput>,
    ) -> Answer<GetBucketPolicyOutput> {
        self.unset(&req.input.bucket, Unset::Policy)
    }

    async fn get_bucket_replication(
        &self,
        req: S3Request<GetBucketReplicationInput>,
    ) -> Answer<GetBucketReplicationOutput> {
        self.unset(&req.input.bucket, Unset::Replication)
    }

    async fn get_bucket_website(
        &self,
        req: S3Request<GetBucketWebsiteInput>,
    ) -> Answer<GetBucketWebsiteOutput> {
        self.unset(&req.input.bucket, Unset::Website)
    }

    async fn get_public_access_block(
        &self,
        req: S3Request<GetPublicAccessBlockInput>,
    ) -> Answer<GetPublicAccessBlockOutput> {
        self.unset(&req.input.bucket, Unset::PublicAccess)
    }

    async fn get_bucket_tagging(
        &self,
        req: S3Request<GetBucketTaggingInput>,
    ) -> Answer<GetBucketTaggingOutput> {
        self.bucket_tags(req).await
    }

    async fn put_bucket_tagging(
        &self,
        req: S3Request<PutBucketTaggingInput>,
    ) -> Answer<PutBucketTaggingOutput> {
        self.put_bucket_tags(req).await
    }

    async fn delete_bucket_tagging(
        &self,
        req: S3Request<DeleteBucketTaggingInput>,
    ) -> Answer<DeleteBucketTaggingOutput> {
        self.delete_bucket_tags(req).await
    }

    async fn list_buckets(&self, req: S3Request<ListBucketsInput>) -> Answer<ListBucketsOutput> {
        self.list_buckets(req).await
    }

    async fn put_object(&self, req: S3Request<PutObjectInput>) -> Answer<PutObjectOutput> {
        self.put(req).await
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> Answer<GetObjectOutput> {
        admit::refuse_version(req.input.version_id.as_deref())?;
        self.get(req).await
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> Answer<HeadObjectOutput> {
        admit::refuse_version(req.input.version_id.as_deref())?;
        self.head(req).await
    }

    async fn get_object_attributes(
        &self,
        req: S3Request<GetObjectAttributesInput>,
    ) -> Answer<GetObjectAttributesOutput> {
        admit::refuse_version(req.input.version_id.as_deref())?;
        self.attributes(req).await
    }

    async fn delete_object(&self, req: S3Request<DeleteObjectInput>) -> Answer<DeleteObjectOutput> {
        self.delete(req).await
    }

    async fn delete_objects(
        &self,
        req: S3Request<DeleteObjectsInput>,
    ) -> Answer<DeleteObjectsOutput> {
        self.delete_many(req).await
    }

    async fn copy_object(&self, req: S3Request<CopyObjectInput>) -> Answer<CopyObjectOutput> {
        self.copy(req).await
    }

    async fn list_objects(&self, req: S3Request<ListObjectsInput>) -> Answer<ListObjectsOutput> {
        self.list(req).await
    }

    async fn list_objects_v2(
        &self,
        req: S3Request<ListObjectsV2Input>,
    ) -> Answer<ListObjectsV2Output> {
        self.list_v2(req).await
    }

    async fn list_object_versions(
        &self,
        req: S3Request<ListObjectVersionsInput>,
    ) -> Answer<ListObjectVersionsOutput> {
        self.list_versions(req).await
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> Answer<CreateMultipartUploadOutput> {
        self.begin_upload(req).await
    }

    async fn upload_part(&self, req: S3Request<UploadPartInput>) -> Answer<UploadPartOutput> {
        self.put_part(req).await
    }

    async fn upload_part_copy(
        &self,
        req: S3Request<UploadPartCopyInput>,
    ) -> Answer<UploadPartCopyOutput> {
        self.copy_part(req).await
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> Answer<CompleteMultipartUploadOutput> {
        self.complete(req).await
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> Answer<AbortMultipartUploadOutput> {
        self.abort(req).await
    }

    async fn list_parts(&self, req: S3Request<ListPartsInput>) -> Answer<ListPartsOutput> {
        self.list_parts(req).await
    }

    async fn list_multipart_uploads(
        &self,
        req: S3Request<ListMultipartUploadsInput>,
    ) -> Answer<ListMultipartUploadsOutput> {
        self.list_uploads(req).await
    }

    async fn put_object_tagging(
        &self,
        req: S3Request<PutObjectTaggingInput>,
    ) -> Answer<PutObjectTaggingOutput> {
        self.put_tags(req).await
    }

    async fn get_object_tagging(
        &self,
        req: S3Request<GetObjectTaggingInput>,
    ) -> Answer<GetObjectTaggingOutput> {
        self.tags(req).await
    }

    async fn delete_object_tagging(
        &self,
        req: S3Request<DeleteObjectTaggingInput>,
    ) -> Answer<DeleteObjectTaggingOutput> {
        self.delete_tags(req).await
    }
}
