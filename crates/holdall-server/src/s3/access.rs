//! Which requests pass: by the user's grants, which are at hand, or by an ACL, which is looked up
//! only if the grants do not suffice.
//!
//! Owns: [`Access`], which `s3s` asks before each operation; [`Seen`], [`Passed`].

use crate::http::spelling::pairs;
use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::{acl::Acl, records, side};
use crate::s3::admit::Admitted;
use crate::s3::error::{blocking, from_store};
use crate::users::{Right, User, Users};
use holdall::Reader;
use http::{Extensions, HeaderMap, Uri, header};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::Credentials;
use s3s::dto::{CopyObjectInput, CopySource, PostObjectInput, UploadPartCopyInput};
use s3s::path::S3Path;
use s3s::{S3Request, S3Result, s3_error};
use std::sync::Arc;

/// The state in which an ACL opened an object. The answer is read from it: a put meanwhile may
/// have made the object private.
#[derive(Debug, Clone)]
pub struct Seen(pub Reader);

/// Whose signature was checked before a request was written anew. It is checked once: what it
/// covers is then changed.
#[derive(Debug, Clone)]
pub struct Passed(pub Option<Credentials>);

/// Whose request this is.
fn credentials<'r>(
    given: Option<&'r Credentials>,
    extensions: &'r Extensions,
) -> Option<&'r Credentials> {
    extensions.get::<Passed>().map_or(given, |passed| passed.0.as_ref())
}

/// What an ACL may open of a bucket or an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Opens {
    List,
    Put,
    Get,
}

/// Says who may do what.
#[derive(Debug, Clone)]
pub struct Access {
    /// Users with their grants.
    pub users: Users,
    /// The stores, which keep the ACLs.
    pub catalog: Arc<Catalog>,
    /// Whether ACLs count.
    pub public_acls: bool,
}

/// The right that an operation needs on its bucket, and what an ACL must open in its place; none
/// for listing buckets, which shows each user his own. Only grants count for all that changes or
/// shows rights, tags and settings.
fn needs(operation: &str) -> Option<(Right, Option<Opens>)> {
    Some(match operation {
        "ListBuckets" => return None,
        "GetObject" | "HeadObject" => (Right::Read, Some(Opens::Get)),
        "GetObjectAttributes" | "GetObjectTagging" | "GetObjectAcl" => (Right::Read, None),
        "ListObjects"
        | "ListObjectsV2"
        | "ListObjectVersions"
        | "ListMultipartUploads"
        | "HeadBucket"
        | "GetBucketLocation" => (Right::List, Some(Opens::List)),
        "GetBucketVersioning" | "GetBucketAcl" => (Right::List, None),
        "PutObject"
        | "PostObject"
        | "DeleteObject"
        | "DeleteObjects"
        | "CopyObject"
        | "CreateMultipartUpload"
        | "UploadPart"
        | "UploadPartCopy"
        | "CompleteMultipartUpload"
        | "AbortMultipartUpload" => (Right::Write, Some(Opens::Put)),
        "ListParts" | "PutObjectTagging" | "PutObjectAcl" | "DeleteObjectTagging" => {
            (Right::Write, None)
        }
        _ => (Right::Admin, None),
    })
}

/// Refuses an ACL that was added to a signed request: who was given a signed address to put to
/// must not open what he puts.
///
/// # Errors
/// AccessDenied.
pub fn check_acl_signed(headers: &HeaderMap, uri: &Uri) -> S3Result<()> {
    const ACL: &str = "x-amz-acl";
    if !headers.contains_key(ACL) {
        return Ok(());
    }
    let authorization = headers.get(header::AUTHORIZATION).and_then(|v| v.to_str().ok());
    let by_header = authorization.and_then(|text| {
        let rest = text.split_once("SignedHeaders=")?.1;
        Some(rest.split(',').next().unwrap_or(rest).trim().to_owned())
    });
    let by_address = pairs(uri.query().unwrap_or_default())
        .filter_map(|(name, list)| (name == "X-Amz-SignedHeaders").then_some(list));
    // `s3s` looks at one of them. Adding the other one gains nothing if all must name it.
    let mut lists = by_header.into_iter().chain(by_address).peekable();
    let named = |list: String| list.split(';').any(|name| name.eq_ignore_ascii_case(ACL));
    if lists.peek().is_some() && lists.all(named) {
        return Ok(());
    }
    Err(s3_error!(AccessDenied, "the header {ACL} is there and is not signed"))
}

/// Whether an address sets headers of the answer: with a signature only, or strangers could make a
/// page of any public object.
fn sets_headers(uri: &Uri) -> bool {
    pairs(uri.query().unwrap_or_default()).any(|(name, _)| name.starts_with("response-"))
}

impl Access {
    /// Lets a request pass that needs a right on a bucket, or the object of it.
    ///
    /// # Errors
    /// AccessDenied; if ACLs count NoSuchBucket, as S3 answers everybody.
    async fn pass(
        &self,
        user: &User,
        right: Right,
        opens: Option<Opens>,
        bucket: &str,
        key: Option<&str>,
    ) -> S3Result<Option<Seen>> {
        if user.may(right, bucket) {
            return Ok(None);
        }
        let Some(opens) = opens.filter(|_| self.public_acls) else {
            return Ok(Users::check(user, right, bucket).map(|()| None)?);
        };
        let (found, key) = (self.catalog.bucket(bucket)?, key.unwrap_or_default().to_owned());
        let (signed, lists) = (!user.name.is_empty(), user.may(Right::List, bucket));
        let passes = blocking(move || {
            let reader = found.served.read()?;
            let of_bucket = || records::bucket_acl(&reader, &found.name).map_err(from_store);
            Ok(match opens {
                Opens::List => of_bucket()?.opens_read(signed).then_some(None),
                Opens::Put => of_bucket()?.opens_write().then_some(None),
                Opens::Get => {
                    let opened = match object_acl(&reader, &found, &key)? {
                        Some(acl) => acl.opens_read(signed),
                        // Those who may list learn that it is not there.
                        None => lists || of_bucket()?.opens_read(signed),
                    };
                    opened.then(|| Some(Seen(reader.clone())))
                }
            })
        });
        match passes.await? {
            Some(seen) => Ok(seen),
            None => Ok(Users::check(user, right, bucket).map(|()| None)?),
        }
    }

    /// Lets a copy read its source.
    async fn pass_source<T>(&self, from: &CopySource, req: &mut S3Request<T>) -> S3Result<()> {
        // The handler refuses sources that are no bucket of this server.
        let CopySource::Bucket { bucket, key, .. } = from else { return Ok(()) };
        let user = self.users.signed(credentials(req.credentials.as_ref(), &req.extensions))?;
        let seen = self.pass(&user, Right::Read, Some(Opens::Get), bucket, Some(key)).await?;
        if let Some(seen) = seen {
            req.extensions.insert(seen);
        }
        Ok(())
    }
}

/// The ACL of an object; `None` if there is no such object.
fn object_acl(reader: &Reader, bucket: &Bucket, key: &str) -> S3Result<Option<Acl>> {
    let found = match reader.collection(&bucket.name).and_then(|objects| objects.metadata(key)) {
        Err(holdall::Error::NotFound(_)) => return Ok(None),
        other => other.map_err(from_store)?,
    };
    let meta = side::meta(reader, &found).map_err(from_store)?;
    Ok(Some(meta.about.acl))
}

#[async_trait::async_trait]
impl S3Access for Access {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let admitted = Admitted::from_extensions(cx.extensions_mut())?;
        if admitted.operation.name != cx.s3_op().name() {
            let (one, other) = (admitted.operation.name, cx.s3_op().name());
            return Err(s3_error!(NotImplemented, "the request is {one} or {other}"));
        }
        let passed = cx.extensions_mut().get::<Passed>().cloned();
        if self.public_acls && passed.is_none() && cx.credentials().is_some() {
            check_acl_signed(cx.headers(), cx.uri())?;
        }
        let user = match &passed {
            Some(Passed(credentials)) => self.users.signed(credentials.as_ref())?,
            None => self.users.signed(cx.credentials())?,
        };
        if let Some((right, opens)) = needs(cx.s3_op().name()) {
            let (bucket, key) = match cx.s3_path() {
                S3Path::Bucket { bucket } => (bucket, None),
                S3Path::Object { bucket, key } => (bucket, Some(&**key)),
                S3Path::Root => return Err(s3_error!(AccessDenied)),
            };
            let seen = self.pass(&user, right, opens, bucket, key).await?;
            if let Some(seen) = seen {
                if user.name.is_empty() && sets_headers(cx.uri()) {
                    let text = "sign the request to set headers of its answer";
                    return Err(s3_error!(InvalidRequest, "{text}"));
                }
                cx.extensions_mut().insert(seen);
            }
        }
        cx.extensions_mut().insert(user);
        Ok(())
    }

    async fn copy_object(&self, req: &mut S3Request<CopyObjectInput>) -> S3Result<()> {
        let from = req.input.copy_source.clone();
        self.pass_source(&from, req).await
    }

    async fn upload_part_copy(&self, req: &mut S3Request<UploadPartCopyInput>) -> S3Result<()> {
        let from = req.input.copy_source.clone();
        self.pass_source(&from, req).await
    }

    async fn post_object(&self, req: &mut S3Request<PostObjectInput>) -> S3Result<()> {
        // `s3s` takes forms signed in the old way, too; those name no service.
        if req.credentials.is_some() && req.service.is_none() {
            return Err(s3_error!(InvalidRequest, "sign forms with AWS4-HMAC-SHA256 (SigV4)"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acl_is_signed_with_its_request() {
        let plain: Uri = "/b/k".parse().unwrap();
        let mut headers = HeaderMap::new();
        check_acl_signed(&headers, &plain).unwrap();
        headers.insert("x-amz-acl", "public-read".parse().unwrap());
        check_acl_signed(&headers, &plain).unwrap_err();
        let address = |names: &str| format!("/b/k?X-Amz-SignedHeaders={names}").parse().unwrap();
        check_acl_signed(&headers, &address("host%3Bx-amz-acl")).unwrap();
        check_acl_signed(&headers, &address("host")).unwrap_err();
        let by_header = |names: &str, query: &str| {
            let mut headers = headers.clone();
            let text = format!("AWS4-HMAC-SHA256 Credential=a, SignedHeaders={names}, Signature=b");
            headers.insert(header::AUTHORIZATION, text.parse().unwrap());
            check_acl_signed(&headers, &format!("/b/k{query}").parse().unwrap())
        };
        by_header("host;x-amz-acl;x-amz-date", "").unwrap();
        by_header("host;x-amz-date", "").unwrap_err();
        by_header("host;x-amz-acl", "?X-Amz-SignedHeaders=host").unwrap_err();
        by_header("host;x-amz-acl", "?X-Amz-Signed%48eaders=host").unwrap_err();
    }

    #[test]
    fn an_acl_opens_nothing_that_is_an_admins_or_tells_acls() {
        for operation in ["GetObject", "ListObjectsV2", "PutObject", "DeleteObjects"] {
            assert!(matches!(needs(operation), Some((_, Some(_)))), "{operation}");
        }
        for operation in ["PutBucketAcl", "GetBucketAcl", "PutObjectAcl", "DeleteBucket", "New"] {
            assert!(matches!(needs(operation), Some((_, None))), "{operation}");
        }
    }
}
