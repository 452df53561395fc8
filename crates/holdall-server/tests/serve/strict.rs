//! Requests that say something twice, in part, or in words that are not known: each is refused, and
//! changes nothing.

use crate::harness::{Answer, KEYS, Running};
use crate::hostile::raw;
use holdall_server::{Config, Grant};

fn with_object() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    s
}

fn code(answer: Answer, status: u16) -> String {
    answer.expect(status).element("Code")
}

/// A request of HTTP/1.1 with these lines of its head.
fn lines(s: &Running, request: &str, lines: &[&str], body: &str) -> String {
    let mut head = format!("{request} HTTP/1.1\r\nConnection: close\r\n");
    for line in lines {
        head += &format!("{line}\r\n");
    }
    if !body.is_empty() || request.starts_with('P') {
        head += &format!("Content-Length: {}\r\n", body.len());
    }
    raw(s, format!("{head}\r\n{body}").as_bytes())
}

fn status(answer: &str) -> &str {
    answer.get(9..12).unwrap_or(answer)
}

#[test]
fn a_header_of_one_value_is_there_once_and_is_text() {
    let s = with_object();
    for (request, name, one, other) in [
        ("GET /box/k", "Range", "bytes=0-1", "bytes=2-3"),
        ("GET /box/k", "If-Range", "\"a\"", "\"b\""),
        ("GET /box/k", "If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT", "x"),
        ("GET /box/k", "x-amz-checksum-mode", "ENABLED", "ENABLED"),
        ("PUT /box/k", "Content-MD5", "XUFAKrxLKna5cZ2REBfFkg==", "XUFAKrxLKna5cZ2REBfFkg=="),
        ("PUT /box/k", "Content-Type", "a/b", "c/d"),
        ("PUT /box/k", "x-amz-acl", "private", "private"),
        ("PUT /box/k", "x-amz-meta-a", "1", "2"),
        ("PUT /box/k", "x-amz-checksum-crc32", "AAAAAA==", "NhCmhg=="),
        ("PUT /box/k", "x-amz-write-offset-bytes", "5", "5"),
        ("PUT /box/k", "Expires", "0", "0"),
    ] {
        let pair = [&*format!("{name}: {one}"), &*format!("{name}: {other}"), "Host: x"];
        assert_eq!(status(&lines(&s, request, &pair, "")), "400", "{name}");
        let odd = [&*format!("{name}: {one}\u{e9}"), "Host: x"];
        let answer = lines(&s, request, &odd, "");
        let kept = matches!(name, "x-amz-meta-a" | "Expires");
        assert!(kept || status(&answer) == "400", "{name}: {answer}");
        if kept {
            s.put("/box/k", b"hello").expect(200);
        }
    }
    for name in ["If-Match", "If-None-Match", "x-amz-trailer", "x-amz-expected-bucket-owner"] {
        let odd = [&*format!("{name}: \u{e9}"), "Host: x"];
        assert_eq!(status(&lines(&s, "PUT /box/k", &odd, "")), "400", "{name}");
    }
    // Lists are lists.
    let lists = ["If-None-Match: \"a\"", "If-None-Match: \"b\"", "Host: x"];
    assert_eq!(status(&lines(&s, "GET /box/k", &lists, "")), "200");
    assert_eq!(s.get("/box/k").body, b"hello");
}

#[test]
fn a_request_names_one_host() {
    let s = with_object();
    for hosts in [&[][..], &["Host: a", "Host: b"], &["Host: "], &["Host: \u{e9}"]] {
        for path in ["GET /box/k", "GET /-/health", "PROPFIND /-/dav/", "GET /-/web/"] {
            assert_eq!(status(&lines(&s, path, hosts, "")), "400", "{path} {hosts:?}");
        }
    }
    let old = raw(&s, b"GET /box/k HTTP/1.0\r\n\r\n");
    assert!(status(&old) == "200" && old.ends_with("hello"), "{old}");
}

#[test]
fn on_a_buckets_own_host_all_paths_are_keys() {
    let config = Config {
        anonymous: vec![Grant::everything()],
        domain: Some("s3.example.org".into()),
        ..Config::default()
    };
    let s = Running::with(config, &["a.holdall"]);
    s.put("/photos", b"").expect(200);
    let host = ["Host: photos.s3.example.org"];
    for key in ["-/health", "-/web/", "-/web/session", "-/dav/x", "-/"] {
        assert_eq!(status(&lines(&s, &format!("PUT /{key}"), &host, key)), "200", "{key}");
        assert!(lines(&s, &format!("GET /{key}"), &host, "").ends_with(key), "{key}");
        assert_eq!(s.get(&format!("/photos/{key}")).expect(200).text(), key);
    }
    assert_eq!(s.get("/-/health").expect(200).text(), "ok\n");
}

#[test]
fn grants_and_conditions_of_unknown_names_are_refused() {
    let s = with_object();
    let source = ("x-amz-copy-source", "box/k");
    for name in ["x-amz-grant-write", "x-amz-grant-foo", "x-amz-grant-"] {
        let grant = (name, "id=me");
        s.call("PUT", "/box/k", b"new", &[grant]).expect(501);
        s.call("PUT", "/box/copy", b"", &[source, grant]).expect(501);
        s.call("POST", "/box/k?uploads", b"", &[grant]).expect(501);
    }
    let grant = ("x-amz-grant-read", "id=me");
    assert_eq!(
        code(s.call("PUT", "/box/k", b"new", &[grant]), 400),
        "AccessControlListNotSupported"
    );
    for name in ["size", "foo", "match-size", ""] {
        let name = format!("x-amz-copy-source-if-{name}");
        s.call("PUT", "/box/copy", b"", &[source, (&name, "1")]).expect(501);
    }
    s.get("/box/k?response-foo=1").expect(501);
    // What is honoured and says nothing.
    for name in
        ["x-amz-acl", "x-amz-grant-read", "x-amz-checksum-crc32", "x-amz-checksum-algorithm"]
    {
        assert_eq!(code(s.call("PUT", "/box/k", b"new", &[(name, "")]), 400), "InvalidArgument");
    }
    for value in ["", "+5", "5x", "-5", " 5 5"] {
        s.call("PUT", "/box/k", b"new", &[("x-amz-write-offset-bytes", value)]).expect(400);
        s.call("DELETE", "/box/k", b"", &[("x-amz-if-match-size", value)]).expect(400);
    }
    s.call("PUT", "/box/k", b"new", &[("x-amz-meta-", "1")]).expect(400);
    s.head("/box/copy").expect(404);
    assert_eq!(s.get("/box/k").body, b"hello");
    assert!(!s.get("/box?uploads").text().contains("<Upload>"));
}

#[test]
fn ranges_of_copies_and_edits_are_digits() {
    let s = with_object();
    let id = s.post("/box/m?uploads", b"").expect(200).element("UploadId");
    let part = format!("/box/m?partNumber=1&uploadId={id}");
    let source = ("x-amz-copy-source", "box/k");
    for range in ["", "bytes=+0-4", "bytes=0-+4", "bytes= 0-4", "0-4", "bytes=0-", "bytes=-4"] {
        let range = ("x-amz-copy-source-range", range);
        assert_eq!(code(s.call("PUT", &part, b"", &[source, range]), 400), "InvalidArgument");
    }
    s.call("PUT", &part, b"", &[source, ("x-amz-copy-source-range", "bytes=0-4")]).expect(200);
    for edit in [
        "insert&at=%2B1",
        "insert&at=1&range=0-1",
        "insert&at=0&a%74=1",
        "insert&range=0-1",
        "delete&range=0-1&at=0",
        "delete&range=%2B0-1",
        "replace&range=0-1&range=0-1",
        "concat&at=0",
        "concat&range=0-1",
        "insert&at=%zz",
    ] {
        let refused = s.post(&format!("/box/k?holdall={edit}"), b"x");
        assert_eq!(refused.status, 400, "{edit}: {}", refused.text());
        let refused = s.post(&format!("/-/dav/box/k?holdall={edit}"), b"x");
        assert_eq!(refused.status, 400, "{edit}: {}", refused.text());
    }
    assert_eq!(s.get("/box/k").body, b"hello");
    s.post("/box/k?holdall=insert&a%74=0&x-mine=1", b"x").expect(200);
    assert_eq!(s.get("/box/k").body, b"xhello");
}

#[test]
fn numbers_and_escapes_of_addresses_are_whole() {
    let s = with_object();
    for path in [
        "/box/k?partNumber=0",
        "/box/k?partNumber=-1",
        "/box?uploads&max-uploads=-1",
        "/box?max-keys=-1",
        "/box?max-keys=%2B5",
        "/?max-buckets=0",
        "/?max-buckets=-1",
        "/box?prefix=%zz",
        "/box/zz%zz",
        "/box/zz%",
        "/bo%x",
    ] {
        assert_eq!(status(&lines(&s, &format!("GET {path}"), &["Host: x"], "")), "400", "{path}");
    }
    assert_eq!(status(&lines(&s, "PUT /box/zz%zz", &["Host: x"], "x")), "400");
    s.head("/box/zz%25zz").expect(404);
    s.put("/box/zz%25zz", b"whole").expect(200);
    s.call("PUT", "/box/copy", b"", &[("x-amz-copy-source", "box/zz%zz")]).expect(400);
    s.call("PUT", "/box/copy", b"", &[("x-amz-copy-source", "box/zz%25zz")]).expect(200);
    assert_eq!(s.get("/box/copy").body, b"whole");
    s.call("PUT", "/box/copy", b"x", &[("x-amz-tagging", "a=%zz")]).expect(400);
    let id = s.post("/box/m?uploads", b"").expect(200).element("UploadId");
    s.get(&format!("/box/m?uploadId={id}&max-parts=-1")).expect(400);
    s.get(&format!("/box/m?uploadId={id}&part-number-marker=-1")).expect(400);
}

#[test]
fn no_bytes_have_no_last_ones() {
    let s = with_object();
    s.put("/box/empty", b"").expect(200);
    for path in ["/box/empty", "/-/dav/box/empty"] {
        for range in ["bytes=-8", "bytes=-1", "bytes=-0", "bytes=0-", "bytes=0-0"] {
            for method in ["GET", "HEAD"] {
                let got = s.call(method, path, b"", &[("range", range)]).expect(416);
                assert_eq!(got.header("content-range"), "bytes */0", "{method} {path} {range}");
            }
        }
        s.get(path).expect(200);
    }
}

#[test]
fn a_delete_of_what_is_not_there_is_done_whatever_it_was_to_be_like() {
    let s = with_object();
    let etag = s.head("/box/k").header("etag").to_owned();
    for value in [etag.as_str(), "*", "\"other\""] {
        s.call("DELETE", "/box/none", b"", &[("if-match", value)]).expect(204);
    }
    s.call("DELETE", "/box/none", b"", &[("x-amz-if-match-size", "5")]).expect(204);
    s.delete("/box/none").expect(204);
    let body = format!("<Delete><Object><Key>none</Key><ETag>{etag}</ETag></Object></Delete>");
    let told = s.post("/box?delete", body.as_bytes()).expect(200);
    assert_eq!(told.element("Key"), "none");
    let other = s.call("DELETE", "/box/k", b"", &[("if-match", "\"other\"")]);
    assert_eq!(code(other, 412), "PreconditionFailed");
    s.call("DELETE", "/box/k", b"", &[("if-match", &etag)]).expect(204);
    s.head("/box/k").expect(404);
}

#[test]
fn messages_have_known_elements_only() {
    let s = with_object();
    for (method, path, body) in [
        ("POST", "/box?delete", "<Delete><Object><Key>k</Key></Object><Foo/></Delete>"),
        (
            "POST",
            "/box?delete",
            "<Delete><Object><Key>k</Key><IfMatch>x</IfMatch></Object></Delete>",
        ),
        (
            "POST",
            "/box?delete",
            "<Delete><Object><Key>k</Key></Object><x:Quiet xmlns:x='urn:y'>true</x:Quiet></Delete>",
        ),
        ("PUT", "/new", "<CreateBucketConfiguration><Foo>x</Foo></CreateBucketConfiguration>"),
        (
            "PUT",
            "/box/k?tagging",
            "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value><Foo/></Tag></TagSet></Tagging>",
        ),
        (
            "PUT",
            "/box?cors",
            "<CORSConfiguration><CORSRule><AllowedOrigin>*</AllowedOrigin>\
             <AllowedMethod>GET</AllowedMethod><Foo/></CORSRule></CORSConfiguration>",
        ),
        (
            "PUT",
            "/box/k?acl",
            "<AccessControlPolicy><Owner><ID>holdall</ID></Owner><AccessControlList><Foo/>\
             </AccessControlList></AccessControlPolicy>",
        ),
    ] {
        assert_eq!(code(s.call(method, path, body.as_bytes(), &[]), 400), "MalformedXML", "{body}");
    }
    let tags = "<CreateBucketConfiguration><Tags><Tag><Key>a</Key><Value>b</Value></Tag></Tags>\
                </CreateBucketConfiguration>";
    s.call("PUT", "/new", tags.as_bytes(), &[]).expect(501);
    s.head("/new").expect(404);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.get("/box?cors").expect(404);
    let prefixed = "<a:Delete xmlns:a=\"http://s3.amazonaws.com/doc/2006-03-01/\"><a:Object>\
                    <a:Key>k</a:Key></a:Object></a:Delete>";
    s.post("/box?delete", prefixed.as_bytes()).expect(200);
    s.head("/box/k").expect(404);
}

#[test]
fn checksums_are_those_that_were_promised() {
    let s = with_object();
    let sdk = |name| ("x-amz-sdk-checksum-algorithm", name);
    let crc = ("x-amz-checksum-crc32", "EbdTvw==");
    assert_eq!(code(s.call("PUT", "/box/k", b"new", &[sdk("SHA256")]), 400), "InvalidRequest");
    assert_eq!(code(s.call("PUT", "/box/k", b"new", &[sdk("SHA256"), crc]), 400), "InvalidRequest");
    assert_eq!(code(s.call("PUT", "/box/k", b"new", &[sdk("FOO")]), 400), "InvalidRequest");
    let tags = b"<Tagging><TagSet/></Tagging>";
    s.call("PUT", "/box/k?tagging", tags, &[sdk("CRC32")]).expect(400);
    assert_eq!(s.get("/box/k").body, b"hello");
    let sum = ("x-amz-checksum-crc32", "NhCmhg==");
    s.call("PUT", "/box/k", b"hello", &[sdk("CRC32"), sum]).expect(200);
    let begun = s.call("POST", "/box/m?uploads", b"", &[("x-amz-checksum-algorithm", "CRC32")]);
    let id = begun.expect(200).element("UploadId");
    let part = format!("/box/m?partNumber=1&uploadId={id}");
    let sha = ("x-amz-checksum-sha1", "qvTGHdzF6KLavt4PO0gs2a6pQ00=");
    assert_eq!(code(s.call("PUT", &part, b"hello", &[sha]), 400), "InvalidRequest");
    assert_eq!(code(s.call("PUT", &part, b"hello", &[sha, sum]), 400), "InvalidRequest");
    assert!(!s.get(&format!("/box/m?uploadId={id}")).text().contains("<Part>"));
    s.call("PUT", &part, b"hello", &[sum]).expect(200);
    // An upload without an algorithm takes any.
    let id = s.post("/box/n?uploads", b"").expect(200).element("UploadId");
    s.call("PUT", &format!("/box/n?partNumber=1&uploadId={id}"), b"hello", &[sha]).expect(200);
}

#[test]
fn a_signed_address_is_signed_once_and_lives_a_week() {
    let s = Running::with(Config::default(), &["a.holdall"]);
    s.signed(KEYS, "PUT", "/box", b"", &[]).expect(200);
    let url = s.sign(KEYS, "GET", "/box", &[]);
    crate::harness::call("GET", &url, b"", &[]).expect(200);
    let both = [(
        "authorization",
        "AWS4-HMAC-SHA256 Credential=a/b/c/d/e, SignedHeaders=host, Signature=0",
    )];
    assert_eq!(code(crate::harness::call("GET", &url, b"", &both), 400), "InvalidArgument");
    let long = url.replace("X-Amz-Expires=60", "X-Amz-Expire%73=9999999");
    assert_ne!(long, url);
    let told = code(crate::harness::call("GET", &long, b"", &[]), 400);
    assert_eq!(told, "AuthorizationQueryParametersError");
    let half = url.split("&X-Amz-Signature").next().unwrap();
    crate::harness::call("GET", half, b"", &[]).expect(400);
}

fn form(fields: &[(&str, &str)]) -> Vec<u8> {
    let part = |(name, value): &(&str, &str)| {
        format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let fields: String = fields.iter().map(part).collect();
    let file = "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\nhello";
    format!("{fields}{file}\r\n--B--\r\n").into_bytes()
}

const FORM: (&str, &str) = ("content-type", "multipart/form-data; boundary=B");

#[test]
fn fields_of_forms_are_honoured_or_refused() {
    let s = with_object();
    let post = |fields: &[(&str, &str)]| {
        let fields = [&[("key", "posted")], fields].concat();
        s.call("POST", "/box", &form(&fields), &[FORM])
    };
    assert_eq!(code(post(&[("x-amz-expected-bucket-owner", "123")]), 403), "AccessDenied");
    for name in [
        "uploadId",
        "partNumber",
        "versionId",
        "x-amz-decoded-content-length",
        "x-amz-content-sha256",
        "x-amz-trailer",
        "x-amz-grant-write",
        "x-amz-grant-foo",
    ] {
        assert_eq!(code(post(&[(name, "1")]), 501), "NotImplemented", "{name}");
    }
    assert_eq!(code(post(&[("x-amz-sdk-checksum-algorithm", "CRC32")]), 400), "InvalidRequest");
    let foo = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag><Foo/></TagSet></Tagging>";
    assert_eq!(code(post(&[("tagging", foo)]), 400), "MalformedXML");
    s.head("/box/posted").expect(404);
    post(&[("x-amz-checksum-algorithm", "CRC32"), ("x-amz-expected-bucket-owner", "holdall")])
        .expect(204);
    let head = s.call("HEAD", "/box/posted", b"", &[("x-amz-checksum-mode", "ENABLED")]);
    assert_eq!(head.header("x-amz-checksum-crc32"), "NhCmhg==");
    let made = [("key", "a b/../${filename}"), ("success_action_status", "201")];
    let made = s.call("POST", "/box", &form(&made), &[FORM]).expect(201);
    assert_eq!((made.element("Key").as_str(), made.element("Location").as_str()), ("a b/../f", ""));
    let made = [("key", "a b/${filename}"), ("success_action_status", "201")];
    let made = s.call("POST", "/box", &form(&made), &[FORM]).expect(201);
    assert_eq!(made.element("Location"), "/box/a%20b/f");
}

#[test]
fn a_form_that_its_policy_does_not_allow_is_denied() {
    use base64::Engine as _;
    let s = with_object();
    let conditions = "[{\"bucket\":\"box\"},{\"key\":\"other\"}]";
    let policy = format!("{{\"expiration\":\"2999-01-01T00:00:00Z\",\"conditions\":{conditions}}}");
    let policy = base64::engine::general_purpose::STANDARD.encode(policy);
    let refused = s.call("POST", "/box", &form(&[("key", "posted"), ("policy", &policy)]), &[FORM]);
    assert_eq!(code(refused, 403), "AccessDenied");
    s.head("/box/posted").expect(404);
    s.call("POST", "/box", &form(&[("key", "other"), ("policy", &policy)]), &[FORM]).expect(204);
    assert_eq!(s.get("/box/other").body, b"hello");
}

#[test]
fn a_completion_is_repeated_only_as_it_was() {
    let s = with_object();
    let id = s.post("/box/m?uploads", b"").expect(200).element("UploadId");
    let put = s.put(&format!("/box/m?partNumber=2&uploadId={id}"), b"part").expect(200);
    let etag = put.header("etag").to_owned();
    let complete = format!("/box/m?uploadId={id}");
    let list = |parts: &[(&str, &str)]| {
        let part = |(number, etag): &(&str, &str)| format!("<Part>{number}{etag}</Part>");
        let parts: String = parts.iter().map(part).collect();
        format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").into_bytes()
    };
    let number = "<PartNumber>2</PartNumber>";
    let tagged = format!("<ETag>{etag}</ETag>");
    let good = list(&[(number, &tagged)]);
    // Before and after the completion.
    for done in [false, true] {
        for bad in [
            list(&[]),
            list(&[(number, "")]),
            list(&[(number, "<ETag></ETag>")]),
            list(&[("", &tagged)]),
            list(&[(number, "<ETag>\"00\"</ETag>")]),
            list(&[("<PartNumber>1</PartNumber>", &tagged)]),
            list(&[(number, &tagged), ("<PartNumber>3</PartNumber>", &tagged)]),
            list(&[(number, &format!("{tagged}<ChecksumCRC32>AAAAAA==</ChecksumCRC32>"))]),
        ] {
            let refused = s.post(&complete, &bad);
            let text = String::from_utf8_lossy(&bad).into_owned();
            assert_eq!(refused.status, 400, "{done} {text}: {}", refused.text());
        }
        let with = |name: &str, value: &str| s.call("POST", &complete, &good, &[(name, value)]);
        with("x-amz-mp-object-size", "77").expect(400);
        with("x-amz-checksum-crc32", "AAAAAA==").expect(400);
        with("if-match", "\"q\"").expect(if done { 412 } else { 404 });
        if done {
            with("if-none-match", "*").expect(412);
            let is = s.head("/box/m").header("etag").to_owned();
            with("if-match", &is).expect(200);
            with("x-amz-mp-object-size", "4").expect(200);
        } else {
            s.head("/box/m").expect(404);
        }
        s.post(&complete, &good).expect(200);
        assert_eq!(s.get("/box/m").expect(200).body, b"part");
    }
}
