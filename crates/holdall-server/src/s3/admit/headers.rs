//! The headers that state a condition or ask for a promise, and where each is honoured.
//!
//! Owns: [`HEADERS`]. A header of this list is refused if it is not honoured, and so is each
//! `x-amz-` header that is not in it. docs/serve.md shows the list, and a test compares the two.

use crate::http::{digest::sdk_algorithm, spelling::digits};
use crate::s3::admit::operations::EDIT;
use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Error, S3Result, s3_error};

/// Where a header is honoured.
#[derive(Debug, Clone, Copy)]
pub enum Rule {
    /// Everywhere, or it asks for nothing.
    Any,
    /// By these operations.
    By(&'static [&'static str]),
    /// With these values, and any value by these operations.
    Values(&'static [&'static str], &'static [&'static str]),
    /// Nowhere.
    Nowhere,
}

use Rule::{Any, By, Nowhere, Values};

/// Operations that make an object or set an ACL.
const WITH_ACL: &[&str] = &[
    "CreateBucket",
    "PutBucketAcl",
    "PutObject",
    "PutObjectAcl",
    "CopyObject",
    "CreateMultipartUpload",
    "PostObject",
];
const READS: &[&str] = &["GetObject", "HeadObject"];
const COPIES: &[&str] = &["CopyObject", "UploadPartCopy"];

/// The conditions, and what else changes which bytes a request means.
pub const CONDITIONS: &[(&str, Rule)] = &[
    (
        "if-match",
        By(&[
            "GetObject",
            "HeadObject",
            "PutObject",
            "CopyObject",
            "CreateMultipartUpload",
            "CompleteMultipartUpload",
            "DeleteObject",
            EDIT,
        ]),
    ),
    (
        "if-none-match",
        By(&[
            "GetObject",
            "HeadObject",
            "PutObject",
            "CopyObject",
            "CreateMultipartUpload",
            "CompleteMultipartUpload",
            EDIT,
        ]),
    ),
    ("if-modified-since", By(READS)),
    ("if-unmodified-since", By(READS)),
    ("if-range", By(READS)),
    ("range", By(READS)),
    ("content-range", Nowhere),
    ("x-amz-copy-source-if-match", By(COPIES)),
    ("x-amz-copy-source-if-modified-since", By(COPIES)),
    ("x-amz-copy-source-if-none-match", By(COPIES)),
    ("x-amz-copy-source-if-unmodified-since", By(COPIES)),
    ("x-amz-copy-source-range", By(&["UploadPartCopy"])),
    ("x-amz-if-match-last-modified-time", By(&["DeleteObject"])),
    ("x-amz-if-match-size", By(&["DeleteObject"])),
    ("x-amz-mp-object-size", By(&["CompleteMultipartUpload"])),
    ("x-amz-write-offset-bytes", By(&["PutObject"])),
];

/// What a client asks to be kept or done.
pub const PROMISES: &[(&str, Rule)] = &[
    ("x-amz-acl", Values(&["private", "bucket-owner-full-control"], WITH_ACL)),
    ("x-amz-bucket-object-lock-enabled", Values(&["false"], &[])),
    ("x-amz-copy-source-server-side-encryption-*", Nowhere),
    ("x-amz-grant-full-control", By(WITH_ACL)),
    ("x-amz-grant-read", By(WITH_ACL)),
    ("x-amz-grant-read-acp", By(WITH_ACL)),
    ("x-amz-grant-write-acp", By(WITH_ACL)),
    ("x-amz-grant-write", By(&["CreateBucket", "PutBucketAcl", "PutObjectAcl"])),
    ("x-amz-object-lock-*", Nowhere),
    ("x-amz-object-ownership", Nowhere),
    ("x-amz-server-side-encryption*", Nowhere),
    ("x-amz-storage-class", Values(&["STANDARD"], &[])),
    ("x-amz-tagging", By(&["PutObject", "CopyObject", "CreateMultipartUpload"])),
    ("x-amz-website-redirect-location", Nowhere),
];

/// The rest that clients send: honoured, or it asks for nothing that could fail.
const OTHERS: &[(&str, Rule)] = &[
    ("x-amz-bypass-governance-retention", Any),
    ("x-amz-cf-id", Any),
    ("x-amz-checksum-algorithm", Any),
    ("x-amz-checksum-crc32", Any),
    ("x-amz-checksum-crc32c", Any),
    ("x-amz-checksum-crc64nvme", Any),
    ("x-amz-checksum-mode", Any),
    ("x-amz-checksum-sha1", Any),
    ("x-amz-checksum-sha256", Any),
    ("x-amz-checksum-type", Any),
    ("x-amz-content-sha256", Any),
    ("x-amz-copy-source", By(COPIES)),
    ("x-amz-date", Any),
    ("x-amz-decoded-content-length", Any),
    ("x-amz-expected-bucket-owner", Any),
    ("x-amz-max-parts", Any),
    ("x-amz-meta-*", Any),
    ("x-amz-metadata-directive", Values(&["COPY", "REPLACE"], &[])),
    ("x-amz-mfa", Any),
    ("x-amz-object-attributes", Any),
    ("x-amz-optional-object-attributes", Any),
    ("x-amz-part-number-marker", Any),
    ("x-amz-request-payer", Any),
    ("x-amz-sdk-checksum-algorithm", Any),
    ("x-amz-security-token", Any),
    ("x-amz-source-expected-bucket-owner", Any),
    ("x-amz-tagging-directive", Values(&["COPY", "REPLACE"], &[])),
    ("x-amz-te", Any),
    ("x-amz-trailer", Any),
    ("x-amz-user-agent", Any),
];

/// Headers of one value beside those that begin with `x-amz-`.
const SINGLE: &[&str] = &[
    "authorization",
    "content-disposition",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "expires",
    "if-modified-since",
    "if-range",
    "if-unmodified-since",
    "range",
];
/// Those that hold lists, and may be there several times.
const LISTS: &[&str] = &[
    "x-amz-copy-source-if-match",
    "x-amz-copy-source-if-none-match",
    "x-amz-object-attributes",
    "x-amz-optional-object-attributes",
    "x-amz-trailer",
];
/// Those that are numbers.
const NUMBERS: &[&str] = &[
    "x-amz-if-match-size",
    "x-amz-max-parts",
    "x-amz-mp-object-size",
    "x-amz-part-number-marker",
    "x-amz-write-offset-bytes",
];
/// Those that are kept as any text, or are read elsewhere as bytes.
const TEXTS: &[&str] = &["content-disposition", "expires"];

/// The rule for a header; `None` if it is none of ours.
fn rule(name: &str) -> Option<Rule> {
    let is = |pattern: &str| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    };
    let mut all = CONDITIONS.iter().chain(PROMISES).chain(OTHERS);
    let found = all.find(|(pattern, _)| is(pattern)).map(|(_, rule)| *rule);
    found.or_else(|| name.starts_with("x-amz-").then_some(Nowhere))
}

/// Why an operation cannot do what a header, or a form's field, asks for.
pub fn refused(operation: &str, name: &str, value: &[u8]) -> Option<S3Error> {
    let honoured = match rule(name)? {
        Any => true,
        By(operations) => operations.contains(&operation),
        Values(values, operations) => {
            operations.contains(&operation) || values.iter().any(|v| v.as_bytes() == value)
        }
        Nowhere => false,
    };
    let told = || {
        let value = String::from_utf8_lossy(value);
        // Keys of SSE-C are secrets.
        let value = if name.contains("encryption") { "".into() } else { value };
        s3_error!(NotImplemented, "{operation} does not honour {name} {value}")
    };
    (!honoured).then(told).or_else(|| unread(name, value))
}

/// Why a value that is honoured says nothing: `s3s` takes an empty one for none, and a number for
/// its first digits.
fn unread(name: &str, value: &[u8]) -> Option<S3Error> {
    let listed = |rules: &[(&str, Rule)]| rules.iter().any(|(listed, _)| *listed == name);
    let says = listed(CONDITIONS) || listed(PROMISES) || name.starts_with("x-amz-checksum-");
    if value.is_empty() && says && name != "x-amz-tagging" {
        return Some(s3_error!(InvalidArgument, "{name} is empty"));
    }
    if name == "x-amz-meta-" {
        return Some(s3_error!(InvalidArgument, "metadata has a name behind x-amz-meta-"));
    }
    if name.starts_with("x-amz-meta-") && !is_decoded_whole(value) {
        let text = "is neither text nor encoded words of UTF-8 alone (RFC 2047)";
        return Some(s3_error!(InvalidArgument, "{name} {text}"));
    }
    let number = || std::str::from_utf8(value).ok().and_then(digits);
    (NUMBERS.contains(&name) && number().is_none())
        .then(|| s3_error!(InvalidArgument, "{name} is no number"))
}

/// Whether a value of metadata is plain, or encoded so that nothing of it is lost: `s3s` leaves
/// out what stands between encoded words, takes all charsets for UTF-8, and panics at `=?=`.
fn is_decoded_whole(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else { return true };
    let text = text.trim();
    let looks_encoded = |text: &str| text.starts_with("=?") && text.ends_with("?=");
    if !looks_encoded(text) {
        return true;
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.iter().filter(|word| looks_encoded(word)).count() > 1 {
        return words.into_iter().all(is_encoded_word);
    }
    is_encoded_word(text)
}

fn is_encoded_word(word: &str) -> bool {
    let inside = word.strip_prefix("=?").and_then(|rest| rest.strip_suffix("?="));
    let parts: Vec<&str> = inside.unwrap_or_default().split('?').collect();
    let [charset, encoding, _] = parts[..] else { return false };
    let is = |text: &str, known: &[&str]| known.iter().any(|k| text.eq_ignore_ascii_case(k));
    is(charset, &["utf-8", "us-ascii"]) && is(encoding, &["b", "q"])
}

/// Refuses headers that two readers would understand in two ways, or none in any.
///
/// # Errors
/// InvalidArgument for a header of one value that is there twice, and for one that is not text.
pub fn check_form(headers: &HeaderMap) -> S3Result<()> {
    for name in headers.keys().map(HeaderName::as_str) {
        let ours = name.starts_with("x-amz-");
        let single = SINGLE.contains(&name) || (ours && !LISTS.contains(&name));
        let values = headers.get_all(name);
        if single && values.iter().nth(1).is_some() {
            return Err(s3_error!(InvalidArgument, "the header {name} is there twice"));
        }
        let is_text = TEXTS.contains(&name) || name.starts_with("x-amz-meta-");
        let read = !is_text && (ours || SINGLE.contains(&name) || rule(name).is_some());
        let read = read || name == "content-encoding";
        if read && values.iter().any(|value| value.to_str().is_err()) {
            return Err(s3_error!(InvalidArgument, "the header {name} is not in ASCII"));
        }
    }
    Ok(())
}

/// Refuses a body that does not come with the checksum that its client says to have made. If an
/// address says so, it was signed before there was a body.
///
/// # Errors
/// InvalidRequest.
pub fn check_sdk(operation: &str, headers: &HeaderMap, trailing: &[&str]) -> S3Result<()> {
    // Their checksums are of an object, or they have no body.
    let others =
        ["CompleteMultipartUpload", "CreateMultipartUpload", "CopyObject", "UploadPartCopy"];
    let Some(named) = sdk_algorithm(headers).filter(|_| !others.contains(&operation)) else {
        return Ok(());
    };
    let header = format!("x-amz-checksum-{}", named.to_ascii_lowercase());
    if headers.contains_key(header) || trailing.contains(&named.as_str()) {
        return Ok(());
    }
    let name = "x-amz-sdk-checksum-algorithm";
    Err(s3_error!(InvalidRequest, "{name} is {named}, and no such checksum comes with the body"))
}

/// Why an operation cannot do what its headers ask for.
pub fn refused_by(operation: &str, headers: &HeaderMap) -> Option<S3Error> {
    headers
        .iter()
        .find_map(|(name, value)| refused(operation, name.as_str(), HeaderValue::as_bytes(value)))
}
