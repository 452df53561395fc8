//! Bytes that no client sends: whatever comes, the store stays whole and the others are served.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::Store;
use holdall_control::{Client, Control};
use proptest::prelude::*;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// What a client could send, without its first message.
const SENT: [&[&str]; 8] = [
    &[r#"{"ask":"hold"}"#, r#"{"ask":"page","page":3,"kind":3}"#, r#"{"ask":"holds"}"#],
    &[r#"{"ask":"stat"}"#, r#"{"ask":"metrics"}"#],
    &[r#"{"ask":"checkpoint"}"#, r#"{"ask":"defrag","join":true,"rate":null}"#],
    &[
        r#"{"ask":"write","wait":0,"change":{"collection":null,"change":{"do":"put","name":"6e6577","attributes":{},"size":null}}}"#,
        "=some bytes",
        r#"{"ask":"end"}"#,
    ],
    &[
        r#"{"ask":"write","wait":0,"change":{"collection":null,"change":{"do":"splice","object":{"name":"61"},"start":0,"replaced":1,"length":4}}}"#,
        "=four",
        r#"{"ask":"end"}"#,
    ],
    &[
        r#"{"ask":"write","wait":0,"change":{"collection":null,"change":{"do":"remove","keys":[{"name":"62"}],"more":true}}}"#,
        r#"{"ask":"keys","keys":[{"oid":"oid:0.1.1.1"}],"more":false}"#,
    ],
    &[
        r#"{"ask":"write","wait":5,"change":{"collection":"c","change":{"do":"rename","from":"61","to":"62"}}}"#,
    ],
    &[
        r#"{"ask":"write","wait":0,"change":{"collection":null,"change":{"do":"set_len","object":{"oid":"oid:0.0.0.1"},"length":18446744073709551615}}}"#,
    ],
];

fn framed(messages: &[&str]) -> Vec<u8> {
    let mut all = Vec::new();
    for message in [r#"{"holdall_control":2}"#].iter().chain(messages) {
        let (letter, bytes) = match message.strip_prefix('=') {
            Some(data) => (b'd', data),
            None => (b'm', *message),
        };
        all.push(letter);
        all.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
        all.extend_from_slice(bytes.as_bytes());
    }
    all
}

/// Sends bytes and takes what comes until the end.
fn send(socket: &Path, bytes: &[u8]) {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may be refused before all is sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answers = Vec::new();
    if let Err(e) = stream.read_to_end(&mut answers) {
        assert_eq!(e.kind(), std::io::ErrorKind::ConnectionReset, "it hangs");
    }
}

#[test]
fn whatever_comes_the_store_stays_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    let store = Store::create(&path).unwrap();
    store.write(|tx| tx.put("a", &[1; 50_000])).unwrap();
    let _control = Control::listen(&store, &path).unwrap();
    let socket = dir.path().join("s-control");
    for messages in SENT {
        send(&socket, &framed(messages));
    }
    assert_eq!(store.get("new").unwrap().unwrap(), b"some bytes", "unchanged they are understood");
    let case =
        (0..SENT.len(), prop::collection::vec((any::<u16>(), any::<u8>()), 0..4), any::<u16>());
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() };
    proptest!(config, |((which, changes, cut) in case)| {
        let mut bytes = framed(SENT[which]);
        for (at, byte) in changes {
            let at = usize::from(at) % bytes.len();
            bytes[at] = byte;
        }
        if cut % 3 == 0 {
            bytes.truncate(usize::from(cut) % bytes.len());
        }
        send(&socket, &bytes);
        prop_assert!(Client::connect(&path).unwrap().unwrap().metrics().is_ok());
    });
    let report = store.verify().unwrap();
    assert!(report.is_sound(), "{:?}", report.problems);
}
