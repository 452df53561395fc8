//! What an operator relies on: the log, signals, systemd's unit, the container file.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::Home;

/// A serving process with its log in `log`. It is killed with this.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(home: &Home, more: &[&str], env: &[(&str, &str)]) -> Self {
        let mut command = home.command(&["serve", "s.holdall", "--listen", "127.0.0.1:0"]);
        command
            .args(more)
            .env("HOLDALL_ACCESS_KEY", "root")
            .env("HOLDALL_SECRET_KEY", "root-secret");
        command.envs(env.iter().copied()).stdout(Stdio::piped());
        let mut child = command.stderr(File::create(home.path("log")).unwrap()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit('/').next().unwrap().to_owned();
        Self { child, address }
    }

    fn request(&self, head: &str, headers: &str, body: &[u8]) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let len = body.len();
        let text = format!(
            "{head} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}Content-Length: {len}\r\n\r\n"
        );
        stream.write_all(text.as_bytes()).unwrap();
        let _ = stream.write_all(body);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn stop(mut self) {
        self.signal(Signal::TERM);
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn log(home: &Home) -> String {
    std::fs::read_to_string(home.path("log")).unwrap()
}

/// Goes on once something holds; tests do not depend on how fast it comes to that.
fn until(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("{what}");
}

/// Date and time as signatures have them.
fn now() -> (String, String) {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let (days, second) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (mut year, mut day) = (1970, days);
    let leap = |y: u64| y.is_multiple_of(4) && (!y.is_multiple_of(100) || y.is_multiple_of(400));
    while day >= 365 + u64::from(leap(year)) {
        day -= 365 + u64::from(leap(year));
        year += 1;
    }
    let mut month = 1;
    for len in [31, 28 + u64::from(leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if day < len {
            break;
        }
        (day, month) = (day - len, month + 1);
    }
    let date = format!("{year:04}{month:02}{:02}", day + 1);
    (date, format!("{:02}{:02}{:02}", second / 3600, second / 60 % 60, second % 60))
}

/// `Authorization` with base64 of a name and a password, made beforehand.
const ANNA: &str = "Authorization: Basic YW5uYTphbm5hLXNlY3JldA==\r\n"; // anna:anna-secret
const WRONG: &str = "Authorization: Basic YW5uYTp3cm9uZw==\r\n"; // anna:wrong
/// A name that would end the line and begin another one.
const FORGED: &str = "Authorization: Basic YQpXQVJOIGhvbGRhbGxfc2VydmVyOjpsb2dpbjogbG9naW4gZmFpbGVkIHBlZXI9MS4yLjMuNDp4\r\n";

#[test]
fn wrong_passwords_are_told_in_a_line_that_does_not_change() {
    let home = Home::new();
    let serving = Serving::start(&home, &[], &[]);
    let answers = [
        serving.request("PROPFIND /-/dav/", WRONG, b""),
        serving.request("GET /-/dav/x", FORGED, b""),
        serving.request("GET /-/dav/x", "Authorization: Basic !\r\n", b""),
        serving.request(
            "POST /-/web/login",
            "Content-Type: application/json\r\n",
            br#"{"name":"an\nna","password":"x"}"#,
        ),
        // Nobody was named: there is no line.
        serving.request("GET /-/dav/x", "", b""),
    ];
    for answer in answers {
        assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    }
    let (day, time) = now();
    let signed = |key: &str| {
        let scope = format!("Credential={key}/{day}/us-east-1/s3/aws4_request");
        let more = "SignedHeaders=host;x-amz-date, Signature=00";
        format!(
            "Authorization: AWS4-HMAC-SHA256 {scope}, {more}\r\nx-amz-date: {day}T{time}Z\r\n\
             x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n"
        )
    };
    for key in ["nobody", "root"] {
        assert!(serving.request("GET /box", &signed(key), b"").starts_with("HTTP/1.1 403"));
    }
    serving.stop();
    let text = log(&home);
    let lines: Vec<&str> = text.lines().collect();
    let told = [
        ("webdav", "\"anna\""),
        ("webdav", "\"a\\nWARN holdall_server\""),
        ("webdav", "\"\""),
        ("page", "\"an\\nna\""),
        ("s3", "\"nobody\""),
        ("s3", "\"root\""),
    ];
    assert_eq!(lines.len(), told.len(), "{text}");
    for (line, (door, user)) in lines.iter().zip(told) {
        let (_time, rest) = line.split_once(' ').unwrap();
        let is = format!(
            "WARN holdall_server::login: login failed peer=127.0.0.1 door={door} user={user}"
        );
        assert_eq!(rest.trim_start(), is);
    }
}

#[test]
fn what_clients_do_wrong_is_no_error_and_is_not_written_out() {
    let home = Home::new();
    let serving = Serving::start(&home, &["--anonymous"], &[("RUST_LOG", "info")]);
    assert!(serving.request("PUT /box", "", b"").starts_with("HTTP/1.1 200"));
    let body = "HOSTILE".repeat(10_000);
    let xml = format!("<Delete><Object><Key>{body}</Key></Object><{body}></Delete>");
    let json = "Content-Type: application/json\r\n";
    let form = "Content-Type: multipart/form-data; boundary=B\r\n";
    let long = format!("GET /box/{}", &body[..40_000]);
    for (head, headers, body) in [
        ("POST /box?delete", "", xml.as_str()),
        ("POST /box?delete", "", &body),
        ("PUT /box/k?tagging", "", &xml),
        ("PUT /box?cors", "", &xml),
        ("PROPFIND /-/dav/box", "Depth: 0\r\n", &xml),
        ("PROPPATCH /-/dav/box/k", "", &body),
        ("LOCK /-/dav/box/k", "", &xml),
        ("POST /-/web/login", json, &body[..60_000]),
        ("POST /box/k?holdall=concat", "", &body),
        ("POST /box", form, &body),
        ("GET /box/none", "", ""),
        ("PUT /box/k", "Content-MD5: HOSTILEHOSTILE\r\n", "x"),
        (&long, "", ""),
    ] {
        let answer = serving.request(head, headers, body.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 4"), "{head:.60}: {answer:.300}");
    }
    serving.stop();
    let text = log(&home);
    assert!(!text.contains(" ERROR "), "{text:.4000}");
    assert!(text.len() < 20_000 && text.contains("path=\"/-/web/login\""), "{text:.4000}");
    let longest = text.lines().map(str::len).max().unwrap();
    assert!(longest < 1_000, "{longest}");
}

#[test]
fn a_start_that_fails_makes_nothing() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().to_string();
    let serve = ["serve", "s.holdall", "t.holdall", "--anonymous", "--listen"];
    home.fails(&[&serve[..], &[&port]].concat(), 1, "listen on");
    home.file("bad.holdall", "no store\n".repeat(10_000));
    let serve = ["serve", "s.holdall", "bad.holdall", "--anonymous", "--listen", "127.0.0.1:0"];
    home.fails(&serve, 1, "is not a Holdall store");
    for (text, message) in [
        ("new_buckets = \"other\"\n", "new_buckets"),
        ("[tls]\ncertificate = \"none.pem\"\nkey = \"none.pem\"\n", "none.pem"),
        ("[tls]\n", "self_signed"),
    ] {
        home.file("c.toml", text);
        let serve =
            ["serve", "s.holdall", "--anonymous", "--config", "c.toml", "--listen", "127.0.0.1:0"];
        home.fails(&serve, 1, message);
    }
    for name in ["s.holdall", "s.holdall-log", "t.holdall", "t.holdall-log"] {
        assert!(!home.path(name).exists(), "{name}");
    }
}

#[test]
fn a_configuration_that_cannot_be_read_is_told_with_its_place() {
    let home = Home::new();
    let secret = "secret_key = \"a-long-secret\"";
    for (text, place) in [
        ("public_acls = 3\n".to_owned(), "c.toml:1:15: "),
        (format!("[[users]]\naccess_key = \"a\"\n{secret} x\n"), "c.toml:3:"),
        (
            format!("[[users]]\naccess_key = \"a\"\n{secret}\n[limits]\n  strems = 3\n"),
            "c.toml:5:3: ",
        ),
        ("[[users]]\nsecret_key = \"a-long-secret\"\n".to_owned(), "c.toml:1:1: "),
        ("[limits]\nstreams = \"é\"\n".to_owned(), "c.toml:2:11: "),
        ("x = [".to_owned(), "c.toml:1:"),
    ] {
        home.file("c.toml", text);
        let run =
            home.run(&["serve", "s.holdall", "--config", "c.toml", "--listen", "127.0.0.1:0"]);
        assert!(!run.err.contains("a-long-secret"), "{}", run.err);
        run.failed(1, place);
    }
}

#[test]
fn a_hangup_reads_the_configuration_again() {
    let home = Home::new();
    home.file("c.toml", "");
    let serving = Serving::start(&home, &["--config", "c.toml"], &[]);
    let status = || serving.request("PROPFIND /-/dav/", &format!("Depth: 0\r\n{ANNA}"), b"");
    assert!(status().starts_with("HTTP/1.1 401"));
    let user = "[[users]]\naccess_key = \"anna\"\nsecret_key = \"anna-secret\"\n";
    home.file("c.toml", user);
    serving.signal(Signal::HUP);
    until("the user did not come", || status().starts_with("HTTP/1.1 207"));
    home.file("c.toml", format!("{user}secret_key = \"twice\"\n"));
    serving.signal(Signal::HUP);
    until("the fault was not told", || log(&home).contains("c.toml:4:"));
    assert!(status().starts_with("HTTP/1.1 207"), "what held before holds");
    home.file("c.toml", "");
    serving.signal(Signal::HUP);
    until("the user did not go", || status().starts_with("HTTP/1.1 401"));
    serving.stop();
    // Without a file there is nothing to read again, and a terminal that closes ends it.
    let mut serving = Serving::start(&home, &[], &[]);
    serving.signal(Signal::HUP);
    assert!(serving.child.wait().unwrap().success());
}

#[test]
fn a_service_manager_is_told_when_it_is_ready_and_when_it_stops() {
    let home = Home::new();
    home.file("c.toml", "");
    let socket = UnixDatagram::bind(home.path("notify")).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let told = || {
        let mut bytes = [0; 100];
        let len = socket.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..len]).into_owned()
    };
    let name = home.path("notify");
    let env = [("NOTIFY_SOCKET", name.to_str().unwrap())];
    let serving = Serving::start(&home, &["--config", "c.toml"], &env);
    assert_eq!(told(), "READY=1");
    assert!(serving.request("GET /-/health", "", b"").starts_with("HTTP/1.1 200"));
    serving.signal(Signal::HUP);
    assert_eq!((told(), told()), ("RELOADING=1".to_owned(), "READY=1".to_owned()));
    serving.stop();
    assert_eq!(told(), "STOPPING=1");
    // One that is not there keeps it from nothing.
    let env = [("NOTIFY_SOCKET", "@holdall-test-that-nobody-listens-to")];
    Serving::start(&home, &[], &env).stop();
    assert!(log(&home).contains("was not notified"));
}

fn packaging(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

#[test]
fn the_unit_leaves_little_open() {
    let unit = packaging("holdall.service");
    let text = std::fs::read_to_string(&unit).unwrap();
    for line in ["Type=notify", "ExecReload=/bin/kill -HUP $MAINPID", "DynamicUser=yes"] {
        assert!(text.lines().any(|l| l == line), "{line}");
    }
    let run = Command::new("systemd-analyze")
        .args(["security", "--no-pager", "--offline=true", "--threshold=30"])
        .arg(&unit)
        .output();
    match run {
        Ok(run) => {
            let text = String::from_utf8_lossy(&run.stdout).into_owned();
            if !text.contains("Overall exposure level") {
                println!("skipped: systemd-analyze security --offline, of systemd 250 or newer");
                return;
            }
            assert!(run.status.success(), "{text}");
        }
        Err(_) => println!("skipped: systemd-analyze"),
    }
}

/// The health check of the container file, run here as an engine runs it there.
#[test]
fn the_health_check_of_the_container_file_tells_health() {
    let text = std::fs::read_to_string(packaging("Containerfile")).unwrap();
    let line = text.lines().find(|line| line.starts_with("HEALTHCHECK ")).unwrap();
    let command: Vec<String> = serde_json::from_str(line.split_once(" CMD ").unwrap().1).unwrap();
    assert!(text.lines().any(|line| line == "USER 10001:10001"), "{text}");
    if Command::new("bash").arg("--version").output().is_err() {
        println!("skipped: bash");
        return;
    }
    let asked = |address: &str| {
        let place = format!("/dev/tcp/{}", address.replace(':', "/"));
        let script = command[2].replace("/dev/tcp/127.0.0.1/9000", &place);
        assert!(script.contains(&place) && command[..2] == ["bash", "-c"], "{command:?}");
        Command::new("bash").args(["-c", &script]).output().unwrap().status.success()
    };
    let home = Home::new();
    let serving = Serving::start(&home, &[], &[]);
    let address = serving.address.clone();
    assert!(asked(&address));
    serving.stop();
    assert!(!asked(&address));
    let sick = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = sick.local_addr().unwrap().to_string();
    let answers = std::thread::spawn(move || {
        let mut stream = sick.accept().unwrap().0;
        let _ = stream.read(&mut [0; 1024]);
        stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\n").unwrap();
    });
    assert!(!asked(&address));
    answers.join().unwrap();
}

#[test]
fn the_container_file_builds_a_server_that_answers() {
    let script = packaging("../tests/container.sh");
    let run = Command::new("sh").arg(script).output().unwrap();
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    print!("{text}");
    assert!(run.status.success(), "{text}{}", String::from_utf8_lossy(&run.stderr));
}
