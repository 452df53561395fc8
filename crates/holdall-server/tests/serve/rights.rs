//! Who may do what, and who is who.

use crate::harness::{KEYS, Running, call};
use holdall_server::{Config, Grant, Right, UserConfig};

const READER: (&str, &str) = ("reader", "reader-secret");
const WRITER: (&str, &str) = ("writer", "writer-secret");

fn user(keys: (&str, &str), bucket: &str, rights: &[Right]) -> UserConfig {
    UserConfig {
        access_key: keys.0.into(),
        secret_key: Some(keys.1.into()),
        secret_key_file: None,
        grants: vec![Grant { bucket: bucket.into(), rights: rights.to_vec() }],
    }
}

fn served() -> Running {
    let users = vec![
        user(READER, "public*", &[Right::Read, Right::List]),
        user(WRITER, "own", &[Right::Read, Right::Write, Right::List]),
    ];
    let s = Running::with(Config { users, ..Config::default() }, &["a.holdall"]);
    for bucket in ["public-a", "own", "secret"] {
        let url = s.signed_put(KEYS, bucket, "k");
        let made = url.replace(&format!("/{bucket}/k?"), &format!("/{bucket}?"));
        // The address is signed for the object; the bucket needs its own.
        assert_ne!(made, url);
        let credentials = rusty_s3::Credentials::new(KEYS.0, KEYS.1);
        let b = s.bucket(bucket);
        let create =
            rusty_s3::S3Action::sign(&b.create_bucket(&credentials), crate::harness::HOLDS);
        call("PUT", create.as_str(), b"", &[]).expect(200);
        call("PUT", &url, b"hello", &[]).expect(200);
    }
    s
}

#[test]
fn each_user_has_his_own_rights() {
    let s = served();
    let get = |keys, bucket| call("GET", &s.signed_get(keys, bucket, "k"), b"", &[]).status;
    let put = |keys, bucket| call("PUT", &s.signed_put(keys, bucket, "n"), b"x", &[]).status;
    assert_eq!((get(READER, "public-a"), put(READER, "public-a")), (200, 403));
    assert_eq!((get(READER, "own"), put(READER, "own")), (403, 403));
    assert_eq!((get(WRITER, "own"), put(WRITER, "own")), (200, 200));
    assert_eq!((get(WRITER, "public-a"), get(WRITER, "secret")), (403, 403));
    assert_eq!((get(KEYS, "secret"), put(KEYS, "secret")), (200, 200));
    s.get("/public-a/k").expect(403);
    s.put("/own/k", b"x").expect(403);
    s.get("/").expect(403);
    s.post("/own/k?holdall=insert&at=0", b"x").expect(403);
}

#[test]
fn a_copy_needs_the_right_to_read_its_source() {
    let s = served();
    let url = s.signed_put(WRITER, "own", "stolen");
    let denied = call("PUT", &url, b"", &[("x-amz-copy-source", "secret/k")]);
    denied.expect(403);
    let own = call("PUT", &url, b"", &[("x-amz-copy-source", "own/k")]);
    own.expect(200);
}

#[test]
fn signatures_must_be_right_and_fresh() {
    let s = served();
    let right = s.signed_get(READER, "public-a", "k");
    call("GET", &right, b"", &[]).expect(200);
    call("GET", &s.signed_get(("reader", "wrong-secret"), "public-a", "k"), b"", &[]).expect(403);
    call("GET", &s.signed_get(("nobody", "reader-secret"), "public-a", "k"), b"", &[]).expect(403);
    let tampered = right.replace("/public-a/k?", "/public-a/other?");
    call("GET", &tampered, b"", &[]).expect(403);
    // For another method than it was signed for.
    call("PUT", &right, b"x", &[]).expect(403);
    let longer = right.replace("X-Amz-Expires=60", "X-Amz-Expires=6000");
    call("GET", &longer, b"", &[]).expect(403);
    let old = format!(
        "http://{}/public-a/k?AWSAccessKeyId=reader&Signature=x&Expires=9999999999",
        s.address
    );
    call("GET", &old, b"", &[]).expect(400);
    let header = [("authorization", "AWS reader:c2lnbmF0dXJl")];
    s.call("GET", "/public-a/k", b"", &header).expect(400);
    let garbage = [("authorization", "AWS4-HMAC-SHA256 nonsense")];
    s.call("GET", "/public-a/k", b"", &garbage).expect(400);
}

#[test]
fn an_address_ends_with_its_time() {
    let s = served();
    let credentials = rusty_s3::Credentials::new(READER.0, READER.1);
    let bucket = s.bucket("public-a");
    let action = bucket.get_object(Some(&credentials), "k");
    let second = std::time::Duration::from_secs(1);
    let url = rusty_s3::S3Action::sign(&action, second).to_string();
    std::thread::sleep(second * 3);
    call("GET", &url, b"", &[]).expect(403);
}

#[test]
fn without_credentials_it_does_not_start() {
    let dir = tempfile::tempdir().unwrap();
    let options = holdall_server::Options {
        stores: vec![dir.path().join("a.holdall")],
        listen: "127.0.0.1:0".into(),
        ..Default::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(holdall_server::start(options)).unwrap_err();
    assert!(refused.to_string().contains("--anonymous"), "{refused}");
}

/// The Go SDK finds a bucket's region without signing, and takes it from the refusal.
#[test]
fn a_refused_head_of_a_bucket_names_the_region() {
    let s = served();
    let refused = s.head("/secret").expect(403);
    assert_eq!(refused.header("x-amz-bucket-region"), "us-east-1");
    let head = s.sign(READER, "HEAD", "/public-a", &[]);
    let shown = call("HEAD", &head, b"", &[]).expect(200);
    assert_eq!(shown.header("x-amz-bucket-region"), "us-east-1");
    let missing = call("HEAD", &s.sign(KEYS, "HEAD", "/nobody", &[]), b"", &[]).expect(404);
    assert_eq!(missing.header("x-amz-bucket-region"), "");
}
