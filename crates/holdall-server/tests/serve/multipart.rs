//! Multipart uploads.

use crate::harness::{Running, bytes, engine};

const MIB: usize = 1 << 20;

fn begin(s: &Running, path: &str) -> String {
    s.post(&format!("{path}?uploads"), b"").expect(200).element("UploadId")
}

fn part(s: &Running, path: &str, id: &str, number: usize, body: &[u8]) -> String {
    let put = s.put(&format!("{path}?partNumber={number}&uploadId={id}"), body).expect(200);
    put.header("etag").to_owned()
}

fn list(parts: &[(usize, &str)]) -> Vec<u8> {
    let part = |(number, etag): &(usize, &str)| {
        format!("<Part><PartNumber>{number}</PartNumber><ETag>{etag}</ETag></Part>")
    };
    let parts: String = parts.iter().map(part).collect();
    format!("<CompleteMultipartUpload>{parts}</CompleteMultipartUpload>").into_bytes()
}

#[test]
fn parts_become_an_object_once() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let headers = [("content-type", "film/x"), ("x-amz-meta-a", "1")];
    let id = s.call("POST", "/box/k?uploads", b"", &headers).expect(200).element("UploadId");
    let (one, two, three) = (bytes(5 * MIB + 3, 1), bytes(6 * MIB, 2), bytes(77, 3));
    let late = part(&s, "/box/k", &id, 3, &three);
    let first = part(&s, "/box/k", &id, 1, &bytes(10, 9));
    let first_again = part(&s, "/box/k", &id, 1, &one);
    assert_ne!(first, first_again);
    let second = part(&s, "/box/k", &id, 2, &two);
    s.head("/box/k").expect(404);
    let complete = format!("/box/k?uploadId={id}");
    let parts = list(&[(1, &first_again), (2, &second), (3, &late)]);
    let done = s.post(&complete, &parts).expect(200);
    let etag = done.element("ETag");
    assert!(etag.ends_with("-3\""), "{etag}");
    let whole = [one, two.clone(), three].concat();
    let got = s.get("/box/k").expect(200);
    assert!(got.body == whole);
    assert_eq!((got.header("etag"), got.header("content-type")), (etag.as_str(), "film/x"));
    let part = s.get("/box/k?partNumber=2").expect(206);
    assert!(part.body == two);
    assert_eq!(part.header("x-amz-mp-parts-count"), "3");
    s.get("/box/k?partNumber=4").expect(416);
    // The answer may have got lost: a second completion gives the same.
    assert_eq!(s.post(&complete, &parts).expect(200).element("ETag"), etag);
    let store = s.store();
    let _dir = s.stop();
    let engine = engine(&store);
    assert!(engine.verify().unwrap().is_sound());
    let system = engine.read().unwrap().collection(".s3").unwrap();
    let left: Vec<_> = system.names("part/").chain(system.names("upload/")).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_completion_that_does_not_fit_its_parts_is_refused() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let id = begin(&s, "/box/k");
    let (one, two) = (part(&s, "/box/k", &id, 1, b"short"), part(&s, "/box/k", &id, 2, b"last"));
    let complete = format!("/box/k?uploadId={id}");
    for (parts, code) in [
        (list(&[(1, &one), (2, &two)]), "EntityTooSmall"),
        (list(&[(2, &two), (1, &one)]), "InvalidPartOrder"),
        (list(&[(1, "\"00\"")]), "InvalidPart"),
        (list(&[(3, &one)]), "InvalidPart"),
        (list(&[]), "MalformedXML"),
        (b"<no".to_vec(), "MalformedXML"),
    ] {
        assert_eq!(s.post(&complete, &parts).expect(400).element("Code"), code);
    }
    s.head("/box/k").expect(404);
    s.post(&complete, &list(&[(2, &two)])).expect(200);
    assert_eq!(s.get("/box/k").body, b"last");
    s.put(&format!("/box/k?partNumber=0&uploadId={id}"), b"x").expect(400);
    s.put(&format!("/box/k?partNumber=1&uploadId={id}"), b"x").expect(404);
}

#[test]
fn uploads_are_listed_and_given_up() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let (a, b) = (begin(&s, "/box/dir/a"), begin(&s, "/box/k"));
    part(&s, "/box/k", &b, 7, b"seven");
    let all = s.get("/box?uploads").expect(200).text();
    assert!(all.contains(&a) && all.contains(&b), "{all}");
    let top = s.get("/box?uploads&delimiter=/").expect(200).text();
    assert!(top.contains("<Prefix>dir/</Prefix>") && !top.contains(&a), "{top}");
    let page = s.get("/box?uploads&max-uploads=1").expect(200);
    assert_eq!(
        (page.element("IsTruncated"), page.element("NextKeyMarker")),
        ("true".into(), "dir/a".into())
    );
    let parts = s.get(&format!("/box/k?uploadId={b}")).expect(200);
    assert_eq!((parts.element("PartNumber"), parts.element("Size")), ("7".into(), "5".into()));
    s.delete(&format!("/box/k?uploadId={b}")).expect(204);
    s.get(&format!("/box/k?uploadId={b}")).expect(404);
    s.delete(&format!("/box/k?uploadId={b}")).expect(404);
    // An upload keeps no bucket.
    s.delete("/box").expect(204);
}

#[test]
fn parts_may_be_copies() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let from = bytes(11 * MIB, 4);
    s.put("/box/from", &from).expect(200);
    let id = begin(&s, "/box/k");
    let copy = |number: usize, range: &str| {
        let headers = [("x-amz-copy-source", "box/from"), ("x-amz-copy-source-range", range)];
        s.call("PUT", &format!("/box/k?partNumber={number}&uploadId={id}"), b"", &headers)
    };
    let one = copy(1, "bytes=1-6291456").expect(200).element("ETag");
    let two = copy(2, "bytes=0-9").expect(200).element("ETag");
    copy(3, "bytes=0-99999999").expect(416);
    copy(3, "0-9").expect(400);
    s.post(&format!("/box/k?uploadId={id}"), &list(&[(1, &one), (2, &two)])).expect(200);
    assert!(s.get("/box/k").body == [&from[1..=6_291_456], &from[..10]].concat());
}

#[test]
fn a_completion_may_be_conditional() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"there").expect(200);
    let id = begin(&s, "/box/k");
    let one = part(&s, "/box/k", &id, 1, b"new");
    let path = format!("/box/k?uploadId={id}");
    s.call("POST", &path, &list(&[(1, &one)]), &[("if-none-match", "*")]).expect(412);
    assert_eq!(s.get("/box/k").body, b"there");
    s.post(&path, &list(&[(1, &one)])).expect(200);
    assert_eq!(s.get("/box/k").body, b"new");
}
