//! The headers that state a condition or ask for a promise, and where each is honoured.
//!
//! Owns: [`HEADERS`]. A header of this list is refused where it is not honoured, and so is each
//! `x-amz-` header that is not in it. docs/serve.md shows the list, and a test compares the two.

use crate::admit::operations::EDIT;
use http::{HeaderMap, HeaderValue};
use s3s::{S3Error, s3_error};

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
            "CompleteMultipartUpload",
            EDIT,
        ]),
    ),
    ("if-modified-since", By(READS)),
    ("if-unmodified-since", By(READS)),
    ("if-range", By(READS)),
    ("range", By(READS)),
    ("content-range", Nowhere),
    ("x-amz-copy-source-if-*", By(COPIES)),
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
    ("x-amz-grant-*", By(WITH_ACL)),
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

/// The rule for a header; `None` where it is none of ours.
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
    (!honoured).then(told)
}

/// Why an operation cannot do what its headers ask for.
pub fn refused_by(operation: &str, headers: &HeaderMap) -> Option<S3Error> {
    headers
        .iter()
        .find_map(|(name, value)| refused(operation, name.as_str(), HeaderValue::as_bytes(value)))
}
