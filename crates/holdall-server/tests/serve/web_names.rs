//! Names that lead elsewhere, are too long for a prefix, or have a slash if none is expected, at
//! the page.

use crate::harness::{KEYS, Running, call};
use crate::hostile::raw;
use crate::web::{Page, field, trash};
use holdall_server::{Config, Grant, Right, UserConfig};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// A name as the paths of the page have it.
fn shown(key: &str) -> String {
    let segment = |segment: &str| match segment {
        "" | "." | ".." => format!("holdall-hex-{}", hex(segment)),
        other => percent_encode(other.as_bytes(), NON_ALPHANUMERIC).to_string(),
    };
    key.split('/').map(segment).collect::<Vec<_>>().join("/")
}

fn query(path: &str) -> String {
    percent_encode(format!("/-/dav/{path}").as_bytes(), NON_ALPHANUMERIC).to_string()
}

#[test]
fn a_link_leads_to_what_it_was_made_for_or_is_not_made() {
    let s = Running::open();
    for bucket in ["webb", "bbb"] {
        s.put(&format!("/{bucket}"), b"").expect(200);
    }
    s.put("/bbb/private", b"private").expect(200);
    let page = Page::open(&s, KEYS);
    let keys = [
        ("../bbb/private", false),
        ("a/../b", false),
        ("./x", false),
        (".", false),
        ("..", false),
        ("a/.", false),
        ("a/..", false),
        ("a//b", true),
        ("/lead", true),
        ("...", true),
        (".hidden", true),
        ("%2e%2e/q", true),
        ("a\\..\\b", true),
        ("q?x#y", true),
        ("tab\t", true),
        (" trail ", true),
        ("\u{e9}\u{202e}", true),
    ];
    for (key, whole) in keys {
        let path = percent_encode(key.as_bytes(), NON_ALPHANUMERIC).to_string();
        let path = path.replace("%2F", "/").replace("%2E", ".");
        let put = format!(
            "PUT /webb/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{key}",
            key.len()
        );
        assert!(raw(&s, put.as_bytes()).starts_with("HTTP/1.1 200"), "{key}");
        let at = format!("share?path={}", query(&format!("webb/{}", shown(key))));
        let told = page.call("POST", &at, b"");
        assert_eq!(told.status == 200, whole, "{key:?}: {}", told.text());
        if whole {
            let got = call("GET", &field(&told.text(), "url"), b"", &[]).expect(200);
            assert_eq!(got.text(), key);
        }
    }
    assert_eq!(s.get("/bbb/private").body, b"private");
}

fn user(name: &str, bucket: &str) -> UserConfig {
    UserConfig {
        access_key: name.into(),
        secret_key: Some(format!("{name}-secret")),
        secret_key_file: None,
        grants: vec![Grant {
            bucket: bucket.into(),
            rights: vec![Right::Read, Right::List, Right::Write, Right::Admin],
        }],
    }
}

const TAKEN: (&str, &str) = ("xonly", "xonly-secret");

/// A server whose store has the collections `xxx` and `xxx/yyy`, and what `more` makes.
fn with_slash(more: impl FnOnce(&holdall::Store)) -> Running {
    let dir = tempfile::tempdir().unwrap();
    let store = holdall::Store::create(dir.path().join("a.holdall")).unwrap();
    store.write(|tx| tx.collection("xxx")?.put("yyy/mine", b"mine")).unwrap();
    store.write(|tx| tx.collection("xxx/yyy")?.put("doc", b"secret")).unwrap();
    more(&store);
    store.close().unwrap();
    let config = Config { users: vec![user("xonly", "xxx")], ..Config::default() };
    Running::within(dir, config, &["a.holdall"])
}

#[test]
fn what_was_deleted_is_its_collections_whatever_slashes_that_has() {
    let s = with_slash(|_| ());
    let (root, other) = (Page::open(&s, KEYS), Page::open(&s, TAKEN));
    let of = format!("holdall-hex-{}", hex("xxx/yyy"));
    let told = root.call("POST", &format!("trash?path={}", query(&format!("{of}/doc"))), b"");
    let id = field(&told.expect(200).text(), "id");
    assert_eq!(trash(&root), [("xxx/yyy".into(), "doc".into())]);
    assert_eq!(trash(&other), []);
    other.call("POST", &format!("restore?id={id}"), b"").expect(403);
    s.signed(TAKEN, "GET", "/xxx/yyy/doc", b"", &[]).expect(404);
    // What is his own he deletes and brings back.
    let told = other.call("POST", &format!("trash?path={}", query("xxx/yyy")), b"").expect(200);
    let own = field(&told.text(), "id");
    assert_eq!(trash(&other), [("xxx".into(), "yyy".into())]);
    other.call("POST", &format!("restore?id={own}"), b"").expect(200);
    assert_eq!(s.signed(TAKEN, "GET", "/xxx/yyy/mine", b"", &[]).expect(200).body, b"mine");
    root.call("POST", &format!("restore?id={id}"), b"").expect(200);
    let back = root.call("GET", &format!("dav/{of}/doc"), b"").expect(200);
    assert_eq!((back.body.as_slice(), trash(&root).len()), (&b"secret"[..], 0));
    // The collections of deletions are shown nowhere, and go with them.
    assert!(!root.names("/").iter().any(|name| name.contains(".trash/")));
    let store = s.store();
    let _dir = s.stop();
    let names = crate::harness::engine(&store).read().unwrap().collections().unwrap();
    assert!(!names.iter().any(|name| name.starts_with(".trash/")), "{names:?}");
}

#[test]
fn what_an_earlier_server_deleted_is_for_who_has_all_that_it_could_be_of() {
    let seconds = jiff::Timestamp::now().as_second();
    let (nested, plain) =
        (format!("{seconds:012}-aa/xxx/yyy/old"), format!("{seconds:012}-ab/xxx/flat"));
    let s = with_slash(|store| {
        store.write(|tx| tx.collection(".trash")?.put(&nested, b"nested")).unwrap();
        store.write(|tx| tx.collection(".trash")?.put(&plain, b"plain")).unwrap();
    });
    let (root, other) = (Page::open(&s, KEYS), Page::open(&s, TAKEN));
    assert_eq!(trash(&root).len(), 2);
    assert_eq!(trash(&other), [("xxx".into(), "flat".into())]);
    let id = |name: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(name)
    };
    other.call("POST", &format!("restore?id={}", id(&nested)), b"").expect(403);
    // Two collections are there that it could be of.
    root.call("POST", &format!("restore?id={}", id(&nested)), b"").expect(400);
    other.call("POST", &format!("restore?id={}", id(&plain)), b"").expect(200);
    assert_eq!(s.signed(TAKEN, "GET", "/xxx/flat", b"", &[]).expect(200).body, b"plain");
    assert_eq!(trash(&root).len(), 1);
}

#[test]
fn the_longest_names_are_deleted_and_brought_back() {
    let s = Running::open();
    s.put("/webb", b"").expect(200);
    let page = Page::open(&s, KEYS);
    let (flat, deep) = ("x".repeat(1024), format!("d/{}", "y".repeat(1022)));
    for key in [&flat, &deep] {
        s.put(&format!("/webb/{key}"), key.as_bytes()).expect(200);
    }
    for (path, key) in [(flat.as_str(), &flat), ("d/", &deep), (deep.as_str(), &deep)] {
        let at = query(&format!("webb/{path}"));
        let told = page.call("POST", &format!("trash?path={at}"), b"").expect(200);
        s.head(&format!("/webb/{key}")).expect(404);
        assert_eq!(trash(&page).len(), 1);
        let id = field(&told.text(), "id");
        page.call("POST", &format!("restore?id={id}"), b"").expect(200);
        assert_eq!(s.get(&format!("/webb/{key}")).expect(200).body, key.as_bytes());
        assert_eq!(trash(&page), []);
    }
}
