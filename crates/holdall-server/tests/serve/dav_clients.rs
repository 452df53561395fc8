//! Request sequences of clients that cannot be run here: macOS Finder and Windows Explorer, as
//! public reports of their traffic have them.

use crate::harness::{Answer, Running};

const FINDER: (&str, &str) = ("User-Agent", "WebDAVFS/3.0.0 (03008000) Darwin/22.6.0");
const WINDOWS: (&str, &str) = ("User-Agent", "Microsoft-WebDAV-MiniRedir/10.0.19045");

fn lock(server: &Running, path: &str, agent: (&str, &str)) -> Answer {
    let body =
        b"<?xml version=\"1.0\" encoding=\"utf-8\"?><D:lockinfo xmlns:D=\"DAV:\"><D:lockscope>\
        <D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner>\
        <D:href>http://www.apple.com/webdav_fs/</D:href></D:owner></D:lockinfo>";
    let kind = ("Content-Type", "text/xml; charset=\"utf-8\"");
    server.call("LOCK", path, body, &[agent, kind, ("Depth", "0"), ("Timeout", "Second-600")])
}

fn propfind(server: &Running, path: &str, depth: &str, agent: (&str, &str)) -> Answer {
    let body = b"<?xml version=\"1.0\" encoding=\"utf-8\"?><D:propfind xmlns:D=\"DAV:\"><D:prop>\
        <D:getlastmodified/><D:getcontentlength/><D:creationdate/><D:resourcetype/>\
        <D:quota-available-bytes/></D:prop></D:propfind>";
    server.call("PROPFIND", path, body, &[agent, ("Depth", depth)])
}

#[test]
fn finder_writes_a_file_and_its_shadow() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/mac", b"", &[FINDER]).expect(201);
    let options = server.call("OPTIONS", "/-/dav/mac/", b"", &[FINDER]).expect(200);
    // Without class 2 it mounts for reading only.
    assert!(options.header("dav").split(',').any(|class| class.trim() == "2"));
    propfind(&server, "/-/dav/mac/", "0", FINDER).expect(207);
    for name in ["film.mov", "._film.mov"] {
        let path = format!("/-/dav/mac/{name}");
        propfind(&server, &path, "0", FINDER).expect(404);
        server.call("PUT", &path, b"", &[FINDER]).expect(201);
        let token = lock(&server, &path, FINDER).expect(200).header("lock-token").to_owned();
        propfind(&server, &path, "0", FINDER).expect(207);
        let body = vec![7; 300_000];
        let held = format!("({token})");
        let headers = [FINDER, ("X-Expected-Entity-Length", "300000"), ("If", held.as_str())];
        server.call("PUT", &path, &body, &headers).expect(204);
        let times = b"<?xml version=\"1.0\"?><D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop>\
            <creationdate xmlns=\"http://www.apple.com/webdav_fs/props/\">2026</creationdate>\
            </D:prop></D:set></D:propertyupdate>";
        server.call("PROPPATCH", &path, times, &[FINDER, ("If", held.as_str())]).expect(207);
        server.call("UNLOCK", &path, b"", &[FINDER, ("Lock-Token", &token)]).expect(204);
        assert_eq!(server.get(&path).expect(200).body, body);
    }
    let shown = propfind(&server, "/-/dav/mac/", "1", FINDER).expect(207).text();
    assert!(shown.contains("._film.mov") && shown.contains(">300000<"), "{shown}");
}

#[test]
fn explorer_makes_renames_and_fills_a_file() {
    let server = Running::open();
    let root = server.call("OPTIONS", "/", b"", &[WINDOWS]).expect(200);
    assert_eq!(root.header("ms-author-via"), "DAV");
    server.call("MKCOL", "/-/dav/win", b"", &[WINDOWS]).expect(201);
    server.call("PROPFIND", "/-/dav/win", b"", &[WINDOWS, ("Depth", "0")]).expect(207);
    server.call("PROPFIND", "/-/dav/win/desktop.ini", b"", &[WINDOWS, ("Depth", "0")]).expect(404);
    let path = "/-/dav/win/New%20Text%20Document.txt";
    let token = lock(&server, path, WINDOWS).expect(201).header("lock-token").to_owned();
    let held = format!("({token})");
    server.call("HEAD", path, b"", &[WINDOWS]).expect(200);
    server.call("PUT", path, b"hello", &[WINDOWS, ("If", &held)]).expect(204);
    let times = b"<?xml version=\"1.0\"?><D:propertyupdate xmlns:D=\"DAV:\" \
        xmlns:Z=\"urn:schemas-microsoft-com:\"><D:set><D:prop>\
        <Z:Win32LastModifiedTime>Tue, 24 Nov 2026 10:00:00 GMT</Z:Win32LastModifiedTime>\
        <Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set>\
        </D:propertyupdate>";
    let told = server.call("PROPPATCH", path, times, &[WINDOWS, ("If", &held)]).expect(207);
    assert!(told.text().contains("200 OK"), "{}", told.text());
    server.call("UNLOCK", path, b"", &[WINDOWS, ("Lock-Token", &token)]).expect(204);
    let dest = format!("http://{}/-/dav/win/notes.txt", server.address);
    let headers = [WINDOWS, ("Destination", dest.as_str()), ("Overwrite", "F")];
    server.call("MOVE", path, b"", &headers).expect(201);
    assert_eq!(server.get("/-/dav/win/notes.txt").expect(200).text(), "hello");
    server.call("MOVE", path, b"", &headers).expect(404);
}
