//! Objects put by a form.
//!
//! `s3s` checks the form's signature and policy and takes its file in; what it leaves out of the
//! fields is added here, and what they ask for in vain is refused.

use crate::s3::admit::refused_field;
use crate::s3::form::{FILE_NAME, Fields, Form};
use crate::s3::list::address;
use crate::s3::tagging;
use http::{Extensions, HeaderMap, HeaderValue, Method, Response, header};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use s3s::Body;
use s3s::dto::{ChecksumAlgorithm, ObjectCannedACL, PutObjectInput};
use s3s::{S3Request, S3Result, s3_error};

/// Fields that state a condition, a part of one, or how a body travels. A form has none in S3.
const CONDITIONS: [&str; 13] = [
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "content-range",
    "partnumber",
    "range",
    "uploadid",
    "versionid",
    "x-amz-content-sha256",
    "x-amz-decoded-content-length",
    "x-amz-trailer",
];

/// What an answer to a form needs: `s3s` answers with the key as it was written.
#[derive(Debug, Clone)]
struct Posted {
    /// What `${filename}` stood for in the key, where it stood there.
    name: Option<String>,
    /// The object's address.
    address: Option<String>,
}

/// Refuses fields that ask for what is not done.
fn check(form: &Form) -> S3Result<()> {
    for (name, value) in &form.fields {
        if CONDITIONS.contains(&name.as_str()) {
            return Err(s3_error!(NotImplemented, "a form has no field {name}"));
        }
        if let Some(e) = refused_field(name, value) {
            return Err(e);
        }
    }
    let Some(named) = form.get("x-amz-sdk-checksum-algorithm") else { return Ok(()) };
    if form.get(&format!("x-amz-checksum-{}", named.to_ascii_lowercase())).is_some() {
        return Ok(());
    }
    Err(s3_error!(InvalidRequest, "the form has no checksum by {named}"))
}

/// Adds to a put what its form says.
fn add(input: &mut PutObjectInput, form: &Form) -> S3Result<()> {
    if input.acl.is_none() {
        input.acl = form.get("acl").map(|name| ObjectCannedACL::from(name.to_owned()));
    }
    if input.tagging.is_none()
        && let Some(xml) = form.get("tagging")
    {
        input.tagging = Some(tagging::header_of(xml)?);
    }
    if let Some(name) = form.get("x-amz-checksum-algorithm") {
        input.checksum_algorithm = Some(ChecksumAlgorithm::from(name.to_owned()));
    }
    input.key = form.filled(&input.key);
    if input.key.is_empty() {
        return Err(s3_error!(InvalidArgument, "the form's key is empty"));
    }
    for value in [
        &mut input.cache_control,
        &mut input.content_disposition,
        &mut input.content_encoding,
        &mut input.content_language,
        &mut input.content_type,
    ] {
        *value = value.as_ref().map(|value| form.filled(value));
    }
    for value in input.metadata.iter_mut().flat_map(|metadata| metadata.values_mut()) {
        *value = form.filled(value);
    }
    Ok(())
}

/// Adds to a put what its form says, if it has one; returns what the answer needs of it.
///
/// # Errors
/// MalformedPOSTRequest, NotImplemented for fields that ask for what is not done.
pub fn add_form(req: &mut S3Request<PutObjectInput>) -> S3Result<Extensions> {
    let mut told = Extensions::new();
    if req.method != Method::POST {
        return Ok(told);
    }
    let none = || s3_error!(MalformedPOSTRequest, "the form names no boundary, or two");
    let fields: Fields = req.extensions.remove().ok_or_else(none)?;
    let form = fields.read()?;
    check(&form)?;
    let named = req.input.key.contains(FILE_NAME);
    add(&mut req.input, &form)?;
    let address = address(&req.input.bucket, &req.input.key);
    told.insert(Posted { name: named.then_some(form.file_name), address });
    Ok(told)
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Writes the file's name and the object's address into the answer to a form.
pub fn name_file(response: &mut Response<Body>) {
    let Some(Posted { name, address }) = response.extensions_mut().remove() else { return };
    if let Some(bytes) = response.body().bytes().filter(|bytes| !bytes.is_empty()) {
        let mut text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some(name) = &name {
            text = text.replace(FILE_NAME, &escaped(name));
        }
        let (begin, end) = ("<Location>", "</Location>");
        if let (Some(from), Some(to)) = (text.find(begin), text.find(end)) {
            let address = address.map(|path| format!("{begin}{path}{end}"));
            text.replace_range(from..to + end.len(), &address.unwrap_or_default());
        }
        response.headers_mut().remove(header::CONTENT_LENGTH);
        *response.body_mut() = Body::from(bytes::Bytes::from(text));
    }
    if let Some(name) = &name {
        redirect(response.headers_mut(), name);
    }
}

/// The key is the last but one parameter of the address that a form's client is sent to.
fn redirect(headers: &mut HeaderMap, name: &str) {
    const WRITTEN: &str = "%24%7Bfilename%7D";
    let location = headers.get(header::LOCATION).and_then(|value| value.to_str().ok());
    let Some((before, key)) = location.and_then(|text| text.rsplit_once("key=")) else { return };
    let name = utf8_percent_encode(name, NON_ALPHANUMERIC).to_string();
    let text = format!("{before}key={}", key.replace(WRITTEN, &name));
    if let Ok(value) = HeaderValue::from_str(&text) {
        headers.insert(header::LOCATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_sent_on_with_the_key_that_was_made() {
        let mut headers = HeaderMap::new();
        let to = "http://a/?x=%24%7Bfilename%7D&bucket=b&key=up%2F%24%7Bfilename%7D&etag=1";
        headers.insert(header::LOCATION, to.parse().unwrap());
        redirect(&mut headers, "c d&e");
        let to = "http://a/?x=%24%7Bfilename%7D&bucket=b&key=up%2Fc%20d%26e&etag=1";
        assert_eq!(headers[header::LOCATION], to);
    }
}
