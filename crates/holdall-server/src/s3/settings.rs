//! Settings of buckets: tags, which are kept, and what is never set, which is told as S3 tells it.

use crate::body;
use crate::error::{custom, from_store};
use crate::s3::{Answer, Server, tagging};
use crate::side;
use crate::users::OWNER;
use http::StatusCode;
use s3s::dto::{
    AccessControlPolicy, BucketCannedACL, DeleteBucketTaggingInput, DeleteBucketTaggingOutput,
    GetBucketTaggingInput, GetBucketTaggingOutput, Grant, ObjectCannedACL, Permission,
    PutBucketAclInput, PutBucketAclOutput, PutBucketTaggingInput, PutBucketTaggingOutput,
    PutObjectAclInput, PutObjectAclOutput, Tag,
};
use s3s::{S3Error, S3Request, S3Response, s3_error};
use std::collections::BTreeMap;

/// What a get of a setting that no bucket has is answered: clients that ask for all settings
/// take it as an empty one.
#[derive(Debug, Clone, Copy)]
pub enum Unset {
    /// Rules for other origins.
    Cors,
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
            Self::Cors => s3_error!(NoSuchCORSConfiguration),
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

/// Refuses ACLs that would give anybody else a right: rights are the server's. What keeps things
/// to their owner is how it is anyway.
///
/// # Errors
/// AccessControlListNotSupported.
pub fn refuse_acl(acl: Option<&str>, grants: &[Option<&String>]) -> s3s::S3Result<()> {
    let own = matches!(acl, None | Some("private" | "bucket-owner-full-control"));
    if own && grants.iter().all(Option::is_none) {
        return Ok(());
    }
    let known = |acl: &str| own || CANNED.contains(&acl);
    if let Some(acl) = acl.filter(|acl| !known(acl)) {
        return Err(s3_error!(InvalidArgument, "{acl:?} is no canned ACL"));
    }
    Err(not_supported())
}

/// ACLs that S3 has names for, which would give others a right.
const CANNED: [&str; 6] = [
    "public-read",
    "public-read-write",
    "authenticated-read",
    "aws-exec-read",
    "bucket-owner-read",
    "log-delivery-write",
];

fn not_supported() -> S3Error {
    let text = "rights are given in the server's configuration, not by ACLs";
    custom("AccessControlListNotSupported", StatusCode::BAD_REQUEST, text)
}

/// Refuses a list of grants that is not the one there is: everything to the owner.
fn refuse_policy(policy: Option<&AccessControlPolicy>) -> s3s::S3Result<()> {
    let Some(policy) = policy else { return Ok(()) };
    let full = |grant: &Grant| {
        let to = grant.grantee.as_ref().and_then(|grantee| grantee.id.as_deref());
        let what = grant.permission.as_ref().map(Permission::as_str);
        to == Some(OWNER) && what == Some(Permission::FULL_CONTROL)
    };
    match policy.grants.as_deref() {
        Some(grants) if !grants.is_empty() && grants.iter().all(full) => Ok(()),
        _ => Err(not_supported()),
    }
}

impl Server {
    pub(super) fn put_bucket_acl(
        &self,
        req: &S3Request<PutBucketAclInput>,
    ) -> Answer<PutBucketAclOutput> {
        let i = &req.input;
        self.catalog.bucket(&i.bucket)?;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_write, &i.grant_read_acp];
        refuse_acl(i.acl.as_ref().map(BucketCannedACL::as_str), &grants.map(Option::as_ref))?;
        refuse_policy(i.access_control_policy.as_ref())?;
        Ok(S3Response::new(PutBucketAclOutput::default()))
    }

    pub(super) async fn put_object_acl(
        &self,
        req: S3Request<PutObjectAclInput>,
    ) -> Answer<PutObjectAclOutput> {
        let i = req.input;
        super::bucket::refuse_version(i.version_id.as_deref())?;
        self.find(&i.bucket, i.key).await?;
        let grants = [&i.grant_full_control, &i.grant_read, &i.grant_read_acp, &i.grant_write_acp];
        refuse_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants.map(Option::as_ref))?;
        refuse_policy(i.access_control_policy.as_ref())?;
        Ok(S3Response::new(PutObjectAclOutput::default()))
    }

    /// Tells that a bucket, which is there, has no such setting.
    pub(super) fn unset<T>(&self, bucket: &str, what: Unset) -> Answer<T> {
        self.catalog.bucket(bucket)?;
        Err(what.error())
    }

    pub(super) async fn bucket_tags(
        &self,
        req: S3Request<GetBucketTaggingInput>,
    ) -> Answer<GetBucketTaggingOutput> {
        let bucket = self.catalog.bucket(&req.input.bucket)?;
        let tags = body::blocking(move || {
            let reader = bucket.served.store.read().map_err(from_store)?;
            side::bucket_tags(&reader, &bucket.name).map_err(from_store)
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
        let bucket = self.catalog.bucket(bucket)?;
        body::blocking(move || {
            let set =
                |tx: &mut holdall::WriteTx| side::set_bucket_tags(tx, &bucket.name, tags.as_ref());
            bucket.served.store.write(set).map_err(from_store)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(e: &S3Error) -> &str {
        e.code().as_str()
    }

    #[test]
    fn only_acls_that_say_what_is_the_case_are_taken() {
        for own in [None, Some("private"), Some("bucket-owner-full-control")] {
            refuse_acl(own, &[None]).unwrap();
        }
        let to = "id=somebody".to_owned();
        for (acl, grant, expected) in [
            (Some("public-read"), None, "AccessControlListNotSupported"),
            (None, Some(&to), "AccessControlListNotSupported"),
            (Some("publicc"), None, "InvalidArgument"),
        ] {
            assert_eq!(code(&refuse_acl(acl, &[grant]).unwrap_err()), expected, "{acl:?}");
        }
    }

    #[test]
    fn a_list_of_grants_is_the_owners_or_refused() {
        let grants = crate::s3::full_control();
        let mine = AccessControlPolicy { grants: Some(grants.clone()), owner: None };
        refuse_policy(Some(&mine)).unwrap();
        let mut others = grants;
        let grantee = others[0].grantee.as_mut().unwrap();
        grantee.id = Some("somebody".into());
        let policy = AccessControlPolicy { grants: Some(others), owner: None };
        assert_eq!(
            code(&refuse_policy(Some(&policy)).unwrap_err()),
            "AccessControlListNotSupported"
        );
        let none = AccessControlPolicy { grants: Some(Vec::new()), owner: None };
        assert!(refuse_policy(Some(&none)).is_err());
    }
}
