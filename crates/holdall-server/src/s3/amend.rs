//! What `s3s` leaves out of, or adds to, the XML it writes; and signatures that it takes for too
//! long, or refuses in words that clients do not know.
//!
//! Owns: [`with_id`], [`sound`], [`with_status`], [`unquoted`], [`unmet_policy`],
//! [`refused_region`]. Only bodies that lie in memory whole are changed; errors and attributes
//! always do.

use crate::http::{spelling::parameter, xml::is_xml};
use crate::s3::error::custom;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use s3s::region::Region;
use s3s::{Body, S3Error};

/// The region in the answer to a client that signs for one that cannot be; any other is taken.
pub const REGION: &str = "us-east-1";

fn rewrite(response: &mut Response<Body>, change: impl FnOnce(&str) -> Option<String>) {
    let Some(bytes) = response.body().bytes() else { return };
    let Some(new) = std::str::from_utf8(&bytes).ok().and_then(change) else { return };
    response.headers_mut().remove(header::CONTENT_LENGTH);
    *response.body_mut() = Body::from(Bytes::from(new));
}

/// Names the request in an error's body, as its header does: clients print it from there.
pub fn with_id(response: &mut Response<Body>, id: &str) {
    rewrite(response, |text| {
        let body = text.strip_suffix("</Error>").filter(|body| !body.contains("<RequestId>"))?;
        let wrong_region = body.contains("<Code>AuthorizationHeaderMalformed</Code>");
        let region =
            if wrong_region { format!("<Region>{REGION}</Region>") } else { String::new() };
        Some(format!("{body}{region}<RequestId>{id}</RequestId></Error>"))
    });
}

/// Writes what XML cannot hold in another way: a carriage return, which readers would take for the
/// end of a line, as a reference; characters that no reader of XML 1.0 takes, not even as a
/// reference, as U+FFFD. `encoding-type=url` shows such names whole.
pub fn sound(response: &mut Response<Body>) {
    let kind = response.headers().get(header::CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/xml") {
        return;
    }
    rewrite(response, |text| {
        let suspect = |byte: u8| byte == b'\r' || (byte < b' ' && byte != b'\t' && byte != b'\n');
        if !text.bytes().any(|byte| suspect(byte) || byte == 0xEF) {
            return None;
        }
        Some(text.chars().fold(String::with_capacity(text.len()), |mut out, c| {
            match c {
                '\r' => out.push_str("&#13;"),
                c if is_xml(c) => out.push(c),
                _ => out.push(char::REPLACEMENT_CHARACTER),
            }
            out
        }))
    });
}

/// A head of a part has the status that a get of it has.
pub fn with_status(response: &mut Response<Body>) {
    if response.status() == StatusCode::OK && response.headers().contains_key(header::CONTENT_RANGE)
    {
        *response.status_mut() = StatusCode::PARTIAL_CONTENT;
    }
}

/// Names the region to those who may not look at a bucket, too: the Go SDK asks without a
/// signature.
pub fn with_region(response: &mut Response<Body>) {
    if response.status() == StatusCode::FORBIDDEN {
        let region = HeaderValue::from_static(REGION);
        response.headers_mut().insert("x-amz-bucket-region", region);
    }
}

/// Takes the quotes from an object's ETag if S3 writes none: among its attributes.
pub fn unquoted(response: &mut Response<Body>) {
    rewrite(response, |text| {
        let (before, rest) = text.split_once("<ETag>")?;
        let (etag, after) = rest.split_once("</ETag>")?;
        let etag = etag.replace("&quot;", "").replace('"', "");
        Some(format!("{before}<ETag>{etag}</ETag>{after}"))
    });
}

/// Answers a form that its policy does not allow as S3 does: it may not do that. `s3s` calls the
/// policy wrong.
pub fn unmet_policy(response: &mut Response<Body>) {
    const UNMET: [&str; 2] = ["Policy condition ", "Bucket in form field "];
    const CODE: &str = "<Code>InvalidPolicyDocument</Code>";
    let mut unmet = false;
    rewrite(response, |text| {
        let told = text.split_once("<Message>")?.1;
        unmet = text.contains(CODE) && UNMET.iter().any(|begin| told.starts_with(begin));
        unmet.then(|| text.replacen(CODE, "<Code>AccessDenied</Code>", 1))
    });
    if unmet {
        *response.status_mut() = StatusCode::FORBIDDEN;
    }
}

/// Whether a request was refused for its key or its signature.
pub fn is_wrong_key(response: &Response<Body>) -> bool {
    if response.status() != StatusCode::FORBIDDEN {
        return false;
    }
    let bytes = response.body().bytes().unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    ["SignatureDoesNotMatch", "InvalidAccessKeyId"]
        .iter()
        .any(|code| text.contains(&format!("<Code>{code}</Code>")))
}

/// Whether a request asks for an object's attributes.
pub fn asks_attributes(uri: &Uri) -> bool {
    parameter(uri, "attributes").is_some()
}

/// Refuses a signature for a region whose name is none, as `US`, in the way that clients know and
/// sign again after.
pub fn refused_region(headers: &HeaderMap) -> Option<S3Error> {
    let signature = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let scope = signature.strip_prefix("AWS4-HMAC-SHA256")?.split_once("Credential=")?.1;
    // The access key, the date, the region; a key may hold slashes, so from the end.
    let region = scope.split(',').next()?.trim().rsplit('/').nth(2)?;
    Region::new(region.into()).err()?;
    let told = format!("the region {region:?} is wrong; expecting {REGION:?}");
    Some(custom("AuthorizationHeaderMalformed", StatusCode::BAD_REQUEST, told))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(text: &'static str) -> Response<Body> {
        Response::new(Body::from(Bytes::from_static(text.as_bytes())))
    }

    fn text(response: &Response<Body>) -> Bytes {
        response.body().bytes().unwrap()
    }

    #[test]
    fn an_error_names_its_request_once() {
        let mut told = response("<Error><Code>NoSuchKey</Code></Error>");
        with_id(&mut told, "7");
        with_id(&mut told, "8");
        let expected = "<Error><Code>NoSuchKey</Code><RequestId>7</RequestId></Error>";
        assert_eq!(text(&told), expected);
        let mut other = response("an object that ends with </Error> or not");
        with_id(&mut other, "7");
        assert_eq!(text(&other), "an object that ends with </Error> or not");
    }

    #[test]
    fn what_xml_cannot_hold_is_written_in_another_way() {
        let written = |name: &str| {
            let mut response = Response::new(Body::from(Bytes::from(format!("<Key>{name}</Key>"))));
            let kind = http::HeaderValue::from_static("application/xml");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            sound(&mut response);
            String::from_utf8(text(&response).to_vec()).unwrap()
        };
        assert_eq!(
            written("a\tb\n\u{e9}\u{fffd}\u{ffe}"),
            "<Key>a\tb\n\u{e9}\u{fffd}\u{ffe}</Key>"
        );
        assert_eq!(written("Icon\r"), "<Key>Icon&#13;</Key>");
        for odd in (0..0x20u8).map(char::from).filter(|c| !"\t\n\r".contains(*c)) {
            assert_eq!(written(&format!("a{odd}")), "<Key>a\u{fffd}</Key>");
        }
        assert_eq!(written("\u{fffe}\u{ffff}\u{10ffff}"), "<Key>\u{fffd}\u{fffd}\u{10ffff}</Key>");
    }

    #[test]
    fn an_etag_loses_its_quotes_and_nothing_else_changes() {
        for quote in ["&quot;", "\""] {
            let etag = format!("<A><ETag>{quote}ab-2{quote}</ETag><Size>3</Size></A>");
            let mut attributes = Response::new(Body::from(Bytes::from(etag)));
            unquoted(&mut attributes);
            assert_eq!(text(&attributes), "<A><ETag>ab-2</ETag><Size>3</Size></A>");
        }
        let mut without = response("<A><ObjectSize>3</ObjectSize></A>");
        unquoted(&mut without);
        assert_eq!(text(&without), "<A><ObjectSize>3</ObjectSize></A>");
    }

    #[test]
    fn a_region_that_is_none_is_answered_with_one_that_is() {
        let refused = |region: &str| {
            let signed = format!(
                "AWS4-HMAC-SHA256 Credential=me/20261124/{region}/s3/aws4_request, \
                 SignedHeaders=host, Signature=00"
            );
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, signed.parse().unwrap());
            refused_region(&headers)
        };
        assert!(refused("eu-west-1").is_none() && refused("garage").is_none());
        let mut told = refused("US").unwrap().to_http_response().unwrap();
        with_id(&mut told, "7");
        assert!(
            text(&told).ends_with(b"<Region>us-east-1</Region><RequestId>7</RequestId></Error>")
        );
    }
}
