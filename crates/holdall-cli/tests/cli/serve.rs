//! `holdall serve` as a process: starting, refusing, stopping, being killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Home;

/// A serving process. It is killed with this.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(home: &Home) -> Self {
        let args = ["serve", "s.holdall", "--listen", "127.0.0.1:0", "--anonymous", "--json"];
        let mut child =
            home.command(&args).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap();
        let address = told["listening"].as_str().unwrap().to_owned();
        Self { child, address }
    }

    fn request(&self, head: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let len = body.len();
        let text = format!(
            "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, signal).unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_serves_stops_cleanly_and_leaves_one_file() {
    let home = Home::new();
    home.file("a", "hello");
    home.ok(&["put", "s.holdall", "from-cli", "a"]);
    let mut serving = Serving::start(&home);
    let got = serving.request("GET /default/from-cli", "");
    assert!(got.starts_with("HTTP/1.1 200") && got.ends_with("hello"), "{got}");
    let put = serving.request("PUT /default/over-http", "bytes");
    assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    assert_eq!(home.ok(&["get", "s.holdall", "over-http"]), b"bytes", "read beside the server");
    assert_eq!(home.ok(&["ls", "s.holdall"]), b"from-cli\nover-http\n");
    home.ok(&["verify", "s.holdall"]);
    home.ok(&["put", "s.holdall", "beside", "a"]);
    assert!(serving.request("GET /default/beside", "").ends_with("hello"));
    home.ok(&["mv", "s.holdall", "beside", "moved"]);
    home.fails(&["serve", "s.holdall", "--anonymous", "--listen", "127.0.0.1:0"], 5, "in use");
    serving.signal(Signal::TERM);
    assert!(serving.child.wait().unwrap().success());
    assert!(!home.path("s.holdall-log").exists() && !home.path("s.holdall-control").exists());
    assert_eq!(home.ok(&["get", "s.holdall", "over-http"]), b"bytes");
}

#[test]
fn what_was_answered_survives_a_kill() {
    let home = Home::new();
    let mut serving = Serving::start(&home);
    assert!(serving.request("PUT /box", "").starts_with("HTTP/1.1 200"));
    for n in 0..20 {
        let put = serving.request(&format!("PUT /box/{n}"), &n.to_string().repeat(5000));
        assert!(put.starts_with("HTTP/1.1 200"), "{put}");
    }
    serving.signal(Signal::KILL);
    serving.child.wait().unwrap();
    let serving = Serving::start(&home);
    for n in 0..20 {
        let got = serving.request(&format!("GET /box/{n}"), "");
        assert!(got.ends_with(&n.to_string().repeat(5000)), "{n}");
    }
}

#[test]
fn what_it_cannot_serve_it_refuses() {
    let home = Home::new();
    home.fails(&["serve", "s.holdall"], 1, "no credentials");
    assert!(!home.path("s.holdall").exists());
    home.file("text", "just text\n".repeat(10_000));
    home.fails(
        &["serve", "text", "--anonymous", "--listen", "127.0.0.1:0"],
        1,
        "is not a Holdall store",
    );
    home.fails(&["serve", "s.holdall", "--anonymous", "--listen", "nowhere"], 1, "listen on");
    home.file("bad.toml", "connections = 3\n");
    home.fails(&["serve", "s.holdall", "--config", "bad.toml"], 1, "unknown field");
    home.fails(&["serve", "s.holdall", "--config", "none.toml"], 1, "none.toml");
    home.file("short.toml", "[[users]]\naccess_key = \"a\"\nsecret_key = \"short\"\n");
    home.fails(&["serve", "s.holdall", "--config", "short.toml"], 1, "at least 8");
}
