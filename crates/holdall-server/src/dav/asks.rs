//! What a request asks by its headers and its address, and whether that is done: the rest is
//! refused before anything happens.
//!
//! Owns: [`check`], which each request passes first. docs/webdav.md has the rules for users.

use crate::dav::error::{Error, Result, refusal};
use crate::http::header::{check_transfer, list, single};
use crate::objects::edit_verbs::Asked;
use http::request::Parts;
use http::{HeaderMap, StatusCode};

/// Headers that a request has once at most.
const SINGLE: [&str; 26] = [
    "authorization",
    "content-disposition",
    "content-length",
    "content-md5",
    "content-range",
    "content-type",
    "depth",
    "destination",
    "expires",
    "holdall-replace",
    "host",
    "if",
    "if-modified-since",
    "if-range",
    "if-unmodified-since",
    "lock-token",
    "oc-checksum",
    "overwrite",
    "range",
    "timeout",
    "trailer",
    "x-amz-content-sha256",
    "x-expected-entity-length",
    "x-litmus",
    "x-oc-mtime",
    "x-update-range",
];
/// Headers that are lists of text.
const LISTS: [&str; 7] = [
    "content-digest",
    "content-encoding",
    "content-language",
    "digest",
    "if-match",
    "if-none-match",
    "repr-digest",
];
/// Conditions that are known. Others, as those of CalDAV, would be left out in silence.
const CONDITIONS: [&str; 5] =
    ["if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since"];
/// Methods whose body is looked at, and compared with its digests.
const WITH_BODY: &[&str] =
    &["PUT", "PATCH", "POST", "PROPFIND", "PROPPATCH", "MKCOL", "LOCK", "UNLOCK", "OPTIONS"];
const READS: &[&str] = &["GET", "HEAD"];

/// Headers that only these methods do something about.
const ONLY: &[(&str, &[&str])] = &[
    ("content-digest", WITH_BODY),
    ("content-encoding", &["PUT"]),
    ("content-md5", WITH_BODY),
    ("content-range", &["PUT"]),
    ("destination", &["COPY", "MOVE"]),
    ("digest", WITH_BODY),
    ("holdall-replace", &["MOVE"]),
    ("if-range", READS),
    ("oc-checksum", WITH_BODY),
    ("range", READS),
    ("repr-digest", WITH_BODY),
    ("trailer", &[]),
    ("x-amz-cf-id", ANY),
    ("x-amz-checksum-crc32", WITH_BODY),
    ("x-amz-checksum-crc32c", WITH_BODY),
    ("x-amz-checksum-crc64nvme", WITH_BODY),
    ("x-amz-checksum-sha1", WITH_BODY),
    ("x-amz-checksum-sha256", WITH_BODY),
    ("x-amz-content-sha256", WITH_BODY),
    ("x-amz-date", ANY),
    ("x-amz-user-agent", ANY),
    ("x-oc-mtime", &["PUT", "COPY", "MOVE"]),
    ("x-update-range", &["PATCH"]),
];
/// All methods: the header asks for nothing.
const ANY: &[&str] = &["*"];

/// Whether a method does what a header asks.
fn is_done(method: &str, name: &str) -> bool {
    match ONLY.iter().find(|(known, _)| *known == name) {
        Some((_, methods)) => *methods == ANY || methods.contains(&method),
        None if name.starts_with("if-") => CONDITIONS.contains(&name),
        None => !name.starts_with("x-amz-"),
    }
}

/// Refuses a request of which a part would be left out.
///
/// # Errors
/// Status 501 for what is not offered, 400 for what cannot be read.
pub fn check(parts: &Parts) -> Result<()> {
    let (method, headers) = (parts.method.as_str(), &parts.headers);
    for name in SINGLE {
        single(headers, name)?;
    }
    for name in LISTS {
        list(headers, name)?;
    }
    check_transfer(headers)?;
    if let Some(name) = headers.keys().find(|name| !is_done(method, name.as_str())) {
        let text = format!("{method} does not do what the header {name} asks");
        // What another method does is known; the rest is not.
        let elsewhere = ONLY.iter().any(|(known, by)| known == name && !by.is_empty());
        let status = if elsewhere { StatusCode::BAD_REQUEST } else { StatusCode::NOT_IMPLEMENTED };
        return Err(refusal(status, text));
    }
    if is_framed(headers)? {
        return Err(not_done("Content-Encoding aws-chunked is not taken apart here".into()));
    }
    check_query(method, parts.uri.query())
}

fn not_done(text: String) -> Error {
    refusal(StatusCode::NOT_IMPLEMENTED, text)
}

/// Whether the body travels in frames of S3.
fn is_framed(headers: &HeaderMap) -> Result<bool> {
    let encodings = list(headers, "content-encoding")?.unwrap_or_default();
    Ok(encodings.split(',').any(|one| one.trim().eq_ignore_ascii_case("aws-chunked")))
}

/// Refuses a query, but for the parameters of an edit, each of which is there once.
fn check_query(method: &str, query: Option<&str>) -> Result<()> {
    let Some(query) = query else { return Ok(()) };
    if method != "POST" {
        let text = "an address of WebDAV has no query: write ? as %3F";
        return Err(refusal(StatusCode::BAD_REQUEST, text));
    }
    if query.split('&').any(str::is_empty) {
        return Err(refusal(StatusCode::BAD_REQUEST, "a parameter of the query is empty"));
    }
    Ok(Asked::parse(String::new(), Some(query))?.check(false)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_edit_has_its_parameters_once() {
        for query in ["holdall=insert&at=1", "at=1&holdall=%69nsert", "holdall=concat"] {
            assert!(check_query("POST", Some(query)).is_ok(), "{query}");
        }
        for query in [
            "",
            "acl",
            "holdall",
            "holdall=foo",
            "holdall=insert&at=0&at=1",
            "holdall=insert&at=0&range=0-1",
            "holdall=insert&holdall=delete-range&at=0",
            "holdall=insert&at=0&",
            "holdall=insert&at=0&x-id=Y",
            "holdall=concat&at=0",
            "holdall=delete-range&range=0-1&uploads",
        ] {
            assert!(check_query("POST", Some(query)).is_err(), "{query}");
        }
        assert!(check_query("GET", Some("")).is_err() && check_query("GET", None).is_ok());
    }

    #[test]
    fn what_no_method_does_is_refused_by_all() {
        for name in ["x-amz-acl", "x-amz-meta-a", "if-schedule-tag-match", "trailer"] {
            assert!(!is_done("PUT", name) && !is_done("GET", name), "{name}");
        }
        assert!(is_done("PUT", "content-range") && !is_done("PATCH", "content-range"));
        assert!(is_done("DELETE", "x-amz-cf-id") && is_done("DELETE", "accept"));
    }
}
