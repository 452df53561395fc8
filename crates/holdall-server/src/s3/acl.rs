//! ACLs of buckets and objects, as clients set and see them. What they open, `access.rs` says.

use crate::http::body;
use crate::objects::acl::Acl;
use crate::s3::admit::refuse_version;
use crate::s3::bucket::owner;
use crate::s3::grants::not_supported;
use crate::s3::{Answer, Server};
use s3s::dto::{
    AccessControlPolicy, BucketCannedACL, GetBucketAclInput, GetBucketAclOutput, GetObjectAclInput,
    GetObjectAclOutput, ObjectCannedACL, PutBucketAclInput, PutBucketAclOutput, PutObjectAclInput,
    PutObjectAclOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

impl Server {
    /// The ACL that a request's headers ask for; `None` if they say nothing.
    ///
    /// # Errors
    /// AccessControlListNotSupported for grants by header, and for ACLs that open something unless
    /// the configuration lets them; InvalidArgument.
    pub(super) fn asked_acl(
        &self,
        canned: Option<&str>,
        grants: &[&Option<String>],
    ) -> S3Result<Option<Acl>> {
        if grants.iter().any(|grant| grant.is_some()) {
            return Err(not_supported());
        }
        let Some(name) = canned else { return Ok(None) };
        self.allowed(Acl::named(name)?).map(Some)
    }

    fn allowed(&self, acl: Acl) -> S3Result<Acl> {
        let allowed = acl.is_private() || self.public_acls;
        if allowed { Ok(acl) } else { Err(not_supported()) }
    }

    /// The ACL that a put of an ACL asks for, by header or in its body.
    fn put_acl(&self, asked: Option<Acl>, policy: Option<&AccessControlPolicy>) -> S3Result<Acl> {
        match (asked, policy) {
            (Some(acl), None) => Ok(acl),
            (None, Some(policy)) => self.allowed(Acl::of_policy(policy)?),
            (None, None) => Err(s3_error!(MissingSecurityHeader, "name an ACL")),
            (Some(_), Some(_)) => {
                Err(s3_error!(UnexpectedContent, "name an ACL in a header or in the body"))
            }
        }
    }

    /// What an ACL says while ACLs count; else all is private.
    fn told(&self, acl: Acl) -> Acl {
        if self.public_acls { acl } else { Acl::Private }
    }

    pub(super) async fn bucket_acl(
        &self,
        req: S3Request<GetBucketAclInput>,
    ) -> Answer<GetBucketAclOutput> {
        let bucket = self.objects.catalog.bucket(&req.input.bucket)?;
        let acl = self.told(body::blocking(move || bucket.acl()).await?);
        let (grants, owner) = (Some(acl.grants()), Some(owner()));
        Ok(S3Response::new(GetBucketAclOutput { grants, owner }))
    }

    pub(super) async fn put_bucket_acl(
        &self,
        req: S3Request<PutBucketAclInput>,
    ) -> Answer<PutBucketAclOutput> {
        let i = &req.input;
        let bucket = self.objects.catalog.bucket(&i.bucket)?;
        let grants = [
            &i.grant_full_control,
            &i.grant_read,
            &i.grant_write,
            &i.grant_read_acp,
            &i.grant_write_acp,
        ];
        let asked = self.asked_acl(i.acl.as_ref().map(BucketCannedACL::as_str), &grants)?;
        let acl = self.put_acl(asked, i.access_control_policy.as_ref())?;
        body::blocking(move || bucket.set_acl(acl)).await?;
        Ok(S3Response::new(PutBucketAclOutput::default()))
    }

    pub(super) async fn object_acl(
        &self,
        req: S3Request<GetObjectAclInput>,
    ) -> Answer<GetObjectAclOutput> {
        let found = self.find(&req.input.bucket, req.input.key).await?;
        let acl = self.told(found.meta.about.acl);
        let (grants, owner) = (Some(acl.grants()), Some(owner()));
        Ok(S3Response::new(GetObjectAclOutput { grants, owner, ..Default::default() }))
    }

    pub(super) async fn put_object_acl(
        &self,
        req: S3Request<PutObjectAclInput>,
    ) -> Answer<PutObjectAclOutput> {
        let i = req.input;
        refuse_version(i.version_id.as_deref())?;
        let found = self.find(&i.bucket, i.key.clone()).await?;
        let grants = [
            &i.grant_full_control,
            &i.grant_read,
            &i.grant_write,
            &i.grant_read_acp,
            &i.grant_write_acp,
        ];
        let asked = self.asked_acl(i.acl.as_ref().map(ObjectCannedACL::as_str), &grants)?;
        let acl = self.put_acl(asked, i.access_control_policy.as_ref())?;
        if found.meta.about.acl != acl {
            self.change_meta(&i.bucket, i.key, move |meta| meta.about.acl = acl).await?;
        }
        Ok(S3Response::new(PutObjectAclOutput::default()))
    }
}
