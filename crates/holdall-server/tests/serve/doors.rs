//! What a put leaves of the object that it replaces, by all doors: properties of the bytes go
//! with them, properties of the object stay.

use crate::harness::{Running, bytes};

const PATH: &str = "/-/dav/docs/a";
const S3: &str = "/docs/a";

/// An object with all properties that there are.
fn said(server: &Running) {
    server.call("MKCOL", "/-/dav/docs", b"", &[]);
    let headers = [
        ("Content-Type", "text/x-old"),
        ("Content-Encoding", "gzip"),
        ("Content-Language", "la"),
        ("Content-Disposition", "inline"),
        ("Cache-Control", "max-age=5"),
        ("x-amz-tagging", "project=x"),
        ("x-amz-meta-camera", "leica"),
        ("x-amz-meta-mtime", "1000000000.5"),
        ("x-amz-meta-md5chksum", "AAAA"),
        ("x-amz-meta-s3cmd-attrs", "md5:00/mtime:1"),
        ("x-amz-checksum-crc32", "NhCmhg=="),
        ("x-amz-meta-x-amz-key-v2", "envelope"),
    ];
    server.call("PUT", S3, b"hello", &headers).expect(200);
    let set = b"<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><colour xmlns=\"urn:x\">red\
        </colour></D:prop></D:set></D:propertyupdate>";
    server.call("PROPPATCH", PATH, set, &[]).expect(207);
}

/// Properties of the object stay.
fn of_the_object(server: &Running, door: &str) {
    let head = server.head(S3).expect(200);
    assert_eq!(head.header("x-amz-meta-camera"), "leica", "{door}");
    assert_eq!(head.header("x-amz-tagging-count"), "1", "{door}");
    assert!(server.get("/docs/a?tagging").expect(200).text().contains("project"), "{door}");
    assert_eq!(head.header("cache-control"), "max-age=5", "{door}");
    assert_eq!(head.header("content-disposition"), "inline", "{door}");
    let all = server.call("PROPFIND", PATH, b"", &[("Depth", "0")]).expect(207).text();
    assert!(all.contains(">red<"), "{door}: {all}");
}

/// Properties of the bytes, which are others now, is gone.
fn of_the_bytes(server: &Running, door: &str) {
    let head = server.call("HEAD", S3, b"", &[("x-amz-checksum-mode", "ENABLED")]).expect(200);
    for name in [
        "x-amz-meta-mtime",
        "x-amz-meta-md5chksum",
        "x-amz-meta-s3cmd-attrs",
        "x-amz-meta-x-amz-key-v2",
        "x-amz-checksum-crc32",
    ] {
        assert_eq!(head.header(name), "", "{door}: {name}");
    }
}

fn replaced(server: &Running, door: &str, body: &[u8]) {
    of_the_object(server, door);
    of_the_bytes(server, door);
    let head = server.head(S3).expect(200);
    assert_eq!(head.header("content-encoding"), "", "{door}");
    assert_eq!(head.header("content-language"), "", "{door}");
    assert_ne!(head.header("content-type"), "text/x-old", "{door}");
    assert_eq!(server.get(S3).expect(200).body, body, "{door}");
}

#[test]
fn a_put_over_webdav_and_at_the_page_keeps_what_is_the_objects() {
    let server = Running::open();
    let page = [("X-Holdall-CSRF", "anonymous")];
    for size in [0, 5, 1 << 20, (1 << 20) + 1, 5 << 20] {
        let body = bytes(size, 3);
        said(&server);
        server.call("PUT", PATH, &body, &[]).expect(204);
        replaced(&server, &format!("WebDAV, {size}"), &body);
        said(&server);
        server.call("PUT", "/-/web/dav/docs/a", &body, &page).expect(204);
        replaced(&server, &format!("page, {size}"), &body);
    }
}

#[test]
fn a_large_upload_at_the_page_keeps_what_is_the_objects() {
    let server = Running::open();
    said(&server);
    let body = bytes(3 << 20, 4);
    let page = [("X-Holdall-CSRF", "anonymous")];
    server.call("PUT", "/-/web/dav/docs/.a.upload", &body, &page).expect(201);
    let more = [page[0], ("Destination", "/-/dav/docs/a"), ("Holdall-Replace", "bytes")];
    server.call("MOVE", "/-/web/dav/docs/.a.upload", b"", &more).expect(204);
    replaced(&server, "page, in pieces", &body);
    server.get("/docs/.a.upload").expect(404);
    assert!(server.get("/-/web/page.js").text().contains("Holdall-Replace"));
    // A move of WebDAV replaces the object itself.
    said(&server);
    server.call("PUT", "/-/dav/docs/b", &body, &[]).expect(201);
    server.call("MOVE", "/-/dav/docs/b", b"", &[("Destination", PATH)]).expect(204);
    assert_eq!(server.head(S3).expect(200).header("x-amz-meta-camera"), "");
}

#[test]
fn an_edit_drops_what_was_said_of_exactly_those_bytes() {
    let server = Running::open();
    let patch =
        [("Content-Type", "application/x-sabredav-partialupdate"), ("X-Update-Range", "append")];
    let long = bytes(2 << 20, 5);
    for body in [&b"more"[..], &long] {
        for (door, method, path, headers) in [
            ("PATCH", "PATCH", PATH, &patch[..]),
            ("insert over WebDAV", "POST", "/-/dav/docs/a?holdall=insert&at=1", &[]),
            ("insert over S3", "POST", "/docs/a?holdall=insert&at=1", &[]),
            ("append over S3", "PUT", S3, &[("x-amz-write-offset-bytes", "5")]),
        ] {
            said(&server);
            let done = server.call(method, path, body, headers);
            assert!(done.status < 300, "{door}: {}", done.text());
            of_the_object(&server, door);
            of_the_bytes(&server, door);
            // The form of the bytes is what it was.
            let head = server.head(S3).expect(200);
            assert_eq!(head.header("content-encoding"), "gzip", "{door}");
            assert_eq!(head.header("content-type"), "text/x-old", "{door}");
        }
    }
}

#[test]
fn a_put_over_s3_says_everything_anew() {
    let server = Running::open();
    for size in [5, 3 << 20] {
        said(&server);
        server.put(S3, &bytes(size, 6)).expect(200);
        of_the_bytes(&server, "S3");
        let head = server.head(S3).expect(200);
        for name in ["x-amz-meta-camera", "x-amz-tagging-count", "cache-control"] {
            assert_eq!(head.header(name), "", "{name}");
        }
        let all = server.call("PROPFIND", PATH, b"", &[("Depth", "0")]).expect(207).text();
        assert!(!all.contains(">red<"), "{all}");
    }
}
