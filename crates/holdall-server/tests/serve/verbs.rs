//! The extension: edits inside objects.

use crate::harness::{Running, bytes};

fn with_object(body: &[u8]) -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let headers = [("content-type", "text/x"), ("x-amz-meta-a", "1")];
    s.call("PUT", "/box/k", body, &headers).expect(200);
    s
}

#[test]
fn ranges_are_inserted_deleted_and_replaced() {
    let s = with_object(b"hello world");
    let done = s.post("/box/k?holdall=insert&at=5", b", small").expect(200);
    assert_eq!(s.get("/box/k").body, b"hello, small world");
    assert!(done.text().contains("\"size\":18"), "{}", done.text());
    s.post("/box/k?holdall=delete-range&range=5-11", b"").expect(200);
    assert_eq!(s.get("/box/k").body, b"hello world");
    let last = s.post("/box/k?holdall=splice&range=0-4", b"good bye").expect(200);
    let got = s.get("/box/k").expect(200);
    assert_eq!(got.body, b"good bye world");
    assert_eq!((got.header("content-type"), got.header("x-amz-meta-a")), ("text/x", "1"));
    assert_eq!(got.header("etag"), last.header("etag"));
    assert!(got.header("etag").contains('-'), "{}", got.header("etag"));
    assert_eq!(s.get("/box?list-type=2").element("ETag"), got.header("etag"));
}

#[test]
fn an_edit_drops_checksums_that_no_longer_hold() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"hello", &[("x-amz-checksum-crc32", "NhCmhg==")]).expect(200);
    s.post("/box/k?holdall=insert&at=0", b"x").expect(200);
    let head = s.call("HEAD", "/box/k", b"", &[("x-amz-checksum-mode", "ENABLED")]).expect(200);
    assert_eq!(head.header("x-amz-checksum-crc32"), "");
}

#[test]
fn edits_are_conditional_on_the_etag() {
    let s = with_object(b"hello");
    let etag = s.head("/box/k").header("etag").to_owned();
    let path = "/box/k?holdall=insert&at=0";
    s.call("POST", path, b"x", &[("if-match", "\"00\"")]).expect(412);
    s.call("POST", path, b"x", &[("if-none-match", &etag)]).expect(412);
    let done = s.call("POST", path, b"x", &[("if-match", &etag)]).expect(200);
    s.call("POST", path, b"y", &[("if-match", &etag)]).expect(412);
    s.call("POST", path, b"y", &[("if-match", done.header("etag"))]).expect(200);
    assert_eq!(s.get("/box/k").body, b"yxhello");
}

#[test]
fn long_bodies_are_inserted_too() {
    let body = bytes(4_000_000, 1);
    let s = with_object(&body);
    let piece = bytes(3_000_000, 9);
    s.post("/box/k?holdall=insert&at=1000001", &piece).expect(200);
    let mut expected = body;
    expected.splice(1_000_001..1_000_001, piece.iter().copied());
    assert!(s.get("/box/k").body == expected);
    s.post("/box/k?holdall=splice&range=5-1999999", &piece).expect(200);
    expected.splice(5..2_000_000, piece.iter().copied());
    assert!(s.get("/box/k").body == expected);
    let wrong = [("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==")];
    s.call("POST", "/box/k?holdall=insert&at=0", &piece, &wrong).expect(400);
    assert!(s.get("/box/k").body == expected);
}

#[test]
fn objects_are_put_together_from_ranges_of_others() {
    let s = with_object(b"hello world");
    s.put("/cup", b"").expect(200);
    s.put("/cup/other", b"0123456789").expect(200);
    let etag = s.head("/cup/other").header("etag").replace('"', "\\\"");
    let parts = format!(
        r#"{{"parts":[{{"key":"k","range":"0-4"}},{{"bucket":"cup","key":"other","etag":"{etag}"}},{{"key":"k"}}]}}"#
    );
    s.post("/box/new?holdall=concat", parts.as_bytes()).expect(200);
    assert_eq!(s.get("/box/new").body, b"hello0123456789hello world");
    // Onto itself: its old bytes are the source.
    s.post("/box/k?holdall=concat", br#"{"parts":[{"key":"k"},{"key":"k","range":"0-0"}]}"#)
        .expect(200);
    assert_eq!(s.get("/box/k").body, b"hello worldh");
    for bad in [
        r#"{"parts":[{"key":"none"}]}"#,
        r#"{"parts":[{"key":"k","range":"0-99"}]}"#,
        r#"{"parts":[{"key":"k","etag":"00"}]}"#,
        r#"{"pieces":[]}"#,
        "[",
    ] {
        assert!(s.post("/box/k?holdall=concat", bad.as_bytes()).status >= 400, "{bad}");
        assert_eq!(s.get("/box/k").body, b"hello worldh");
    }
}

#[test]
fn an_append_by_offset_lands_at_the_end_or_nowhere() {
    let s = with_object(b"hello");
    let append =
        |at: &str, body: &[u8]| s.call("PUT", "/box/k", body, &[("x-amz-write-offset-bytes", at)]);
    append("5", b" world").expect(200);
    append("5", b" twice").expect(400);
    assert_eq!(s.get("/box/k").body, b"hello world");
    s.call("PUT", "/box/new", b"first", &[("x-amz-write-offset-bytes", "0")]).expect(200);
    s.call("PUT", "/box/none", b"x", &[("x-amz-write-offset-bytes", "3")]).expect(404);
    assert_eq!(s.get("/box/new").body, b"first");
}

#[test]
fn what_is_no_edit_is_refused() {
    let s = with_object(b"hello");
    for (path, status) in [
        ("/box/k?holdall=insert", 400),
        ("/box/k?holdall=insert&at=x", 400),
        ("/box/k?holdall=insert&at=6", 416),
        ("/box/k?holdall=delete-range&range=3-9", 416),
        ("/box/k?holdall=delete-range&range=3", 400),
        ("/box/k?holdall=twist", 400),
        ("/box/k?holdall", 400),
        ("/box?holdall=insert&at=0", 501),
        ("/box/none?holdall=insert&at=0", 404),
        ("/none/k?holdall=insert&at=0", 404),
    ] {
        s.post(path, b"x").expect(status);
    }
    assert_eq!(s.get("/box/k").body, b"hello");
}
