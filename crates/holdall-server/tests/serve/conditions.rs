//! Requests under conditions.

use crate::harness::Running;

const HELLO: &str = "\"5d41402abc4b2a76b9719d911017c592\"";

#[test]
fn a_put_under_a_condition_happens_only_if_it_is_met() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"hello", &[("if-match", HELLO)]).expect(404);
    s.call("PUT", "/box/k", b"hello", &[("if-none-match", "*")]).expect(200);
    s.call("PUT", "/box/k", b"late", &[("if-none-match", "*")]).expect(412);
    s.call("PUT", "/box/k", b"late", &[("if-match", "\"00\"")]).expect(412);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.call("PUT", "/box/k", b"next", &[("if-match", HELLO)]).expect(200);
    assert_eq!(s.get("/box/k").body, b"next");
    let long = crate::harness::bytes(3 << 20, 0);
    s.call("PUT", "/box/k", &long, &[("if-none-match", "*")]).expect(412);
    assert_eq!(s.get("/box/k").body, b"next");
}

#[test]
fn one_of_many_conditional_puts_wins() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let won: usize = std::thread::scope(|scope| {
        let put = |n: u8| {
            let s = &s;
            scope.spawn(move || {
                s.call("PUT", "/box/k", &[n], &[("if-none-match", "*")]).status == 200
            })
        };
        let all: Vec<_> = (0..8).map(put).collect();
        all.into_iter().map(|t| usize::from(t.join().unwrap())).sum()
    });
    assert_eq!(won, 1);
}

#[test]
fn reads_tell_what_did_not_change() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    let get = |name, value| s.call("GET", "/box/k", b"", &[(name, value)]).status;
    assert_eq!(get("if-none-match", HELLO), 304);
    assert_eq!(get("if-none-match", "\"00\""), 200);
    assert_eq!(get("if-match", HELLO), 200);
    assert_eq!(get("if-match", "\"00\""), 412);
    let modified = s.head("/box/k").header("last-modified").to_owned();
    assert_eq!(get("if-modified-since", &modified), 304);
    assert_eq!(get("if-unmodified-since", &modified), 200);
    assert_eq!(get("if-unmodified-since", "Mon, 01 Jan 2001 00:00:00 GMT"), 412);
    assert_eq!(get("if-modified-since", "Mon, 01 Jan 2001 00:00:00 GMT"), 200);
}

#[test]
fn a_delete_under_a_condition_happens_only_if_it_is_met() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    s.call("DELETE", "/box/k", b"", &[("if-match", "\"00\"")]).expect(412);
    s.head("/box/k").expect(200);
    s.call("DELETE", "/box/k", b"", &[("if-match", HELLO)]).expect(204);
    s.head("/box/k").expect(404);
}

const OTHER: &str = "\"00000000000000000000000000000000\"";
const OLD: &str = "Mon, 01 Jan 2001 00:00:00 GMT";

fn with_hello() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"hello", &[("cache-control", "max-age=9")]).expect(200);
    s
}

#[test]
fn lists_of_etags_name_each_of_them() {
    let s = with_hello();
    let (list, none) = (format!("{OTHER}, {HELLO}"), format!("{OTHER} , \"x\""));
    let get = |name, value: &str| s.call("GET", "/box/k", b"", &[(name, value)]).status;
    assert_eq!((get("if-match", &list), get("if-match", &none)), (200, 412));
    assert_eq!((get("if-none-match", &list), get("if-none-match", &none)), (304, 200));
    let weak = format!("W/{HELLO}");
    assert_eq!((get("if-match", &weak), get("if-none-match", &weak)), (412, 304));
    assert_eq!((get("if-match", "a b"), get("if-none-match", "\"")), (400, 400));
    let two = [("if-none-match", OTHER), ("if-none-match", HELLO)];
    s.call("GET", "/box/k", b"", &two).expect(304);
    let put = |name, value: &str| s.call("PUT", "/box/k", b"hello", &[(name, value)]).status;
    assert_eq!((put("if-match", &none), put("if-match", &list)), (412, 200));
    assert_eq!((put("if-none-match", &list), put("if-none-match", &none)), (412, 200));
    // Both must be met.
    let both = [("if-match", OTHER), ("if-none-match", OTHER)];
    s.call("PUT", "/box/k", b"new", &both).expect(412);
    s.call("DELETE", "/box/k", b"", &[("if-match", &none)]).expect(412);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.call("DELETE", "/box/k", b"", &[("if-match", &list)]).expect(204);
    s.head("/box/k").expect(404);
}

#[test]
fn a_copy_is_under_the_conditions_of_its_target() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/from", b"from").expect(200);
    s.put("/box/k", b"hello").expect(200);
    let copy = |to: &str, name: &str, value: &str| {
        let headers = [("x-amz-copy-source", "box/from"), (name, value)];
        s.call("PUT", to, b"", &headers).status
    };
    assert_eq!(copy("/box/k", "if-none-match", "*"), 412);
    assert_eq!(copy("/box/k", "if-none-match", HELLO), 412);
    assert_eq!(copy("/box/k", "if-match", OTHER), 412);
    assert_eq!(copy("/box/new", "if-match", OTHER), 404);
    assert_eq!(copy("/box/k", "x-amz-copy-source-if-match", OTHER), 412);
    assert_eq!(copy("/box/k", "x-amz-copy-source-if-modified-since", "no date"), 400);
    assert_eq!(copy("/box/k", "x-amz-copy-source-if-unmodified-since", OLD), 412);
    assert_eq!(copy("/box/k", "if-unmodified-since", OLD), 501);
    s.head("/box/new").expect(404);
    assert_eq!(s.get("/box/k").body, b"hello");
    // Onto itself, too.
    let itself = [
        ("x-amz-copy-source", "box/k"),
        ("x-amz-metadata-directive", "REPLACE"),
        ("x-amz-meta-a", "1"),
        ("if-match", OTHER),
    ];
    s.call("PUT", "/box/k", b"", &itself).expect(412);
    assert_eq!(s.head("/box/k").header("x-amz-meta-a"), "");
    s.call("PUT", "/box/k", b"", &itself[..3]).expect(200);
    let odd = [("x-amz-copy-source", "box/from"), ("x-amz-metadata-directive", "KEEP")];
    s.call("PUT", "/box/k", b"", &odd).expect(501);
    assert_eq!(copy("/box/k", "if-match", HELLO), 200);
    assert_eq!(copy("/box/new", "if-none-match", "*"), 200);
    assert_eq!((s.get("/box/k").body, s.get("/box/new").body), (b"from".into(), b"from".into()));
}

#[test]
fn an_append_is_under_the_conditions_of_a_put() {
    let s = with_hello();
    let append = |headers: &[(&str, &str)]| {
        let at = [("x-amz-write-offset-bytes", "5")];
        s.call("PUT", "/box/k", b" world", &[&at[..], headers].concat()).status
    };
    assert_eq!(append(&[("if-match", OTHER)]), 412);
    assert_eq!(append(&[("if-none-match", "*")]), 412);
    assert_eq!(append(&[("x-amz-meta-a", "1")]), 400);
    assert_eq!(append(&[("x-amz-tagging", "a=1")]), 400);
    assert_eq!(s.get("/box/k").body, b"hello");
    assert_eq!(append(&[("if-match", HELLO)]), 200);
    assert_eq!(s.get("/box/k").body, b"hello world");
}

#[test]
fn entries_of_a_delete_of_many_are_under_conditions() {
    let s = with_hello();
    let delete = |more: &str| {
        let xml = format!("<Delete><Object><Key>k</Key>{more}</Object></Delete>");
        s.post("/box?delete", xml.as_bytes())
    };
    for more in [
        format!("<ETag>{OTHER}</ETag>"),
        "<Size>4</Size>".into(),
        "<LastModifiedTime>Mon, 01 Jan 2001 00:00:00 GMT</LastModifiedTime>".into(),
        "<VersionId>1</VersionId>".into(),
    ] {
        let done = delete(&more);
        let refused = done.status == 400 || done.text().contains("<Error>");
        assert!(refused && !done.text().contains("<Deleted>"), "{more}: {}", done.text());
        s.head("/box/k").expect(200);
    }
    let more = format!("<ETag>{HELLO}</ETag><Size>5</Size>");
    assert!(delete(&more).expect(200).text().contains("<Deleted>"));
    s.head("/box/k").expect(404);
    s.put("/box/k", b"hello").expect(200);
    for (name, value) in [
        ("x-amz-if-match-size", "4"),
        ("x-amz-if-match-last-modified-time", OLD),
        ("x-amz-if-match-size", "x"),
    ] {
        let status = s.call("DELETE", "/box/k", b"", &[(name, value)]).status;
        assert!(status == 412 || status == 400, "{name} {value}: {status}");
        s.head("/box/k").expect(200);
    }
}

#[test]
fn a_range_is_of_use_only_for_what_the_client_has() {
    let s = with_hello();
    let modified = s.head("/box/k").header("last-modified").to_owned();
    for (known, partial) in [
        (HELLO, true),
        (modified.as_str(), true),
        (OTHER, false),
        (OLD, false),
        (&format!("W/{HELLO}"), false),
        ("no date", false),
    ] {
        let headers = [("range", "bytes=1-2"), ("if-range", known)];
        let got = s.call("GET", "/box/k", b"", &headers);
        let expected: (u16, &[u8]) = if partial { (206, b"el") } else { (200, b"hello") };
        assert_eq!((got.status, got.body.as_slice()), expected, "{known}");
        assert_eq!(s.call("HEAD", "/box/k", b"", &headers).status, expected.0, "{known}");
    }
}

#[test]
fn ranges_that_are_none_are_all_bytes() {
    let s = with_hello();
    let get = |range: &str| s.call("GET", "/box/k", b"", &[("range", range)]);
    for range in ["bytes=3-1", "bytes=0-1,3-4", "lines=0-1", "bytes=a-b", "bytes", "0-1"] {
        let got = get(range).expect(200);
        assert_eq!((got.body.as_slice(), got.header("content-range")), (&b"hello"[..], ""));
    }
    assert_eq!(get("bytes=1-99999999999999999999999").expect(206).body, b"ello");
    assert_eq!(get("bytes=-99999999999999999999999").expect(206).body, b"hello");
    for range in ["bytes=5-", "bytes=99-100", "bytes=-0"] {
        assert_eq!(get(range).expect(416).header("content-range"), "bytes */5", "{range}");
    }
    s.call("GET", "/box/k?partNumber=1", b"", &[("range", "bytes=0-1")]).expect(400);
}

#[test]
fn a_head_has_the_status_of_its_get() {
    let s = with_hello();
    let head = s.call("HEAD", "/box/k", b"", &[("range", "bytes=1-3")]).expect(206);
    assert_eq!((head.header("content-range"), head.header("content-length")), ("bytes 1-3/5", "3"));
    let head = s.head("/box/k?partNumber=1").expect(206);
    assert_eq!(head.header("content-range"), "bytes 0-4/5");
    s.call("HEAD", "/box/k", b"", &[("range", "bytes=9-")]).expect(416);
    s.call("HEAD", "/box/k", b"", &[("range", "bytes=3-1")]).expect(200);
    s.put("/box/empty", b"").expect(200);
    assert_eq!(s.get("/box/empty?partNumber=1").expect(200).header("content-range"), "");
}

#[test]
fn what_did_not_change_comes_with_how_long_it_holds() {
    let s = with_hello();
    for method in ["GET", "HEAD"] {
        let same = s.call(method, "/box/k", b"", &[("if-none-match", HELLO)]).expect(304);
        assert_eq!((same.header("etag"), same.header("cache-control")), (HELLO, "max-age=9"));
        assert_ne!(same.header("last-modified"), "");
        assert!(same.body.is_empty());
    }
}

#[test]
fn expires_comes_back_as_it_was_said() {
    let s = with_hello();
    for text in ["0", "-1", "Sun, 06 Nov 1994 08:49:37 GMT", "never"] {
        s.call("PUT", "/box/e", b"x", &[("expires", text)]).expect(200);
        assert_eq!(s.get("/box/e").expect(200).header("expires"), text);
        assert_eq!(s.head("/box/e").expect(200).header("expires"), text);
        s.call("PUT", "/box/e2", b"", &[("x-amz-copy-source", "box/e")]).expect(200);
        assert_eq!(s.head("/box/e2").expect(200).header("expires"), text);
    }
    let date = "Sun, 06 Nov 1994 08:49:37 GMT";
    let path = format!("/box/e?response-expires={date}");
    let url = s.sign(crate::harness::KEYS, "GET", &path, &[]);
    let got = crate::harness::call("GET", &url, b"", &[]).expect(200);
    assert_eq!(got.header("expires"), date);
}

/// minio-go says the conditions of a long put where it begins the upload, and only there.
#[test]
fn an_upload_keeps_the_conditions_that_it_was_begun_under() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let begin = |key: &str, header| s.call("POST", &format!("/box/{key}?uploads"), b"", &[header]);
    let fill = |key: &str, id: &str| {
        let part = s.put(&format!("/box/{key}?partNumber=1&uploadId={id}"), b"parts").expect(200);
        let etag = part.header("etag");
        format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
             </CompleteMultipartUpload>"
        )
    };
    let complete = |key: &str, id: &str, parts: &str, headers: &[(&str, &str)]| {
        s.call("POST", &format!("/box/{key}?uploadId={id}"), parts.as_bytes(), headers)
    };
    s.put("/box/k", b"hello").expect(200);
    begin("k", ("if-none-match", "*")).expect(412);
    begin("k", ("if-match", "\"00\"")).expect(412);
    begin("gone", ("if-match", HELLO)).expect(404);
    begin("k", ("if-match", "a b")).expect(400);
    // What holds at the beginning has to hold at the end, too.
    for (key, header) in [("new", ("if-none-match", "*")), ("k", ("if-match", HELLO))] {
        let id = begin(key, header).expect(200).element("UploadId");
        let parts = fill(key, &id);
        s.put(&format!("/box/{key}"), b"meanwhile").expect(200);
        complete(key, &id, &parts, &[]).expect(412);
        assert_eq!(s.get(&format!("/box/{key}")).body, b"meanwhile");
        s.delete(&format!("/box/{key}?uploadId={id}")).expect(204);
        s.put("/box/k", b"hello").expect(200);
    }
    let other = "\"00\", W/\"00\"";
    for (key, begun, now, status) in [
        ("fresh", ("if-none-match", "*"), ("if-none-match", "*"), 200),
        ("k", ("if-none-match", other), ("if-match", HELLO), 200),
    ] {
        let id = begin(key, begun).expect(200).element("UploadId");
        let parts = fill(key, &id);
        complete(key, &id, &parts, &[("if-match", "\"00\"")]);
        complete(key, &id, &parts, &[now]).expect(status);
        assert_eq!(s.get(&format!("/box/{key}")).body, b"parts");
    }
}
