//! Users, rights and certificates that change while the server runs.

use crate::harness::{KEYS, Running};
use crate::tls::health;
use base64::Engine as _;
use holdall_server::{Config, Grant, Right, TlsConfig, UserConfig};
use rustls::RootCertStore;
use std::path::Path;

fn user(name: &str, secret: &str, rights: &[Right]) -> UserConfig {
    UserConfig {
        access_key: name.into(),
        secret_key: Some(secret.into()),
        secret_key_file: None,
        grants: vec![Grant { bucket: "docs".into(), rights: rights.to_vec() }],
    }
}

fn basic(name: &str, secret: &str) -> String {
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{name}:{secret}"));
    format!("Basic {pair}")
}

fn status(s: &Running, method: &str, (name, secret): (&str, &str)) -> u16 {
    let auth = basic(name, secret);
    s.call(method, "/-/dav/docs/a", b"1", &[("Authorization", &auth)]).status
}

fn login(s: &Running, (name, secret): (&str, &str)) -> String {
    let body = format!("{{\"name\":\"{name}\",\"password\":\"{secret}\"}}");
    let json = [("Content-Type", "application/json")];
    let told = s.call("POST", "/-/web/login", body.as_bytes(), &json).expect(200);
    told.header("set-cookie").split(';').next().unwrap().to_owned()
}

const ANNA: (&str, &str) = ("anna", "anna-secret");
const BERT: (&str, &str) = ("bert", "bert-secret");

#[test]
fn users_and_rights_change_without_a_restart() {
    let users = vec![user(ANNA.0, ANNA.1, &[Right::Read, Right::Write])];
    let s = Running::with(Config { users: users.clone(), ..Config::default() }, &["a.holdall"]);
    let root = basic(KEYS.0, KEYS.1);
    s.call("MKCOL", "/-/dav/docs", b"", &[("Authorization", &root)]).expect(201);
    assert_eq!(status(&s, "PUT", ANNA), 201);
    let session = login(&s, ANNA);
    let page = || s.call("GET", "/-/web/dav/docs/a", b"", &[("Cookie", &session)]).status;
    assert_eq!((page(), status(&s, "GET", BERT)), (200, 401));

    // Fewer rights, and a user more. The session has the rights of now.
    let mut new = vec![user(ANNA.0, ANNA.1, &[Right::List]), user(BERT.0, BERT.1, &[Right::Read])];
    *s.next.lock() = Some(Config { users: new.clone(), ..Config::default() });
    assert!(s.reloader.reload().unwrap().is_empty());
    assert_eq!((status(&s, "GET", ANNA), status(&s, "GET", BERT)), (403, 200));
    assert_eq!(page(), 403);
    let signed = s.signed_get(BERT, "docs", "a");
    assert_eq!(crate::harness::call("GET", &signed, b"", &[]).status, 200);

    // What cannot be read, and what cannot be used, changes nothing.
    *s.next.lock() = None;
    assert!(s.reloader.reload().unwrap_err().to_string().contains("cannot be read"));
    new.push(user("carl", "short", &[]));
    *s.next.lock() = Some(Config { users: new, ..Config::default() });
    assert!(s.reloader.reload().unwrap_err().to_string().contains("carl"));
    assert_eq!((status(&s, "GET", ANNA), status(&s, "GET", BERT)), (403, 200));

    // Another password ends the session; so does it that the user is gone.
    let new = vec![user(ANNA.0, "anna-secret-2", &[Right::Read])];
    let (anonymous, domain) = (vec![Grant::everything()], Some("s3.example.org".to_owned()));
    *s.next.lock() = Some(Config { users: new, domain, ..Config::default() });
    assert_eq!(s.reloader.reload().unwrap(), ["domain"]);
    assert_eq!((page(), status(&s, "GET", BERT), status(&s, "GET", ANNA)), (401, 401, 401));
    assert_eq!(status(&s, "GET", (ANNA.0, "anna-secret-2")), 200);
    assert_eq!(crate::harness::call("GET", &signed, b"", &[]).status, 403);
    assert_eq!(status(&s, "GET", KEYS), 200, "the environment's keys stay");
    *s.next.lock() = Some(Config { anonymous, ..Config::default() });
    s.reloader.reload().unwrap();
    s.get("/-/dav/docs/a").expect(200);
}

#[test]
fn the_page_reads_the_configuration_again_for_who_administrates_all() {
    let users = vec![user(ANNA.0, ANNA.1, &[Right::Read, Right::Admin])];
    let s = Running::with(Config { users, ..Config::default() }, &["a.holdall"]);
    let root = basic(KEYS.0, KEYS.1);
    for bucket in ["docs", "other"] {
        let made = s.call("MKCOL", &format!("/-/dav/{bucket}"), b"", &[("Authorization", &root)]);
        made.expect(201);
    }
    let asks = |keys: (&str, &str)| {
        let cookie = login(&s, keys);
        let told = s.call("GET", "/-/web/session", b"", &[("Cookie", &cookie)]).expect(200).text();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        let headers =
            [("Cookie", cookie.as_str()), ("X-Holdall-CSRF", told["csrf"].as_str().unwrap())];
        s.call("POST", "/-/web/reload", b"", &headers)
    };
    *s.next.lock() = Some(Config { users: vec![user(BERT.0, BERT.1, &[])], ..Config::default() });
    asks(ANNA).expect(403);
    assert_eq!(status(&s, "GET", ANNA), 404, "nothing was read");
    assert_eq!(asks(KEYS).expect(200).text(), "{\"restart\":[]}");
    assert_eq!(status(&s, "GET", ANNA), 401);
    *s.next.lock() = None;
    assert!(asks(KEYS).expect(400).text().contains("cannot be read"));
}

fn certificate(dir: &Path) -> RootCertStore {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    std::fs::write(dir.join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    roots
}

#[test]
fn a_certificate_is_replaced_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path().to_owned();
    let old = certificate(&at);
    let (certificate_, key) = (Some(at.join("cert.pem")), Some(at.join("key.pem")));
    let tls = Some(TlsConfig { certificate: certificate_, key, self_signed: Vec::new() });
    let anonymous = vec![Grant::everything()];
    let s = Running::within(dir, Config { tls, anonymous, ..Config::default() }, &["a.holdall"]);
    assert!(health(&s, old.clone()).unwrap().starts_with("HTTP/1.1 200"));
    let new = certificate(&at);
    assert!(health(&s, new.clone()).is_err());
    s.reloader.reload().unwrap();
    assert!(health(&s, new.clone()).unwrap().starts_with("HTTP/1.1 200"));
    assert!(health(&s, old).is_err());
    // A key that is none leaves what there is.
    std::fs::write(at.join("key.pem"), "none").unwrap();
    assert!(s.reloader.reload().is_err());
    assert!(health(&s, new).unwrap().starts_with("HTTP/1.1 200"));
}
