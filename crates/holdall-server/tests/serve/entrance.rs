//! Who may come in: a login is offered wherever a right is missing, and wrong passwords are logged.

use crate::harness::{KEYS, Running};
use base64::Engine as _;
use holdall_server::{Config, Grant, Right};

fn basic() -> String {
    let keys = format!("{}:{}", KEYS.0, KEYS.1);
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(keys))
}

/// Servers that answer something to everybody, and not everything.
fn partly_open() -> Vec<Running> {
    let reads = Grant { bucket: "www".into(), rights: vec![Right::Read, Right::List] };
    let configs = [
        Config { public_acls: true, ..Config::default() },
        Config { anonymous: vec![reads.clone()], ..Config::default() },
        Config { anonymous: vec![reads], public_acls: true, ..Config::default() },
    ];
    configs.into_iter().map(|config| Running::with(config, &["a.holdall"])).collect()
}

#[test]
fn clients_of_webdav_are_asked_for_a_password_where_a_right_is_missing() {
    for server in partly_open() {
        let root = basic();
        let as_root = [("Authorization", root.as_str())];
        for path in ["/-/dav/www", "/-/dav/docs"] {
            server.call("MKCOL", path, b"", &as_root).expect(201);
        }
        server.call("PUT", "/-/dav/docs/a", b"1", &as_root).expect(201);
        for (method, path) in [
            ("GET", "/-/dav/docs/a"),
            ("HEAD", "/-/dav/docs/a"),
            ("PROPFIND", "/-/dav/docs/"),
            ("PUT", "/-/dav/docs/b"),
            ("PUT", "/-/dav/www/b"),
            ("DELETE", "/-/dav/docs/a"),
            ("MKCOL", "/-/dav/new"),
            ("MKCOL", "/-/dav/www/new"),
            ("LOCK", "/-/dav/docs/a"),
            ("PROPPATCH", "/-/dav/docs/a"),
            ("POST", "/-/dav/docs/a?holdall=delete-range&range=0-0"),
        ] {
            let told = server.call(method, path, b"", &[("Depth", "1")]).expect(401);
            assert!(told.header("www-authenticate").starts_with("Basic "), "{method} {path}");
        }
        let headers = [("Destination", "/-/dav/www/x")];
        server.call("COPY", "/-/dav/docs/a", b"", &headers).expect(401);
        assert_eq!(server.call("GET", "/-/dav/docs/a", b"", &as_root).expect(200).text(), "1");
    }
}

#[test]
fn the_page_offers_a_login_where_a_right_is_missing() {
    for server in partly_open() {
        let root = basic();
        let as_root = [("Authorization", root.as_str())];
        server.call("MKCOL", "/-/dav/docs", b"", &as_root).expect(201);
        server.get("/-/web/list?path=/-/dav/docs/").expect(401);
        let page = [("X-Holdall-CSRF", "anonymous")];
        server.call("PUT", "/-/web/dav/docs/a", b"1", &page).expect(401);
        server.call("POST", "/-/web/share?path=/-/dav/docs/a", b"", &page).expect(401);
        let body = format!("{{\"name\":\"{}\",\"password\":\"{}\"}}", KEYS.0, KEYS.1);
        let json = [("Content-Type", "application/json")];
        let told = server.call("POST", "/-/web/login", body.as_bytes(), &json).expect(200);
        let cookie = told.header("set-cookie").split(';').next().unwrap().to_owned();
        let known = [("Cookie", cookie.as_str())];
        server.call("GET", "/-/web/list?path=/-/dav/docs/", b"", &known).expect(200);
        // Who is known and has no right learns so, and is not asked again.
        let page = server.get("/-/web/").expect(200).text();
        assert!(page.contains("id=\"enter\""), "the page has no way to log in");
    }
    // With ACLs alone nobody is anybody at the page.
    let config = Config { public_acls: true, ..Config::default() };
    let server = Running::with(config, &["a.holdall"]);
    server.get("/-/web/session").expect(401);
    server.call("PROPFIND", "/-/dav/", b"", &[("Depth", "1")]).expect(401);
}
