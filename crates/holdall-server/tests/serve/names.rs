//! Names by all doors: what one writes the others read, byte for byte, at exactly one path.
//! `HOLDALL_FUZZ_SEED` draws others.

use crate::harness::{Answer, Running, engine};
use holdall_server::{Config, Grant};
use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};

const NAMES: usize = 1_000;

/// A seed of this test's own, another one for each `HOLDALL_FUZZ_SEED`.
fn seed(own: u64) -> u64 {
    crate::fuzz::number("HOLDALL_FUZZ_SEED", 0) * 1_000 + own
}

const WANTED: &[u8] = b"<propfind xmlns=\"DAV:\"><prop><resourcetype/></prop></propfind>";

/// An address of a name as clients of S3 write it: all but slashes and letters escaped.
fn encoded(name: &[u8]) -> String {
    let segments = name.split(|b| *b == b'/');
    let segments = segments.map(|s| percent_encode(s, NON_ALPHANUMERIC).to_string());
    segments.collect::<Vec<_>>().join("/")
}

/// A piece of a name, of all of Unicode, and of what has hurt before.
fn piece(rng: &mut SmallRng, out: &mut String) {
    const ODD: [&str; 34] = [
        "%",
        "%2F",
        "%25",
        "%2520",
        "%20",
        "%00",
        "%zz",
        ".",
        "..",
        "...",
        "",
        "~",
        "+",
        "&",
        "#",
        "?",
        ";",
        ":",
        "\\",
        "\"",
        "'",
        "<",
        ">",
        "|",
        "*",
        " ",
        "\r",
        "\n",
        "\t",
        "\u{1}",
        "\u{7f}",
        "\u{202e}",
        "holdall-hex-",
        "holdall-hex-2e",
    ];
    match rng.random_range(0..4) {
        0 => out.push_str(ODD[rng.random_range(0..ODD.len())]),
        1 => out.push(rng.random_range('a'..='c')),
        2 => out.extend(char::from_u32(rng.random_range(1..0x300))),
        _ => out.extend(char::from_u32(rng.random_range(1..0x11_0000))),
    }
}

/// Names of up to four segments, which may be empty or dots.
fn random_names(rng: &mut SmallRng, count: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    while names.len() < count {
        let mut name = String::new();
        for n in 0..rng.random_range(1..5) {
            name.push_str(if n > 0 { "/" } else { "" });
            match rng.random_range(0..12) {
                0 => name.push_str([".", "..", "", "holdall-hex-", "a\0b"][rng.random_range(0..5)]),
                _ => (0..rng.random_range(1..4)).for_each(|_| piece(rng, &mut name)),
            }
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
    names
}

fn hrefs(told: &Answer) -> Vec<String> {
    let text = told.text();
    let all = text.split("<D:href>").skip(1);
    all.map(|rest| rest.split('<').next().unwrap().to_owned()).collect()
}

/// Paths of all that WebDAV shows below a folder, folders with a slash at their ends.
fn walk(server: &Running, top: &str) -> Vec<String> {
    let (mut found, mut left) = (Vec::new(), vec![top.to_owned()]);
    while let Some(folder) = left.pop() {
        let told = server.call("PROPFIND", &folder, WANTED, &[("Depth", "1")]).expect(207);
        for href in hrefs(&told).into_iter().skip(1) {
            assert!(href.len() > folder.len() && href.starts_with(&folder), "{folder} {href}");
            left.extend(href.ends_with('/').then(|| href.clone()));
            found.push(href);
        }
    }
    found
}

/// Contents by path of all objects that WebDAV shows: each is its own name.
fn contents(server: &Running, top: &str) -> BTreeMap<Vec<u8>, String> {
    let mut found = BTreeMap::new();
    for path in walk(server, top) {
        let got = server.get(&path);
        if got.status == 405 && path.ends_with('/') {
            continue;
        }
        let body = got.expect(200).body;
        assert_eq!(server.head(&path).expect(200).header("content-length"), body.len().to_string());
        let other = found.insert(body, path.clone());
        assert_eq!(other, None, "{path} is the same object");
    }
    found
}

/// The same as the page shows it.
fn page_contents(server: &Running, top: &str) -> BTreeSet<Vec<u8>> {
    let (mut found, mut left) = (BTreeSet::new(), vec![top.to_owned()]);
    while let Some(folder) = left.pop() {
        let path = format!("/-/dav{folder}");
        let query = percent_encode(path.as_bytes(), NON_ALPHANUMERIC);
        let told = server.get(&format!("/-/web/list?path={query}")).expect(200).text();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        for entry in told["entries"].as_array().unwrap() {
            let path = entry["path"].as_str().unwrap().to_owned();
            let got = server.get(&format!("/-/web/dav{path}"));
            if entry["folder"].as_bool().unwrap() {
                left.push(path);
            }
            if got.status != 405 {
                assert!(found.insert(got.expect(200).body), "two paths of one object");
            }
        }
    }
    found
}

#[test]
fn names_of_s3_and_of_the_engine_have_one_path_each() {
    let mut rng = SmallRng::seed_from_u64(seed(39));
    let names = random_names(&mut rng, NAMES);
    let dir = tempfile::tempdir().unwrap();
    // What the command line may hold and S3 may not: bytes that are no text.
    let bytes = [&b"\xff"[..], b"a/\xfe\xff/b", b"\xc3", b"x%\x80", b"%FF", b"%\xff"];
    let store = holdall::Store::create(dir.path().join("a.holdall")).unwrap();
    store
        .write(|tx| {
            let mut box_ = tx.collection("box")?;
            bytes.iter().try_for_each(|name| box_.put(*name, name).map(drop))
        })
        .unwrap();
    store.close().unwrap();
    let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
    let server = Running::within(dir, config, &["a.holdall"]);
    for name in &names {
        server.put(&format!("/box/{}", encoded(name.as_bytes())), name.as_bytes()).expect(200);
    }
    let all: BTreeSet<Vec<u8>> = names.iter().map(|name| name.clone().into_bytes()).collect();
    let all: BTreeSet<Vec<u8>> = all.into_iter().chain(bytes.map(<[u8]>::to_vec)).collect();
    let shown = contents(&server, "/-/dav/box/");
    assert_eq!(shown.keys().cloned().collect::<BTreeSet<_>>(), all);
    assert_eq!(page_contents(&server, "/box/"), all);
    for (name, path) in &shown {
        // What a file system could hold is shown as it is.
        let odd = |s: &&[u8]| s.is_empty() || *s == b"." || *s == b".." || s.contains(&0);
        let path = path.strip_prefix("/-/dav/box/").unwrap();
        let plain = name.strip_suffix(b"/").unwrap_or(name);
        let own = String::from_utf8_lossy(name).contains("holdall-hex-");
        if plain.split(|b| *b == b'/').find(odd).is_none() && !own {
            let raw: Vec<u8> = percent_decode_str(path).collect();
            assert_eq!(&raw, name);
        }
    }
    // Each path writes and deletes what it shows, and nothing else.
    for (name, path) in shown.iter().filter(|(_, path)| !path.ends_with('/')).take(300) {
        if let Ok(text) = std::str::from_utf8(name) {
            server.call("PUT", path, b"new", &[]).expect(204);
            let got = server.get(&format!("/box/{}", encoded(text.as_bytes()))).expect(200);
            assert_eq!(got.text(), "new", "{text:?} {path}");
        } else {
            server.call("PUT", path, b"new", &[]).expect(400);
        }
        server.delete(path).expect(204);
    }
    let kept: usize = shown.iter().filter(|(_, path)| !path.ends_with('/')).count() - 300;
    let left = contents(&server, "/-/dav/box/");
    assert_eq!(left.values().filter(|path| !path.ends_with('/')).count(), kept);
    for (name, path) in &left {
        assert!(shown.get(name) == Some(path) || name.is_empty(), "{name:?} {path}");
    }
}

/// Makes the folders of a path and puts it. False if it was refused, which leaves nothing.
fn put_with_folders(server: &Running, door: &str, path: &str, body: &[u8]) -> bool {
    let headers = [("X-Holdall-CSRF", "anonymous")];
    let ends = path.char_indices().filter(|(at, c)| *c == '/' && *at > 0).map(|(at, _)| at);
    for end in ends {
        let at = format!("{door}{}", &path[..end]);
        let made = server.call("MKCOL", &at, b"", &headers).status;
        assert!(made == 201 || made == 405 || made == 400 || made == 409, "{path}: {made}");
    }
    let put = server.call("PUT", &format!("{door}{path}"), body, &headers);
    assert!(matches!(put.status, 201 | 204 | 400 | 405 | 409), "{path}: {}", put.text());
    put.status < 300
}

/// Keys of a bucket as S3 lists them.
fn keys(server: &Running, bucket: &str) -> BTreeSet<String> {
    let (mut found, mut after) = (BTreeSet::new(), String::new());
    loop {
        let path = format!("/{bucket}?list-type=2&encoding-type=url&start-after={after}");
        let text = server.get(&path).expect(200).text();
        let page: Vec<&str> =
            text.split("<Key>").skip(1).map(|k| k.split('<').next().unwrap()).collect();
        let Some(last) = page.last() else { return found };
        after = (*last).to_owned();
        let plain = |key: &&str| percent_decode_str(key).decode_utf8().unwrap().into_owned();
        found.extend(page.iter().map(plain));
    }
}

fn written_by(door: &str, seed: u64) {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    let mut rng = SmallRng::seed_from_u64(self::seed(seed));
    let mut wrote = BTreeMap::new();
    for name in random_names(&mut rng, NAMES) {
        let path = format!("/box/{}", encoded(name.as_bytes()));
        if put_with_folders(&server, door, &path, name.as_bytes()) {
            let shown = format!("{door}{path}");
            assert_eq!(server.get(&shown).expect(200).body, name.as_bytes(), "{name:?}");
            wrote.insert(name, path);
        } else if !name.ends_with('/') {
            // Refused is refused: no part of it, and nothing under another name.
            let key = format!("/box/{}", encoded(name.as_bytes()));
            let found = server.get(&key);
            assert!(found.status == 404 || found.body != name.as_bytes(), "{name:?}");
        }
    }
    assert!(wrote.len() * 2 > NAMES, "{} were written", wrote.len());
    let objects = contents(&server, "/-/dav/box/");
    for (name, path) in &wrote {
        // The path that the client wrote comes back byte for byte.
        let shown = &objects[name.as_bytes()];
        let both = [shown.strip_prefix("/-/dav").unwrap(), path.as_str()];
        let [shown, path] = both.map(|p| percent_decode_str(p).collect::<Vec<u8>>());
        assert_eq!(shown, path, "{name:?}");
    }
    let keys: BTreeSet<String> =
        keys(&server, "box").into_iter().filter(|key| !key.ends_with('/')).collect();
    let same = |name: &&String| !name.contains("holdall-hex-");
    let names: BTreeSet<String> = wrote.keys().filter(same).cloned().collect();
    assert_eq!(keys.len(), wrote.len());
    assert!(keys.is_superset(&names), "{:?}", names.difference(&keys).next());
    for name in &names {
        let got = server.get(&format!("/box/{}", encoded(name.as_bytes()))).expect(200);
        assert_eq!(got.body, name.as_bytes());
    }
    let path = server.store();
    let _dir = server.stop();
    let store = engine(&path);
    let reader = store.read().unwrap().collection("box").unwrap();
    for name in &names {
        assert_eq!(reader.get(name.as_str()).unwrap().as_deref(), Some(name.as_bytes()));
    }
}

#[test]
fn names_written_over_webdav_come_back() {
    written_by("/-/dav", 40);
}

#[test]
fn names_written_at_the_page_come_back() {
    written_by("/-/web/dav", 41);
}

#[test]
fn escapes_that_clients_write_are_names() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    for (path, key) in [
        ("Report%20final.pdf", "Report final.pdf"),
        ("Report%2520final.pdf", "Report%20final.pdf"),
        ("Report%252520final.pdf", "Report%2520final.pdf"),
        ("100%25", "100%"),
        ("100%2525", "100%25"),
        ("a%252Fb", "a%2Fb"),
        ("Icon%0D", "Icon\r"),
        ("%2541", "%41"),
        ("a%25", "a%"),
        ("a", "a"),
    ] {
        server.call("PUT", &format!("/-/dav/docs/{path}"), key.as_bytes(), &[]).expect(201);
        let page = [("X-Holdall-CSRF", "anonymous")];
        server.call("PUT", &format!("/-/web/dav/docs/{path}"), key.as_bytes(), &page).expect(204);
        let s3 = format!("/docs/{}", encoded(key.as_bytes()));
        assert_eq!(server.get(&s3).expect(200).text(), key);
        let dest = format!("/-/dav/docs/moved-{path}");
        let to = [("Destination", dest.as_str())];
        server.call("MOVE", &format!("/-/dav/docs/{path}"), b"", &to).expect(201);
        assert_eq!(server.get(&format!("/docs/moved-{}", encoded(key.as_bytes()))).text(), key);
        server.call("MOVE", &dest, b"", &[("Destination", &format!("/-/dav/docs/{path}"))]);
    }
    let shown = walk(&server, "/-/dav/docs/");
    assert_eq!(shown.len(), 10);
}

#[test]
fn no_name_stands_for_its_collection() {
    let server = Running::open();
    server.call("MKCOL", "/-/dav/docs", b"", &[]).expect(201);
    server.call("PUT", "/-/dav/docs/keep", b"kept", &[]).expect(201);
    server.put("/docs//lead", b"1").expect(200);
    let odd = [
        "%25",
        "%25/",
        "%25%25",
        "//",
        "/",
        "%2525",
        ".",
        "..",
        "%2e",
        "%2E%2E",
        "%2E%2E/docs",
        "./",
        "%2F",
        "%2Fkeep",
        "%00",
        "/keep",
        "%252F",
        "x/..",
        "x/../..",
        "x//y",
        "%zz",
        "%",
    ];
    let dest = format!("http://{}/-/dav/other", server.address);
    for path in odd {
        // By hand: a client would normalize the path.
        for (method, more) in [
            ("DELETE", String::new()),
            ("MOVE", format!("Destination: {dest}\r\n")),
            ("COPY", format!("Destination: {dest}\r\nDepth: 0\r\n")),
        ] {
            let line = format!("{method} /-/dav/docs/{path} HTTP/1.1\r\nHost: x\r\n{more}");
            let told =
                crate::hostile::raw(&server, format!("{line}Connection: close\r\n\r\n").as_bytes());
            assert!(told.starts_with("HTTP/1.1 4"), "{method} {path}: {told}");
            assert_eq!(server.get("/docs/keep").expect(200).text(), "kept");
            assert_eq!(server.get("/docs//lead").expect(200).text(), "1");
            server.call("PROPFIND", "/-/dav/other", b"", &[("Depth", "0")]).expect(404);
        }
    }
    for door in ["/-/web/trash?path=/-/dav/docs/%2525", "/-/web/trash?path=/-/dav/docs/"] {
        let told = server.call("POST", door, b"", &[("X-Holdall-CSRF", "anonymous")]);
        assert!((400..500).contains(&told.status), "{door}: {}", told.text());
    }
    // The folder of a leading slash is one like others.
    let lead = walk(&server, "/-/dav/docs/").into_iter().find(|p| p.ends_with("/lead")).unwrap();
    let folder = lead.strip_suffix("lead").unwrap();
    server.call("PUT", &format!("{folder}more"), b"2", &[]).expect(201);
    assert_eq!(server.get("/docs//more").expect(200).text(), "2");
    server.delete(folder).expect(204);
    server.get("/docs//lead").expect(404);
    assert_eq!(server.get("/docs/keep").expect(200).text(), "kept");
}

#[test]
fn an_object_and_the_folder_of_its_name_have_a_path_each() {
    let server = Running::open();
    server.put("/box", b"").expect(200);
    for key in ["a", "a/b", "m/", "m/x"] {
        server.put(&format!("/box/{key}"), key.as_bytes()).expect(200);
    }
    let shown = ["a", "a/", "a/b", "m/", "m/x"].map(|p| format!("/-/dav/box/{p}"));
    let mut walked = walk(&server, "/-/dav/box/");
    walked.sort();
    assert_eq!(walked, shown);
    assert_eq!(server.get("/-/dav/box/a").expect(200).text(), "a");
    server.get("/-/dav/box/a/").expect(405);
    // A marker that S3 gave bytes.
    assert_eq!(server.get("/-/dav/box/m/").expect(200).text(), "m/");
    for refused in ["PUT", "PATCH"] {
        server.call(refused, "/-/dav/box/new/", b"x", &[]).expect(405);
    }
    server.call("MKCOL", "/-/dav/box/a/", b"", &[]).expect(405);
    server.delete("/-/dav/box/a").expect(204);
    server.get("/box/a").expect(404);
    assert_eq!(server.get("/box/a/b").expect(200).text(), "a/b");
    // If only the folder is there, its name without a slash is it.
    server.call("PUT", "/-/dav/box/a", b"x", &[]).expect(405);
    server.call("PROPFIND", "/-/dav/box/a", b"", &[("Depth", "1")]).expect(207);
    server.call("PUT", "/-/dav/box/f", b"x", &[]).expect(201);
    assert_eq!(server.get("/-/dav/box/f/").expect(200).text(), "x");
    server.call("PUT", "/-/dav/box/f/", b"y", &[]).expect(405);
    assert_eq!(server.get("/box/f").expect(200).text(), "x");
    // If both are there a slash is the folder's, and nothing takes the place of the other.
    server.put("/box/f/in", b"in").expect(200);
    let to = |path: &str| [("Destination", format!("/-/dav/box/{path}"))];
    server.put("/box/other", b"o").expect(200);
    for (from, dest) in [("other", "f/"), ("m", "f")] {
        let to = to(dest);
        let to = [(to[0].0, to[0].1.as_str())];
        server.call("MOVE", &format!("/-/dav/box/{from}"), b"", &to).expect(409);
    }
    server.delete("/-/dav/box/f/").expect(204);
    server.get("/box/f/in").expect(404);
    assert_eq!(server.get("/box/f").expect(200).text(), "x");
}
