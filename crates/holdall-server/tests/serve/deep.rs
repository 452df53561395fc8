//! Bodies, headers and paths that nest as deep as a client likes: all are refused, or read in
//! memory that does not grow with their depth, and the server goes on.

use crate::harness::{KEYS, Running};
use base64::Engine as _;
use holdall_server::{Config, Grant};

/// As deep as the hostile reports had it, and deeper than any stack.
const DEPTH: usize = 100_000;

fn nested(before: &str, behind: &str) -> Vec<u8> {
    let (open, close) = ("<a>".repeat(DEPTH), "</a>".repeat(DEPTH));
    format!("{before}{open}{close}{behind}").into_bytes()
}

/// Documents that are deep at each place where a parser might go down.
fn documents() -> Vec<Vec<u8>> {
    let dav = "xmlns=\"DAV:\"";
    vec![
        nested("", ""),
        "<a>".repeat(DEPTH).into_bytes(),
        nested(&format!("<propfind {dav}><prop>"), "</prop></propfind>"),
        nested(&format!("<propfind {dav}><allprop/><include>"), "</include></propfind>"),
        nested(
            &format!("<propertyupdate {dav}><set><prop><x xmlns=\"urn:x\">"),
            "</x></prop></set></propertyupdate>",
        ),
        nested(
            &format!(
                "<lockinfo {dav}><lockscope><exclusive/></lockscope><locktype><write/></locktype>\
                 <owner>"
            ),
            "</owner></lockinfo>",
        ),
        nested(&format!("<mkcol {dav}><set><prop>"), "</prop></set></mkcol>"),
        // Two levels of a name for each of the text: attributes and prefixes count, too.
        format!("<a b=\"{}\">{}", "x".repeat(100), "<p:q xmlns:p=\"u\">".repeat(DEPTH))
            .into_bytes(),
    ]
}

fn refuses(server: &Running, calls: &[(&str, &str)], headers: &[(&str, &str)]) {
    for body in documents() {
        for (method, path) in calls {
            let got = server.call(method, path, &body, headers);
            let shown = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
            assert!((400..500).contains(&got.status), "{method} {path} {shown}: {}", got.status);
            server.get("/-/health").expect(200);
        }
    }
}

const DAV: [(&str, &str); 6] = [
    ("PROPFIND", "/-/dav/docs/a"),
    ("PROPFIND", "/-/dav/docs/"),
    ("PROPPATCH", "/-/dav/docs/a"),
    ("LOCK", "/-/dav/docs/a"),
    ("LOCK", "/-/dav/docs/new"),
    ("MKCOL", "/-/dav/docs/folder"),
];

#[test]
fn deep_bodies_are_refused_over_webdav() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/a", b"1", &[]).expect(201);
    refuses(&server, &DAV, &[("Depth", "0")]);
    assert_eq!(server.get("/-/dav/docs/a").expect(200).text(), "1");
    server.call("PROPFIND", "/-/dav/docs/new", b"", &[("Depth", "0")]).expect(404);
}

#[test]
fn deep_bodies_are_refused_where_acls_let_everybody_ask() {
    let config = Config { public_acls: true, ..Config::default() };
    let server = Running::with(config, &["a.holdall"]);
    refuses(&server, &DAV, &[("Depth", "0")]);
    let basic = base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", KEYS.0, KEYS.1));
    let basic = format!("Basic {basic}");
    let headers = [("Authorization", basic.as_str()), ("Depth", "0")];
    server.call("MKCOL", "/-/dav/docs", b"", &headers).expect(201);
    server.call("PUT", "/-/dav/docs/a", b"1", &headers).expect(201);
    refuses(&server, &DAV, &headers);
}

#[test]
fn properties_may_nest_as_deep_as_people_write_them() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/a", b"1", &[]).expect(201);
    let value = format!("{}deep{}", "<v>".repeat(40), "</v>".repeat(40));
    let body = format!(
        "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><p xmlns=\"urn:x\">{value}</p></D:prop>\
         </D:set></D:propertyupdate>"
    );
    server.call("PROPPATCH", "/-/dav/docs/a", body.as_bytes(), &[]).expect(207);
    let all = server.call("PROPFIND", "/-/dav/docs/a", b"", &[("Depth", "0")]).expect(207).text();
    assert!(all.contains("deep") && all.contains("urn:x"), "{all}");
}

#[test]
fn deep_bodies_are_refused_over_s3() {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    server.put("/box/k", b"1").expect(200);
    let calls = [
        ("POST", "/box?delete"),
        ("PUT", "/box/k?tagging"),
        ("PUT", "/box?tagging"),
        ("PUT", "/box?acl"),
        ("PUT", "/box/k?acl"),
        ("PUT", "/box?cors"),
        ("PUT", "/fresh-bucket"),
        ("POST", "/box/k?uploadId=00"),
    ];
    for body in documents() {
        for (method, path) in calls {
            let got = server.call(method, path, &body, &[]);
            assert!((400..502).contains(&got.status) && got.status != 500, "{method} {path}");
            server.get("/-/health").expect(200);
        }
    }
    assert_eq!(server.get("/box/k").expect(200).text(), "1");
}

#[test]
fn deep_json_is_refused() {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    server.put("/box/k", b"1").expect(200);
    let array = "[".repeat(DEPTH);
    let object = "{\"a\":".repeat(DEPTH);
    let inside = format!("{{\"parts\":[{{\"key\":{array}");
    let closed = format!("{{\"parts\":{}{}}}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    for body in [&array, &object, &inside, &closed] {
        for path in ["/box/k?holdall=concat", "/-/dav/box/k?holdall=concat"] {
            server.post(path, body.as_bytes()).expect(400);
        }
        let json = [("Content-Type", "application/json")];
        server.call("POST", "/-/web/login", &body.as_bytes()[..60_000], &json).expect(400);
        let policy = base64::engine::general_purpose::STANDARD.encode(body);
        let field = |name: &str, value: &str| {
            format!("--B\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let form = [
            field("key", "f"),
            field("policy", &policy),
            field("x-amz-algorithm", "AWS4-HMAC-SHA256"),
            field("x-amz-credential", "root/20261124/us-east-1/s3/aws4_request"),
            field("x-amz-date", "20261124T000000Z"),
            field("x-amz-signature", "00"),
            field("file", "bytes"),
            "--B--\r\n".to_owned(),
        ];
        let kind = [("Content-Type", "multipart/form-data; boundary=B")];
        let got = server.call("POST", "/box", form.concat().as_bytes(), &kind);
        assert!((400..500).contains(&got.status), "{}", got.text());
        server.get("/-/health").expect(200);
    }
    assert_eq!(server.get("/box/k").expect(200).text(), "1");
}

#[test]
fn deep_paths_and_headers_get_answers() {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    let deep = "/a".repeat(20_000);
    let many = "(Not <urn:a>) ".repeat(4_000);
    let tagged = format!("<http://x/-/dav/box{}> (<urn:a>)", "/a".repeat(10_000));
    let values = [
        ("If", "(".repeat(50_000)),
        ("If", many),
        ("If", tagged),
        ("Range", format!("bytes={}", "0-1,".repeat(10_000))),
        ("If-Match", "\"a\",".repeat(10_000)),
        ("If-None-Match", "(".repeat(50_000)),
        ("Destination", format!("/-/dav/box{}", "/b".repeat(20_000))),
        ("Depth", "1".repeat(50_000)),
        ("Cookie", "a=b;".repeat(10_000)),
    ];
    let methods = ["GET", "PROPFIND", "PUT", "LOCK", "MKCOL", "DELETE", "MOVE"];
    for method in methods {
        let path = format!("/-/dav/box{}", &deep[..30_000]);
        let got = server.call(method, &path, b"", &[("Depth", "0")]);
        assert!((400..500).contains(&got.status), "{method}: {}", got.status);
        for (name, value) in &values {
            let got = server.call(method, "/-/dav/box/none/x", b"", &[(name, value.as_str())]);
            assert!((400..500).contains(&got.status), "{method} {name}: {}", got.text());
        }
    }
    server.get("/-/health").expect(200);
    let anonymous = vec![Grant::everything()];
    let dir = server.stop();
    Running::within(dir, Config { anonymous, ..Config::default() }, &["a.holdall"]);
}
