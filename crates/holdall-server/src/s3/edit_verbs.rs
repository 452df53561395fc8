//! The extension's edits as S3's clients ask for them: signed like any request.

use crate::http::digest::Announced;
use crate::objects::edit_verbs::{Asked, answer, incoming};
use crate::objects::{condition::etags, edit::Condition, place::check_key, put::Objects};
use crate::s3::admit::Admitted;
use crate::users::{Right, Users};
use http::Uri;
use percent_encoding::percent_decode_str;
use s3s::dto::StreamingBlob;
use s3s::path::S3Path;
use s3s::{Body, S3Request, S3Response, S3Result, s3_error};

/// Answers the verbs.
#[derive(Debug, Clone)]
pub struct Verbs {
    /// What is served.
    pub objects: Objects,
    /// Who may call them.
    pub users: Users,
}

/// The bucket and the key that a request names.
fn place(uri: &Uri, host_bucket: Option<&str>) -> S3Result<(String, String)> {
    let bad = |_| s3_error!(InvalidURI, "the path is not UTF-8");
    let path = percent_decode_str(uri.path()).decode_utf8().map_err(bad)?;
    match s3s::path::parse_virtual_hosted_style(host_bucket, &path) {
        Ok(S3Path::Object { bucket, key }) => Ok((bucket.to_string(), key.to_string())),
        _ => Err(s3_error!(InvalidRequest, "an edit names an object: /BUCKET/KEY")),
    }
}

impl Verbs {
    /// Whether a request may edit.
    ///
    /// # Errors
    /// AccessDenied; InvalidRequest if no object is named.
    pub fn check_access(&self, req: &S3Request<Body>) -> S3Result<()> {
        let (user, admitted) = (
            self.users.signed(req.credentials.as_ref())?,
            Admitted::from_extensions(&req.extensions)?,
        );
        let (bucket, key) = place(&req.uri, admitted.host_bucket.as_deref())?;
        Asked::parse(key, req.uri.query())?;
        Ok(Users::check(&user, Right::Write, &bucket)?)
    }

    /// Edits.
    ///
    /// # Errors
    /// Those of the request, of its body, of the engine.
    pub async fn call(&self, mut req: S3Request<Body>) -> S3Result<S3Response<Body>> {
        let (user, admitted) = (
            self.users.signed(req.credentials.as_ref())?,
            Admitted::from_extensions(&req.extensions)?,
        );
        let (bucket, key) = place(&req.uri, admitted.host_bucket.as_deref())?;
        check_key(&key)?;
        let bucket = self.objects.catalog.bucket(&bucket)?;
        let asked = Asked::parse(key, req.uri.query())?;
        let body = StreamingBlob::from(std::mem::take(&mut req.input));
        let announced = admitted.with_trailers(Announced::of_headers(&req.headers)?);
        let headers = &req.headers;
        let condition = Condition {
            matches: etags(headers, "if-match")?,
            matches_not: etags(headers, "if-none-match")?,
            ..Condition::default()
        };
        let incoming = incoming(headers, body, announced);
        let done = self.objects.perform(bucket, &asked, &user, condition, incoming).await?;
        let (body, headers) = answer(&done);
        let mut response = S3Response::new(body);
        response.headers = headers;
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_line_is_taken_apart() {
        let named = |uri: &str, host: Option<&str>| place(&uri.parse().unwrap(), host).ok();
        let pair = |bucket: &str, key: &str| Some((bucket.to_owned(), key.to_owned()));
        let uri = "/photos/a%20b?holdall=insert&at=17";
        assert_eq!(named(uri, None), pair("photos", "a b"));
        assert_eq!(named("/a/b?holdall=insert", Some("photos")), pair("photos", "a/b"));
        assert_eq!(named("/photos?holdall=insert", None), None);
        assert_eq!(named("/photos/%ff?holdall=insert", None), None);
    }
}
