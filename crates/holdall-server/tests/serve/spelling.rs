//! How clients spell things: keys that XML cannot hold, hosts, addresses that stand for headers.

use crate::harness::{KEYS, Running, call};
use holdall_server::{Config, Grant};

fn with_box() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s
}

/// Refuses text that XML 1.0 cannot hold, and references to it.
fn check_xml(text: &str) {
    let odd = |c: char| !matches!(c, '\t' | '\n' | ' '..='\u{FFFD}' | '\u{10000}'..);
    assert!(!text.contains(odd), "{text:?}");
    for reference in text.split("&#").skip(1) {
        assert!(reference.starts_with("13;"), "{text:?}");
    }
}

#[test]
fn keys_that_xml_cannot_hold_are_listed() {
    let s = with_box();
    let odd: Vec<u32> = (1..0x20).chain([0x7F, 0x85, 0xFFFD, 0xFFFE, 0xFFFF]).collect();
    for code in &odd {
        let mut bytes = [0; 4];
        let c = char::from_u32(*code).unwrap().encode_utf8(&mut bytes);
        let encoded: String = c.bytes().map(|b| format!("%{b:02X}")).collect();
        s.put(&format!("/box/Icon{encoded}"), b"x").expect(200);
    }
    for query in ["", "?list-type=2", "?versions"] {
        let listed = s.get(&format!("/box{query}")).expect(200).text();
        check_xml(&listed);
        assert_eq!(listed.matches("<Key>").count(), odd.len(), "{listed}");
        assert!(listed.contains("<Key>Icon&#13;</Key>"), "{listed:?}");
        let and = if query.is_empty() { "?" } else { "&" };
        let encoded = s.get(&format!("/box{query}{and}encoding-type=url")).expect(200).text();
        check_xml(&encoded);
        for key in ["Icon%01", "Icon%0D", "Icon%EF%BF%BF"] {
            assert!(encoded.contains(&format!("<Key>{key}</Key>")), "{key}: {encoded}");
        }
    }
    for path in [
        "/box?prefix=Icon%01",
        "/box?list-type=2&delimiter=%02",
        "/box/none%01",
        "/box?uploads&prefix=%03",
        "/box?%04",
    ] {
        check_xml(&s.get(path).text());
    }
    // Going on behind a key that has no such form would leave others out.
    s.get("/box?max-keys=1").expect(400);
    s.get("/box?max-keys=1&encoding-type=url").expect(200);
    let first = s.get("/box?list-type=2&max-keys=1").expect(200);
    let token = first.element("NextContinuationToken");
    let rest = s.get(&format!("/box?list-type=2&continuation-token={token}")).expect(200).text();
    assert_eq!(rest.matches("<Key>").count(), odd.len() - 1);
    let xml = "<Delete><Object><Key>Icon&#1;</Key></Object>\
               <Object><Key>Icon&#13;</Key></Object></Delete>";
    check_xml(&s.post("/box?delete", xml.as_bytes()).expect(200).text());
    s.put("/box/a", b"x").expect(200);
    s.put("/box/a%F0%9F%98%80b%3Cc", b"x").expect(200);
    let xml = "<Delete><Object><Key>a&#x1F600;<![CDATA[b<c]]></Key></Object></Delete>";
    s.post("/box?delete", xml.as_bytes()).expect(200);
    s.head("/box/a").expect(200);
    s.head("/box/a%F0%9F%98%80b%3Cc").expect(404);
    s.head("/box/Icon%01").expect(404);
    s.head("/box/Icon%0D").expect(404);
    // Bytes of objects are not changed.
    let kind = [("content-type", "application/xml")];
    s.call("PUT", "/box/o.xml", b"<a>\r\x01</a>", &kind).expect(200);
    assert_eq!(s.get("/box/o.xml").body, b"<a>\r\x01</a>");
}

#[test]
fn an_address_stands_for_headers_where_it_is_signed() {
    let s = with_box();
    let at = |method: &str, path: &str| s.sign(KEYS, method, path, &[]);
    let more = "x-amz-meta-a=1&x-amz-tagging=t=2&x-amz-storage-class=STANDARD&X-Amz-Meta-B=c d";
    let url = at("PUT", &format!("/box/k?{more}"));
    call("PUT", &url, b"hello", &[("content-type", "text/x")]).expect(200);
    let got = s.get("/box/k").expect(200);
    assert_eq!((got.header("x-amz-meta-a"), got.header("x-amz-meta-b")), ("1", "c d"));
    assert_eq!((got.header("x-amz-tagging-count"), got.header("content-type")), ("1", "text/x"));
    call("PUT", &at("PUT", "/box/copy?x-amz-copy-source=box/k"), b"", &[]).expect(200);
    let copy = s.get("/box/copy").expect(200);
    assert_eq!((copy.body.as_slice(), copy.header("x-amz-meta-a")), (&b"hello"[..], "1"));
    let missing = at("PUT", "/box/copy?x-amz-copy-source=box/none");
    call("PUT", &missing, b"", &[]).expect(404);
    let begun = call("POST", &at("POST", "/box/m?uploads&x-amz-meta-a=3"), b"", &[]).expect(200);
    let id = begun.element("UploadId");
    let part = format!("/box/m?partNumber=1&uploadId={id}&x-amz-copy-source=box/k");
    assert_ne!(call("PUT", &at("PUT", &part), b"", &[]).expect(200).element("ETag"), "");
    // An address that was signed without its body has the checksum of none.
    let blind = "x-amz-checksum-crc32=AAAAAA==&x-amz-sdk-checksum-algorithm=CRC32";
    let put = call("PUT", &at("PUT", &format!("/box/blind?{blind}")), b"hello", &[]).expect(200);
    assert_eq!(put.header("x-amz-checksum-crc32"), "NhCmhg==");
    let wrong = at("PUT", "/box/k?x-amz-checksum-crc32=AAAAAQ==");
    call("PUT", &wrong, b"new", &[]).expect(400);
    let locked = at("PUT", "/box/k?x-amz-object-lock-mode=COMPLIANCE");
    call("PUT", &locked, b"new", &[]).expect(501);
    let twice = at("PUT", "/box/k?x-amz-meta-a=1");
    call("PUT", &twice, b"new", &[("x-amz-meta-a", "2")]).expect(400);
    // A client that was given the address cannot add to it, nor write one.
    call("PUT", &format!("{twice}&x-amz-meta-z=1"), b"new", &[]).expect(403);
    s.put("/box/k?x-amz-meta-a=2", b"new").expect(400);
    s.put("/box/k?x-amz-copy-source=box/copy", b"").expect(400);
    assert_eq!(s.get("/box/k").body, b"hello");
}

#[test]
fn an_acl_in_an_address_is_one() {
    let anonymous = vec![Grant::everything()];
    let config = Config { anonymous, public_acls: true, ..Config::default() };
    let s = Running::with(config, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    let url = s.sign(KEYS, "PUT", "/box/k?x-amz-acl=public-read", &[]);
    call("PUT", &url, b"x", &[]).expect(200);
    assert!(s.get("/box/k?acl").expect(200).text().contains("AllUsers"));
}

#[test]
fn a_host_names_a_bucket_below_the_domain_only() {
    let config = Config {
        anonymous: vec![Grant::everything()],
        domain: Some("s3.example.org".into()),
        ..Config::default()
    };
    let s = Running::with(config, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    let get = |host: &str, path: &str| s.call("GET", path, b"", &[("host", host)]);
    for host in ["box.s3.example.org", "box.s3.example.org:9000", "BOX.S3.example.org:80"] {
        assert_eq!(get(host, "/k").expect(200).body, b"hello", "{host}");
        let put = s.call("PUT", "/own", b"o", &[("host", host)]).expect(200);
        assert_eq!(put.header("content-security-policy"), "");
        assert_eq!(s.get("/box/own").body, b"o");
        s.call("POST", "/own?holdall=insert&at=0", b"x", &[("host", host)]).expect(200);
        assert_eq!(s.get("/box/own").body, b"xo");
        s.call("PUT", "/k?renameObject", b"", &[("host", host)]).expect(501);
        s.call("DELETE", "/?versions", b"", &[("host", host)]).expect(501);
    }
    for host in [
        "s3.example.org",
        "s3.example.org:9000",
        "localhost:9000",
        "other.example.com",
        "storage.internal:80",
        "[::1]:9000",
        "10.0.0.1",
    ] {
        assert_eq!(get(host, "/box/k").expect(200).body, b"hello", "{host}");
        assert_eq!(get(host, "/box/k").header("content-security-policy"), "sandbox", "{host}");
    }
}

#[test]
fn a_head_of_a_bucket_names_its_region() {
    let s = with_box();
    assert_eq!(s.head("/box").expect(200).header("x-amz-bucket-region"), "us-east-1");
    assert_eq!(s.get("/?bucket-region=us-east-1").expect(200).element("Name"), "box");
    assert_eq!(s.get("/?bucket-region=eu-west-1").expect(200).element("Name"), "");
}
