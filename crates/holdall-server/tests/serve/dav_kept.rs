//! What WebDAV keeps of a put, answers of it, and takes of conditions; and how much it answers at a
//! time.

use crate::harness::{Running, bytes};
use crate::hostile::raw;

fn serve() -> Running {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    server
}

#[test]
fn what_a_put_says_of_its_bytes_is_kept() {
    let server = serve();
    let old =
        [("Content-Encoding", "br"), ("Content-Language", "fr"), ("Cache-Control", "no-store")];
    let old = [&old[..], &[("Expires", "0"), ("Content-Disposition", "inline")]].concat();
    let form = [("Content-Encoding", "gzip"), ("Content-Language", "de, en")];
    for size in [3, 3 << 20] {
        for there in [false, true] {
            let path = format!("/box/{size}{there}");
            if there {
                server.call("PUT", &path, b"old", &old).expect(200);
            }
            let new = bytes(size, 5);
            let status = if there { 204 } else { 201 };
            server.call("PUT", &format!("/-/dav{path}"), &new, &form).expect(status);
            let head = server.get(&path).expect(200);
            assert!(head.body == new);
            let told = |name: &str| head.header(name).to_owned();
            assert_eq!(
                (told("content-encoding"), told("content-language")),
                ("gzip".to_owned(), "de, en".to_owned())
            );
            // These belong to the object.
            let (cached, shown) = if there { ("no-store", "inline") } else { ("", "") };
            assert_eq!(
                (told("cache-control").as_str(), told("content-disposition").as_str()),
                (cached, shown)
            );
            let more = [("Content-Disposition", "attachment"), ("Expires", "never")];
            let more = [&more[..], &[("Cache-Control", "no-cache")]].concat();
            server.call("PUT", &format!("/-/dav{path}"), &new, &more).expect(204);
            let head = server.get(&path).expect(200);
            let told = |name: &str| head.header(name).to_owned();
            assert_eq!((told("content-encoding"), told("content-language")), Default::default());
            assert_eq!(told("content-disposition"), "attachment");
            assert_eq!((told("expires"), told("cache-control").as_str()), ("never".into(), cached));
        }
    }
}

#[test]
fn a_get_tells_what_is_kept() {
    let server = serve();
    let said = [("Cache-Control", "max-age=9"), ("Expires", "0"), ("Content-Language", "de")];
    server.call("PUT", "/box/f", b"0123456789", &said).expect(200);
    for (headers, status) in
        [(&[][..], 200), (&[("If-None-Match", "*")], 304), (&[("Range", "bytes=0-1")], 206)]
    {
        for method in ["GET", "HEAD"] {
            let got = server.call(method, "/-/dav/box/f", b"", headers).expect(status);
            assert_eq!(got.header("cache-control"), "max-age=9");
            assert_eq!(got.header("expires"), "0");
            let language = if status == 304 { "" } else { "de" };
            assert_eq!(got.header("content-language"), language);
        }
    }
}

#[test]
fn dates_are_read_in_the_three_forms_of_http() {
    let server = serve();
    server.call("PUT", "/-/dav/box/f", b"0123456789", &[]).expect(201);
    let call = |method: &str, name: &str, date: &str| {
        let body = if method == "PUT" { &b"0123456789"[..] } else { b"" };
        server.call(method, "/-/dav/box/f", body, &[(name, date)]).status
    };
    for date in [
        "Sun, 06 Nov 1994 08:49:37 GMT",
        "Sunday, 06-Nov-94 08:49:37 GMT",
        "Sun Nov  6 08:49:37 1994",
    ] {
        for method in ["PUT", "DELETE", "PROPPATCH", "MKCOL", "LOCK", "GET"] {
            assert_eq!(call(method, "If-Unmodified-Since", date), 412, "{method} {date}");
        }
        assert_eq!(call("GET", "If-Modified-Since", date), 200, "{date}");
    }
    for date in ["Wed, 25 Nov 2099 00:00:00 GMT", "Wed Nov 25 00:00:00 2099"] {
        assert_eq!(call("GET", "If-Modified-Since", date), 304, "{date}");
        assert_eq!(call("PUT", "If-Unmodified-Since", date), 204, "{date}");
    }
    for date in ["", "never", "Wed, 25 Nov 2099 00:00:00 +0000", "Wed, 36 Nov 2099 00:00:00 GMT"] {
        for method in ["PUT", "DELETE", "PROPPATCH", "MKCOL", "LOCK", "UNLOCK"] {
            assert_eq!(call(method, "If-Unmodified-Since", date), 400, "{method} {date}");
        }
        assert_eq!(call("GET", "If-Unmodified-Since", date), 200, "{date}");
        assert_eq!(call("GET", "If-Modified-Since", date), 200, "{date}");
    }
    // As the condition of a range.
    server.call("PUT", "/-/dav/box/f", b"0123456789", &[("X-OC-Mtime", "784111777")]).expect(204);
    let range = |date| [("Range", "bytes=0-1"), ("If-Range", date)];
    for date in ["Sun Nov  6 08:49:37 1994", "Sunday, 06-Nov-94 08:49:37 GMT"] {
        server.call("GET", "/-/dav/box/f", b"", &range(date)).expect(206);
    }
    server.call("GET", "/-/dav/box/f", b"", &range("Sun Nov  6 08:49:38 1994")).expect(200);
    server.call("PUT", "/-/dav/box/f", b"x", &[("X-OC-Mtime", "-86400")]).expect(204);
    let told = server.head("/box/f").expect(200);
    assert_eq!(told.header("last-modified"), "Wed, 31 Dec 1969 00:00:00 GMT");
}

#[test]
fn a_weak_etag_lets_nothing_be_changed() {
    let server = serve();
    let etag = server.call("PUT", "/-/dav/box/f", b"old", &[]).expect(201);
    let etag = etag.header("etag").to_owned();
    for (list, status) in [
        (format!("([W/{etag}])"), 412),
        (format!("([{}])", etag.trim_matches('"')), 400),
        ("([\"x\"])".to_owned(), 412),
    ] {
        for method in ["PUT", "DELETE", "PROPPATCH"] {
            let body = if method == "PUT" { &b"new"[..] } else { b"" };
            server.call(method, "/-/dav/box/f", body, &[("If", &list)]).expect(status);
        }
        assert_eq!(server.get("/box/f").expect(200).text(), "old");
    }
    let holds = format!("([{etag}])");
    server.call("PUT", "/-/dav/box/f", b"new", &[("If", &holds)]).expect(204);
    assert_eq!(server.get("/box/f").expect(200).text(), "new");
}

#[test]
fn a_carriage_return_comes_back() {
    let server = serve();
    server.call("PUT", "/-/dav/box/f", b"x", &[]).expect(201);
    let set =
        b"<propertyupdate xmlns=\"DAV:\"><set><prop><x xmlns=\"urn:c\">a&#13;b&#13;&#10;c</x>\
        </prop></set></propertyupdate>";
    server.call("PROPPATCH", "/-/dav/box/f", set, &[]).expect(207);
    let all = b"<propfind xmlns=\"DAV:\"><allprop/></propfind>";
    let told = server.call("PROPFIND", "/-/dav/box/f", all, &[("Depth", "0")]).expect(207).text();
    assert!(told.contains(">a&#13;b&#13;\nc<") && !told.contains('\r'), "{told}");
    let odd =
        b"<propfind xmlns=\"DAV:\"><prop><x xmlns=\"urn:&#13;&#10;&quot;\"/></prop></propfind>";
    let told = server.call("PROPFIND", "/-/dav/box/f", odd, &[("Depth", "0")]).expect(207).text();
    assert!(told.contains("xmlns=\"urn:&#13;&#10;&quot;\""), "{told}");
    let lock = b"<lockinfo xmlns=\"DAV:\"><lockscope><shared/></lockscope><locktype><write/>\
        </locktype><owner>me&#13;</owner></lockinfo>";
    let told = server.call("LOCK", "/-/dav/box/f", lock, &[]).expect(200).text();
    assert!(told.contains("me&#13;") && !told.contains('\r'), "{told}");
}

#[test]
fn a_listing_comes_in_pieces() {
    let server = serve();
    for n in 0..400 {
        server.put(&format!("/box/k{n:03}"), b"x").expect(200);
    }
    let asked = |count: usize, len: usize| {
        let long = "x".repeat(len);
        let names: String = (0..count).map(|n| format!("<a{n:04}{long}/>")).collect();
        format!("<propfind xmlns=\"DAV:\"><prop>{names}</prop></propfind>")
    };
    for (count, len) in [(1001, 0), (19_500, 190), (400, 190), (300, 10_000)] {
        let body = asked(count, len);
        server.call("PROPFIND", "/-/dav/box/", body.as_bytes(), &[("Depth", "1")]).expect(413);
    }
    let body = asked(1000, 40);
    let head = "PROPFIND /-/dav/box/ HTTP/1.1\r\nHost: x\r\nDepth: 1\r\nConnection: close\r\n";
    let answer =
        raw(&server, format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
    let (head, mut rest) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 207"), "{head}");
    let (mut whole, mut largest) = (String::new(), 0);
    loop {
        let (size, behind) = rest.split_once("\r\n").unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        largest = largest.max(size);
        whole.push_str(&behind[..size]);
        rest = &behind[size + 2..];
    }
    assert!(largest < 1 << 18, "{largest}");
    assert_eq!(whole.matches("<D:response>").count(), 401);
    assert!(whole.contains("k000<") && whole.contains("k399<"), "entries are missing");
    assert!(whole.len() > 20 << 20 && whole.ends_with("</D:multistatus>\n"), "{}", whole.len());
}

#[test]
fn properties_are_bounded_and_told_whole() {
    let server = serve();
    let value = "y".repeat(60_000);
    let set = |path: &str, n: usize, value: &str| {
        let body = format!(
            "<propertyupdate xmlns=\"DAV:\"><set><prop><x{n} xmlns=\"u\">{value}</x{n}></prop></set>\
             </propertyupdate>"
        );
        server.call("PROPPATCH", path, body.as_bytes(), &[]).status
    };
    for name in 0..30 {
        let path = format!("/-/dav/box/{name:02}");
        server.call("PUT", &path, b"x", &[]).expect(201);
        for n in 0..4 {
            assert_eq!(set(&path, n, &value), 207);
        }
    }
    // What goes beyond changes nothing, and less is taken.
    let path = "/-/dav/box/00";
    assert_eq!(set(path, 4, &value), 507);
    assert_eq!(set(path, 4, &"z".repeat(70_000)), 413);
    assert_eq!(set(path, 0, "short"), 207);
    let all = b"<propfind xmlns=\"DAV:\"><allprop/></propfind>";
    let told = server.call("PROPFIND", "/-/dav/box/", all, &[("Depth", "1")]).expect(207).text();
    assert_eq!(told.matches("<D:response>").count(), 31);
    assert_eq!(told.matches(&value).count(), 30 * 4 - 1);
    assert!(told.contains(">short<") && !told.contains("<x4"));
    let collection = "/-/dav/box/";
    for (n, status) in [207, 207, 207, 207, 507].into_iter().enumerate() {
        assert_eq!(set(collection, n, &value), status);
    }
}

/// What Windows sets is kept, and its time of the last change is of the bytes that it was set of.
#[test]
fn times_and_attributes_of_windows_are_kept_or_refused() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/box", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/box/f", b"one", &[]).expect(201);
    let patch = |path: &str, kind: &str, props: &str| {
        let body = format!(
            "<D:propertyupdate xmlns:D=\"DAV:\" xmlns:Z=\"urn:schemas-microsoft-com:\">\
             <D:{kind}><D:prop>{props}</D:prop></D:{kind}></D:propertyupdate>"
        );
        server.call("PROPPATCH", path, body.as_bytes(), &[]).expect(207).text()
    };
    let shown = |path: &str| {
        let names = "<D:propfind xmlns:D=\"DAV:\" xmlns:Z=\"urn:schemas-microsoft-com:\"><D:prop>\
            <Z:Win32LastModifiedTime/><Z:Win32FileAttributes/><Z:Win32CreationTime/><Z:Other/>\
            <D:getlastmodified/></D:prop></D:propfind>";
        let answer = server.call("PROPFIND", path, names.as_bytes(), &[("Depth", "0")]);
        answer.expect(207).text()
    };
    let at = "Tue, 24 Nov 2026 11:00:00 GMT";
    let sets = format!(
        "<Z:Win32LastModifiedTime>{at}</Z:Win32LastModifiedTime><Z:Win32FileAttributes>00000021\
         </Z:Win32FileAttributes><Z:Win32CreationTime>a</Z:Win32CreationTime><Z:Other>b</Z:Other>"
    );
    for path in ["/-/dav/box/f", "/-/dav/box/d/", "/-/dav/box/"] {
        server.call("MKCOL", "/-/dav/box/d", b"", &[]);
        let told = patch(path, "set", &sets);
        assert!(told.contains("200 OK") && !told.contains("HTTP/1.1 4"), "{told}");
        let text = shown(path);
        for value in [at, ">00000021<", ">a<", ">b<"] {
            assert!(text.contains(value), "{path} {value}: {text}");
        }
    }
    assert_eq!(server.head("/box/f").header("last-modified"), at);
    // Other bytes have another time; the attributes stay.
    server.call("PUT", "/-/dav/box/f", b"two", &[]).expect(204);
    let text = shown("/-/dav/box/f");
    assert!(!text.contains(at) && text.contains(">00000021<"), "{text}");
    // A request is done whole or not at all, and says what stood in its way.
    for (kind, wrong, status) in [
        ("set", "<Z:Win32LastModifiedTime>yesterday</Z:Win32LastModifiedTime>", "409 Conflict"),
        ("set", "<D:getetag>x</D:getetag>", "403 Forbidden"),
        ("remove", "<Z:Win32LastModifiedTime/>", "403 Forbidden"),
        ("set", "<e xmlns=\"http://apache.org/dav/props/\">T</e>", "403 Forbidden"),
        ("set", "<D:displayname><x/></D:displayname>", "409 Conflict"),
    ] {
        let told = patch("/-/dav/box/f", kind, &format!("<Z:Other>new</Z:Other>{wrong}"));
        assert!(told.contains(status) && told.contains("424 Failed Dependency"), "{told}");
        assert!(!told.contains("200 OK"), "{told}");
        assert!(shown("/-/dav/box/f").contains(">b<"), "{wrong}");
    }
    patch("/-/dav/box/f", "remove", "<Z:Other/><Z:Win32FileAttributes/><Z:NeverThere/>");
    let text = shown("/-/dav/box/f");
    assert!(!text.contains(">b<") && !text.contains("00000021") && text.contains(">a<"), "{text}");
    server
        .call("PROPPATCH", "/-/dav/box/gone", b"<propertyupdate xmlns=\"DAV:\"/>", &[])
        .expect(404);
    server.call("PROPPATCH", "/-/dav/box/f", b"<propertyupdate/>", &[]).expect(400);
    server.call("PROPPATCH", "/-/dav/box/f", b"", &[]).expect(400);
}
