//! The page for browsers: sessions, rights, the trash, hostile objects.

use crate::harness::{Answer, KEYS, Running};
use holdall_server::{Config, Grant, Right, UserConfig};

/// Somebody who logged in.
pub struct Page<'s> {
    server: &'s Running,
    cookie: String,
    csrf: String,
}

pub fn field(text: &str, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    value[name].as_str().unwrap_or_default().to_owned()
}

fn login(server: &Running, keys: (&str, &str)) -> Answer {
    let body = format!("{{\"name\":\"{}\",\"password\":\"{}\"}}", keys.0, keys.1);
    let json = [("Content-Type", "application/json")];
    server.call("POST", "/-/web/login", body.as_bytes(), &json)
}

impl<'s> Page<'s> {
    pub fn open(server: &'s Running, keys: (&str, &str)) -> Self {
        let told = login(server, keys).expect(200);
        let cookie = told.header("set-cookie").split(';').next().unwrap().to_owned();
        Self { server, cookie, csrf: field(&told.text(), "csrf") }
    }

    /// The headers of its session, as lines.
    pub fn headers(&self) -> String {
        format!("Cookie: {}\r\nX-Holdall-CSRF: {}\r\n", self.cookie, self.csrf)
    }

    pub fn call(&self, method: &str, path: &str, body: &[u8]) -> Answer {
        let headers = [("Cookie", self.cookie.as_str()), ("X-Holdall-CSRF", self.csrf.as_str())];
        self.server.call(method, &format!("/-/web/{path}"), body, &headers)
    }

    pub fn names(&self, path: &str) -> Vec<String> {
        let text = self.call("GET", &format!("list?path=/-/dav{path}"), b"").expect(200).text();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let name = |entry: &serde_json::Value| entry["name"].as_str().unwrap().to_owned();
        value["entries"].as_array().unwrap().iter().map(name).collect()
    }
}

/// What the page shows of the trash: collections and names.
pub fn trash(page: &Page<'_>) -> Vec<(String, String)> {
    let text = page.call("GET", "trash", b"").expect(200).text();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let told = |entry: &serde_json::Value, name: &str| entry[name].as_str().unwrap().to_owned();
    let both = |entry: &serde_json::Value| (told(entry, "collection"), told(entry, "name"));
    value["entries"].as_array().unwrap().iter().map(both).collect()
}

fn serve() -> Running {
    let reader = UserConfig {
        access_key: "reader".into(),
        secret_key: Some("reader-secret".into()),
        secret_key_file: None,
        grants: vec![Grant { bucket: "docs".into(), rights: vec![Right::Read, Right::List] }],
    };
    Running::with(Config { users: vec![reader], ..Config::default() }, &["a.holdall"])
}

#[test]
fn the_page_is_small_and_may_load_only_itself() {
    let server = Running::open();
    let mut bytes = 0;
    for name in ["", "page.js", "page.css", "icon.svg"] {
        let got = server.get(&format!("/-/web/{name}")).expect(200);
        assert!(got.header("content-security-policy").starts_with("default-src 'none'"));
        assert_eq!(got.header("x-content-type-options"), "nosniff");
        bytes += got.body.len();
    }
    assert!(bytes < 200_000, "{bytes}");
    assert!(!server.get("/-/web/page.js").text().contains("innerHTML"));
}

#[test]
fn a_session_is_a_cookie_and_a_token() {
    let server = serve();
    login(&server, ("root", "wrong-secret")).expect(401);
    login(&server, ("nobody", "")).expect(401);
    server.post("/-/web/login", b"{}").expect(400);
    server.get("/-/web/list?path=/-/dav/").expect(401);
    let told = login(&server, KEYS).expect(200);
    let cookie = told.header("set-cookie").to_owned();
    for part in ["HttpOnly", "SameSite=Strict", "Path=/-/web/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let page = Page::open(&server, KEYS);
    page.call("MKCOL", "dav/docs", b"").expect(201);
    page.call("PUT", "dav/docs/a", b"hello").expect(201);
    // With the cookie alone nothing changes: another site's page has no more.
    let cookie = [("Cookie", page.cookie.as_str())];
    for (method, path) in
        [("PUT", "dav/docs/b"), ("DELETE", "dav/docs/a"), ("POST", "trash?path=/-/dav/docs/a")]
    {
        server.call(method, &format!("/-/web/{path}"), b"", &cookie).expect(403);
    }
    assert_eq!(server.call("GET", "/-/web/dav/docs/a", b"", &cookie).expect(200).text(), "hello");
    server.get("/-/web/dav/docs/a").expect(401);
    page.call("POST", "logout", b"").expect(200);
    page.call("GET", "session", b"").expect(401);
}

#[test]
fn what_is_deleted_can_be_brought_back() {
    let server = serve();
    let page = Page::open(&server, KEYS);
    for path in ["docs", "docs/t", "docs/t/in"] {
        page.call("MKCOL", &format!("dav/{path}"), b"").expect(201);
    }
    page.call("PUT", "dav/docs/t/in/a", b"deep").expect(201);
    page.call("PUT", "dav/docs/b", b"flat").expect(201);
    let gone = |path: &str| {
        let told = page.call("POST", &format!("trash?path=/-/dav{path}"), b"").expect(200);
        field(&told.text(), "id")
    };
    let (tree, object) = (gone("/docs/t"), gone("/docs/b"));
    assert_eq!(page.names("/docs"), Vec::<String>::new());
    page.call("POST", "trash?path=/-/dav/docs/none", b"").expect(404);
    page.call("PUT", "dav/docs/b", b"new").expect(201);
    page.call("POST", &format!("restore?id={object}"), b"").expect(412);
    let mut shown = trash(&page);
    shown.sort();
    assert_eq!(shown, [("docs".into(), "b".into()), ("docs".into(), "t".into())]);
    page.call("DELETE", "dav/docs/b", b"").expect(204);
    for id in [&tree, &object] {
        page.call("POST", &format!("restore?id={id}"), b"").expect(200);
    }
    assert_eq!(page.names("/docs"), ["b", "t"]);
    assert_eq!(page.call("GET", "dav/docs/t/in/a", b"").expect(200).text(), "deep");
    page.call("POST", &format!("restore?id={tree}"), b"").expect(404);
    // Base64 of 12-a/docs/../x, and no base64.
    page.call("POST", "restore?id=MTItYS9kb2NzLy4uL3g", b"").expect(404);
    page.call("POST", "restore?id=12-a/docs/x", b"").expect(400);
    assert_eq!(trash(&page), []);
    // What somebody has locked stays.
    let lock = b"<lockinfo xmlns=\"DAV:\"><lockscope><exclusive/></lockscope><locktype><write/>\
        </locktype></lockinfo>";
    page.call("LOCK", "dav/docs/t/in/a", lock).expect(200);
    page.call("POST", "trash?path=/-/dav/docs/t", b"").expect(423);
}

#[test]
fn each_user_sees_and_does_what_he_may() {
    let server = serve();
    let root = Page::open(&server, KEYS);
    for name in ["docs", "other"] {
        root.call("MKCOL", &format!("dav/{name}"), b"").expect(201);
        root.call("PUT", &format!("dav/{name}/a"), b"hello").expect(201);
    }
    let reader = Page::open(&server, ("reader", "reader-secret"));
    assert_eq!(reader.names("/"), ["docs"]);
    assert_eq!(reader.names("/docs"), ["a"]);
    for (method, path) in [
        ("GET", "list?path=/-/dav/other"),
        ("GET", "dav/other/a"),
        ("PUT", "dav/docs/b"),
        ("POST", "trash?path=/-/dav/docs/a"),
        ("POST", "share?path=/-/dav/other/a"),
        ("GET", "health"),
        ("GET", "report"),
    ] {
        reader.call(method, path, b"").expect(403);
    }
    let told = root.call("POST", "trash?path=/-/dav/other/a", b"").expect(200).text();
    reader.call("POST", &format!("restore?id={}", field(&told, "id")), b"").expect(403);
    assert_eq!((trash(&root).len(), trash(&reader).len()), (1, 0));
    let told = reader.call("POST", "share?path=/-/dav/docs/a&seconds=60", b"").expect(200).text();
    let url = field(&told, "url");
    assert_eq!(crate::harness::call("GET", &url, b"", &[]).expect(200).text(), "hello");
    assert!(!url.contains("reader-secret"));
    let report = root.call("GET", "report", b"").expect(200);
    assert!(report.text().contains("<svg"));
    assert!(report.header("content-security-policy").starts_with("sandbox"));
    root.call("GET", "report?store=1", b"").expect(404);
    let health = root.call("GET", "health", b"").expect(200).text();
    let health: serde_json::Value = serde_json::from_str(&health).unwrap();
    assert_eq!(health["stores"][0]["stat"]["contract"]["holds"], true);
    assert!(health["latencies"][0]["count"].as_u64().unwrap() > 0, "{health}");
}

#[test]
fn a_hostile_object_is_nobodys_page() {
    let server = serve();
    let page = Page::open(&server, KEYS);
    page.call("MKCOL", "dav/docs", b"").expect(201);
    let name = "%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E.html";
    page.call("PUT", &format!("dav/docs/{name}"), b"<script>parent.csrf</script>").expect(201);
    let got = page.call("GET", &format!("dav/docs/{name}"), b"").expect(200);
    assert_eq!(got.header("content-type"), "text/html");
    assert!(got.header("content-security-policy").starts_with("sandbox; default-src 'none'"));
    assert_eq!(got.header("x-content-type-options"), "nosniff");
    assert_eq!(page.names("/docs"), ["<img src=x onerror=alert(1)>.html"]);
    // A link to it is of the page's origin, too.
    let told =
        page.call("POST", &format!("share?path=/-/dav/docs/{}", name.replace('%', "%25")), b"");
    let url = field(&told.expect(200).text(), "url");
    let got = crate::harness::call("GET", &url, b"", &[]).expect(200);
    assert_eq!(got.header("content-security-policy"), "sandbox");
    assert_eq!(got.header("x-content-type-options"), "nosniff");
}

#[test]
fn a_folder_is_listed_by_pages() {
    let server = Running::open();
    server.put("/pages", b"").expect(200);
    for i in 0..1500 {
        server.put(&format!("/pages/f{i:05}"), b"").expect(200);
    }
    let first = server.get("/-/web/list?path=/-/dav/pages").expect(200).text();
    let value: serde_json::Value = serde_json::from_str(&first).unwrap();
    assert_eq!(value["entries"].as_array().unwrap().len(), 1000);
    let after = value["next"].as_str().unwrap();
    let rest = server.get(&format!("/-/web/list?path=/-/dav/pages&after={after}")).expect(200);
    let value: serde_json::Value = serde_json::from_str(&rest.text()).unwrap();
    assert_eq!(value["entries"].as_array().unwrap().len(), 500);
    assert!(value["next"].is_null());
    server.get("/-/web/list?path=/-/dav/pages&after=!").expect(400);
}

#[test]
fn names_that_no_path_carries_are_deleted_and_brought_back() {
    let server = serve();
    let page = Page::open(&server, KEYS);
    page.call("MKCOL", "dav/docs", b"").expect(201);
    let keys = ["//x", "/x", "/y", "a", "a/b", "d/../e", "d/../f"];
    for key in keys {
        let url = server.signed_put(KEYS, "docs", key);
        crate::harness::call("PUT", &url, key.as_bytes(), &[]).expect(200);
    }
    let there = |key: &str| {
        let got = crate::harness::call("GET", &server.signed_get(KEYS, "docs", key), b"", &[]);
        got.status == 200 && got.body == key.as_bytes()
    };
    let left = || keys.iter().filter(|key| there(key)).copied().collect::<Vec<_>>();
    if left().len() < keys.len() {
        // A client that folds dots cannot ask for them; all others were put.
        assert!(left().len() >= 5, "{:?}", left());
    }
    let all = left();
    let walk = |folder: &str| {
        let text = page.call("GET", &format!("list?path=/-/dav{folder}"), b"").expect(200).text();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        let path = |entry: &serde_json::Value| entry["path"].as_str().unwrap().to_owned();
        value["entries"].as_array().unwrap().iter().map(path).collect::<Vec<_>>()
    };
    for path in walk("/docs/") {
        let query =
            percent_encoding::percent_encode(path.as_bytes(), percent_encoding::NON_ALPHANUMERIC);
        let told = page.call("POST", &format!("trash?path=/-/dav{query}"), b"").expect(200);
        let id = field(&told.text(), "id");
        assert!(left().len() < all.len(), "{path}");
        assert_eq!(trash(&page).len(), 1, "{path}");
        page.call("POST", &format!("restore?id={id}"), b"").expect(200);
        assert_eq!(left(), all, "{path}");
        assert_eq!(trash(&page).len(), 0, "{path}");
    }
}
