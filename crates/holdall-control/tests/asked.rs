//! A process that has a store open, and others that ask it: here on threads of one process, which
//! the socket cannot tell.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Store, Wait, WriteOptions};
use holdall_control::{Change, Client, Control, Keys, Name, Object, Transaction, Written};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{fs, thread};

struct Open {
    dir: tempfile::TempDir,
    path: PathBuf,
    store: Store,
    control: Option<Control>,
}

fn open() -> Open {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.holdall");
    let store = Store::create(&path).unwrap();
    let control = Some(Control::listen(&store, &path).unwrap());
    Open { dir, path, store, control }
}

impl Open {
    fn socket(&self) -> PathBuf {
        self.dir.path().join("s.holdall-control")
    }

    fn client(&self) -> Client {
        Client::connect(&self.path).unwrap().unwrap()
    }

    /// A stream on which the first messages were exchanged.
    fn raw(&self) -> UnixStream {
        let mut stream = UnixStream::connect(self.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        say(&mut stream, r#"{"holdall_control":2}"#);
        assert!(hear(&mut stream).unwrap().contains("\"holdall_control\":2"));
        stream
    }
}

fn say(stream: &mut UnixStream, message: &str) {
    let length = u32::try_from(message.len()).unwrap().to_le_bytes();
    stream.write_all(&[b"m", &length[..], message.as_bytes()].concat()).unwrap();
}

/// The next frame's bytes; `None` at the end.
fn hear(stream: &mut UnixStream) -> Option<String> {
    let mut head = [0; 5];
    stream.read_exact(&mut head).ok()?;
    let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    let mut bytes = vec![0; length as usize];
    stream.read_exact(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn put(name: &str) -> Transaction {
    let (name, attributes) = (Name(name.into()), Default::default());
    let change = Change::Put { name, attributes, size: None };
    Transaction { collection: None, change }
}

fn plain(change: Change) -> Transaction {
    Transaction { collection: None, change }
}

fn object(name: &str) -> Object {
    Object::Name(Name(name.into()))
}

fn write(client: &mut Client, transaction: Transaction) -> holdall::Result<Written> {
    client.write(transaction, Wait::Forever, io::empty())
}

#[test]
fn changes_are_made_in_the_process_that_writes() {
    let open = open();
    let mut client = open.client();
    let bytes: Vec<u8> = (0..6_000_000_u32).map(|i| (i % 251) as u8).collect();
    for (name, length) in [("empty", 0), ("small", 11), ("large", bytes.len())] {
        let data = Cursor::new(bytes[..length].to_vec());
        let written = client.write(put(name), Wait::Forever, data).unwrap();
        assert_eq!(written.size, Some(length as u64));
        assert_eq!(open.store.get(name).unwrap().unwrap(), bytes[..length]);
        assert_eq!(open.store.metadata(name).unwrap().oid, written.oid.unwrap());
    }
    let splice = |start, replaced, length| Change::Splice {
        object: object("small"),
        start,
        replaced,
        length,
    };
    for (change, data, after) in [
        (splice(Some(0), 0, 2), "<<", &b"<<\x00\x01\x02"[..]),
        (splice(Some(2), 2, 2), "ab", b"<<ab\x02"),
    ] {
        client.write(plain(change), Wait::Forever, Cursor::new(data)).unwrap();
        assert_eq!(open.store.get("small").unwrap().unwrap()[..5], *after);
    }
    let appended = client.write(plain(splice(None, 0, 1)), Wait::Forever, Cursor::new("!"));
    assert_eq!(appended.unwrap().size, Some(14));
    let (from, to) = (Name("small".into()), Name("tiny".into()));
    write(&mut client, plain(Change::Rename { from, to: to.clone() })).unwrap();
    let cut = Change::DeleteRange { object: object("tiny"), start: Some(2), end: Some(13) };
    assert_eq!(write(&mut client, plain(cut)).unwrap().size, Some(3));
    let to = Name("copy".into());
    write(&mut client, plain(Change::Copy { from: object("tiny"), to })).unwrap();
    let shorter = Change::SetLen { object: object("tiny"), length: 2 };
    write(&mut client, plain(shorter)).unwrap();
    assert_eq!(open.store.get("copy").unwrap().unwrap(), b"<<!");
    assert_eq!(open.store.get("tiny").unwrap().unwrap(), b"<<");
    client.checkpoint().unwrap();
    let report =
        open.client().defrag(&Default::default(), &mut |_| std::ops::ControlFlow::Continue(()));
    assert!(!report.unwrap().stopped);
    assert_eq!(client.stat().unwrap().objects, 4);
    assert!(client.metrics().unwrap().group_commits.count() >= 9);
    assert!(open.store.verify().unwrap().is_sound());
}

#[test]
fn a_removal_of_many_happens_whole_or_not_at_all() {
    let open = open();
    let names: Vec<String> = (0..2_000).map(|i| format!("n{i:04}")).collect();
    open.store.write(|tx| names.iter().try_for_each(|n| tx.put(n, b"1").map(drop))).unwrap();
    let keys = |more: Option<&str>| {
        let all = names.iter().map(String::as_str).chain(more);
        plain(Change::Remove(Keys { keys: all.map(object).collect(), more: false }))
    };
    let mut client = open.client();
    let missing = write(&mut client, keys(Some("missing"))).unwrap_err();
    assert!(matches!(missing, Error::NotFound(_)), "{missing}");
    assert_eq!(open.store.stat().unwrap().objects, 2_000);
    write(&mut client, keys(None)).unwrap();
    assert_eq!(open.store.stat().unwrap().objects, 0);
}

#[test]
fn a_refusal_names_the_cause_and_leaves_no_trace() {
    let open = open();
    open.store.write(|tx| tx.put("a", b"1234")).unwrap();
    let mut client = open.client();
    let range = Change::DeleteRange { object: object("a"), start: Some(2), end: Some(9) };
    let range = write(&mut client, plain(range)).unwrap_err();
    assert!(matches!(range, Error::Range { start: 2, end: 9, size: 4, .. }), "{range}");
    let other = Change::SetLen { object: object("a"), length: 1 };
    let other = Transaction { collection: Some("none".into()), change: other };
    assert!(matches!(write(&mut client, other).unwrap_err(), Error::NotFound(_)));
    assert_eq!(open.store.read().unwrap().collections().unwrap(), ["default"]);
    let long = write(&mut client, put(&"x".repeat(2_000))).unwrap_err();
    assert!(matches!(long, Error::Invalid(_)), "{long}");
    // Data that fails on its way.
    struct Breaks(bool);
    impl Read for Breaks {
        fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
            if std::mem::replace(&mut self.0, true) {
                return Err(io::Error::other("the disk is gone"));
            }
            buf.fill(1);
            Ok(buf.len())
        }
    }
    let broken = open.client().write(put("b"), Wait::Forever, Breaks(false)).unwrap_err();
    assert!(broken.to_string().contains("the disk is gone"), "{broken}");
    // Less than was announced.
    let change = Change::Splice { object: object("a"), start: Some(0), replaced: 0, length: 9 };
    let short = open.client().write(plain(change), Wait::Forever, Cursor::new("12345678"));
    assert!(matches!(short.unwrap_err(), Error::Invalid(_)));
    assert_eq!(open.store.get("a").unwrap().unwrap(), b"1234");
    assert_eq!(open.store.get("b").unwrap(), None);
}

#[test]
fn a_held_snapshot_is_read_here_while_the_writer_goes_on() {
    let open = open();
    let names: Vec<String> = (0..400).map(|i| format!("n{i:03}")).collect();
    let bytes = |round: u8, i: usize| vec![round; 100 + 200 * i];
    let fill = |round: u8| {
        for part in 0..8 {
            let some = names.iter().enumerate().filter(|(i, _)| i % 8 == part);
            let put = |tx: &mut holdall::WriteTx| -> holdall::Result<()> {
                some.clone().try_for_each(|(i, n)| tx.put(n, &bytes(round, i)).map(drop))
            };
            open.store.write(put).unwrap();
        }
    };
    fill(1);
    open.store.checkpoint().unwrap();
    fill(2);
    let held = open.client().hold(&Options::default().cache_bytes(1 << 20)).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 3.. {
                fill(round % 200);
                if round % 3 == 0 {
                    open.store.checkpoint().unwrap();
                }
                if stop.load(SeqCst) && round > 12 {
                    return;
                }
            }
        });
        for _ in 0..4 {
            let reader = held.read().unwrap();
            for (i, name) in names.iter().enumerate() {
                assert_eq!(reader.get(name).unwrap().unwrap(), bytes(2, i), "{name}");
            }
            assert_eq!(reader.names("").count(), 400);
            let report = held.verify().unwrap();
            assert!(report.is_sound(), "{:?}", report.problems);
            assert!(held.frag(&mut |_, _| ()).is_ok());
            assert_eq!(held.stat().unwrap().objects, 400);
        }
        stop.store(true, SeqCst);
    });
    assert!(open.store.verify().unwrap().is_sound());
    assert!(matches!(held.write(|tx| tx.put("x", b"")), Err(Error::ReadOnly)));
}

#[test]
fn who_holds_a_snapshot_notices_that_the_writer_ended() {
    let mut open = open();
    let bytes = vec![7; 100_000];
    open.store.write(|tx| tx.put("a", &bytes)).unwrap();
    let held = open.client().hold(&Options::default()).unwrap();
    assert_eq!(held.get("a").unwrap().unwrap(), bytes);
    drop(open.control.take());
    assert!(!open.socket().exists());
    let Open { store, path, .. } = &open;
    for round in 0..20 {
        store.write(|tx| tx.put("a", &vec![round; 100_000])).unwrap();
        store.checkpoint().unwrap();
    }
    match held.read().unwrap().get("a") {
        Err(Error::SnapshotTooOld { .. }) => {}
        other => assert_eq!(other.unwrap().unwrap(), bytes),
    }
    assert!(Client::connect(path).unwrap().is_none());
}

#[test]
fn a_wait_ends_with_its_limit_and_with_the_one_who_waits() {
    let open = open();
    let mut tx = open.store.begin_write_with(&WriteOptions::default()).unwrap();
    tx.put("a", b"1").unwrap();
    let begun = Instant::now();
    let busy = open.client().write(put("b"), Wait::For(Duration::from_millis(200)), io::empty());
    assert!(matches!(busy.unwrap_err(), Error::Busy(_)));
    assert!(begun.elapsed() < Duration::from_secs(5));
    let mut gone = open.raw();
    let rename = r#"{"ask":"write","wait":null,"change":{"collection":null,"change":
        {"do":"set_len","object":{"name":"61"},"length":0}}}"#;
    say(&mut gone, rename);
    thread::sleep(Duration::from_millis(100));
    drop(gone);
    thread::sleep(Duration::from_millis(300));
    tx.commit().unwrap();
    thread::sleep(Duration::from_millis(100));
    assert_eq!(open.store.get("a").unwrap().unwrap(), b"1", "nobody waited for that any more");
}

#[test]
fn others_write_while_data_stalls() {
    let open = open();
    open.store.write(|tx| tx.put("a", b"1")).unwrap();
    let mut stalled = open.raw();
    say(
        &mut stalled,
        r#"{"ask":"write","wait":null,"change":{"collection":null,"change":{"do":"splice",
        "object":{"name":"61"},"start":0,"replaced":0,"length":1000}}}"#,
    );
    assert!(hear(&mut stalled).unwrap().contains("go"));
    stalled.write_all(&[b"d", &5_u32.to_le_bytes()[..], b"12345"].concat()).unwrap();
    let begun = Instant::now();
    open.store.write(|tx| tx.put("b", b"2")).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5));
    drop(stalled);
    assert_eq!(open.store.get("a").unwrap().unwrap(), b"1");
}

#[test]
fn who_does_not_read_is_left() {
    let open = open();
    open.store.write(|tx| tx.put("a", b"1")).unwrap();
    let mut deaf = open.raw();
    deaf.set_nonblocking(true).unwrap();
    let ask = br#"{"ask":"metrics"}"#;
    let frame = [b"m", &(ask.len() as u32).to_le_bytes()[..], ask].concat();
    while deaf.write_all(&frame).is_ok() {}
    // The others are served, and the store closes without waiting for it.
    assert!(open.client().metrics().is_ok());
    let begun = Instant::now();
    drop(open.control);
    open.store.close().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn what_is_not_understood_is_refused() {
    let open = open();
    for text in [
        r#"{"ask":"explode"}"#,
        r#"{"ask":"hold","more":1}"#,
        r#"{"ask":"page","page":1}"#,
        r#"{"ask":"write","wait":null,"change":{"collection":null,"change":{"do":"put"}}}"#,
        "no json",
    ] {
        let mut stream = open.raw();
        say(&mut stream, text);
        let said = hear(&mut stream).unwrap();
        assert!(said.contains("refused") && said.contains("not understood"), "{text}: {said}");
        assert_eq!(hear(&mut stream), None, "{text}");
    }
    for (text, part) in [
        (r#"{"ask":"page","page":1,"kind":7}"#, "no snapshot is held"),
        (r#"{"ask":"end"}"#, "nothing was begun"),
        (r#"{"ask":"keys","keys":[],"more":false}"#, "nothing was begun"),
    ] {
        let mut stream = open.raw();
        say(&mut stream, text);
        assert!(hear(&mut stream).unwrap().contains(part), "{text}");
        say(&mut stream, r#"{"ask":"hold"}"#);
        assert!(hear(&mut stream).unwrap().contains("held"));
        say(&mut stream, r#"{"ask":"page","page":1,"kind":99}"#);
        assert!(hear(&mut stream).unwrap().contains("no page is of kind 99"));
        say(&mut stream, r#"{"ask":"page","page":18446744073709551615,"kind":7}"#);
        assert!(hear(&mut stream).unwrap().contains("refused"));
    }
    for bytes in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"m\xff\xff\xff\xff", b"d\x01\0\0\0x", &[0; 64]] {
        let mut stream = UnixStream::connect(open.socket()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(bytes).unwrap();
        assert_eq!(hear(&mut stream), None);
    }
    let mut newer = UnixStream::connect(open.socket()).unwrap();
    say(&mut newer, r#"{"holdall_control":3}"#);
    assert!(hear(&mut newer).unwrap().contains("\"holdall_control\":2"));
    assert_eq!(hear(&mut newer), None);
    open.store.write(|tx| tx.put("a", b"1")).unwrap();
}

#[test]
fn another_version_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    drop(Store::create(&path).unwrap());
    let listener = UnixListener::bind(dir.path().join("s-control")).unwrap();
    thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        hear(&mut stream).unwrap();
        say(&mut stream, r#"{"holdall_control":7,"process":12,"store":"00"}"#);
    });
    let e = Client::connect(&path).unwrap_err();
    assert!(matches!(e, Error::Unsupported { .. }) && e.to_string().contains("version 7"), "{e}");
}

#[test]
fn the_socket_is_its_owners_and_goes_with_the_store() {
    let mut open = open();
    let data = fs::symlink_metadata(open.socket()).unwrap();
    assert_eq!(data.permissions().mode() & 0o777, 0o600);
    let twice = Control::listen(&open.store, &open.path).unwrap_err();
    assert!(matches!(twice, Error::Exists(_)), "{twice}");
    let reading = Store::open_read_only(&open.path).unwrap();
    assert!(matches!(Control::listen(&reading, &open.path).unwrap_err(), Error::ReadOnly));
    let other = open.dir.path().join("other");
    drop(Store::create(&other).unwrap());
    assert!(matches!(Control::listen(&open.store, &other).unwrap_err(), Error::Invalid(_)));
    drop(open.control.take());
    assert!(!open.socket().exists());
    // One that a killed process left.
    drop(UnixListener::bind(open.socket()).unwrap());
    assert!(Client::connect(&open.path).unwrap().is_none());
    open.control = Some(Control::listen(&open.store, &open.path).unwrap());
    assert!(open.client().metrics().is_ok());
    // Another that took its place stays.
    fs::remove_file(open.socket()).unwrap();
    let _other = UnixListener::bind(open.socket()).unwrap();
    drop(open.control.take());
    assert!(open.socket().exists());
}

fn refuses(store: &Store, path: &Path) {
    let e = Control::listen(store, path).unwrap_err();
    assert!(matches!(e, Error::Invalid(_)) && e.to_string().contains("is no socket"), "{e}");
    let e = Client::connect(path).unwrap_err();
    assert!(matches!(e, Error::Invalid(_)) && e.to_string().contains("is no socket"), "{e}");
}

#[test]
fn what_was_planted_is_left_alone() {
    let mut open = open();
    drop(open.control.take());
    let (socket, target) = (open.socket(), open.dir.path().join("target"));
    fs::write(&socket, "mine").unwrap();
    refuses(&open.store, &open.path);
    assert_eq!(fs::read(&socket).unwrap(), b"mine");
    fs::remove_file(&socket).unwrap();
    let _elsewhere = UnixListener::bind(&target).unwrap();
    for to in ["target", "nowhere"] {
        symlink(to, &socket).unwrap();
        refuses(&open.store, &open.path);
        assert!(socket.is_symlink());
        fs::remove_file(&socket).unwrap();
    }
    assert!(target.exists() && !open.dir.path().join("nowhere").exists());
    fs::create_dir(&socket).unwrap();
    refuses(&open.store, &open.path);
    assert!(
        open.dir.path().read_dir().unwrap().all(|entry| {
            !entry.unwrap().file_name().to_string_lossy().starts_with(".holdall-")
        })
    );
}

#[test]
fn a_path_may_be_longer_than_an_address() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join("d".repeat(150)).join("e".repeat(150));
    fs::create_dir_all(&deep).unwrap();
    let path = deep.join("s".repeat(200));
    let store = Store::create(&path).unwrap();
    let _control = Control::listen(&store, &path).unwrap();
    let link = dir.path().join("link");
    symlink(&path, &link).unwrap();
    for way in [&path, &link] {
        assert!(Client::connect(way).unwrap().unwrap().metrics().is_ok());
    }
}

#[test]
fn many_ask_at_once() {
    let open = open();
    thread::scope(|scope| {
        for i in 0..100 {
            let open = &open;
            scope.spawn(move || {
                let mut client = open.client();
                let data = Cursor::new(vec![i as u8; 1000]);
                client.write(put(&format!("n{i}")), Wait::Forever, data).unwrap();
            });
        }
    });
    assert_eq!(open.store.stat().unwrap().objects, 100);
}
