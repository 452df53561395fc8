//! What the client of S3 makes of a server's answers, and how often it asks.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use holdall::Error;
use holdall_bucket::Access;
use holdall_bucket::backend::{Backend, Got, Put, S3, Tag};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// A server that gives one answer to all, or some in turn, or none, and counts.
struct Server {
    s3: S3,
    requests: Arc<AtomicU32>,
}

impl Server {
    /// An empty answer breaks the connection once the request has come.
    fn new(answer: impl Into<String>) -> Self {
        Self::in_turn(vec![answer.into()])
    }

    /// It gives the last answer to all that follow.
    fn in_turn(answers: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
                // Bodies here are one byte, or none.
                while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer) {
                        Ok(read @ 1..) => request.extend_from_slice(&buffer[..read]),
                        _ => break,
                    }
                }
                if !request.is_empty() {
                    let number = count.fetch_add(1, Relaxed) as usize;
                    let answer = &answers[number.min(answers.len() - 1)];
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        });
        let access = Access { endpoint: Some(endpoint), ..Access::default() };
        Self { s3: S3::open("s3://b/x", &access).unwrap(), requests }
    }

    fn status(status: &str, body: &str) -> Self {
        Self::new(answer(status, "", body))
    }

    fn put(&self, tag: Option<&str>) -> holdall::Result<Put> {
        let tag = tag.map(|tag| Tag(tag.into()));
        run(self.s3.put_if("n/c/a!", tag.as_ref(), Bytes::from_static(b"1")))
    }

    fn requests(&self) -> u32 {
        self.requests.load(Relaxed)
    }
}

/// Runs a test in a process of its own, whose environment has keys: no other place for them is the test's.
fn with_keys(test: &str, work: impl FnOnce()) {
    const ALONE: &str = "HOLDALL_TEST_ANSWERS";
    if std::env::var_os(ALONE).is_some() {
        return work();
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env(ALONE, "1").env_remove("AWS_PROFILE");
    command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {len}\r\n{headers}\r\n{body}"
    )
}

fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

#[test]
fn a_conditional_write_is_sent_once_whatever_comes() {
    with_keys("a_conditional_write_is_sent_once_whatever_comes", || {
        for (status, body) in [
            ("500 Internal Server Error", "<Code>InternalError</Code>"),
            ("503 Slow Down", "<Code>SlowDown</Code>"),
            ("429 Too Many Requests", ""),
            ("400 Bad Request", "<Code>RequestTimeout</Code>"),
            ("200 OK", "no tag"),
            ("", ""),
        ] {
            let server = match status {
                "" => Server::new(""),
                _ => Server::status(status, body),
            };
            for tag in [None, Some("1")] {
                let before = server.requests();
                let put = server.put(tag);
                assert!(matches!(put, Ok(Put::Unknown(_))), "{status}: {put:?}");
                assert_eq!(server.requests() - before, 1, "{status}");
            }
        }
        for (status, body) in [
            ("412 Precondition Failed", ""),
            ("409 Conflict", "<Code>ConditionalRequestConflict</Code>"),
            ("304 Not Modified", ""),
        ] {
            let server = Server::status(status, body);
            assert_eq!(server.put(None).unwrap(), Put::NotDone, "{status}");
            assert_eq!(server.requests(), 1, "{status}");
        }
        let server = Server::status("409 Conflict", "");
        assert_eq!(server.put(Some("1")).unwrap(), Put::NotDone);
        assert_eq!(server.requests(), 1);
        let server = Server::status("404 Not Found", "<Code>NoSuchKey</Code>");
        assert_eq!(server.put(Some("1")).unwrap(), Put::NotDone);
    });
}

#[test]
fn what_is_refused_for_good_is_an_error() {
    with_keys("what_is_refused_for_good_is_an_error", || {
        for tag in [None, Some("1")] {
            let server = Server::status("404 Not Found", "<Code>NoSuchBucket</Code>");
            assert!(matches!(server.put(tag), Err(Error::NotFound(_))));
            let server = Server::status("403 Forbidden", "<Code>AccessDenied</Code>");
            assert!(matches!(server.put(tag), Err(Error::Invalid(_))));
            let server = Server::status("507 Insufficient Storage", "");
            assert!(matches!(server.put(tag), Err(Error::Full(_))));
            let server = Server::status("501 Not Implemented", "");
            assert!(matches!(server.put(tag), Err(Error::Io { .. })));
        }
    });
}

#[test]
fn tags_are_kept_without_their_quotes() {
    with_keys("tags_are_kept_without_their_quotes", || {
        for tag in ["\"abc\"", "abc"] {
            let server = Server::new(answer("200 OK", &format!("etag: {tag}\r\n"), ""));
            assert_eq!(server.put(None).unwrap(), Put::Done(Tag("abc".into())));
        }
    });
}

#[test]
fn a_range_that_is_not_what_was_asked_for_is_an_error() {
    with_keys("a_range_that_is_not_what_was_asked_for_is_an_error", || {
        let headers = "etag: \"1\"\r\nlast-modified: Fri, 27 Nov 2026 16:00:00 GMT\r\n";
        let get = |answer: String| {
            let server = Server::new(answer);
            run(server.s3.get("b/0", Some(1..4), None))
        };
        let part = |range: &str, body: &str| {
            let headers = format!("{headers}content-range: bytes {range}\r\n");
            get(answer("206 Partial Content", &headers, body))
        };
        let Got::Found(found) = part("1-3/100", "bcd").unwrap() else { unreachable!() };
        assert_eq!(
            (&found.bytes.whole()[..], found.len, found.tag.0.as_str()),
            (&b"bcd"[..], 100, "1")
        );
        assert_eq!(found.date, 1_795_795_200_000);
        let Got::Found(found) = part("1-2/3", "bc").unwrap() else { unreachable!() };
        assert_eq!((&found.bytes.whole()[..], found.len), (&b"bc"[..], 3));
        for (range, body) in [("1-3/100", "bc"), ("0-2/100", "abc"), ("1-2/100", "bc")] {
            assert!(matches!(part(range, body), Err(Error::Io { .. })), "{range}");
        }
        assert!(matches!(get(answer("200 OK", headers, "abcdefgh")), Err(Error::Io { .. })));
        assert_eq!(get(answer("304 Not Modified", "", "")).unwrap(), Got::Same);
        assert_eq!(
            get(answer("404 Not Found", "", "<Code>NoSuchKey</Code>")).unwrap(),
            Got::Absent
        );
    });
}

#[test]
fn a_deletion_by_tag_says_what_the_server_said() {
    with_keys("a_deletion_by_tag_says_what_the_server_said", || {
        let delete = |answer: String| {
            let server = Server::new(answer);
            run(server.s3.delete_if("n/c/a!", &Tag("1".into())))
        };
        assert!(delete(answer("204 No Content", "", "")).unwrap());
        for status in ["412 Precondition Failed", "409 Conflict", "404 Not Found", "500 Error"] {
            assert!(!delete(answer(status, "", "")).unwrap(), "{status}");
        }
        assert!(!delete(String::new()).unwrap());
        let refused = delete(answer("403 Forbidden", "", "<Code>AccessDenied</Code>"));
        assert!(matches!(refused, Err(Error::Invalid(_))));
        let refused = delete(answer("404 Not Found", "", "<Code>NoSuchBucket</Code>"));
        assert!(matches!(refused, Err(Error::NotFound(_))));
    });
}

#[test]
fn what_was_replaced_or_deleted_while_it_was_read_is_read_again() {
    with_keys("what_was_replaced_or_deleted_while_it_was_read_is_read_again", || {
        let date = "last-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        let (old, new) = (format!("etag: \"1\"\r\n{date}"), format!("etag: \"2\"\r\n{date}"));
        // The head says more bytes than come.
        let broken = answer("200 OK", &old, "01234567").replace("01234567", "01234");
        let lacks = answer("416 Range Not Satisfiable", "", "<Code>InvalidRange</Code>");
        let whole = answer("200 OK", &new, "012");
        let server = Server::in_turn(vec![broken.clone(), lacks.clone(), whole]);
        let Got::Found(found) = run(server.s3.get("n/c/a!", None, None)).unwrap() else {
            panic!("it is there")
        };
        assert_eq!((found.bytes.whole(), found.tag), (Bytes::from("012"), Tag("2".into())));
        assert_eq!(server.requests(), 3);
        let gone = answer("404 Not Found", "", "<Code>NoSuchKey</Code>");
        let server = Server::in_turn(vec![broken, gone]);
        assert_eq!(run(server.s3.get("n/c/a!", None, None)).unwrap(), Got::Absent);
        // Who asks for a range that is not there learns that.
        let server = Server::in_turn(vec![lacks]);
        assert!(matches!(run(server.s3.get("b/1", Some(9..12), None)), Err(Error::Io { .. })));
        assert_eq!(server.requests(), 1);
    });
}
