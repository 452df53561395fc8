//! Clients that are slow, broken or mean.

use crate::harness::{Answer, Running, bytes, engine};
use holdall_server::{Config, Grant, Limits};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// Sends raw bytes and reads what comes back until the connection ends.
pub fn raw(s: &Running, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(&s.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may hang up before it has read all.
    let _ = stream.write_all(request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

fn impatient() -> Running {
    let limits = Limits { idle_seconds: 1, header_seconds: 1, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    s
}

fn alive(s: &Running) -> Answer {
    s.get("/-/health").expect(200)
}

#[test]
fn slow_clients_are_given_up() {
    let s = impatient();
    let mut silent = TcpStream::connect(&s.address).unwrap();
    let answer = raw(&s, b"PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhello");
    assert!(answer.contains("RequestTimeout") || answer.is_empty(), "{answer}");
    let answer = raw(&s, b"PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: 9000000\r\n\r\nhello");
    assert!(answer.contains("RequestTimeout") || answer.is_empty(), "{answer}");
    let mut nothing = Vec::new();
    silent.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert_eq!(silent.read_to_end(&mut nothing).unwrap(), 0, "it is still open");
    s.head("/box/k").expect(404);
    alive(&s);
}

#[test]
fn a_body_cut_short_leaves_nothing() {
    let s = impatient();
    for len in [100, 3_000_000] {
        let mut stream = TcpStream::connect(&s.address).unwrap();
        let head = format!("PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: {len}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&bytes(len / 2, 1)).unwrap();
        drop(stream);
    }
    std::thread::sleep(Duration::from_millis(300));
    s.head("/box/k").expect(404);
    alive(&s);
    let store = s.store();
    let _dir = s.stop();
    assert!(engine(&store).verify().unwrap().is_sound());
}

#[test]
fn heads_that_are_too_long_are_refused() {
    let s = impatient();
    let long = format!("GET /box/k HTTP/1.1\r\nHost: x\r\nX-A: {}\r\n\r\n", "a".repeat(1 << 20));
    let answer = raw(&s, long.as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431"), "{answer}");
    let many: String = (0..500).map(|n| format!("X-{n}: a\r\n")).collect();
    let answer = raw(&s, format!("GET /box/k HTTP/1.1\r\nHost: x\r\n{many}\r\n").as_bytes());
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    let answer = raw(&s, b"\x16\x03\x01 not http at all\r\n\r\n");
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400"), "{answer}");
    alive(&s);
}

#[test]
fn xml_that_unfolds_is_refused() {
    let s = impatient();
    let mut bomb = String::from("<?xml version=\"1.0\"?><!DOCTYPE d [<!ENTITY a \"aaaaaaaaaa\">");
    for n in 1..12 {
        let inner = format!("&e{};", n - 1).repeat(10);
        bomb += &format!("<!ENTITY e{n} \"{inner}\">");
    }
    bomb += "]><Delete><Object><Key>&e11;</Key></Object></Delete>";
    let refused = s.post("/box?delete", bomb.as_bytes());
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    let deep = format!("{}{}", "<a>".repeat(100_000), "</a>".repeat(100_000));
    let refused = s.post("/box?delete", deep.as_bytes());
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    let huge = format!("<Delete>{}</Delete>", " ".repeat(5 << 20));
    let refused = s.post("/box?delete", huge.as_bytes());
    assert!((400..500).contains(&refused.status), "{}", refused.text());
    alive(&s);
}

#[test]
fn keys_are_names_and_never_paths() {
    let s = impatient();
    let longest = "k".repeat(1024);
    for key in [
        "../../etc/passwd",
        "..%2F..%2Fetc%2Fpasswd",
        "%2e%2e/%2e%2e/x",
        "a//b",
        "/leading",
        "a%00b",
        "caf%C3%A9",
        "cafe%CC%81",
        "%F0%9F%8E%9E",
        "-/health",
        &longest,
    ] {
        let body = key.as_bytes();
        let path = format!("/box/{key}");
        let request = format!(
            "PUT {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{key}",
            body.len()
        );
        let answer = raw(&s, request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200"), "{key}: {answer}");
        let get = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = raw(&s, get.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with(key), "{key}: {answer}");
    }
    let too_long = s.put(&format!("/box/{}", "k".repeat(1025)), b"x");
    assert_eq!(too_long.expect(400).element("Code"), "KeyTooLongError");
    let not_utf8 = raw(
        &s,
        b"PUT /box/%ff HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
    );
    assert!(not_utf8.starts_with("HTTP/1.1 400"), "{not_utf8}");
    // Composed and decomposed forms are two names; the same path encoded otherwise is one.
    let listed = s.get("/box?list-type=2&encoding-type=url").expect(200).text();
    assert_eq!(listed.matches("<Key>").count(), 10, "{listed}");
    // Nothing of the server's own can be reached as a bucket.
    assert!(s.get("/.s3/upload/x").status >= 400);
    assert!(s.get("/.s3?list-type=2").status >= 400);
    alive(&s);
}

#[test]
fn many_connections_wait_their_turn() {
    let limits = Limits { connections: 4, idle_seconds: 2, header_seconds: 2, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    let idle: Vec<_> = (0..4).map(|_| TcpStream::connect(&s.address).unwrap()).collect();
    // Silent connections are closed; the one that waits behind them is then answered.
    alive(&s);
    drop(idle);
}
