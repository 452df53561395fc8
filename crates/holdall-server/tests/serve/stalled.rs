//! Clients that begin and do not go on: they keep nobody else out.

use crate::harness::{Running, bytes, engine};
use holdall_server::{Config, Grant, Limits};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

fn serve(limits: Limits) -> Running {
    let anonymous = vec![Grant::everything()];
    let s = Running::with(Config { limits, anonymous, ..Config::default() }, &["a.holdall"]);
    s.put("/box", b"").expect(200);
    s
}

/// Begins a put of 4 MiB and sends its first bytes.
fn begin(s: &Running, path: &str, sent: usize) -> TcpStream {
    let mut stream = TcpStream::connect(&s.address).unwrap();
    let head = format!("PUT {path} HTTP/1.1\r\nHost: x\r\nContent-Length: 4194304\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![1; sent]).unwrap();
    stream
}

#[test]
fn stalled_uploads_make_room_for_those_that_come_on() {
    let s = serve(Limits { streams: 4, idle_seconds: 3600, ..Limits::default() });
    s.put("/box/edited", &bytes(10, 1)).expect(200);
    for door in ["/box", "/-/dav/box"] {
        let mut stalled: Vec<_> =
            (0..12).map(|n| begin(&s, &format!("{door}/s{n}"), n * 9)).collect();
        // Who sends a byte now and then does not come on either.
        for stream in &mut stalled {
            let _ = stream.write_all(b"x");
        }
        let body = bytes(3 << 20, 2);
        let put = s.put(&format!("{door}/long"), &body);
        assert!(put.status < 300, "{}", put.text());
        let edit = s.post("/box/edited?holdall=insert&at=0", &body);
        assert_eq!(edit.status, 200, "{}", edit.text());
        assert_eq!(s.get("/box/long").expect(200).body, body);
        for n in 0..12 {
            s.head(&format!("/box/s{n}")).expect(404);
        }
    }
    let store = s.store();
    let _dir = s.stop();
    assert!(engine(&store).verify().unwrap().is_sound());
}

#[test]
fn stalled_uploads_stay_where_nobody_waits() {
    let s = serve(Limits { streams: 2, idle_seconds: 3600, ..Limits::default() });
    let mut stalled = begin(&s, "/box/slow", 10);
    s.put("/box/long", &bytes(3 << 20, 2)).expect(200);
    stalled.write_all(&vec![1; (4 << 20) - 10]).unwrap();
    let mut answer = vec![0; 12];
    stalled.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stalled.read_exact(&mut answer).unwrap();
    assert_eq!(answer, b"HTTP/1.1 200");
    assert_eq!(s.get("/box/slow").expect(200).body, vec![1; 4 << 20]);
}

#[test]
fn idle_connections_are_closed() {
    let s = serve(Limits { header_seconds: 1, idle_seconds: 3600, ..Limits::default() });
    s.put("/box/k", b"hello").expect(200);
    // Idle from the first byte on, after a head that was begun, and after an answer.
    let get = "GET /box/k HTTP/1.1\r\nHost: x\r\n\r\n";
    let put = "PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi";
    for sent in ["", "GET /box", get, put, &get.repeat(3)] {
        let mut stream = TcpStream::connect(&s.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.write_all(sent.as_bytes()).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).unwrap();
        let answers = String::from_utf8_lossy(&answer).matches("HTTP/1.1 200").count();
        assert_eq!(answers, sent.matches("\r\n\r\n").count(), "{sent}");
    }
}

#[test]
fn a_connection_that_is_read_slowly_is_not_idle() {
    let s = serve(Limits { header_seconds: 1, ..Limits::default() });
    let body = bytes(24 << 20, 3);
    s.put("/box/long", &body).expect(200);
    let mut stream = TcpStream::connect(&s.address).unwrap();
    stream.write_all(b"GET /box/long HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    // More than the system keeps on the way: the server waits for this client meanwhile.
    std::thread::sleep(Duration::from_secs(3));
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    let mut got = vec![0; body.len()];
    stream.read_exact(&mut got).unwrap();
    assert!(got == body);
}
