//! What is admitted, and that docs/serve.md says so.

use super::headers::{CONDITIONS, PROMISES, Rule};
use super::*;
use bytes::Bytes;
use http_body_util::BodyExt as _;

fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::empty()).unwrap()
}

fn admitted(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<&'static str, String> {
    let admitted = admit(request(method, uri, headers), None);
    let admitted = admitted.map_err(|e| e.code().as_str().to_owned())?;
    Ok(Admitted::from_extensions(admitted.extensions()).unwrap().operation.name)
}

fn cell(operation: &Operation) -> String {
    let name =
        if operation.name == EDIT { "[edits](#edits-inside-objects)" } else { operation.name };
    let copies = operation.copies.then_some("with `x-amz-copy-source`");
    let query = operation.query.join("&");
    let query = (!query.is_empty()).then(|| format!("`{query}`"));
    let words = [query.as_deref(), copies, Some(name)];
    words.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The rows of operations, by method and level.
fn operations() -> String {
    let mut rows = String::from("| request | done | 501 |\n|---|---|---|\n");
    for (level, path) in
        [(Level::Service, "/"), (Level::Bucket, "/BUCKET"), (Level::Object, "/BUCKET/KEY")]
    {
        for method in ["GET", "HEAD", "PUT", "POST", "DELETE"] {
            let here = || OPERATIONS.iter().filter(|o| o.method == method && o.level == level);
            let done: Vec<_> = here().filter(|o| o.offered).map(cell).collect();
            let mut not: Vec<_> =
                here().filter(|o| !o.offered).map(|o| format!("`{}`", o.query.join("&"))).collect();
            not.dedup();
            if !done.is_empty() {
                let (done, not) = (done.join(", "), not.join(", "));
                rows += &format!("| `{method} {path}` | {done} | {not} |\n");
            }
        }
    }
    rows
}

/// The rows of headers.
fn headers(title: &str, headers: &[(&str, Rule)]) -> String {
    let list = |words: &[&str]| words.join(", ");
    let mut rows = format!("| {title} | honoured | elsewhere |\n|---|---|---|\n");
    let mut names: Vec<String> = Vec::new();
    let cell = |rule: &Rule| match rule {
        Rule::Any => "everywhere".to_owned(),
        Rule::By(operations) => list(operations),
        Rule::Values(values, []) => format!("`{}`", list(values)),
        Rule::Values(values, operations) => {
            format!("`{}`; any by {}", list(values), list(operations))
        }
        Rule::Nowhere => String::new(),
    };
    for (at, (name, rule)) in headers.iter().enumerate() {
        names.push(format!("`{name}`"));
        let honoured = cell(rule);
        // One row for those that stand together.
        if headers.get(at + 1).is_none_or(|(_, next)| cell(next) != honoured) {
            rows += &format!("| {} | {honoured} | 501 |\n", names.join(", "));
            names.clear();
        }
    }
    rows
}

#[test]
fn the_document_shows_what_is_dispatched_on() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/serve.md");
    let document = std::fs::read_to_string(path).unwrap();
    let tables = [operations(), headers("condition", CONDITIONS), headers("promise", PROMISES)];
    let missing: Vec<_> = tables.iter().filter(|table| !document.contains(*table)).collect();
    let missing: String = missing.into_iter().map(|table| format!("\n{table}")).collect();
    assert!(missing.is_empty(), "docs/serve.md is to have:\n{missing}");
}

#[test]
fn ordinary_requests_are_admitted() {
    let address = "X-Amz-Algorithm=a&X-Amz-Signature=0&X-Amz-Credential=c&X-Amz-Date=d&\
                   X-Amz-Expires=9&X-Amz-SignedHeaders=host&X-Amz-Security-Token=t";
    for (method, uri, name) in [
        ("GET", "/?x-id=ListBuckets".to_owned(), "ListBuckets"),
        ("GET", "/b/".into(), "ListObjects"),
        ("GET", "/b?list-type=2&prefix=&fetch-owner=true".into(), "ListObjectsV2"),
        ("GET", format!("/b/k?response-expires=0&{address}"), "GetObject"),
        ("PUT", format!("/b/k?x-amz-copy-source=b%2Fj&{address}"), "CopyObject"),
        ("PUT", "/b/k?partNumber=1&uploadId=u&x-id=UploadPart".into(), "UploadPart"),
        ("GET", "/b/k?x-of-my-own=1&versionId=null".into(), "GetObject"),
        ("POST", "/b/k?holdall=insert&at=3".into(), EDIT),
        ("POST", "/b?delete=".into(), "DeleteObjects"),
    ] {
        assert_eq!(admitted(method, &uri, &[]).as_deref(), Ok(name), "{method} {uri}");
    }
    let usual = [
        ("x-amz-acl", "bucket-owner-full-control"),
        ("x-amz-storage-class", "STANDARD"),
        ("x-amz-meta-a", "1"),
        ("x-amz-user-agent", "a"),
        ("if-none-match", "*"),
        ("x-amz-request-payer", "requester"),
    ];
    assert_eq!(admitted("PUT", "/b/k", &usual).as_deref(), Ok("PutObject"));
}

#[test]
fn what_is_not_understood_is_refused() {
    for (method, uri) in [
        ("PUT", "/b/k?renameObject"),
        ("PUT", "/b/k?uploadId=u"),
        ("PUT", "/b/k?partNumber=1"),
        ("PUT", "/b/k?versionId=null"),
        ("PUT", "/b/k?x-id=RenameObject"),
        ("PUT", "/b/k?acl&tagging"),
        ("PUT", "/b/k?AcL"),
        ("PUT", "/b/k?%72enameObject"),
        ("PUT", "/b?location"),
        ("DELETE", "/b/k?annotation&annotationName=a"),
        ("DELETE", "/b/k?acl"),
        ("DELETE", "/b?versions"),
        ("GET", "/b/k?newsubresource=1"),
        ("GET", "/b?list-type=1"),
        ("POST", "/b/k?restore"),
        ("PATCH", "/b/k"),
        ("PUT", "/"),
        ("HEAD", "/"),
    ] {
        assert_eq!(admitted(method, uri, &[]), Err("NotImplemented".into()), "{method} {uri}");
    }
    for (name, value) in [
        ("x-amz-storage-class", "GLACIER"),
        ("x-amz-object-lock-mode", "COMPLIANCE"),
        ("x-amz-server-side-encryption", "AES256"),
        ("x-amz-copy-source-if-match", "\"a\""),
        ("x-amz-rename-source", "a"),
        ("content-range", "bytes 0-1/2"),
        ("if-modified-since", "Sun, 06 Nov 1994 08:49:37 GMT"),
        ("x-amz-new-promise", "1"),
    ] {
        let is = admitted("PUT", "/b/k", &[(name, value)]);
        assert_eq!(is, Err("NotImplemented".into()), "{name}");
    }
    assert_eq!(admitted("GET", "/b/k?versionId=1", &[]), Err("NoSuchVersion".into()));
    assert_eq!(admitted("GET", "/b/k?acl&acl", &[]), Err("InvalidArgument".into()));
    assert_eq!(admitted("PUT", "/b/k?x-amz-meta-a=1", &[]), Err("InvalidRequest".into()));
    let owner = [("x-amz-source-expected-bucket-owner", "123456789012")];
    assert_eq!(admitted("PUT", "/b/k", &owner), Err("AccessDenied".into()));
    let both = admitted("GET", "/b/k?partNumber=1", &[("range", "bytes=0-1")]);
    assert_eq!(both, Err("InvalidRequest".into()));
}

/// What is left of a body that its chunks' signatures cover, once its frames were followed.
fn signed(body: &'static str) -> Result<Bytes, ()> {
    let request = Request::builder().method("PUT").uri("/b/k");
    let request = request.header("authorization", "AWS4-HMAC-SHA256 ...");
    let digest = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER";
    let request = request.header("x-amz-content-sha256", digest);
    let request = request.header("x-amz-trailer", "x-amz-checksum-crc32");
    let request = request.body(Body::from(Bytes::from_static(body.as_bytes()))).unwrap();
    let admitted = admit(request, None).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let whole = runtime.block_on(admitted.into_body().collect());
    whole.map(http_body_util::Collected::to_bytes).map_err(drop)
}

#[test]
fn a_signed_body_without_its_last_chunk_is_none() {
    let whole = "5;chunk-signature=00\r\nhello\r\n0;chunk-signature=00\r\n\r\n";
    assert_eq!(signed(whole).unwrap(), whole, "s3s takes it apart");
    let last = whole.find("0;chunk-signature=00\r\n\r\n").unwrap();
    signed(&whole[..last]).unwrap_err();
    signed("").unwrap_err();
}
