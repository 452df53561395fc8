//! What clients announce of bodies, and how bodies travel.

use crate::harness::{KEYS, Running};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const CRC32: &str = "x-amz-checksum-crc32";
/// The CRC32 of `hello`.
const HELLO: &str = "NhCmhg==";

fn with_box() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s
}

/// Headers of a body in unsigned frames.
fn framed(len: &str) -> Vec<(&str, &str)> {
    vec![("content-encoding", "aws-chunked"), ("x-amz-decoded-content-length", len)]
}

const WHOLE: &[u8] = b"5\r\nhello\r\n0\r\n\r\n";
const WITH_SUM: &[u8] = b"5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n";

#[test]
fn frames_are_no_data() {
    let s = with_box();
    let with = |digest: &'static str| {
        let mut headers = framed("5");
        headers.push(("x-amz-content-sha256", digest));
        headers
    };
    for digest in ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"] {
        s.call("PUT", "/box/k", WHOLE, &with(digest)).expect(200);
        let got = s.get("/box/k").expect(200);
        assert_eq!((got.body.as_slice(), got.header("content-encoding")), (&b"hello"[..], ""));
        s.delete("/box/k").expect(204);
    }
    // A signed address does not say how the body travels.
    let url = s.signed_put(KEYS, "box", "k");
    crate::harness::call("PUT", &url, WHOLE, &with("UNSIGNED-PAYLOAD")).expect(200);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.call("PUT", "/box/k", WHOLE, &[("content-encoding", "aws-chunked")]).expect(411);
    let signed = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
    s.call("PUT", "/box/k", WHOLE, &with(signed)).expect(400);
    for (body, len, code) in [
        (&b"5\r\nhello\r\n"[..], "5", "IncompleteBody"),
        (b"5\r\nhello", "5", "IncompleteBody"),
        (b"5\r\nhello\r\n0", "5", "IncompleteBody"),
        (b"hello\r\n", "5", "InvalidRequest"),
        (b"5\r\nhello\r\n0\r\n\r\n", "6", "IncompleteBody"),
        (b"5\r\nhello\r\n0\r\n\r\n", "4", "IncompleteBody"),
        (b"5\r\nhello\r\n0\r\n\r\n", "x", "InvalidRequest"),
        (b"", "0", "IncompleteBody"),
    ] {
        let answer = s.call("PUT", "/box/bad", body, &framed(len));
        assert_eq!(answer.status, 400, "{}: {}", String::from_utf8_lossy(body), answer.text());
        assert_eq!(answer.element("Code"), code, "{}", answer.text());
        s.head("/box/bad").expect(404);
    }
}

#[test]
fn a_trailer_that_was_announced_comes() {
    let s = with_box();
    let put = |path: &str, body: &[u8], trailer: Option<&'static str>| {
        let mut headers = framed("5");
        headers.extend(trailer.map(|name| ("x-amz-trailer", name)));
        s.call("PUT", path, body, &headers)
    };
    assert_eq!(put("/box/k", WITH_SUM, Some(CRC32)).expect(200).header(CRC32), HELLO);
    let id = s.post("/box/m?uploads", b"").expect(200).element("UploadId");
    let part = format!("/box/m?partNumber=1&uploadId={id}");
    for path in ["/box/bad", part.as_str(), "/box/k?holdall=insert&at=0"] {
        let call = |body: &[u8], trailer| {
            if path.contains("holdall") {
                let mut headers = framed("5");
                headers.extend(trailer);
                return s.call("POST", path, body, &headers);
            }
            let mut headers = framed("5");
            headers.extend(trailer);
            s.call("PUT", path, body, &headers)
        };
        let named = |name: &'static str| Some(("x-amz-trailer", name));
        call(WHOLE, named(CRC32)).expect(400);
        call(WITH_SUM, named("x-amz-checksum-sha256")).expect(400);
        call(WITH_SUM, None).expect(400);
        call(WITH_SUM, named("x-amz-meta-a")).expect(400);
        call(b"5\r\nhellO\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n", named(CRC32)).expect(400);
    }
    // A trailer has no place if there are no frames.
    s.call("PUT", "/box/bad", b"hello", &[("x-amz-trailer", CRC32)]).expect(400);
    s.head("/box/bad").expect(404);
    assert_eq!(s.get("/box/k").body, b"hello");
    assert!(!s.get(&format!("/box/m?uploadId={id}")).expect(200).text().contains("<Part>"));
}

#[test]
fn an_algorithm_that_is_named_is_used_or_refused() {
    let s = with_box();
    let put = |path: &str, name: &str| {
        let named = ("x-amz-sdk-checksum-algorithm", name);
        s.call("PUT", path, b"hello", &[named]).expect(400);
        s.call("PUT", path, b"hello", &[named, (CRC32, HELLO)])
    };
    let id = s.post("/box/m?uploads", b"").expect(200).element("UploadId");
    let part = format!("/box/m?partNumber=1&uploadId={id}");
    for path in ["/box/k", &part] {
        put(path, "MD7").expect(400);
        assert_eq!(put(path, "CRC32").expect(200).header(CRC32), HELLO);
    }
}

#[test]
fn messages_are_what_was_announced() {
    let s = with_box();
    s.put("/box/k", b"hello").expect(200);
    let delete = b"<Delete><Object><Key>k</Key></Object></Delete>";
    let tags = b"<Tagging><TagSet><Tag><Key>n</Key><Value>1</Value></Tag></TagSet></Tagging>";
    for (method, path, body) in [
        ("POST", "/box?delete", &delete[..]),
        ("PUT", "/box/k?tagging", tags),
        ("PUT", "/box?tagging", tags),
    ] {
        for (name, value) in [
            ("content-md5", "AAAAAAAAAAAAAAAAAAAAAA=="),
            ("content-md5", "none"),
            (CRC32, "AAAAAA=="),
            ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
            ("x-amz-checksum-sha256", "AAAA"),
            ("x-amz-sdk-checksum-algorithm", "ROT13"),
        ] {
            let answer = s.call(method, path, body, &[(name, value)]);
            assert_eq!(answer.status, 400, "{path} {name}: {}", answer.text());
        }
        let framed = [&framed("5")[..], &[("x-amz-trailer", CRC32)]].concat();
        s.call(method, path, WHOLE, &framed).expect(400);
    }
    assert_eq!(s.get("/box/k").expect(200).header("x-amz-tagging-count"), "");
    s.get("/box?tagging").expect(404);
    let md5 = "wdGc52cLfVXTGDJQqyWKNQ==";
    let wrong = s.call("POST", "/box?delete", delete, &[("content-md5", md5)]).expect(400);
    assert_eq!(wrong.element("Code"), "BadDigest");
    s.head("/box/k").expect(200);
    s.call("PUT", "/box/k?tagging", tags, &[(CRC32, &crc32(tags))]).expect(200);
    s.call("POST", "/box?delete", delete, &[(CRC32, &crc32(delete))]).expect(200);
    s.head("/box/k").expect(404);
}

fn crc32(bytes: &[u8]) -> String {
    let bit = |sum: u32, _| if sum & 1 == 1 { sum >> 1 ^ 0xEDB8_8320 } else { sum >> 1 };
    let sum = bytes.iter().fold(!0, |sum, byte| (0..8).fold(sum ^ u32::from(*byte), bit));
    STANDARD.encode((!sum).to_be_bytes())
}

/// Completes an upload of one part.
fn complete(s: &Running, id: &str, etag: &str, headers: &[(&str, &str)]) -> crate::harness::Answer {
    let part = format!("<Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>");
    let body = format!("<CompleteMultipartUpload>{part}</CompleteMultipartUpload>");
    s.call("POST", &format!("/box/m?uploadId={id}"), body.as_bytes(), headers)
}

#[test]
fn a_composite_checksum_may_come_without_the_number_of_parts() {
    let s = with_box();
    let begin = |kind: &str| {
        let headers = [("x-amz-checksum-algorithm", "CRC32"), ("x-amz-checksum-type", kind)];
        s.call("POST", "/box/m?uploads", b"", &headers).expect(200).element("UploadId")
    };
    let part = |id: &str| {
        let put = s.put(&format!("/box/m?partNumber=1&uploadId={id}"), b"hello").expect(200);
        assert_eq!(put.header(CRC32), HELLO);
        put.header("etag").to_owned()
    };
    // The checksum of the one part's checksum.
    let whole = crc32(&[0x36, 0x10, 0xA6, 0x86]);
    let numbered = format!("{whole}-1");
    for (kind, given, status) in [
        ("COMPOSITE", whole.as_str(), 200),
        ("COMPOSITE", numbered.as_str(), 200),
        ("COMPOSITE", HELLO, 400),
        ("COMPOSITE", "AAAAAA==-1", 400),
        ("FULL_OBJECT", HELLO, 200),
        ("FULL_OBJECT", whole.as_str(), 400),
    ] {
        let id = begin(kind);
        let etag = part(&id);
        let done = complete(&s, &id, &etag, &[(CRC32, given)]);
        assert_eq!(done.status, status, "{kind} {given}: {}", done.text());
        if status == 200 {
            let kept = if kind == "COMPOSITE" { numbered.as_str() } else { HELLO };
            assert_eq!(done.element("ChecksumCRC32"), kept);
        }
    }
    let id = begin("COMPOSITE");
    let etag = part(&id);
    // What cannot be checked is refused.
    complete(&s, &id, &etag, &[("x-amz-checksum-sha256", "AAAA")]).expect(400);
    complete(&s, &id, &etag, &[("x-amz-checksum-type", "FULL_OBJECT")]).expect(400);
    complete(&s, &id, &etag, &[("x-amz-mp-object-size", "-1")]).expect(400);
    complete(&s, &id, &etag, &[("x-amz-mp-object-size", "5")]).expect(200);
    s.call("POST", "/box/m?uploads", b"", &[("x-amz-checksum-algorithm", "ROT13")]).expect(400);
    s.call("POST", "/box/m?uploads", b"", &[("x-amz-checksum-type", "COMPOSITE")]).expect(400);
}

#[test]
fn copies_have_the_checksum_that_is_asked_for() {
    let s = with_box();
    s.put("/box/from", b"hello").expect(200);
    let asked = [("x-amz-checksum-algorithm", "CRC32")];
    let id = s.call("POST", "/box/m?uploads", b"", &asked).expect(200).element("UploadId");
    let path = format!("/box/m?partNumber=1&uploadId={id}");
    let copy = s.call("PUT", &path, b"", &[("x-amz-copy-source", "box/from")]).expect(200);
    assert_eq!(copy.element("ChecksumCRC32"), HELLO);
    let done = complete(&s, &id, &copy.element("ETag"), &[]).expect(200);
    assert_eq!(done.element("ChecksumCRC32"), format!("{}-1", crc32(&[0x36, 0x10, 0xA6, 0x86])));
    let with = |source: &'static str| [("x-amz-copy-source", source), asked[0]];
    for source in ["box/from", "box/m"] {
        let copied = s.call("PUT", "/box/to", b"", &with(source)).expect(200);
        assert_eq!(copied.element("ChecksumCRC32"), HELLO, "{source}");
        let mode = [("x-amz-checksum-mode", "ENABLED")];
        let head = s.call("HEAD", "/box/to", b"", &mode).expect(200);
        assert_eq!(
            (head.header(CRC32), head.header("x-amz-checksum-type")),
            (HELLO, "FULL_OBJECT")
        );
    }
    let odd = [("x-amz-copy-source", "box/from"), ("x-amz-checksum-algorithm", "ROT13")];
    s.call("PUT", "/box/odd", b"", &odd).expect(400);
    s.head("/box/odd").expect(404);
}

#[test]
fn an_edit_is_checked_against_all_that_is_announced() {
    let s = with_box();
    s.put("/box/k", b"hello").expect(200);
    let path = "/box/k?holdall=insert&at=5";
    s.call("POST", path, b"hello", &[(CRC32, "AAAAAA==")]).expect(400);
    assert_eq!(s.get("/box/k").body, b"hello");
    s.call("POST", path, b"hello", &[(CRC32, HELLO)]).expect(200);
    s.call("POST", "/box/k?holdall=insert&at=0", WHOLE, &framed("5")).expect(200);
    assert_eq!(s.get("/box/k").body, b"hellohellohello");
}
