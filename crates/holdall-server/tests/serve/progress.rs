//! Clients that send, or read, a byte now and then: silence is no measure of them.

use crate::harness::{KEYS, Running, bytes};
use holdall_server::{Config, Grant, Limits};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FOREVER: Duration = Duration::from_secs(120);

/// Clients that send a byte now and then, until this is dropped.
struct Trickle {
    stop: Arc<AtomicBool>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Trickle {
    fn begin(s: &Running, heads: &[String]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for head in heads {
            let mut stream = TcpStream::connect(&s.address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            let stop = stop.clone();
            threads.push(std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) && stream.write_all(b"x").is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            }));
        }
        Self { stop, threads }
    }
}

impl Drop for Trickle {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            thread.join().unwrap();
        }
    }
}

fn head(method: &str, path: &str, kind: &str) -> String {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: 1000000\r\n\r\n"
    )
}

const FORM: &str = "multipart/form-data; boundary=B";

#[test]
fn who_may_do_nothing_keeps_nobody_out() {
    // So patient that nothing but the lack of progress ends a connection.
    let limits =
        Limits { connections: 8, idle_seconds: 3600, header_seconds: 3600, ..Limits::default() };
    let s = Running::with(Config { limits, ..Config::default() }, &["a.holdall"]);
    s.signed(KEYS, "PUT", "/box", b"", &[]).expect(200);
    let doors = [
        head("PUT", "/box/k", "text/plain"),
        head("PUT", "/-/dav/box/k", "text/plain"),
        head("POST", "/-/web/login", "application/json"),
        head("POST", "/box", FORM),
        head("POST", "/box?delete", "application/xml"),
        head("GET", "/box/k", "text/plain"),
        "GET / HTTP/1.1\r\n".to_owned(),
    ];
    for door in doors {
        let trickle = Trickle::begin(&s, &vec![door; 12]);
        s.get("/-/health").expect(200);
        s.signed(KEYS, "PUT", "/box/other", b"mine", &[]).expect(200);
        drop(trickle);
    }
    assert_eq!(s.signed(KEYS, "GET", "/box/other", b"", &[]).expect(200).body, b"mine");
    s.signed(KEYS, "HEAD", "/box/k", b"", &[]).expect(404);
}

#[test]
fn who_does_not_read_keeps_nobody_out() {
    let limits =
        Limits { connections: 4, idle_seconds: 3600, header_seconds: 3600, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    s.put("/box/long", &bytes(24 << 20, 3)).expect(200);
    for path in ["/box/long", "/-/dav/box/long"] {
        let mut silent = Vec::new();
        for _ in 0..6 {
            let mut stream = TcpStream::connect(&s.address).unwrap();
            stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).unwrap();
            silent.push(stream);
        }
        s.get("/-/health").expect(200);
        assert!(s.get("/box/long").expect(200).body == bytes(24 << 20, 3));
    }
}

/// Sends a byte now and then until the server answers.
fn answered(s: &Running, head: &str) -> String {
    let mut stream = TcpStream::connect(&s.address).unwrap();
    stream.write_all(head.as_bytes()).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    let (mut answer, begun) = ([0; 12], std::time::Instant::now());
    while begun.elapsed() < FOREVER {
        if stream.read_exact(&mut answer).is_ok() {
            return String::from_utf8_lossy(&answer).into_owned();
        }
        if stream.write_all(b"x").is_err() {
            return "closed".into();
        }
    }
    "nothing".into()
}

#[test]
fn a_body_that_hardly_comes_on_is_given_up_at_every_door() {
    let limits = Limits { idle_seconds: 1, ..Limits::default() };
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    s.put("/box/k", b"old").expect(200);
    for request in [
        head("PUT", "/box/k", "text/plain"),
        head("PUT", "/box/k", "text/plain").replace("1000000", "9000000"),
        head("POST", "/box/k?holdall=insert&at=0", "text/plain"),
        head("POST", "/box?delete", "application/xml"),
        head("POST", "/box", FORM),
        head("PUT", "/-/dav/box/k", "text/plain"),
        head("PROPFIND", "/-/dav/box/k", "application/xml"),
        head("POST", "/-/web/login", "application/json"),
    ] {
        let answer = answered(&s, &request);
        assert!(answer.starts_with("HTTP/1.1 4") || answer == "closed", "{request}{answer}");
    }
    assert_eq!(s.get("/box/k").expect(200).body, b"old");
}

#[test]
fn a_refused_request_is_answered_though_its_body_does_not_come() {
    let limits = Limits { idle_seconds: 3600, ..Limits::default() };
    let s = Running::with(Config { limits, ..Config::default() }, &["a.holdall"]);
    for path in ["/box/k", "/-/dav/box/k", "/-/web/dav/box/k"] {
        let mut stream = TcpStream::connect(&s.address).unwrap();
        stream.set_read_timeout(Some(FORMALLY)).unwrap();
        stream.write_all(head("PUT", path, "text/plain").as_bytes()).unwrap();
        let mut answer = [0; 10];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 4", "{path}");
    }
}

/// Less than the server's patience, more than a busy machine takes.
const FORMALLY: Duration = Duration::from_secs(60);
