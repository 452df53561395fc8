//! Requests that `fuzz.rs` changes: of each protocol all kinds, most of them well-formed.

fn with(line: &str, headers: &str, body: &str) -> Vec<u8> {
    let len = body.len();
    let head = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}");
    format!("{head}Content-Length: {len}\r\n\r\n{body}").into_bytes()
}

fn plain(line: &str) -> Vec<u8> {
    with(line, "", "")
}

/// Those of S3.
pub fn of_s3() -> Vec<Vec<u8>> {
    let signed = "Authorization: AWS4-HMAC-SHA256 Credential=root/20261124/us-east-1/s3/\
                  aws4_request, SignedHeaders=host;x-amz-date, Signature=00ff\r\n\
                  x-amz-date: 20261124T000000Z\r\nx-amz-content-sha256: UNSIGNED-PAYLOAD\r\n";
    let chunked = "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\n\
                   x-amz-decoded-content-length: 5\r\nx-amz-trailer: x-amz-checksum-crc32\r\n\
                   Content-Encoding: aws-chunked\r\n";
    let form = "--B\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\nf\r\n\
                --B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x\"\r\n\r\n\
                bytes\r\n--B--\r\n";
    let parts = "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>\"00\"</ETag>\
                 </Part></CompleteMultipartUpload>";
    let delete = "<Delete><Object><Key>a</Key><VersionId>null</VersionId></Object></Delete>";
    let tags = "<Tagging><TagSet><Tag><Key>k</Key><Value>v</Value></Tag></TagSet></Tagging>";
    let concat = r#"{"parts":[{"key":"a","range":"0-1"},{"bucket":"box","key":"b"}]}"#;
    vec![
        plain("GET /"),
        plain("PUT /box"),
        plain("GET /box?list-type=2&prefix=a%2F&delimiter=%2F&max-keys=10&encoding-type=url"),
        plain("GET /box?marker=a&max-keys=3"),
        plain("GET /box?versions"),
        plain("GET /box?uploads&max-uploads=3"),
        with("PUT /box/a", "x-amz-meta-a: =?UTF-8?Q?=C3=A9?=\r\nx-amz-tagging: a=b\r\n", "hello"),
        with("PUT /box/b", "x-amz-checksum-crc32: NhCmhg==\r\n", "hello"),
        with("PUT /box/c", chunked, "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n"),
        with("PUT /box/d", "x-amz-copy-source: /box/a?versionId=null\r\n", ""),
        with("PUT /box/a", "x-amz-write-offset-bytes: 5\r\n", " world"),
        with("GET /box/a", "Range: bytes=1-3\r\nIf-None-Match: \"00\"\r\n", ""),
        with("GET /box/a", "If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT\r\n", ""),
        plain("GET /box/a?partNumber=1&response-content-type=text%2Fplain"),
        plain("HEAD /box/b"),
        with("GET /box/b?attributes", "x-amz-object-attributes: ETag,Checksum\r\n", ""),
        plain("POST /box/m?uploads"),
        with("PUT /box/m?partNumber=1&uploadId=00", "", "part"),
        with("POST /box/m?uploadId=00", "", parts),
        with("POST /box?delete", "", delete),
        with("PUT /box/a?tagging", "", tags),
        plain("GET /box/a?tagging"),
        with("POST /box", "Content-Type: multipart/form-data; boundary=B\r\n", form),
        with("POST /box/a?holdall=insert&at=2", "If-Match: *\r\n", "xx"),
        with("POST /box/a?holdall=splice&range=0-1", "", "yy"),
        plain("POST /box/a?holdall=delete-range&range=0-0"),
        with("POST /box/e?holdall=concat", "", concat),
        with("GET /box/a", signed, ""),
        plain(
            "GET /box/a?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=root%2F20261124%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20261124T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00",
        ),
        plain("GET /-/metrics"),
        plain("DELETE /box/d"),
    ]
}

/// Those of WebDAV.
pub fn of_webdav() -> Vec<Vec<u8>> {
    let props = "<D:propfind xmlns:D=\"DAV:\"><D:prop><D:getetag/><D:lockdiscovery/>\
                 <x xmlns=\"urn:x\"/></D:prop></D:propfind>";
    let patch = "<D:propertyupdate xmlns:D=\"DAV:\" xmlns:Z=\"urn:schemas-microsoft-com:\"><D:set>\
                 <D:prop><Z:Win32LastModifiedTime>Tue, 24 Nov 2026 11:00:00 GMT\
                 </Z:Win32LastModifiedTime><x xmlns=\"urn:x\" a=\"b\">v<y/></x></D:prop></D:set>\
                 <D:remove><D:prop><Z:Other/></D:prop></D:remove></D:propertyupdate>";
    let lock = "<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope><D:locktype>\
                <D:write/></D:locktype><D:owner><D:href>me</D:href></D:owner></D:lockinfo>";
    let part = "Content-Type: application/x-sabredav-partialupdate\r\nX-Update-Range: append\r\n";
    let token = "(<urn:uuid:00000000-0000-4000-8000-000000000000>)";
    vec![
        plain("OPTIONS /-/dav/box/"),
        plain("MKCOL /-/dav/box"),
        plain("MKCOL /-/dav/box/d"),
        with("PUT /-/dav/box/a", "Content-Type: text/plain\r\nX-OC-Mtime: 1\r\n", "hello"),
        with("PUT /-/dav/box/d/b%25%20c", "OC-Checksum: ADLER32:062c0215\r\n", "hello"),
        with("PUT /-/dav/box/a", "Content-Range: bytes 2-4/*\r\n", "xyz"),
        with("PATCH /-/dav/box/a", part, "more"),
        with("POST /-/dav/box/a?holdall=insert&at=2", "If-Match: *\r\n", "xx"),
        with("GET /-/dav/box/a", "Range: bytes=1-3\r\nIf-Range: \"00\"\r\n", ""),
        with("HEAD /-/dav/box/a", "If-None-Match: \"00\", W/\"1\"\r\n", ""),
        with("PROPFIND /-/dav/box/", "Depth: 1\r\n", props),
        with("PROPFIND /-/dav/", "Depth: 1\r\n", "<propfind xmlns=\"DAV:\"><allprop/></propfind>"),
        with(
            "PROPFIND /-/dav/box/a",
            "Depth: 0\r\n",
            "<propfind xmlns=\"DAV:\"><propname/></propfind>",
        ),
        with("PROPPATCH /-/dav/box/a", "", patch),
        with("PROPPATCH /-/dav/box/d", "", patch),
        with("LOCK /-/dav/box/l", "Depth: 0\r\nTimeout: Second-1, Infinite\r\n", lock),
        with("LOCK /-/dav/box/a", &format!("If: {token}\r\n"), ""),
        with("UNLOCK /-/dav/box/a", "Lock-Token: <urn:uuid:00000000-0000-4000-8000-0>\r\n", ""),
        with("PUT /-/dav/box/a", &format!("If: </-/dav/box/a> (Not {token} [\"00\"])\r\n"), "if"),
        with("COPY /-/dav/box/a", "Destination: http://x/-/dav/box/e\r\nOverwrite: T\r\n", ""),
        with("COPY /-/dav/box/d/", "Destination: /-/dav/box/f/\r\nDepth: infinity\r\n", ""),
        with("MOVE /-/dav/box/e", "Destination: http://x/-/dav/box/d/e\r\nOverwrite: F\r\n", ""),
        plain("DELETE /-/dav/box/holdall-hex-2e2e/x"),
        plain("DELETE /-/dav/box/d/e"),
        plain("DELETE /-/dav/box/l"),
    ]
}

/// Those of the page, of somebody who is logged in: `session` holds the headers.
pub fn of_page(session: &str) -> Vec<Vec<u8>> {
    let json = "Content-Type: application/json\r\n";
    let ours = |line: &str, body: &str| with(line, session, body);
    vec![
        plain("GET /-/web/"),
        plain("GET /-/web/page.js"),
        with("POST /-/web/login", json, "{\"name\":\"root\",\"password\":\"root-secret\"}"),
        ours("GET /-/web/session", ""),
        ours("GET /-/web/list?path=/-/dav/box/", ""),
        ours("GET /-/web/list?path=/-/dav/", ""),
        ours("GET /-/web/trash", ""),
        ours("POST /-/web/trash?path=/-/dav/box/a", ""),
        ours("POST /-/web/restore?collection=box&name=a", ""),
        ours("POST /-/web/share?path=/-/dav/box/a&seconds=60", ""),
        ours("POST /-/web/reload", ""),
        ours("GET /-/web/health", ""),
        ours("GET /-/web/report?store=0", ""),
        ours("MKCOL /-/web/dav/box", ""),
        ours("PUT /-/web/dav/box/a", "hello"),
        ours("PUT /-/web/dav/box/d/b%25", "hello"),
        ours("GET /-/web/dav/box/a", ""),
        ours("DELETE /-/web/dav/box/d/b%25", ""),
        plain("GET /-/health"),
        plain("GET /-/metrics"),
    ]
}
