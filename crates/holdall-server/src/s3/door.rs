//! Requests whose signature was checked and that are written anew before `s3s` takes them apart:
//! what stands in an address becomes headers, frames are opened, bodies of XML are checked against
//! their digests, and headers that `s3s` cannot read are left out (`admit` has read them).
//!
//! Owns: [`Door`]. The edits of the extension pass here, too.

use crate::config::Limits;
use crate::http::digest::Announced;
use crate::http::{body, spelling::digits};
use crate::refusal::{Refusal, Why};
use crate::s3::access::{Passed, check_acl_signed};
use crate::s3::admit::{Admitted, EDIT, Framing, is_read_here, without_headers};
use crate::s3::edit_verbs::Verbs;
use crate::s3::frames::Framed;
use crate::s3::message;
use bytes::Bytes;
use http::{Extensions, HeaderMap, HeaderValue, Method, Request, Uri, header};
use s3s::dto::StreamingBlob;
use s3s::route::S3Route;
use s3s::service::S3Service;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};

/// Writes requests anew.
#[derive(Debug, Clone)]
pub struct Door {
    /// The edits of the extension.
    pub verbs: Verbs,
    /// Where the rest goes.
    pub inner: S3Service,
    /// Limits of bodies.
    pub limits: Limits,
    /// Whether ACLs count, which must be signed then.
    pub public_acls: bool,
}

/// The length that the opened frames have by the client's word.
fn decoded_length(headers: &HeaderMap) -> S3Result<Option<HeaderValue>> {
    let Some(value) = headers.get("x-amz-decoded-content-length") else { return Ok(None) };
    let sound = value.to_str().is_ok_and(|text| digits(text).is_some());
    let bad = || s3_error!(InvalidArgument, "x-amz-decoded-content-length is no number of bytes");
    if sound { Ok(Some(value.clone())) } else { Err(bad()) }
}

impl Door {
    /// Takes a body of XML in, and compares it with its digests.
    async fn checked(
        &self,
        body: Body,
        headers: &HeaderMap,
        admitted: &Admitted,
    ) -> S3Result<Bytes> {
        let most = self.limits.xml_bytes;
        let taken = body::collect(StreamingBlob::from(body), most as u64, self.limits.idle()).await;
        let taken = taken.map_err(|e| match e.why {
            Why::TooLong => s3_error!(MaxMessageLengthExceeded, "it has at most {most} bytes"),
            _ => e.into(),
        })?;
        let mut announced = admitted.with_trailers(Announced::of_headers(headers)?);
        if admitted.operation.name == "CompleteMultipartUpload" {
            // Those are the object's.
            announced = Announced { md5: announced.md5, ..Announced::default() };
        }
        announced.check(&taken)?;
        Ok(taken)
    }

    /// The request as the operations see it.
    async fn rewritten(&self, mut req: S3Request<Body>) -> S3Result<S3Request<Body>> {
        let admitted = Admitted::from_extensions(&req.extensions)?;
        for (name, value) in &admitted.from_address {
            req.headers.insert(name.clone(), value.clone());
        }
        if admitted.framing == Framing::Unsigned {
            let body = std::mem::take(&mut req.input);
            req.input = Framed::opened(body, admitted.trailers.clone());
            match decoded_length(&req.headers)? {
                Some(len) => drop(req.headers.insert(header::CONTENT_LENGTH, len)),
                None => drop(req.headers.remove(header::CONTENT_LENGTH)),
            }
        }
        if admitted.operation.takes_xml() {
            let body = std::mem::take(&mut req.input);
            let bytes = self.checked(body, &req.headers, &admitted).await?;
            let bytes = Bytes::from(message::read(&bytes)?);
            req.headers.insert(header::CONTENT_LENGTH, bytes.len().into());
            req.input = Body::from(bytes);
        }
        Ok(req)
    }
}

#[async_trait::async_trait]
impl S3Route for Door {
    fn is_match(&self, _: &Method, _: &Uri, headers: &HeaderMap, given: &mut Extensions) -> bool {
        Admitted::from_extensions(given)
            .is_ok_and(|admitted| admitted.operation.name == EDIT || admitted.is_rewritten(headers))
    }

    async fn check_access(&self, req: &mut S3Request<Body>) -> S3Result<()> {
        if Admitted::from_extensions(&req.extensions)?.operation.name == EDIT {
            return self.verbs.check_access(req);
        }
        if self.public_acls && req.credentials.is_some() {
            check_acl_signed(&req.headers, &req.uri)?;
        }
        // The rest is checked where the request arrives.
        Ok(())
    }

    async fn call(&self, req: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let req = self.rewritten(req).await?;
        if Admitted::from_extensions(&req.extensions)?.operation.name == EDIT {
            return self.verbs.call(req).await;
        }
        let mut inner = Request::new(req.input);
        *inner.method_mut() = req.method;
        *inner.uri_mut() = without_headers(&req.uri)?;
        *inner.headers_mut() = req.headers;
        inner.headers_mut().remove(header::AUTHORIZATION);
        let read_here = |name: &&http::HeaderName| is_read_here(name);
        let read_here: Vec<_> = inner.headers().keys().filter(read_here).cloned().collect();
        for name in read_here {
            inner.headers_mut().remove(name);
        }
        *inner.extensions_mut() = req.extensions;
        inner.extensions_mut().insert(Passed(req.credentials));
        let answer =
            self.inner.call(inner).await.map_err(|e| Refusal::internal(&format!("{e:?}")))?;
        let (head, body) = answer.into_parts();
        let mut response = S3Response::new(body);
        response.status = Some(head.status);
        response.headers = head.headers;
        response.extensions = head.extensions;
        Ok(response)
    }
}
