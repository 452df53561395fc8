//! Which requests to S3 are understood: the operation, and all that its address and headers ask
//! for, are done or refused before anything happens.
//!
//! Owns: [`admit`], which each request passes before `s3s` looks at it; [`Admitted`]. `access.rs`
//! compares the operation that `s3s` found with the one found here.

mod conditions;
mod headers;
mod operations;
mod parameters;

pub use conditions::IfRange;
pub use headers::refused;
pub use operations::{EDIT, Operation};
pub use parameters::without_headers;

use crate::http::digest::{Announced, Trailers};
use crate::http::{header::ByteRange, spelling::is_escaped};
use crate::objects::condition::Read;
use crate::s3::error::custom;
use crate::s3::frames::Framed;
use crate::users::OWNER;
use conditions::is_condition;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use operations::{Level, OPERATIONS};
use parameters::Query;
use percent_encoding::percent_decode_str;
use s3s::{Body, S3Error, S3Result, s3_error};
use std::sync::Arc;

/// The checksums that may come behind a body.
const TRAILING: [(&str, &str); 5] = [
    ("x-amz-checksum-crc32", "CRC32"),
    ("x-amz-checksum-crc32c", "CRC32C"),
    ("x-amz-checksum-crc64nvme", "CRC64NVME"),
    ("x-amz-checksum-sha1", "SHA1"),
    ("x-amz-checksum-sha256", "SHA256"),
];

/// How a body travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// As it is.
    Plain,
    /// In frames that `s3s` takes apart, since their chunks are signed or declared unsigned.
    Signed,
    /// In frames that are taken apart here.
    Unsigned,
}

/// A request that was understood.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// What it asks.
    pub operation: &'static Operation,
    /// Its conditions.
    pub conditions: Read,
    /// Its conditions on a copy's source.
    pub of_source: Read,
    /// On what its range depends.
    pub if_range: Option<IfRange>,
    /// The bytes it asks for; `None` if all, or if the header is not one that HTTP knows.
    pub range: Option<ByteRange>,
    /// The header Expires, as it is.
    pub expires: Option<String>,
    /// The bucket that its host names.
    pub host_bucket: Option<String>,
    /// How its body travels.
    pub framing: Framing,
    /// The algorithms whose checksums come behind the body.
    pub trailing: Vec<&'static str>,
    /// What came behind the body.
    pub trailers: Trailers,
    /// Headers that stood in the address.
    pub from_address: Vec<(HeaderName, HeaderValue)>,
}

impl Admitted {
    /// That of a request. All requests to S3 have one.
    ///
    /// # Errors
    /// NotImplemented if there is none.
    pub fn from_extensions(extensions: &http::Extensions) -> S3Result<Arc<Self>> {
        let none = || s3_error!(NotImplemented, "the request was not looked at");
        extensions.get::<Arc<Self>>().cloned().ok_or_else(none)
    }

    /// Adds to what is announced of the body what is to come behind it.
    pub fn with_trailers(&self, announced: Announced) -> Announced {
        let (trailing, trailers) = (self.trailing.clone(), self.trailers.clone());
        Announced { trailing, trailers, ..announced }
    }

    /// Whether the request is to be written anew for `s3s` (`door.rs`).
    pub fn is_rewritten(&self, headers: &HeaderMap) -> bool {
        self.operation.name != "PostObject"
            && (self.operation.takes_xml()
                || self.framing == Framing::Unsigned
                || !self.from_address.is_empty()
                || headers.keys().any(is_read_here))
    }
}

/// Only the one version that there is can be named.
///
/// # Errors
/// NoSuchVersion.
pub fn refuse_version(version: Option<&str>) -> S3Result<()> {
    match version {
        None | Some("" | "null") => Ok(()),
        Some(other) => Err(s3_error!(NoSuchVersion, "there is no version {other}")),
    }
}

/// Whether `s3s` is not to see a header: it refuses what HTTP allows there.
pub fn is_read_here(name: &HeaderName) -> bool {
    is_condition(name) || matches!(name.as_str(), "expires" | "range" | "if-range")
}

/// Looks at a request to S3; a bucket's own host names the bucket.
///
/// # Errors
/// NotImplemented for what is not offered; those of a header or parameter that cannot be read.
pub fn admit(mut req: Request<Body>, host_bucket: Option<String>) -> S3Result<Request<Body>> {
    if !is_escaped(req.uri().path()) {
        return Err(s3_error!(
            InvalidURI,
            "a % of the path is followed by no two digits; write %25"
        ));
    }
    let query = Query::from_uri(req.uri())?;
    headers::check_form(req.headers())?;
    query.check_signed(req.headers())?;
    let mut effective = req.headers().clone();
    query.add_to(&mut effective)?;
    let operation = find_operation(
        req.method(),
        level(req.uri().path(), host_bucket.is_some()),
        &query,
        &effective,
    )?;
    query.check_numbers()?;
    let kind = text(&effective, "content-type").to_ascii_lowercase();
    let is_form = req.method() == Method::POST && kind.starts_with("multipart/form-data");
    if is_form != (operation.name == "PostObject") {
        return Err(s3_error!(NotImplemented, "{} has no form, or is none", operation.name));
    }
    if let Some(e) = headers::refused_by(operation.name, &effective) {
        return Err(e);
    }
    if !query.headers.is_empty() && operation.name == "PostObject" {
        return Err(s3_error!(InvalidRequest, "a form's address has no x-amz- parameters"));
    }
    let trailing = trailing(&effective)?;
    headers::check_sdk(operation.name, req.headers(), &trailing)?;
    check_source(&effective)?;
    check_owner(&effective)?;
    refuse_version(query.get("versionId"))?;
    let framing = framing(&effective, query.is_signed)?;
    let range =
        effective.get(header::RANGE).and_then(|value| ByteRange::parse(value.to_str().ok()?));
    if range.is_some() && query.get("partNumber").is_some() {
        return Err(s3_error!(InvalidRequest, "ask for a range or for a part, not for both"));
    }
    let expires = effective.get(header::EXPIRES);
    let admitted = Admitted {
        operation,
        conditions: Read::from_headers(&effective)?,
        of_source: Read::of_source(&effective)?,
        if_range: IfRange::from_headers(&effective),
        range,
        expires: expires.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
        host_bucket,
        framing,
        trailing,
        trailers: Trailers::default(),
        from_address: query.headers,
    };
    if framing == Framing::Signed {
        let trailers = admitted.trailers.clone();
        req = req.map(|body| Framed::checked(body, trailers));
    }
    req.extensions_mut().insert(Arc::new(admitted));
    Ok(req)
}

fn level(path: &str, has_own_host: bool) -> Level {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let path = decoded.strip_prefix('/').unwrap_or(&decoded);
    let key = if has_own_host {
        path
    } else if path.is_empty() {
        return Level::Service;
    } else {
        path.split_once('/').map_or("", |(_, key)| key)
    };
    if key.is_empty() { Level::Bucket } else { Level::Object }
}

/// The operation that a request asks.
fn find_operation(
    method: &Method,
    level: Level,
    query: &Query,
    headers: &HeaderMap,
) -> S3Result<&'static Operation> {
    let copies = headers.contains_key("x-amz-copy-source");
    let fits = |operation: &&Operation| {
        let same = operation.method == method.as_str() && operation.level == level;
        same && operation.copies == copies && operation.is_selected(&query.pairs)
    };
    // The one that most parameters select.
    let found = OPERATIONS.iter().filter(fits).max_by_key(|operation| operation.query.len());
    let unknown = || s3_error!(NotImplemented, "there is no such operation");
    let operation = found.ok_or_else(unknown)?;
    if !operation.offered {
        return Err(s3_error!(NotImplemented, "{} is not offered", operation.name));
    }
    query.refuse_unknown(operation)?;
    Ok(operation)
}

/// Refuses a copy's source whose address can be read in two ways.
fn check_source(headers: &HeaderMap) -> S3Result<()> {
    if is_escaped(text(headers, "x-amz-copy-source")) {
        return Ok(());
    }
    let text = "a % of x-amz-copy-source is followed by no two digits; write %25";
    Err(s3_error!(InvalidArgument, "{text}"))
}

/// Whether a request, or a field of a form, names another owner than there is.
pub fn is_other_owner(name: &str, value: &[u8]) -> bool {
    matches!(name, "x-amz-expected-bucket-owner" | "x-amz-source-expected-bucket-owner")
        && value != OWNER.as_bytes()
}

/// That a request is meant for buckets of another owner than there is.
pub fn other_owner(name: &str) -> S3Error {
    s3_error!(AccessDenied, "{name} is not {OWNER}, who owns all buckets")
}

/// Refuses a request that is meant for buckets of another owner than there is.
fn check_owner(headers: &HeaderMap) -> S3Result<()> {
    let mut all = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
    match all.find(|(name, value)| is_other_owner(name, value)) {
        Some((name, _)) => Err(other_owner(name)),
        None => Ok(()),
    }
}

fn text<'h>(headers: &'h HeaderMap, name: &str) -> &'h str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// How a body travels, by the headers that say so.
fn framing(headers: &HeaderMap, signed_address: bool) -> S3Result<Framing> {
    let digest = text(headers, "x-amz-content-sha256");
    let decoded = headers.contains_key("x-amz-decoded-content-length");
    if digest.starts_with("STREAMING-") && !signed_address {
        if headers.contains_key(header::AUTHORIZATION) {
            return Ok(Framing::Signed);
        }
        if digest != "STREAMING-UNSIGNED-PAYLOAD-TRAILER" {
            return Err(s3_error!(InvalidRequest, "the chunks are signed, the request is not"));
        }
        return Ok(Framing::Unsigned);
    }
    if decoded || headers.contains_key("x-amz-trailer") {
        return Ok(Framing::Unsigned);
    }
    let encodings = headers.get_all(header::CONTENT_ENCODING).iter();
    let mut encodings = encodings.filter_map(|v| v.to_str().ok()).flat_map(|v| v.split(','));
    let framed = encodings.any(|encoding| encoding.trim().eq_ignore_ascii_case("aws-chunked"));
    let is_digest = digest.len() == 64;
    if framed && !is_digest && text(headers, "content-length") != "0" {
        let text = "a body in aws-chunked needs x-amz-decoded-content-length";
        return Err(custom("MissingContentLength", StatusCode::LENGTH_REQUIRED, text));
    }
    Ok(Framing::Plain)
}

/// The algorithms whose checksums are announced to come behind the body.
fn trailing(headers: &HeaderMap) -> S3Result<Vec<&'static str>> {
    let mut trailing = Vec::new();
    for value in headers.get_all("x-amz-trailer") {
        for name in value.to_str().unwrap_or("?").split(',').map(str::trim) {
            let known = TRAILING.iter().find(|(header, _)| header.eq_ignore_ascii_case(name));
            let other = || s3_error!(InvalidRequest, "x-amz-trailer: {name} is no checksum");
            trailing.push(known.ok_or_else(other)?.1);
        }
    }
    Ok(trailing)
}

/// Why a field of a form asks for what cannot be done.
pub fn refused_field(name: &str, value: &str) -> Option<S3Error> {
    let signs = ["x-amz-algorithm", "x-amz-credential", "x-amz-signature", "x-amz-date"];
    if signs.contains(&name) {
        return None;
    }
    if is_other_owner(name, value.as_bytes()) {
        return Some(other_owner(name));
    }
    refused("PostObject", name, value.as_bytes())
}

#[cfg(test)]
mod tests;
