//! WebDAV.

use crate::harness::{Answer, KEYS, Running};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use holdall_server::{Config, Grant, Right, UserConfig};

const TIMES: usize = 5_000;

fn basic(keys: (&str, &str)) -> String {
    format!("Basic {}", STANDARD.encode(format!("{}:{}", keys.0, keys.1)))
}

/// The names that a folder shows, in its order, without the folder itself.
fn names(server: &Running, path: &str) -> Vec<String> {
    let body = b"<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>";
    let listed = server.call("PROPFIND", path, body, &[("Depth", "1")]).expect(207).text();
    let hrefs = listed.split("<D:href>").skip(2);
    hrefs.map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
}

fn to<'t>(server: &Running, path: &str, buffer: &'t mut String) -> [(&'static str, &'t str); 1] {
    *buffer = format!("http://{}{path}", server.address);
    [("Destination", buffer)]
}

fn carry(server: &Running, method: &str, from: &str, dest: &str) -> Answer {
    server.call(method, from, b"", &to(server, dest, &mut String::new()))
}

fn lock(server: &Running, path: &str, depth: &str) -> Answer {
    let body = b"<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>\
        <D:locktype><D:write/></D:locktype><D:owner><D:href>me</D:href></D:owner></D:lockinfo>";
    server.call("LOCK", path, body, &[("Depth", depth), ("Timeout", "Second-300")])
}

#[test]
fn objects_are_the_same_over_both_protocols() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/a/b.txt", b"x", &[]).expect(409);
    // A folder is made with nothing: neither text nor XML.
    for body in [&b"afafafaf"[..], b"<mkcol xmlns=\"DAV:\"/>"] {
        server.call("MKCOL", "/-/dav/docs/a", body, &[]).expect(415);
    }
    server.call("MKCOL", "/-/dav/docs/a", b"", &[]).expect(201);
    let put = server.call("PUT", "/-/dav/docs/a/b.txt", b"hello", &[]).expect(201);
    let got = server.get("/docs/a/b.txt").expect(200);
    assert_eq!((got.text().as_str(), got.header("etag")), ("hello", put.header("etag")));
    assert_eq!(got.header("content-type"), "text/plain");
    server.put("/docs/c.html", b"<script>").expect(200);
    let got = server.get("/-/dav/docs/c.html").expect(200);
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert!(got.header("content-security-policy").starts_with("sandbox;"));
    let part = server.call("GET", "/-/dav/docs/a/b.txt", b"", &[("Range", "bytes=1-3")]);
    assert_eq!(part.expect(206).text(), "ell");
    let past = server.call("GET", "/-/dav/docs/a/b.txt", b"", &[("Range", "bytes=9-")]);
    assert_eq!(past.expect(416).header("content-range"), "bytes */5");
    let same = [("If-None-Match", put.header("etag"))];
    server.call("GET", "/-/dav/docs/a/b.txt", b"", &same).expect(304);
    assert_eq!(names(&server, "/-/dav/docs/"), ["/-/dav/docs/a/", "/-/dav/docs/c.html"]);
    server.get("/-/dav/docs/none").expect(404);
    server.get("/-/dav/none/none").expect(404);
}

#[test]
fn a_range_is_put_inserted_and_deleted_on_condition() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    let path = "/-/dav/docs/a";
    let etag = server.call("PUT", path, b"0123456789", &[]).expect(201).header("etag").to_owned();
    let range = [("Content-Range", "bytes 2-4/*"), ("If-Match", etag.as_str())];
    server.call("PUT", path, b"abc", &range).expect(204);
    server.call("PUT", path, b"abc", &range).expect(412);
    let kind = ("Content-Type", "application/x-sabredav-partialupdate");
    let patch = |range| server.call("PATCH", path, b"XY", &[kind, ("X-Update-Range", range)]);
    patch("bytes=0-1").expect(204);
    patch("append").expect(204);
    patch("bytes=-1").expect(204);
    patch("bytes=99-").expect(416);
    patch("bytes=0-5").expect(400);
    server.call("PATCH", path, b"XY", &[("X-Update-Range", "append")]).expect(415);
    assert_eq!(server.get(path).text(), "XYabc56789XXY");
    server.post(&format!("{path}?holdall=insert&at=2"), b"--").expect(200);
    server.post(&format!("{path}?holdall=delete-range&range=4-8"), b"").expect(200);
    assert_eq!(server.get(path).text(), "XY--789XXY");
    server.post(&format!("{path}?holdall=delete-range&range=40-80"), b"").expect(416);
}

#[test]
fn trees_are_copied_moved_and_deleted_whole() {
    let server = Running::open();
    for folder in ["", "/t", "/t/in"] {
        server.call("MKCOL", &format!("/-/dav/docs{folder}"), b"", &[]).expect(201);
    }
    for i in 0..2500 {
        server.put(&format!("/docs/t/f{i}"), b"x").expect(200);
    }
    server.put("/docs/t/in/deep", b"y").expect(200);
    let copied = carry(&server, "COPY", "/-/dav/docs/t", "/-/dav/docs/u");
    assert_eq!(copied.expect(201).header("holdall-transactions"), "");
    carry(&server, "COPY", "/-/dav/docs/t", "/-/dav/docs/t/in/again").expect(201);
    assert_eq!(names(&server, "/-/dav/docs/t/in/again/").len(), 2501);
    carry(&server, "MOVE", "/-/dav/docs/t", "/-/dav/docs/t/in/x").expect(403);
    carry(&server, "MOVE", "/-/dav/docs/t", "/-/dav/docs/none/x").expect(409);
    let dest = format!("http://{}/-/dav/docs/u", server.address);
    let keep = [("Destination", dest.as_str()), ("Overwrite", "F")];
    server.call("MOVE", "/-/dav/docs/t", b"", &keep).expect(412);
    carry(&server, "MOVE", "/-/dav/docs/t", "/-/dav/docs/u").expect(204);
    server.get("/docs/t/f1").expect(404);
    assert_eq!(server.get("/docs/u/in/deep").expect(200).text(), "y");
    // A folder becomes a collection, and a collection a folder.
    carry(&server, "MOVE", "/-/dav/docs/u", "/-/dav/Moved%20Folder").expect(201);
    assert_eq!(names(&server, "/-/dav/"), ["/-/dav/Moved%20Folder/", "/-/dav/docs/"]);
    carry(&server, "MOVE", "/-/dav/Moved%20Folder", "/-/dav/docs/back").expect(201);
    assert_eq!(server.get("/docs/back/in/deep").expect(200).text(), "y");
    server.delete("/-/dav/docs/back").expect(204);
    assert_eq!(names(&server, "/-/dav/docs/"), Vec::<String>::new());
    server.delete("/-/dav/docs").expect(204);
    assert_eq!(names(&server, "/-/dav/"), Vec::<String>::new());
}

#[test]
fn an_empty_collection_becomes_an_empty_folder() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/from", b"", &[]).expect(201);
    server.call("MKCOL", "/-/dav/into", b"", &[]).expect(201);
    carry(&server, "MOVE", "/-/dav/from", "/-/dav/into/x").expect(201);
    assert_eq!(names(&server, "/-/dav/into/"), ["/-/dav/into/x/"]);
    carry(&server, "MOVE", "/-/dav/into/x", "/-/dav/again").expect(201);
    assert_eq!(names(&server, "/-/dav/into/"), Vec::<String>::new());
    assert_eq!(names(&server, "/-/dav/again/"), Vec::<String>::new());
}

#[test]
fn a_tree_moves_between_stores() {
    let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
    let dir = tempfile::tempdir().unwrap();
    for (store, name) in [("a.holdall", "first"), ("b.holdall", "second")] {
        let store = holdall::Store::create(dir.path().join(store)).unwrap();
        store.write(|tx| tx.collection(name)?.create_collection()).unwrap();
        store.write(|tx| tx.drop_collection("default").map(drop)).ok();
        store.close().unwrap();
    }
    let server = Running::within(dir, config, &["a.holdall", "b.holdall"]);
    server.call("MKCOL", "/-/dav/first/t", b"", &[]).expect(201);
    server.put("/first/t/small", b"s").expect(200);
    let large: Vec<u8> = (0..3_000_000_u32).map(|i| (i % 251) as u8).collect();
    server.put("/first/t/large", &large).expect(200);
    let copied = carry(&server, "COPY", "/-/dav/first/t", "/-/dav/second/t").expect(201);
    assert_eq!(server.get("/second/t/large").expect(200).body, large);
    assert!(!copied.header("holdall-transactions").is_empty());
    carry(&server, "MOVE", "/-/dav/first/t", "/-/dav/second/t").expect(204);
    server.get("/first/t/small").expect(404);
    assert_eq!(server.get("/second/t/small").expect(200).text(), "s");
}

#[test]
fn properties_and_locks_outlive_the_server() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/a", b"1", &[]).expect(201);
    let set =
        b"<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><colour xmlns=\"urn:x\">red &amp; \
        blue</colour></D:prop></D:set></D:propertyupdate>";
    for path in ["/-/dav/docs", "/-/dav/docs/a"] {
        server.call("PROPPATCH", path, set, &[]).expect(207);
    }
    server.call("PUT", "/-/dav/docs/a", b"2", &[]).expect(204);
    let locked = lock(&server, "/-/dav/docs/a", "0").expect(200);
    let token = locked.header("lock-token").to_owned();
    let made = lock(&server, "/-/dav/docs/new", "0").expect(201).header("lock-token").to_owned();
    let dir = server.stop();
    let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
    let server = Running::within(dir, config, &["a.holdall"]);
    for path in ["/-/dav/docs/", "/-/dav/docs/a"] {
        let all = server.call("PROPFIND", path, b"", &[("Depth", "0")]).expect(207).text();
        assert!(
            all.contains("<colour xmlns=\"urn:x\"") && all.contains(">red &amp; blue<"),
            "{all}"
        );
    }
    let all = server.call("PROPFIND", "/-/dav/docs/a", b"", &[("Depth", "0")]).text();
    assert!(all.contains(token.trim_matches(['<', '>'])) && all.contains("<D:href>me<"), "{all}");
    server.call("PUT", "/-/dav/docs/a", b"3", &[]).expect(423);
    server.delete("/-/dav/docs").expect(423);
    carry(&server, "MOVE", "/-/dav/docs/a", "/-/dav/docs/b").expect(423);
    server.call("PUT", "/-/dav/docs/a", b"3", &[("If", &format!("({token})"))]).expect(204);
    server.call("PUT", "/-/dav/docs/a", b"3", &[("If", "(<urn:other>)")]).expect(412);
    server.call("UNLOCK", "/-/dav/docs/a", b"", &[("Lock-Token", &token)]).expect(204);
    server.call("UNLOCK", "/-/dav/docs/new", b"", &[("Lock-Token", &made)]).expect(204);
    server.call("PUT", "/-/dav/docs/a", b"4", &[]).expect(204);
    assert!(
        lock(&server, "/-/dav/docs", "infinity").expect(200).text().contains("<D:depth>Infinity<")
    );
    server.call("PUT", "/-/dav/docs/a", b"5", &[]).expect(423);
}

#[test]
fn properties_that_are_not_there_are_told_so() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/a", b"1", &[]).expect(201);
    let body =
        b"<propfind xmlns=\"DAV:\"><prop><getetag/><none xmlns=\"a&quot;b\"/></prop></propfind>";
    let told = server.call("PROPFIND", "/-/dav/docs/a", body, &[("Depth", "0")]).expect(207).text();
    assert!(
        told.contains("404 Not Found") && told.contains("<none xmlns=\"a&quot;b\"/>"),
        "{told}"
    );
    assert!(told.contains("<D:getetag>&quot;"), "{told}");
    let deep = server.call("PROPFIND", "/-/dav/docs", b"", &[("Depth", "infinity")]).expect(403);
    assert!(deep.text().contains("propfind-finite-depth"));
    server.call("PROPFIND", "/-/dav/docs", b"<a>", &[("Depth", "0")]).expect(400);
    server.call("PROPFIND", "/-/dav/none", b"", &[("Depth", "0")]).expect(404);
}

#[test]
fn names_that_are_no_path_have_a_form_of_their_own() {
    let server = Running::open();
    server.put("/names", b"").expect(200);
    for key in ["a", "a/b", "a-c", "x//y", "d/./e", "%2541"] {
        server.put(&format!("/names/{key}"), key.as_bytes()).expect(200);
    }
    let shown = ["%2541", "a", "a-c", "a/", "d/", "x/"];
    let shown = shown.map(|name| format!("/-/dav/names/{name}"));
    assert_eq!(names(&server, "/-/dav/names/"), shown);
    assert_eq!(server.get("/-/dav/names/a").expect(200).text(), "a");
    assert_eq!(server.get("/-/dav/names/x/holdall-hex-/y").expect(200).text(), "x//y");
    server.delete("/-/dav/names/a").expect(204);
    server.get("/names/a").expect(404);
    assert_eq!(server.get("/names/a/b").expect(200).text(), "a/b");
    // A folder that was never made stays when it is emptied.
    server.delete("/-/dav/names/a/b").expect(204);
    assert!(names(&server, "/-/dav/names/").contains(&"/-/dav/names/a/".to_owned()));
}

#[test]
fn a_folder_of_several_pages_is_listed_once_each() {
    let server = Running::open();
    server.put("/pages", b"").expect(200);
    // Beside the last object of a page lies a folder that the next page begins with.
    for i in 0..999 {
        server.put(&format!("/pages/a{i:04}"), b"").expect(200);
    }
    for key in ["b", "b!", "b/in", "c"] {
        server.put(&format!("/pages/{key}"), b"").expect(200);
    }
    let shown = names(&server, "/-/dav/pages/");
    assert_eq!(shown.len(), 1003);
    assert_eq!(&shown[999..], ["b", "b%21", "b/", "c"].map(|n| format!("/-/dav/pages/{n}")));
}

#[test]
fn each_user_sees_and_changes_what_is_his() {
    let user = |name: &str, bucket: &str, rights: &[Right]| UserConfig {
        access_key: name.into(),
        secret_key: Some(format!("{name}-secret")),
        secret_key_file: None,
        grants: vec![Grant { bucket: bucket.into(), rights: rights.to_vec() }],
    };
    let users = vec![
        user("reader", "docs", &[Right::Read, Right::List]),
        user("writer", "other", &[Right::Read, Right::List, Right::Write]),
    ];
    let server = Running::with(Config { users, ..Config::default() }, &["a.holdall"]);
    let root = basic(KEYS);
    let (reader, writer) = (basic(("reader", "reader-secret")), basic(("writer", "writer-secret")));
    let call = |who: &str, method: &str, path: &str| {
        server.call(method, path, b"", &[("Authorization", who), ("Depth", "1")])
    };
    for bucket in ["docs", "other"] {
        call(&root, "MKCOL", &format!("/-/dav/{bucket}")).expect(201);
        call(&root, "PUT", &format!("/-/dav/{bucket}/a")).expect(201);
    }
    let unsigned = server.get("/-/dav/docs/a").expect(401);
    assert!(unsigned.header("www-authenticate").starts_with("Basic "));
    for wrong in [basic(("reader", "reader-secre")), basic(("nobody", "x")), "Basic !".into()] {
        call(&wrong, "GET", "/-/dav/docs/a").expect(401);
    }
    call(&reader, "GET", "/-/dav/docs/a").expect(200);
    for (method, path) in
        [("PUT", "/-/dav/docs/b"), ("DELETE", "/-/dav/docs/a"), ("MKCOL", "/-/dav/docs/x")]
    {
        call(&reader, method, path).expect(403);
    }
    call(&reader, "GET", "/-/dav/other/a").expect(403);
    call(&writer, "MKCOL", "/-/dav/new").expect(403);
    call(&writer, "DELETE", "/-/dav/other").expect(403);
    call(&writer, "PUT", "/-/dav/other/b").expect(201);
    assert!(!call(&reader, "PROPFIND", "/-/dav/").text().contains("other"));
    let dest = format!("http://{}/-/dav/docs/x", server.address);
    let headers = [("Authorization", writer.as_str()), ("Destination", dest.as_str())];
    server.call("COPY", "/-/dav/other/a", b"", &headers).expect(403);
    server
        .call("PROPFIND", "/-/dav/.s3/", b"", &[("Authorization", &root), ("Depth", "1")])
        .expect(404);
}

#[test]
fn hostile_requests_get_answers() {
    let server = Running::open();
    server.put("/docs", b"").expect(200);
    let mut state = 7_u64;
    let mut next = |n: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % n
    };
    let methods = [
        "GET",
        "PUT",
        "PATCH",
        "DELETE",
        "COPY",
        "MOVE",
        "PROPFIND",
        "PROPPATCH",
        "MKCOL",
        "LOCK",
        "UNLOCK",
        "OPTIONS",
        "POST",
        "HEAD",
    ];
    let pieces =
        ["/", "docs", "a", "%2F", "%00", "..", "%25", "%", "?holdall=insert&at=1", "%ff", "b"];
    let values = [
        "bytes 0-1/*",
        "bytes=0-1",
        "(<urn:a>)",
        "([\"a\"])",
        "0",
        "1",
        "infinity",
        "*",
        "\"x\"",
        "/-/dav/docs/b",
        "http://x/-/dav/docs/c",
        "Second-9999999999999",
        "append",
        "<urn:a>",
        "T",
        "F",
    ];
    let fields = [
        "Depth",
        "If",
        "Destination",
        "Overwrite",
        "Content-Range",
        "X-Update-Range",
        "If-Match",
        "Range",
        "Timeout",
        "Lock-Token",
        "If-None-Match",
        "X-OC-Mtime",
    ];
    let bodies: [&[u8]; 5] = [
        b"", b"<propfind xmlns=\"DAV:\"><prop/></propfind>", b"<a><b></a>", b"\xff\xfe",
        b"<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:shared/></D:lockscope><D:locktype><D:write/></D:locktype></D:lockinfo>",
    ];
    for _ in 0..TIMES {
        let path: String = (0..next(5)).map(|_| pieces[next(pieces.len())]).collect();
        let headers: Vec<(&str, &str)> = (0..next(4))
            .map(|_| (fields[next(fields.len())], values[next(values.len())]))
            .collect();
        let method = methods[next(methods.len())];
        let body = if method == "HEAD" { b"" } else { bodies[next(bodies.len())] };
        let answer = server.call(method, &format!("/-/dav/{path}"), body, &headers);
        assert!(answer.status < 500, "{method} {path} {headers:?}: {}", answer.text());
    }
    let dir = server.stop();
    let store = holdall::Store::open(dir.path().join("a.holdall")).unwrap();
    assert!(store.verify().unwrap().is_sound());
}
