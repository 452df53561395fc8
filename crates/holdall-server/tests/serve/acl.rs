//! ACLs that open buckets and objects to everybody.

use crate::harness::{Answer, KEYS, Running};
use holdall_server::{Config, Grant, Right, UserConfig};

/// Has no rights.
const OTHER: (&str, &str) = ("other", "other-secret");
/// May read and write, not change what belongs to buckets.
const WRITER: (&str, &str) = ("writer", "writer-secret");
/// Does not sign.
const NOBODY: (&str, &str) = ("", "");

fn config(public_acls: bool) -> Config {
    let user = |keys: (&str, &str), rights: &[Right]| UserConfig {
        access_key: keys.0.into(),
        secret_key: Some(keys.1.into()),
        secret_key_file: None,
        grants: vec![Grant { bucket: "*".into(), rights: rights.to_vec() }],
    };
    let users = vec![user(OTHER, &[]), user(WRITER, &[Right::Read, Right::Write])];
    Config { users, public_acls, ..Config::default() }
}

fn served() -> Running {
    Running::with(config(true), &["a.holdall"])
}

/// By the user with all rights.
fn root(s: &Running, method: &str, path: &str, body: &[u8], acl: &str) -> Answer {
    let header = [("x-amz-acl", acl)];
    s.signed(KEYS, method, path, body, if acl.is_empty() { &[] } else { &header })
}

fn get(s: &Running, who: (&str, &str), path: &str) -> u16 {
    s.signed(who, "GET", path, b"", &[]).status
}

fn put(s: &Running, who: (&str, &str), path: &str) -> u16 {
    s.signed(who, "PUT", path, b"new", &[]).status
}

#[test]
fn an_objects_acl_opens_this_object_for_reading() {
    let s = served();
    root(&s, "PUT", "/box", b"", "").expect(200);
    for (acl, unsigned, signed, grants) in [
        ("private", 403, 403, 1),
        ("bucket-owner-full-control", 403, 403, 1),
        ("public-read", 200, 200, 2),
        ("public-read-write", 200, 200, 3),
        ("authenticated-read", 403, 200, 2),
    ] {
        root(&s, "PUT", "/box/k", b"hello", acl).expect(200);
        assert_eq!(
            (get(&s, NOBODY, "/box/k"), get(&s, OTHER, "/box/k")),
            (unsigned, signed),
            "{acl}"
        );
        assert_eq!(s.head("/box/k").status, unsigned, "{acl}");
        // Nothing else is opened: neither others' names, nor the ACL, nor a put.
        for path in ["/box", "/box/other", "/box/k?acl", "/box/k?tagging", "/box/k?attributes"] {
            assert_eq!((get(&s, NOBODY, path), get(&s, OTHER, path)), (403, 403), "{acl} {path}");
        }
        assert_eq!((put(&s, NOBODY, "/box/k"), put(&s, OTHER, "/box/k")), (403, 403), "{acl}");
        let told = root(&s, "GET", "/box/k?acl", b"", "").expect(200).text();
        assert_eq!(told.matches("<Grant>").count(), grants, "{acl}: {told}");
        assert!(told.contains("<Permission>FULL_CONTROL</Permission>"), "{told}");
    }
    root(&s, "PUT", "/box/k", b"x", "public").expect(400);
    root(&s, "PUT", "/box/k", b"x", "aws-exec-read").expect(400);
    let grant = [("x-amz-grant-read", "id=somebody")];
    let refused = s.signed(KEYS, "PUT", "/box/k", b"x", &grant).expect(400);
    assert_eq!(refused.element("Code"), "AccessControlListNotSupported");
}

#[test]
fn a_buckets_acl_opens_its_names_and_puts() {
    let s = served();
    for (acl, listed, put_there) in [
        ("private", (403, 403), (403, 403)),
        ("public-read", (200, 200), (403, 403)),
        ("public-read-write", (200, 200), (200, 200)),
        ("authenticated-read", (403, 200), (403, 403)),
    ] {
        let bucket = format!("/of-{acl}");
        root(&s, "PUT", &bucket, b"", acl).expect(200);
        let key = format!("{bucket}/k");
        root(&s, "PUT", &key, b"hello", "").expect(200);
        for path in ["", "?list-type=2", "?versions", "?uploads", "?location"] {
            let path = format!("{bucket}{path}");
            assert_eq!((get(&s, NOBODY, &path), get(&s, OTHER, &path)), listed, "{path}");
        }
        assert_eq!((put(&s, NOBODY, &key), put(&s, OTHER, &key)), put_there, "{acl}");
        // Its objects stay private, and it itself the owner's.
        assert_eq!((get(&s, NOBODY, &key), get(&s, OTHER, &key)), (403, 403), "{acl}");
        for path in ["?acl", "?tagging", "?cors"] {
            let path = format!("{bucket}{path}");
            assert_eq!((get(&s, NOBODY, &path), put(&s, NOBODY, &path)), (403, 403), "{path}");
        }
        assert_eq!(put(&s, NOBODY, &format!("{key}?acl")), 403, "{acl}");
        s.post(&format!("{key}?holdall=insert&at=0"), b"x").expect(403);
        let gone = if put_there.0 == 200 { 204 } else { 403 };
        assert_eq!(s.delete(&key).status, gone, "{acl}");
        s.delete(&bucket).expect(403);
    }
    // S3 lets everybody know which buckets are not there.
    assert_eq!(s.get("/nothing/k").expect(404).element("Code"), "NoSuchBucket");
    // Those who may list learn that an object is not there.
    assert_eq!((s.get("/of-public-read/n").status, s.get("/of-private/n").status), (404, 403));
    let mine = s.get("/").expect(200).text();
    assert!(!mine.contains("<Bucket>"), "{mine}");
}

#[test]
fn who_may_write_sets_acls_of_objects_and_an_admin_those_of_buckets() {
    let s = served();
    root(&s, "PUT", "/box", b"", "").expect(200);
    root(&s, "PUT", "/box/k", b"hello", "").expect(200);
    let acl = [("x-amz-acl", "public-read")];
    s.signed(OTHER, "PUT", "/box/k?acl", b"", &acl).expect(403);
    s.signed(WRITER, "PUT", "/box?acl", b"", &acl).expect(403);
    let before = root(&s, "HEAD", "/box/k", b"", "").header("last-modified").to_owned();
    s.signed(WRITER, "PUT", "/box/k?acl", b"", &acl).expect(200);
    let open = s.head("/box/k").expect(200);
    assert_eq!(open.header("last-modified"), before);
    root(&s, "PUT", "/box?acl", b"", "public-read").expect(200);
    s.get("/box").expect(200);
    // The same as grants.
    let xml = root(&s, "GET", "/box/k?acl", b"", "").expect(200).body;
    root(&s, "PUT", "/box/k?acl", b"", "private").expect(200);
    s.get("/box/k").expect(403);
    root(&s, "PUT", "/box/k?acl", &xml, "").expect(200);
    s.get("/box/k").expect(200);
    root(&s, "PUT", "/box?acl", b"", "").expect(400);
    let text = String::from_utf8(xml).unwrap();
    for (from, to) in
        [(">READ<", ">WRITE_ACP<"), ("AllUsers", "LogDelivery"), (">holdall<", ">me<")]
    {
        let changed = text.replace(from, to);
        assert_ne!(changed, text);
        let refused = root(&s, "PUT", "/box?acl", changed.as_bytes(), "").expect(400);
        assert_eq!(refused.element("Code"), "AccessControlListNotSupported");
    }
    // A bucket that is there already gets the ACL that is asked for, and keeps its own otherwise.
    root(&s, "PUT", "/box", b"", "").expect(200);
    s.get("/box").expect(200);
    root(&s, "PUT", "/box", b"", "private").expect(200);
    s.get("/box").expect(403);
}

#[test]
fn a_put_or_copy_without_an_acl_is_private_and_an_edit_keeps_it() {
    let s = served();
    root(&s, "PUT", "/box", b"", "").expect(200);
    let long = "v".repeat(1900);
    let open = [("x-amz-acl", "public-read"), ("x-amz-meta-long", &long)];
    s.signed(KEYS, "PUT", "/box/k", b"hello", &open).expect(200);
    root(&s, "POST", "/box/k?holdall=insert&at=0", b"oh ", "").expect(200);
    let xml = b"<Tagging><TagSet><Tag><Key>a</Key><Value>1</Value></Tag></TagSet></Tagging>";
    root(&s, "PUT", "/box/k?tagging", xml, "").expect(200);
    assert_eq!(s.get("/box/k").expect(200).body, b"oh hello");
    let copy = |key: &str, more: &[(&str, &str)]| {
        let headers = [&[("x-amz-copy-source", "box/k")], more].concat();
        s.signed(KEYS, "PUT", key, b"", &headers).expect(200);
    };
    copy("/box/copy", &[]);
    s.get("/box/copy").expect(403);
    copy("/box/copy", &[("x-amz-acl", "public-read")]);
    s.get("/box/copy").expect(200);
    copy("/box/k", &[("x-amz-metadata-directive", "REPLACE")]);
    s.get("/box/k").expect(403);
    root(&s, "PUT", "/box/copy", b"secret", "").expect(200);
    s.get("/box/copy").expect(403);
    let upload = |acl: &str| {
        let id = root(&s, "POST", "/box/film?uploads=", b"", acl).expect(200).element("UploadId");
        let part = root(&s, "PUT", &format!("/box/film?partNumber=1&uploadId={id}"), b"x", "");
        let etag = part.expect(200).header("etag").to_owned();
        let xml = format!(
            "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>{etag}</ETag></Part>\
             </CompleteMultipartUpload>"
        );
        root(&s, "POST", &format!("/box/film?uploadId={id}"), xml.as_bytes(), "").expect(200);
        s.get("/box/film").status
    };
    assert_eq!((upload("public-read"), upload("")), (200, 403));
    let append = [("x-amz-acl", "public-read"), ("x-amz-write-offset-bytes", "1")];
    s.signed(KEYS, "PUT", "/box/film", b"y", &append).expect(400);
}

#[test]
fn a_form_names_an_acl_and_tags() {
    let s = served();
    root(&s, "PUT", "/box", b"", "public-read-write").expect(200);
    let post = |fields: &[(&str, &str)]| {
        let part = |(name, value): &(&str, &str)| {
            format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let form = fields.iter().map(part).collect::<String>() + "--X--\r\n";
        let kind = [("content-type", "multipart/form-data; boundary=X")];
        s.call("POST", "/box", form.as_bytes(), &kind)
    };
    let xml = "<Tagging><TagSet><Tag><Key>a&amp;b</Key><Value>1 2</Value></Tag></TagSet></Tagging>";
    let open = [("key", "open"), ("acl", "public-read"), ("tagging", xml), ("file", "hello")];
    post(&open).expect(204);
    assert_eq!(s.get("/box/open").expect(200).body, b"hello");
    let tags = root(&s, "GET", "/box/open?tagging", b"", "").expect(200);
    assert_eq!((tags.element("Key"), tags.element("Value")), ("a&amp;b".into(), "1 2".into()));
    post(&[("key", "closed"), ("file", "hello")]).expect(204);
    s.get("/box/closed").expect(403);
    post(&[("key", "k"), ("acl", "public"), ("file", "hello")]).expect(400);
    post(&[("key", "k"), ("tagging", "<no"), ("file", "hello")]).expect(400);
}

#[test]
fn what_is_open_lets_nobody_do_more() {
    let s = served();
    for bucket in ["/box", "/secret"] {
        root(&s, "PUT", bucket, b"", "").expect(200);
    }
    root(&s, "PUT", "/box?acl", b"", "public-read-write").expect(200);
    root(&s, "PUT", "/secret/k", b"hidden", "").expect(200);
    root(&s, "PUT", "/secret/open", b"shown", "public-read").expect(200);
    let copy = |from: &str| s.call("PUT", "/box/n", b"", &[("x-amz-copy-source", from)]);
    copy("secret/k").expect(403);
    copy("secret/none").expect(403);
    copy("secret/open").expect(200);
    // Who was given an address to put to cannot open what he puts.
    let url = s.sign(KEYS, "PUT", "/secret/k2", &[]);
    let acl = [("x-amz-acl", "public-read")];
    crate::harness::call("PUT", &url, b"x", &acl).expect(403);
    crate::harness::call("PUT", &url, b"x", &[]).expect(200);
    let open = s.sign(KEYS, "PUT", "/secret/k2?x-amz-acl=public-read", &[]);
    crate::harness::call("PUT", &open.replace("public-read", "private"), b"x", &[]).expect(403);
    s.get("/secret/k2").expect(403);
    crate::harness::call("PUT", &open, b"x", &[]).expect(200);
    s.get("/secret/k2").expect(200);
    // Nor can a stranger make a page of an open object.
    s.get("/secret/open?response-content-type=text/html").expect(400);
    assert_eq!(get(&s, OTHER, "/secret/open?response-content-type=text/html"), 200);
}

#[test]
fn acls_are_refused_and_do_not_count_unless_the_configuration_says_so() {
    let s = served();
    root(&s, "PUT", "/box", b"", "public-read").expect(200);
    root(&s, "PUT", "/box/k", b"hello", "public-read").expect(200);
    let s = Running::within(s.stop(), config(false), &["a.holdall"]);
    for path in ["/box", "/box/k", "/box/none", "/nothing", "/"] {
        assert_eq!(s.get(path).expect(403).element("Code"), "AccessDenied", "{path}");
    }
    for path in ["/box", "/box/k", "/box/none", "/nothing"] {
        assert_eq!(get(&s, OTHER, path), 403, "{path}");
    }
    for path in ["/box?acl", "/box/k?acl"] {
        let told = root(&s, "GET", path, b"", "").expect(200).text();
        assert_eq!(told.matches("<Grant>").count(), 1, "{told}");
    }
    for (path, body) in [("/new", ""), ("/box?acl", ""), ("/box/n", "x"), ("/box/k?acl", "")] {
        let refused = root(&s, "PUT", path, body.as_bytes(), "public-read").expect(400);
        assert_eq!(refused.element("Code"), "AccessControlListNotSupported", "{path}");
    }
    root(&s, "PUT", "/box/n", b"x", "private").expect(200);
    let s = Running::within(s.stop(), config(true), &["a.holdall"]);
    s.get("/box").expect(200);
    s.get("/box/k").expect(200);
    // A bucket made anew is private.
    for key in ["k", "n"] {
        root(&s, "DELETE", &format!("/box/{key}"), b"", "").expect(204);
    }
    root(&s, "DELETE", "/box", b"", "").expect(204);
    root(&s, "PUT", "/box", b"", "").expect(200);
    s.get("/box").expect(403);
}
