//! Request sequences of clients that cannot be run here, as public reports have them: each file of
//! `testdata/dav` is played, its README says how they are written.

use crate::harness::{Answer, Running, bytes, engine};
use std::collections::BTreeMap;
use std::path::Path;

const LOCKINFO: &[u8] = b"<D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockinfo>";
const DISCOVERY: &[u8] =
    b"<D:propfind xmlns:D=\"DAV:\"><D:prop><D:lockdiscovery/></D:prop></D:propfind>";
const PATCH: &[u8] = b"<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x xmlns=\"urn:x\">1</x>\
    </D:prop></D:set></D:propertyupdate>";

/// A request that is being read.
#[derive(Default)]
struct Asked {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

struct Player<'a> {
    server: &'a Running,
    /// Headers that go with each request of the client.
    client: Vec<(String, String)>,
    asked: Option<Asked>,
    answer: Option<Answer>,
    names: BTreeMap<String, String>,
}

fn path(name: &str) -> String {
    match name {
        "//" => "/".into(),
        "." => "/-/dav/box/".into(),
        name => format!("/-/dav/box/{name}"),
    }
}

fn made(text: &str) -> Vec<u8> {
    let (len, seed) = text.split_once(' ').unwrap();
    bytes(len.parse().unwrap(), seed.parse().unwrap())
}

impl Player<'_> {
    fn filled(&self, text: &str) -> String {
        // The longer name first, of two that begin alike.
        let fill = |text: String, (name, value): (&String, &String)| {
            text.replace(&format!("${name}"), value)
        };
        self.names.iter().rev().fold(text.to_owned(), fill)
    }

    fn send(&mut self, statuses: &str) {
        let asked = self.asked.take().unwrap();
        let headers = self.client.iter().chain(&asked.headers);
        let headers: Vec<_> = headers.map(|(n, v)| (n.as_str(), v.as_str())).collect();
        let answer = self.server.call(&asked.method, &path(&asked.path), &asked.body, &headers);
        let status = answer.status.to_string();
        assert!(statuses.split(' ').any(|s| s == status), "{status}: {}", answer.text());
        self.answer = Some(answer);
    }

    /// The token is in a header for some clients, in the body for others.
    fn keep(&mut self, name: &str) {
        let answer = self.answer.as_ref().unwrap();
        let token = answer.header("lock-token").to_owned();
        let bare = token.trim_matches(['<', '>']).to_owned();
        assert!(token.starts_with('<') && answer.text().contains(&bare), "{}", answer.text());
        self.names.insert(format!("BARE_{name}"), bare);
        self.names.insert(name.to_owned(), token);
    }

    fn other(&self, method: &str, name: &str, body: &[u8], header: (&str, &str)) -> Answer {
        self.server.call(method, &path(name), body, &[("User-Agent", "other"), header])
    }

    /// Whether the server says that there is a lock.
    fn shows_lock(&self, name: &str) -> bool {
        let shown = self.other("PROPFIND", name, DISCOVERY, ("Depth", "0")).expect(207).text();
        shown.contains("activelock")
    }

    fn locked(&self, name: &str) {
        let before = self.server.get(&path(name)).expect(200);
        assert!(self.shows_lock(name), "no lock is shown");
        let elsewhere = format!("http://{}{}", self.server.address, path("elsewhere"));
        for (method, body, header) in [
            ("PUT", &b"late"[..], ("Accept", "*/*")),
            ("DELETE", b"", ("Accept", "*/*")),
            ("MOVE", b"", ("Destination", elsewhere.as_str())),
            ("PROPPATCH", PATCH, ("Accept", "*/*")),
            ("LOCK", LOCKINFO, ("Depth", "0")),
        ] {
            let status = self.other(method, name, body, header).status;
            assert_eq!(status, 423, "{method} without the token");
        }
        let after = self.server.get(&path(name)).expect(200);
        assert!(after.body == before.body && after.header("etag") == before.header("etag"));
        self.server.get(&path("elsewhere")).expect(404);
    }

    fn free(&self, name: &str) {
        assert!(!self.shows_lock(name), "a lock is shown");
        let lock = self.other("LOCK", name, LOCKINFO, ("Depth", "0")).expect(200);
        let token = lock.header("lock-token").to_owned();
        self.other("UNLOCK", name, b"", ("Lock-Token", &token)).expect(204);
    }

    fn line(&mut self, line: &str) {
        if let (Some((name, value)), true) = (line.split_once(": "), line.starts_with("    ")) {
            let header = (name.trim().to_owned(), self.filled(value));
            match &mut self.asked {
                Some(asked) => asked.headers.push(header),
                None => self.client.push(header),
            }
            return;
        }
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let answer = || self.answer.as_ref().unwrap();
        match word {
            "client" => self.client.clear(),
            "=" => self.send(rest),
            "keep" => self.keep(rest),
            "body" => self.asked.as_mut().unwrap().body.extend(format!("{rest}\n").bytes()),
            "bytes" => self.asked.as_mut().unwrap().body = made(rest),
            "header" => {
                let (name, text) = rest.split_once(' ').unwrap();
                let value = answer().header(name);
                assert!(value.contains(text), "{value:?}");
            }
            "has" => assert!(answer().text().contains(rest), "{}", answer().text()),
            "lacks" => assert!(!answer().text().contains(rest), "{}", answer().text()),
            "holds" => {
                let (name, of) = rest.split_once(' ').unwrap();
                assert!(self.server.get(&path(name)).expect(200).body == made(of), "other bytes");
            }
            "gone" => drop(self.server.get(&path(rest)).expect(404)),
            "locked" => self.locked(rest),
            "free" => self.free(rest),
            method => {
                assert!(self.asked.is_none() && method.chars().all(|c| c.is_ascii_uppercase()));
                let (method, path) = (method.to_owned(), rest.to_owned());
                self.asked = Some(Asked { method, path, ..Asked::default() });
            }
        }
    }
}

/// Says which line failed: the assertions within know only the answer.
struct Place<'a>(&'a Path, usize, &'a str);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}:{}: {}", self.0.display(), self.1 + 1, self.2);
        }
    }
}

fn play(name: &str) {
    let file = &Path::new(FOLDER).join(name);
    let server = Running::open();
    server.call("MKCOL", "/-/dav/box", b"", &[]).expect(201);
    let names = BTreeMap::from([("HOST".to_owned(), server.address.clone())]);
    let mut player = Player { server: &server, client: vec![], asked: None, answer: None, names };
    let text = std::fs::read_to_string(file).unwrap();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let _place = Place(file, number, line);
        player.line(line);
    }
    assert!(player.asked.is_none(), "{} ends in a request", file.display());
    let store = server.store();
    let _dir = server.stop();
    assert!(engine(&store).verify().unwrap().is_sound());
}

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/dav");

#[test]
fn finder_mounts_and_lists() {
    play("finder-mount.txt");
}

#[test]
fn finder_copies_writes_again_and_renames() {
    play("finder-copy.txt");
}

#[test]
fn explorer_makes_renames_and_deletes() {
    play("explorer.txt");
}

#[test]
fn office_puts_a_temporary_file_in_the_place_of_a_document() {
    play("office.txt");
}

#[test]
fn libreoffice_keeps_its_lock_over_two_saves() {
    play("libreoffice.txt");
}

#[test]
fn each_sequence_is_played() {
    let entries = std::fs::read_dir(FOLDER).unwrap().map(|entry| entry.unwrap().file_name());
    let names = entries.map(|name| name.into_string().unwrap());
    let mut names: Vec<_> = names.filter(|name| name.ends_with(".txt")).collect();
    names.sort();
    let source = include_str!("dav_traces.rs");
    let left: Vec<_> =
        names.iter().filter(|n| !source.contains(&format!("play(\"{n}\")"))).collect();
    assert!(names.len() >= 5 && left.is_empty(), "{left:?} of {names:?}");
}
