//! Objects put, got, listed, copied, deleted.

use crate::harness::{Running, bytes, call, engine};

#[test]
fn an_object_comes_back_as_it_was_put() {
    let s = Running::open();
    s.put("/photos", b"").expect(200);
    let headers = [
        ("content-type", "image/png"),
        ("cache-control", "no-cache"),
        ("x-amz-meta-camera", "x100"),
        ("x-amz-tagging", "year=2026"),
    ];
    let put = s.call("PUT", "/photos/a/b.png", b"hello", &headers).expect(200);
    assert_eq!(put.header("etag"), "\"5d41402abc4b2a76b9719d911017c592\"");
    let got = s.get("/photos/a/b.png").expect(200);
    assert_eq!(got.body, b"hello");
    assert_eq!(got.header("content-type"), "image/png");
    assert_eq!(got.header("cache-control"), "no-cache");
    assert_eq!(got.header("x-amz-meta-camera"), "x100");
    assert_eq!(got.header("x-amz-tagging-count"), "1");
    let head = s.head("/photos/a/b.png").expect(200);
    assert_eq!(head.header("content-length"), "5");
    assert_eq!(head.header("etag"), put.header("etag"));
    let part = s.call("GET", "/photos/a/b.png", b"", &[("range", "bytes=1-3")]).expect(206);
    assert_eq!((part.body.as_slice(), part.header("content-range")), (&b"ell"[..], "bytes 1-3/5"));
    let end = s.call("GET", "/photos/a/b.png", b"", &[("range", "bytes=-2")]).expect(206);
    assert_eq!(end.body, b"lo");
    s.call("GET", "/photos/a/b.png", b"", &[("range", "bytes=5-")]).expect(416);
    s.delete("/photos/a/b.png").expect(204);
    s.delete("/photos/a/b.png").expect(204);
    assert_eq!(s.get("/photos/a/b.png").expect(404).element("Code"), "NoSuchKey");
}

#[test]
fn objects_of_every_size_survive_a_stop() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let sizes = [0, 1, 4_000, 70_000, 1 << 20, (1 << 20) + 1, 5_000_000];
    for (seed, size) in sizes.into_iter().enumerate() {
        s.put(&format!("/box/{size}"), &bytes(size, seed)).expect(200);
    }
    let dir = s.stop();
    let s = Running::within(dir, everybody(), &["a.holdall"]);
    for (seed, size) in sizes.into_iter().enumerate() {
        assert!(s.get(&format!("/box/{size}")).expect(200).body == bytes(size, seed), "{size}");
    }
    let store = s.store();
    let _dir = s.stop();
    assert!(engine(&store).verify().unwrap().is_sound());
}

fn everybody() -> holdall_server::Config {
    let anonymous = vec![holdall_server::Grant::everything()];
    holdall_server::Config { anonymous, ..Default::default() }
}

#[test]
fn a_body_in_chunks_of_unknown_length_is_stored() {
    use std::io::{Read as _, Write as _};
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let mut stream = std::net::TcpStream::connect(&s.address).unwrap();
    let head = "PUT /box/k HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\
                Connection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(b"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(s.get("/box/k").expect(200).body, b"hello world");
}

#[test]
fn listings_roll_up_page_and_encode() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    for key in ["a/1", "a/2", "b/1", "c", "d%20e", "f%0Ag"] {
        s.put(&format!("/box/{key}"), b"x").expect(200);
    }
    let all = s.get("/box?list-type=2&encoding-type=url").expect(200).text();
    assert!(all.contains("<Key>d%20e</Key>") && all.contains("<Key>f%0Ag</Key>"), "{all}");
    assert!(all.contains("<KeyCount>6</KeyCount>"), "{all}");
    let top = s.get("/box?list-type=2&delimiter=/").expect(200).text();
    assert!(top.contains("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>"), "{top}");
    assert!(!top.contains("<Key>a/1"), "{top}");
    let first = s.get("/box?list-type=2&max-keys=2&delimiter=/").expect(200);
    assert_eq!(first.element("IsTruncated"), "true");
    let token = first.element("NextContinuationToken");
    let next =
        s.get(&format!("/box?list-type=2&delimiter=/&continuation-token={token}")).expect(200);
    assert!(next.text().contains("<Key>c</Key>"), "{}", next.text());
    assert!(!next.text().contains("<Prefix>b/</Prefix></CommonPrefixes>"), "{}", next.text());
    let v1 = s.get("/box?marker=b/1&max-keys=1").expect(200);
    assert_eq!(v1.element("Key"), "c");
    s.get("/box?list-type=2&continuation-token=***").expect(400);
    s.get("/box?max-keys=-1").expect(400);
    s.get("/box?encoding-type=rot13").expect(400);
    s.get("/nothing").expect(404);
}

#[test]
fn copies_keep_or_replace_what_is_said_of_them() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let body = bytes(300_000, 1);
    let headers = [("content-type", "text/x"), ("x-amz-meta-a", "1"), ("x-amz-tagging", "t=1")];
    let put = s.call("PUT", "/box/from", &body, &headers).expect(200);
    let copy = s.call("PUT", "/box/to", b"", &[("x-amz-copy-source", "/box/from")]).expect(200);
    assert_eq!(copy.element("ETag"), put.header("etag"));
    let kept = s.get("/box/to").expect(200);
    assert!(kept.body == body);
    assert_eq!((kept.header("content-type"), kept.header("x-amz-meta-a")), ("text/x", "1"));
    let replace = [
        ("x-amz-copy-source", "box/to"),
        ("x-amz-metadata-directive", "REPLACE"),
        ("x-amz-meta-b", "2"),
    ];
    s.call("PUT", "/box/to", b"", &replace).expect(200);
    let replaced = s.get("/box/to").expect(200);
    assert!(replaced.body == body);
    assert_eq!((replaced.header("x-amz-meta-a"), replaced.header("x-amz-meta-b")), ("", "2"));
    assert_eq!(replaced.header("x-amz-tagging-count"), "1");
    s.call("PUT", "/box/to", b"", &[("x-amz-copy-source", "box/to")]).expect(400);
    s.call("PUT", "/box/to", b"", &[("x-amz-copy-source", "box/none")]).expect(404);
}

#[test]
fn what_is_said_of_an_object_may_be_long() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let long = "v".repeat(1900);
    s.call("PUT", "/box/k", b"x", &[("x-amz-meta-long", &long)]).expect(200);
    assert_eq!(s.head("/box/k").expect(200).header("x-amz-meta-long"), long);
    let copy = [("x-amz-copy-source", "box/k")];
    s.call("PUT", "/box/k2", b"", &copy).expect(200);
    assert_eq!(s.head("/box/k2").expect(200).header("x-amz-meta-long"), long);
    // A put without it leaves nothing of it.
    s.put("/box/k", b"y").expect(200);
    assert_eq!(s.head("/box/k").expect(200).header("x-amz-meta-long"), "");
    s.delete("/box/k").expect(204);
    s.delete("/box/k2").expect(204);
    let store = s.store();
    let _dir = s.stop();
    let system = engine(&store).read().unwrap().collection(".s3").unwrap();
    let left: Vec<_> = system.names("about/").collect();
    assert!(left.is_empty(), "{left:?}");
    let too_long = "v".repeat(2100);
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.call("PUT", "/box/k", b"x", &[("x-amz-meta-long", &too_long)]).expect(400);
}

#[test]
fn a_wrong_digest_stores_nothing() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    for (name, value, status) in [
        ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA==", 400),
        ("content-md5", "no digest", 400),
        ("x-amz-checksum-crc32", "AAAAAA==", 400),
        ("x-amz-checksum-crc32c", "AAAAAA==", 400),
        ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA=", 400),
        ("x-amz-checksum-sha1", "AAAAAAAAAAAAAAAAAAAAAAAAAAA=", 400),
    ] {
        s.call("PUT", "/box/k", b"hello", &[(name, value)]).expect(status);
        s.call("PUT", "/box/long", &bytes(2 << 20, 3), &[(name, value)]).expect(status);
        s.head("/box/k").expect(404);
        s.head("/box/long").expect(404);
    }
    s.call("PUT", "/box/k", b"hello", &[("x-amz-checksum-crc32", "NhCmhg==")]).expect(200);
    let mode = [("x-amz-checksum-mode", "ENABLED")];
    let head = s.call("HEAD", "/box/k", b"", &mode).expect(200);
    assert_eq!(head.header("x-amz-checksum-crc32"), "NhCmhg==");
}

#[test]
fn many_are_deleted_at_once() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    for key in ["a", "b", "c"] {
        s.put(&format!("/box/{key}"), b"x").expect(200);
    }
    let xml = "<Delete><Object><Key>a</Key></Object><Object><Key>b</Key></Object>\
               <Object><Key>none</Key></Object></Delete>";
    let done = s.post("/box?delete", xml.as_bytes()).expect(200).text();
    assert_eq!(done.matches("<Deleted>").count(), 3, "{done}");
    s.head("/box/a").expect(404);
    s.head("/box/c").expect(200);
    s.delete("/box").expect(409);
    s.delete("/box/c").expect(204);
    s.delete("/box").expect(204);
    s.head("/box").expect(404);
}

#[test]
fn what_the_engine_puts_is_served_with_an_etag_that_is_no_md5() {
    let s = Running::open();
    let store = s.store();
    let dir = s.stop();
    let engine = engine(&store);
    engine
        .write(|tx| {
            tx.put("plain", b"from the engine")?;
            tx.collection("Not A Bucket")?.put("hidden", b"x").map(drop)
        })
        .unwrap();
    engine.close().unwrap();
    let s = Running::within(dir, everybody(), &["a.holdall"]);
    let buckets = s.get("/").expect(200).text();
    assert!(buckets.contains("<Name>default</Name>") && !buckets.contains("Not A"), "{buckets}");
    let got = s.get("/default/plain").expect(200);
    assert_eq!(got.body, b"from the engine");
    let etag = got.header("etag").to_owned();
    assert!(etag.contains('-'), "{etag}");
    let listed = s.get("/default?list-type=2").expect(200).element("ETag");
    assert_eq!(listed, etag);
    s.call("GET", "/default/plain", b"", &[("if-none-match", &etag)]).expect(304);
}

#[test]
fn health_and_metrics_are_beside_s3() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    assert_eq!(s.get("/-/health").expect(200).text(), "ok\n");
    let metrics = s.get("/-/metrics").expect(200).text();
    assert!(
        metrics.contains("holdall_requests_total{method=\"PUT\",status=\"200\"} 1"),
        "{metrics}"
    );
    s.get("/-/other").expect(404);
    s.call("PUT", "/-/health", b"x", &[]).expect(405);
    assert_eq!(call("GET", &format!("http://{}/-/health", s.address), b"", &[]).status, 200);
}
