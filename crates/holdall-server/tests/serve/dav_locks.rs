//! Locks and folders of WebDAV: what makes them, and what is refused before anything happens.

use crate::harness::{Answer, Running};

const LOCK: &[u8] = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope><locktype>\
    <write/></locktype><owner>me</owner></lockinfo>";

fn serve() -> Running {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    server
}

fn lock(server: &Running, path: &str, headers: &[(&str, &str)]) -> Answer {
    server.call("LOCK", path, LOCK, headers)
}

#[test]
fn a_lock_makes_an_empty_object_and_leaves_one_that_is_there() {
    let server = serve();
    let made = lock(&server, "/-/dav/box/new.txt", &[]).expect(201);
    let token = made.header("lock-token").to_owned();
    let bare = token.trim_matches(['<', '>']);
    assert!(made.text().contains(&format!("<D:locktoken><D:href>{bare}</D:href>")));
    assert!(made.text().contains("<D:lockroot><D:href>/-/dav/box/new.txt</D:href>"));
    assert!(made.text().contains(">me</D:owner>"), "{}", made.text());
    let got = server.get("/box/new.txt").expect(200);
    assert_eq!((got.text().as_str(), got.header("content-type")), ("", "text/plain"));
    server.put("/box/old", b"bytes").expect(200);
    lock(&server, "/-/dav/box/old", &[]).expect(200);
    assert_eq!(server.get("/box/old").expect(200).text(), "bytes");
    // Who does not hold it is kept out, and nothing is changed.
    lock(&server, "/-/dav/box/old", &[]).expect(423);
    server.call("PUT", "/-/dav/box/old", b"new", &[]).expect(423);
    assert_eq!(server.get("/box/old").expect(200).text(), "bytes");
}

#[test]
fn a_lock_with_no_place_leaves_nothing() {
    let server = serve();
    for (path, status) in [
        ("/-/dav/box/no/a", 409),
        ("/-/dav/nothing/a", 409),
        ("/-/dav/nothing", 403),
        ("/-/dav/box/a/", 403),
        ("/-/dav/", 403),
        ("/-/dav/box/%ff", 400),
    ] {
        lock(&server, path, &[]).expect(status);
    }
    assert!(!server.get("/box?list-type=2").expect(200).text().contains("<Key>"));
    // No lock stayed either.
    server.put("/box/no/b", b"").expect(200);
    server.call("PUT", "/-/dav/box/no/a", b"x", &[]).expect(201);
    lock(&server, "/-/dav/box/b", &[("Depth", "1")]).expect(400);
    server.call("LOCK", "/-/dav/box/b", b"<lockinfo xmlns=\"DAV:\"/>", &[]).expect(400);
    server.head("/box/b").expect(404);
}

#[test]
fn a_lock_lives_as_long_as_is_asked_for_and_is_refreshed_by_its_holder() {
    let server = serve();
    for (asked, granted) in [
        ("Second-7", "Second-7<"),
        ("Second-7, Infinite", "Second-7<"),
        ("Infinite", "Second-600<"),
        ("Second-86400", "Second-600<"),
        ("soon", "Second-600<"),
    ] {
        let made = lock(&server, "/-/dav/box/f", &[("Timeout", asked)]);
        assert!(made.text().contains(granted), "{asked}: {}", made.text());
        let token = made.header("lock-token").to_owned();
        let held = format!("({token})");
        let longer = [("If", held.as_str()), ("Timeout", "Second-99")];
        let longer = server.call("LOCK", "/-/dav/box/f", b"", &longer).expect(200);
        assert!(longer.text().contains("Second-99<") && longer.header("lock-token").is_empty());
        server.call("UNLOCK", "/-/dav/box/f", b"", &[]).expect(400);
        server.call("UNLOCK", "/-/dav/box/f", b"x", &[("Lock-Token", &token)]).expect(415);
        server.call("UNLOCK", "/-/dav/box/f", b"", &[("Lock-Token", "<urn:x>")]).expect(409);
        server.call("UNLOCK", "/-/dav/box/f", b"", &[("Lock-Token", &token)]).expect(204);
        server.call("LOCK", "/-/dav/box/f", b"", &[("If", &held)]).expect(412);
        server.call("LOCK", "/-/dav/box/f", b"", &[]).expect(400);
    }
}

#[test]
fn a_folder_is_named_by_its_own_path_and_made_once() {
    let server = serve();
    server.call("MKCOL", "/-/dav/box/d", b"", &[]).expect(201);
    server.call("MKCOL", "/-/dav/box/d", b"", &[]).expect(405);
    server.call("MKCOL", "/-/dav/box/no/d", b"", &[]).expect(409);
    server.call("MKCOL", "/-/dav/nothing/d", b"", &[]).expect(409);
    server.call("MKCOL", "/-/dav/", b"", &[]).expect(403);
    let locked = lock(&server, "/-/dav/box/d", &[("Depth", "infinity")]).expect(200);
    assert_eq!(locked.header("content-location"), "/-/dav/box/d/");
    server.call("MKCOL", "/-/dav/box/d/e", b"", &[]).expect(423);
    let held = format!("</-/dav/box/d> ({})", locked.header("lock-token"));
    server.call("MKCOL", "/-/dav/box/d/e", b"", &[("If", &held)]).expect(201);
}

#[test]
fn what_may_be_done_is_told() {
    let server = serve();
    server.put("/box/d/f", b"x").expect(200);
    let told = |path: &str| server.call("OPTIONS", path, b"", &[]).expect(200);
    for (path, has, has_not) in [
        (
            "/-/dav/box/d/f",
            &["GET", "PUT", "PATCH", "POST", "PROPPATCH", "LOCK"][..],
            &["MKCOL"][..],
        ),
        ("/-/dav/box/d", &["PROPFIND", "PROPPATCH", "MOVE", "DELETE"], &["GET", "PUT", "POST"]),
        ("/-/dav/box/new", &["MKCOL", "PUT", "LOCK"], &["GET", "DELETE"]),
        ("/-/dav/", &["PROPFIND"], &["DELETE", "MOVE", "PROPPATCH"]),
    ] {
        let answer = told(path);
        let allow: Vec<&str> = answer.header("allow").split(',').collect();
        assert!(has.iter().all(|method| allow.contains(method)), "{path}: {allow:?}");
        assert!(!has_not.iter().any(|method| allow.contains(method)), "{path}: {allow:?}");
        assert_eq!(answer.header("dav"), "1,2,3,sabredav-partialupdate");
        assert_eq!(answer.header("ms-author-via"), "DAV");
    }
    server.call("OPTIONS", "/-/dav/box/d", b"x", &[]).expect(415);
}
