//! Headers of WebDAV by which a client says on which condition, how deep and over what it acts:
//! each is honoured or refused.

use crate::harness::{Answer, Running};

const PATH: &str = "/-/dav/docs/a";

fn serve() -> (Running, String) {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    let put = server.call("PUT", PATH, b"0123456789", &[]).expect(201);
    let etag = put.header("etag").to_owned();
    (server, etag)
}

fn get(server: &Running, headers: &[(&str, &str)]) -> Answer {
    server.call("GET", PATH, b"", headers)
}

#[test]
fn overwrite_is_read_in_either_case_and_nothing_else() {
    let (server, _) = serve();
    server.call("PUT", "/-/dav/docs/b", b"kept", &[]).expect(201);
    for (value, status) in [("F", 412), ("f", 412), ("", 400), ("x", 400), ("false", 400)] {
        for method in ["COPY", "MOVE"] {
            let headers = [("Destination", "/-/dav/docs/b"), ("Overwrite", value)];
            server.call(method, PATH, b"", &headers).expect(status);
            assert_eq!(server.get("/docs/b").expect(200).text(), "kept");
        }
    }
    let headers = [("Destination", "/-/dav/docs/b"), ("Overwrite", "t")];
    server.call("COPY", PATH, b"", &headers).expect(204);
    assert_eq!(server.get("/docs/b").expect(200).text(), "0123456789");
}

#[test]
fn a_folder_is_deleted_and_moved_whole_or_not_at_all() {
    let (server, _) = serve();
    server.call("MKCOL", "/-/dav/docs/t", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/t/x", b"kept", &[]).expect(201);
    for depth in ["0", "1", "2", "", "none"] {
        for path in ["/-/dav/docs/t/", "/-/dav/docs/t", "/-/dav/docs/"] {
            server.call("DELETE", path, b"", &[("Depth", depth)]).expect(400);
            let headers = [("Depth", depth), ("Destination", "/-/dav/other")];
            server.call("MOVE", path, b"", &headers).expect(400);
        }
        assert_eq!(server.get("/docs/t/x").expect(200).text(), "kept");
    }
    for depth in ["1", "", "x"] {
        let headers = [("Depth", depth), ("Destination", "/-/dav/docs/u")];
        server.call("COPY", "/-/dav/docs/t", b"", &headers).expect(400);
    }
    for depth in ["2", "x"] {
        server.call("PROPFIND", "/-/dav/docs/t", b"", &[("Depth", depth)]).expect(400);
    }
    // An object has no depth.
    server.call("DELETE", PATH, b"", &[("Depth", "0")]).expect(204);
    server.call("DELETE", "/-/dav/docs/t", b"", &[("Depth", "Infinity")]).expect(204);
    server.get("/docs/t/x").expect(404);
}

#[test]
fn lists_of_etags_are_read() {
    let (server, etag) = serve();
    let own = etag.as_str();
    let with = format!("\"x\", {own} ,\"y\"");
    let weak = format!("W/{own}");
    let without = "\"x\", \"y\"";
    get(&server, &[("If-Match", &with)]).expect(200);
    get(&server, &[("If-Match", without)]).expect(412);
    get(&server, &[("If-Match", &weak)]).expect(412);
    get(&server, &[("If-None-Match", &with)]).expect(304);
    get(&server, &[("If-None-Match", &weak)]).expect(304);
    get(&server, &[("If-None-Match", without)]).expect(200);
    get(&server, &[("If-None-Match", "\"x\""), ("If-None-Match", own)]).expect(304);
    get(&server, &[("If-Match", "\"x\""), ("If-Match", own)]).expect(200);
    get(&server, &[("If-Match", "*")]).expect(200);
    get(&server, &[("If-None-Match", "*")]).expect(304);
    for odd in ["\"x", "x", "", ",", "\"a\" \"b\"", "*, \"a\"", "W/x"] {
        for name in ["If-Match", "If-None-Match"] {
            get(&server, &[(name, odd)]).expect(400);
            for method in ["PUT", "DELETE"] {
                server.call(method, PATH, b"", &[(name, odd)]).expect(400);
            }
        }
    }
    assert_eq!(get(&server, &[]).expect(200).text(), "0123456789");
}

#[test]
fn changes_are_made_on_their_conditions() {
    let (server, etag) = serve();
    let own = etag.as_str();
    let with = format!("\"x\", {own}");
    let patch =
        [("Content-Type", "application/x-sabredav-partialupdate"), ("X-Update-Range", "append")];
    let long = vec![7; 2 << 20];
    let fails: [&[(&str, &str)]; 4] = [
        &[("If-Match", "\"x\", \"y\"")],
        &[("If-None-Match", &with)],
        &[("If-None-Match", "*")],
        &[("If-Unmodified-Since", "Mon, 01 Jan 2001 00:00:00 GMT")],
    ];
    for fail in fails {
        for (method, path, body, more) in [
            ("PUT", PATH, &b"new"[..], &[][..]),
            ("PUT", PATH, &long[..], &[]),
            ("PATCH", PATH, b"new", &patch),
            ("POST", "/-/dav/docs/a?holdall=insert&at=1", b"new", &[]),
            ("POST", "/-/dav/docs/a?holdall=delete-range&range=0-1", b"", &[]),
            ("DELETE", PATH, b"", &[]),
            ("MOVE", PATH, b"", &[("Destination", "/-/dav/docs/b")]),
            ("COPY", PATH, b"", &[("Destination", "/-/dav/docs/b")]),
        ] {
            let headers: Vec<(&str, &str)> = [fail, more].concat();
            server.call(method, path, body, &headers).expect(412);
            assert_eq!(server.get("/docs/a").expect(200).text(), "0123456789", "{method}");
            server.get("/docs/b").expect(404);
        }
    }
    for (method, path, body) in [
        ("POST", "/-/dav/docs/a?holdall=insert&at=0", &b"x"[..]),
        ("PUT", PATH, b"short"),
        ("PUT", PATH, &long),
        ("DELETE", PATH, b""),
    ] {
        let now = server.head(PATH).expect(200).header("etag").to_owned();
        let with = format!("\"x\",{now}");
        let done = server.call(method, path, body, &[("If-Match", &with)]);
        assert!(done.status < 300, "{method}: {}", done.text());
    }
    server.call("PUT", PATH, b"x", &[("If-Match", "*")]).expect(412);
    server.call("PUT", PATH, b"x", &[("If-None-Match", "*")]).expect(201);
}

#[test]
fn a_range_is_answered_if_the_object_is_the_same() {
    let (server, etag) = serve();
    let modified = server.head(PATH).expect(200).header("last-modified").to_owned();
    let weak = format!("W/{etag}");
    let part = ("Range", "bytes=2-4");
    for (value, status) in [
        (etag.as_str(), 206),
        (weak.as_str(), 200),
        ("\"x\"", 200),
        (etag.trim_matches('"'), 200),
        (modified.as_str(), 206),
        ("Mon, 01 Jan 2001 00:00:00 GMT", 200),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 200),
        ("nonsense", 200),
    ] {
        for method in ["GET", "HEAD"] {
            let got = server.call(method, PATH, b"", &[part, ("If-Range", value)]).expect(status);
            let whole = if status == 206 { "234" } else { "0123456789" };
            if method == "GET" {
                assert_eq!(got.text(), whole, "{value}");
            }
            assert_eq!(got.header("content-length"), whole.len().to_string());
        }
    }
    // Several ranges, and what is none, are answered with the whole object.
    for range in ["bytes=0-1,3-4", "bytes=a-b", "lines=1-2", "bytes=4-2", "bytes="] {
        assert_eq!(get(&server, &[("Range", range)]).expect(200).text(), "0123456789", "{range}");
    }
    let known = get(&server, &[("If-None-Match", &etag)]).expect(304);
    assert_eq!(known.header("etag"), etag);
    assert_eq!(known.header("last-modified"), modified);
}
