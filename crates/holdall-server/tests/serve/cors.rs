//! Requests from web pages of other origins.

use crate::harness::{Answer, Running};

const RULES: &str = "<CORSConfiguration><CORSRule><ID>one</ID>\
    <AllowedOrigin>https://*.example</AllowedOrigin><AllowedMethod>GET</AllowedMethod>\
    <AllowedMethod>POST</AllowedMethod><AllowedHeader>X-Amz-*</AllowedHeader>\
    <ExposeHeader>ETag</ExposeHeader><MaxAgeSeconds>600</MaxAgeSeconds></CORSRule>\
    <CORSRule><AllowedOrigin>*</AllowedOrigin><AllowedMethod>HEAD</AllowedMethod></CORSRule>\
    </CORSConfiguration>";
const PAGE: (&str, &str) = ("origin", "https://www.example");
const OTHER: (&str, &str) = ("origin", "https://www.other");

fn served() -> Running {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"hello").expect(200);
    s.put("/box?cors", RULES.as_bytes()).expect(200);
    s
}

fn asks(s: &Running, origin: (&str, &str), method: &str, headers: &str) -> Answer {
    let mut all = vec![origin, ("access-control-request-method", method)];
    if !headers.is_empty() {
        all.push(("access-control-request-headers", headers));
    }
    s.call("OPTIONS", "/box/k", b"", &all)
}

#[test]
fn a_browser_may_ask_beforehand() {
    let s = served();
    let told = asks(&s, PAGE, "GET", "x-amz-date, X-Amz-Acl").expect(200);
    assert_eq!(told.header("access-control-allow-origin"), PAGE.1);
    assert_eq!(told.header("access-control-allow-credentials"), "true");
    assert_eq!(told.header("access-control-allow-methods"), "GET, POST");
    assert_eq!(told.header("access-control-allow-headers"), "x-amz-date, x-amz-acl");
    assert_eq!(told.header("access-control-expose-headers"), "ETag");
    assert_eq!(told.header("access-control-max-age"), "600");
    assert!(told.header("vary").contains("Origin"));
    let any = asks(&s, OTHER, "HEAD", "").expect(200);
    assert_eq!(any.header("access-control-allow-origin"), "*");
    assert_eq!(any.header("access-control-allow-credentials"), "");
    for (origin, method, headers) in
        [(OTHER, "GET", ""), (PAGE, "PUT", ""), (PAGE, "GET", "content-type")]
    {
        let refused = asks(&s, origin, method, headers).expect(403);
        assert_eq!(refused.element("Code"), "AccessForbidden");
        assert_eq!(refused.header("access-control-allow-origin"), "");
    }
    s.call("OPTIONS", "/box/k", b"", &[PAGE]).expect(400);
    s.call("OPTIONS", "/box/k", b"", &[("access-control-request-method", "GET")]).expect(400);
    let nothing = [PAGE, ("access-control-request-method", "GET")];
    s.call("OPTIONS", "/nothing/k", b"", &nothing).expect(403);
}

#[test]
fn answers_and_errors_say_which_pages_may_see_them() {
    let s = served();
    for (method, path, body, status) in [
        ("GET", "/box/k", "", 200),
        ("GET", "/box/none", "", 404),
        ("GET", "/box?list-type=2", "", 200),
        ("POST", "/box/k?holdall=insert&at=0", "oh ", 200),
        ("POST", "/box/k?holdall=insert&at=99", "oh ", 416),
    ] {
        let told = s.call(method, path, body.as_bytes(), &[PAGE]).expect(status);
        assert_eq!(told.header("access-control-allow-origin"), PAGE.1, "{method} {path}");
        assert_eq!(told.header("access-control-expose-headers"), "ETag");
        let other = s.call(method, path, body.as_bytes(), &[OTHER]).expect(status);
        assert_eq!(other.header("access-control-allow-origin"), "", "{method} {path}");
        assert!(other.header("vary").contains("Origin"));
        let plain = s.call(method, path, body.as_bytes(), &[]).expect(status);
        assert_eq!(plain.header("access-control-allow-origin"), "");
    }
}

#[test]
fn rules_are_kept_with_the_bucket() {
    let s = Running::open();
    s.put("/box", b"").expect(200);
    assert_eq!(s.get("/box?cors").expect(404).element("Code"), "NoSuchCORSConfiguration");
    for (from, to) in [
        ("https://*.example", "https://*.*"),
        ("X-Amz-*", "X-*-*"),
        (">GET<", ">PATCH<"),
        (">ETag<", ">*<"),
        ("<AllowedOrigin>*</AllowedOrigin>", ""),
    ] {
        let text = RULES.replace(from, to);
        assert_ne!(text, RULES);
        s.put("/box?cors", text.as_bytes()).expect(400);
    }
    s.put("/nothing?cors", RULES.as_bytes()).expect(404);
    s.put("/box?cors", RULES.as_bytes()).expect(200);
    let everybody = holdall_server::Config {
        anonymous: vec![holdall_server::Grant::everything()],
        ..Default::default()
    };
    let s = Running::within(s.stop(), everybody, &["a.holdall"]);
    let kept = s.get("/box?cors").expect(200).text();
    for element in ["<ID>one</ID>", "<MaxAgeSeconds>600</MaxAgeSeconds>", ">X-Amz-*<", ">POST<"] {
        assert!(kept.contains(element), "{element} is not in {kept}");
    }
    assert_eq!(kept.matches("<CORSRule>").count(), 2);
    s.delete("/box?cors").expect(204);
    s.get("/box?cors").expect(404);
    assert_eq!(s.call("GET", "/box", b"", &[PAGE]).header("access-control-allow-origin"), "");
    s.put("/box?cors", RULES.as_bytes()).expect(200);
    s.delete("/box").expect(204);
    s.put("/box", b"").expect(200);
    s.get("/box?cors").expect(404);
}
