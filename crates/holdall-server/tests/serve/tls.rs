//! TLS.

use crate::harness::Running;
use holdall_server::{Config, Grant, Limits, TlsConfig};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

fn served(tls: TlsConfig, dir: tempfile::TempDir) -> Running {
    let anonymous = vec![Grant::everything()];
    let limits = Limits { header_seconds: 1, ..Limits::default() };
    let config = Config { tls: Some(tls), anonymous, limits, ..Config::default() };
    Running::within(dir, config, &["a.holdall"])
}

/// A connection that trusts one certificate and may speak what `alpn` names.
fn connect(
    s: &Running,
    roots: RootCertStore,
    alpn: &[&[u8]],
) -> std::io::Result<StreamOwned<ClientConnection, TcpStream>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let stream = TcpStream::connect(&s.address)?;
    stream.set_read_timeout(Some(std::time::Duration::from_secs(60)))?;
    Ok(StreamOwned::new(connection, stream))
}

/// Asks for the server's health, trusting one certificate.
pub fn health(s: &Running, roots: RootCertStore) -> std::io::Result<String> {
    let mut stream = connect(s, roots, &[])?;
    stream.write_all(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    Ok(answer)
}

/// A server with a certificate, and what trusts that.
fn with_certificate() -> (Running, RootCertStore) {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = TlsConfig { certificate: Some(certificate), key: Some(key), self_signed: Vec::new() };
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    (served(tls, dir), roots)
}

#[test]
fn an_idle_connection_of_http2_is_closed_though_its_client_lives() {
    let (s, roots) = with_certificate();
    let mut stream = connect(&s, roots, &[b"h2"]).unwrap();
    // The preface, and settings of a client that leaves all as it is.
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    for _ in 0..100 {
        let mut head = [0; 9];
        if let Err(e) = stream.read_exact(&mut head) {
            let waited = [std::io::ErrorKind::WouldBlock, std::io::ErrorKind::TimedOut];
            assert!(!waited.contains(&e.kind()), "it is still open");
            return;
        }
        let len = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut body = vec![0; len as usize];
        stream.read_exact(&mut body).unwrap();
        // Settings and pings are answered, so that the client is known to be there.
        let (kind, flags) = (head[3], head[4]);
        if kind == 6 && flags == 0 {
            stream.write_all(&[&[0, 0, 8, 6, 1, 0, 0, 0, 0], &body[..]].concat()).unwrap();
        } else if kind == 4 && flags == 0 {
            stream.write_all(&[0, 0, 0, 4, 1, 0, 0, 0, 0]).unwrap();
        }
    }
    unreachable!("a hundred frames came");
}

#[test]
fn a_certificate_from_files_is_shown() {
    let (s, roots) = with_certificate();
    let answer = health(&s, roots).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok\n"), "{answer}");
}

#[test]
fn a_certificate_made_at_the_start_is_trusted_by_nobody_yet() {
    let tls = TlsConfig { certificate: None, key: None, self_signed: vec!["localhost".into()] };
    let s = served(tls, tempfile::tempdir().unwrap());
    assert!(health(&s, RootCertStore::empty()).is_err());
    // Plain HTTP is not spoken there.
    let mut stream = TcpStream::connect(&s.address).unwrap();
    stream.write_all(b"GET /-/health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1 200"));
}
