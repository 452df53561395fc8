//! What WebDAV is asked by addresses and headers is done, or refused before anything happens.

use crate::harness::Running;
use crate::hostile::raw;

const OLD: &str = "0123456789";

fn serve() -> Running {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    for key in ["f", "dir/x", "dir/y"] {
        server.put(&format!("/box/{key}"), OLD.as_bytes()).expect(200);
    }
    server
}

/// Sends a request as it is written, and returns the status.
fn send(server: &Running, line: &str, headers: &[&[u8]], body: &[u8]) -> u16 {
    let mut request = format!("{line} HTTP/1.1\r\nHost: {}\r\n", server.address).into_bytes();
    for header in headers {
        request.extend_from_slice(header);
        request.extend_from_slice(b"\r\n");
    }
    let framed = headers.iter().any(|h| h.starts_with(b"Transfer-Encoding"));
    let length = format!("Content-Length: {}\r\n", body.len());
    let length = if framed { "" } else { &length };
    request.extend_from_slice(format!("{length}Connection: close\r\n\r\n").as_bytes());
    request.extend_from_slice(body);
    let answer = raw(server, &request);
    answer.split(' ').nth(1).map_or(0, |status| status.parse().unwrap())
}

/// All objects with their bytes.
fn all(server: &Running) -> Vec<(String, String)> {
    let listed = server.get("/box?list-type=2").expect(200).text();
    let keys = listed.split("<Key>").skip(1).map(|rest| rest.split('<').next().unwrap().to_owned());
    keys.map(|key| (key.clone(), server.get(&format!("/box/{key}")).expect(200).text())).collect()
}

/// Refuses to go on unless a request is answered so and changes nothing.
#[track_caller]
fn refused(server: &Running, status: u16, line: &str, headers: &[&[u8]], body: &[u8]) {
    let before = all(server);
    let shown: Vec<_> = headers.iter().map(|h| String::from_utf8_lossy(h)).collect();
    assert_eq!(send(server, line, headers, body), status, "{line} {shown:?}");
    assert_eq!(all(server), before, "{line} {shown:?}");
}

#[test]
fn no_query_and_no_fragment_is_left_out() {
    let server = serve();
    let host = &server.address;
    for end in ["?x", "?", "?versionId=", "#x", "#", "?a#b", "#a?b"] {
        for path in ["/box", "/box/", "/box/dir/", "/box/f", "/box/new"] {
            for method in ["DELETE", "PUT", "MKCOL", "GET", "PROPFIND"] {
                refused(&server, 400, &format!("{method} /-/dav{path}{end}"), &[], b"");
                let whole = format!("{method} http://{host}/-/dav{path}{end}");
                refused(&server, 400, &whole, &[], b"");
            }
        }
        for method in ["MOVE", "COPY"] {
            for at in ["/-/dav/box/dir", "/-/dav/box/q"] {
                let to = format!("Destination: http://{host}{at}{end}");
                refused(&server, 400, &format!("{method} /-/dav/box/f"), &[to.as_bytes()], b"");
            }
        }
        let tagged = format!("If: </-/dav/box/f{end}> (Not <urn:x>)");
        refused(&server, 400, "DELETE /-/dav/box/f", &[tagged.as_bytes()], b"");
    }
    // Also behind another request of the connection, whose body looks like one.
    let body = "PUT /-/dav/box/f#x HTTP/1.1\r\n\r\n";
    let first =
        format!("PUT /-/dav/box/g HTTP/1.1\r\nHost: {host}\r\nContent-Length: {}", body.len());
    let second = format!("DELETE /-/dav/box/#f HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let answer = raw(&server, format!("{first}\r\n\r\n{body}{second}").as_bytes());
    assert!(answer.starts_with("HTTP/1.1 201") && answer.contains("HTTP/1.1 400"), "{answer}");
    assert_eq!(server.get("/box/g").expect(200).text(), body);
    assert_eq!(all(&server).len(), 4);
    // As names they are written otherwise, and in absolute form, too.
    let line = format!("PUT http://{host}/-/dav/box/a%23b%3Fc");
    assert_eq!(send(&server, &line, &[], b"named"), 201);
    assert_eq!(server.get("/box/a%23b%3Fc").expect(200).text(), "named");
}

#[test]
fn another_server_is_not_taken_for_this_one() {
    let server = serve();
    let port = server.address.rsplit_once(':').unwrap().1;
    for method in ["MOVE", "COPY"] {
        for to in [
            "http://other/-/dav/box/n".to_owned(),
            format!("http://other:{port}/-/dav/box/n"),
            "http://127.0.0.1:1/-/dav/box/n".to_owned(),
            "http://127.0.0.1/-/dav/box/n".to_owned(),
            format!("ftp://{}/-/dav/box/n", server.address),
        ] {
            let to = format!("Destination: {to}");
            refused(&server, 502, &format!("{method} /-/dav/box/f"), &[to.as_bytes()], b"");
        }
    }
    refused(&server, 400, "DELETE http://other/-/dav/box/f", &[], b"");
    for list in ["(Not <urn:x>)", "(<urn:x>)", "([\"x\"])"] {
        let tagged = format!("If: <http://other/-/dav/box/f> {list}");
        refused(&server, 412, "DELETE /-/dav/box/f", &[tagged.as_bytes()], b"");
        refused(&server, 412, "MKCOL /-/dav/box/n", &[tagged.as_bytes()], b"");
    }
    // TLS may end before the server does.
    let to = format!("Destination: https://{}/-/dav/box/n", server.address);
    assert_eq!(send(&server, "MOVE /-/dav/box/f", &[to.as_bytes()], b""), 201);
    assert_eq!(server.get("/box/n").expect(200).text(), OLD);
}

#[test]
fn a_header_is_there_once_and_is_text() {
    let server = serve();
    let to = format!("Destination: http://{}/-/dav/box/n", server.address);
    let (to, f) = (to.as_bytes(), &b"Overwrite: F"[..]);
    let twice: [(&str, &[&[u8]]); 11] = [
        ("MOVE /-/dav/box/f", &[to, b"Overwrite: T", f]),
        ("MOVE /-/dav/box/f", &[to, f, b"Overwrite: T"]),
        ("COPY /-/dav/box/f", &[to, to]),
        ("PUT /-/dav/box/f", &[b"If: (Not <urn:x>)", b"If: (<urn:x>)"]),
        ("PUT /-/dav/box/f", &[b"Content-Range: bytes 2-4/*", b"Content-Range: bytes 5-7/*"]),
        ("GET /-/dav/box/f", &[b"Range: bytes=0-1", b"Range: bytes=3-4"]),
        ("DELETE /-/dav/box/dir/", &[b"Depth: infinity", b"Depth: 0"]),
        (
            "PUT /-/dav/box/f",
            &[
                b"If-Unmodified-Since: Wed, 25 Nov 2099 00:00:00 GMT",
                b"If-Unmodified-Since: Wed, 25 Nov 2000 00:00:00 GMT",
            ],
        ),
        (
            "PATCH /-/dav/box/f",
            &[
                b"Content-Type: application/x-sabredav-partialupdate",
                b"X-Update-Range: append",
                b"X-Update-Range: bytes=0-2",
            ],
        ),
        ("PUT /-/dav/box/f", &[b"Content-Type: a/b", b"Content-Type: c/d"]),
        ("PUT /-/dav/box/f", &[b"X-OC-Mtime: 1", b"X-OC-Mtime: 2"]),
    ];
    for (line, headers) in twice {
        refused(&server, 400, line, headers, b"abc");
    }
    for header in [
        &b"Content-Range: bytes 2-4/\xff"[..],
        b"If: ([\"\xff\"])",
        b"If: (<urn:\xc3\xa9>)",
        b"If-Match: \"\xff\"",
        b"If-None-Match: \xff",
        b"If-Unmodified-Since: \xff",
        b"Content-MD5: \xff\xfe",
        b"OC-Checksum: \xff",
        b"Digest: \xff",
        b"X-OC-Mtime: 5\xff",
        b"X-Expected-Entity-Length: 3\xff",
        b"Content-Type: text/\xff",
        b"Content-Encoding: gz\xff",
        b"Overwrite: F\xff",
    ] {
        refused(&server, 400, "PUT /-/dav/box/f", &[header], b"abc");
    }
    for header in [&b"Depth: 0\xff"[..], b"If: (<urn:\xff>)"] {
        refused(&server, 400, "DELETE /-/dav/box/dir/", &[header], b"");
    }
    refused(&server, 400, "GET /-/dav/box/f", &[b"Range: bytes=0-1\xff"], b"");
    refused(&server, 400, "GET /-/dav/box/f", &[b"If-Range: \"\xff\"", b"Range: bytes=0-1"], b"");
}

#[test]
fn a_promise_that_is_not_kept_is_refused() {
    let server = serve();
    for header in [
        &b"x-amz-object-lock-mode: COMPLIANCE"[..],
        b"x-amz-server-side-encryption: AES256",
        b"x-amz-storage-class: GLACIER",
        b"x-amz-acl: public-read",
        b"x-amz-meta-a: b",
        b"x-amz-tagging: a=b",
        b"x-amz-copy-source: box/dir/x",
        b"x-amz-something-new: 1",
        b"x-amz-trailer: x-amz-checksum-crc32",
        b"Trailer: Content-Digest",
        b"Content-Encoding: aws-chunked",
        b"Content-Encoding: gzip, AWS-Chunked",
        b"If-Schedule-Tag-Match: \"x\"",
        b"Repr-Digest: sha-512=:AAAA:",
        b"OC-Checksum: SHA3-256:00",
    ] {
        refused(&server, 501, "PUT /-/dav/box/f", &[header], b"abc");
        refused(&server, 501, "PUT /-/dav/box/new", &[header], b"abc");
    }
    for header in [
        &b"Overwrite: F"[..],
        b"X-Update-Range: append",
        b"Range: bytes=0-1",
        b"If-Range: \"x\"",
        b"Destination: /-/dav/box/n",
        b"Holdall-Replace: bytes",
    ] {
        refused(&server, 400, "PUT /-/dav/box/f", &[header], b"abc");
    }
    refused(
        &server,
        501,
        "DELETE /-/dav/box/f",
        &[b"x-amz-bypass-governance-retention: true"],
        b"",
    );
    for wrong in [
        &b"Content-MD5: AAAAAAAAAAAAAAAAAAAAAA=="[..],
        b"x-amz-checksum-crc32: AAAAAA==",
        b"x-amz-checksum-sha256: AAAA",
        b"x-amz-content-sha256: 0000000000000000000000000000000000000000000000000000000000000000",
        b"Digest: sha-256=AAAA",
        b"Repr-Digest: sha-256=:AAAA:",
        b"Content-Digest: md5=:AAAAAAAAAAAAAAAAAAAAAA==:",
        b"OC-Checksum: MD5:00000000000000000000000000000000",
        b"OC-Checksum: SHA1:0000000000000000000000000000000000000000",
        b"OC-Checksum: ADLER32:00000000",
        b"OC-Checksum: MD5:900150983cd24fb0d6963f7d28e17f72 ADLER32:00000000",
        b"X-OC-Mtime: x",
        b"X-OC-Mtime: 1.5",
        b"X-OC-Mtime: +5",
        b"X-Expected-Entity-Length: 99",
    ] {
        refused(&server, 400, "PUT /-/dav/box/f", &[wrong], b"abc");
        let parts: [&[u8]; 2] = [wrong, b"Content-Range: bytes 0-2/*"];
        let before = all(&server);
        assert!(send(&server, "PUT /-/dav/box/f", &parts, b"abc") >= 400);
        assert_eq!(all(&server), before);
    }
    let chunked = b"3\r\nabc\r\n0\r\n\r\n";
    refused(&server, 501, "PUT /-/dav/box/f", &[b"Transfer-Encoding: gzip, chunked"], chunked);
    // And what is right is done, over a mebibyte, too.
    for right in [
        &b"OC-Checksum: SHA1:a9993e364706816aba3e25717850c26c9cd0d89d"[..],
        b"OC-Checksum: MD5:900150983cd24fb0d6963f7d28e17f72 ADLER32:024D0127",
        b"Digest: SHA-256=ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=,adler32=024d0127",
        b"Content-Digest: sha-256=:ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=:",
        b"x-amz-checksum-crc32: NSRBwg==",
    ] {
        assert_eq!(send(&server, "PUT /-/dav/box/f", &[right], b"abc"), 204);
        assert_eq!(server.get("/box/f").expect(200).text(), "abc");
        server.put("/box/f", OLD.as_bytes()).expect(200);
    }
    let long = vec![b'a'; 3 << 20];
    let adler = b"OC-Checksum: ADLER32:00000001";
    refused(&server, 400, "PUT /-/dav/box/f", &[adler], &long);
    assert_eq!(send(&server, "PUT /-/dav/box/f", &[b"Transfer-Encoding: Chunked"], chunked), 204);
    assert_eq!(server.get("/box/f").expect(200).text(), "abc");
}

#[test]
fn digests_of_messages_are_compared_too() {
    let server = serve();
    let body = b"<propertyupdate xmlns=\"DAV:\"><set><prop><a>1</a></prop></set></propertyupdate>";
    let wrong = b"Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==";
    assert_eq!(send(&server, "PROPPATCH /-/dav/box/f", &[wrong], body), 400);
    assert_eq!(send(&server, "PROPFIND /-/dav/box/f", &[wrong, b"Depth: 0"], b""), 400);
    let lock = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope><locktype><write/>\
        </locktype></lockinfo>";
    assert_eq!(send(&server, "LOCK /-/dav/box/f", &[wrong], lock), 400);
    assert_eq!(send(&server, "PUT /-/dav/box/f", &[], b"abc"), 204);
}

#[test]
fn a_range_that_is_put_is_one_and_fits() {
    let server = serve();
    for range in ["bytes 2-4/99", "bytes 2-4/9", "bytes 10-12/10", "bytes 10-12/14"] {
        let header = format!("Content-Range: {range}");
        refused(&server, 416, "PUT /-/dav/box/f", &[header.as_bytes()], b"abc");
    }
    for range in ["bytes +2-+4/*", "bytes 2-4/+10", "bytes 2-4/", "bytes 2-4/x", "items 2-4/*"] {
        let header = format!("Content-Range: {range}");
        refused(&server, 400, "PUT /-/dav/box/f", &[header.as_bytes()], b"abc");
    }
    for name in ["Content-Encoding: gzip", "Content-Language: de", "X-OC-Mtime: 5"] {
        let headers: [&[u8]; 2] = [b"Content-Range: bytes 2-4/*", name.as_bytes()];
        refused(&server, 501, "PUT /-/dav/box/f", &headers, b"abc");
    }
    let kind = b"Content-Type: application/x-sabredav-partialupdate";
    for range in ["bytes=+2-+4", "bytes=+2-", "bytes=-+2", "bytes=2-4,5-6"] {
        let header = format!("X-Update-Range: {range}");
        refused(&server, 400, "PATCH /-/dav/box/f", &[kind, header.as_bytes()], b"abc");
    }
    let put = |range: &[u8]| send(&server, "PUT /-/dav/box/f", &[range], b"abc");
    assert_eq!(put(b"Content-Range: bytes 2-4/10"), 204);
    assert_eq!(put(b"Content-Range: Bytes 10-12/13"), 204);
    assert_eq!(server.get("/box/f").expect(200).text(), "01abc56789abc");
}

#[test]
fn an_edit_has_its_own_parameters_and_no_others() {
    let server = serve();
    for query in [
        "holdall=insert&at=0&at=1",
        "holdall=insert&at=0&foo=1",
        "holdall=insert&at=0&range=0-1",
        "holdall=insert&at=0&uploads",
        "holdall=insert&at=0&x-id=Y",
        "holdall=insert&at=0&X-Amz-Date=1",
        "holdall=insert&holdall=delete-range&at=0",
        "holdall=delete-range&range=0-1&range=2-3",
        "holdall=delete-range&range=0-1&at=1",
        "acl",
        "",
    ] {
        refused(&server, 400, &format!("POST /-/dav/box/f?{query}"), &[], b"abc");
    }
    assert_eq!(send(&server, "POST /-/dav/box/f?at=1&holdall=insert", &[], b"abc"), 200);
    assert_eq!(server.get("/box/f").expect(200).text(), "0abc123456789");
}

#[test]
fn a_range_that_is_asked_for_is_read_as_over_s3() {
    let server = serve();
    for (range, status, bytes) in [
        ("Bytes=0-1", 206, "01"),
        ("bytes=0-99999999999999999999999", 206, OLD),
        ("bytes=99999999999999999999999-", 416, ""),
        ("bytes=-3", 206, "789"),
        ("bytes=+0-1", 200, OLD),
        ("bytes=0-1,3-4", 200, OLD),
    ] {
        let headers = [("Range", range)];
        for path in ["/-/dav/box/f", "/box/f"] {
            let got = server.call("GET", path, b"", &headers).expect(status);
            assert!(status == 416 || got.text() == bytes, "{path} {range}: {}", got.text());
        }
    }
}
