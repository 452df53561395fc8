//! TLS.

use crate::harness::Running;
use holdall_server::{Config, Grant, TlsConfig};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

fn served(tls: TlsConfig, dir: tempfile::TempDir) -> Running {
    let anonymous = vec![Grant::everything()];
    let config = Config { tls: Some(tls), anonymous, ..Config::default() };
    Running::within(dir, config, &["a.holdall"])
}

/// Asks for the server's health, trusting one certificate.
fn health(s: &Running, roots: RootCertStore) -> std::io::Result<String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(&s.address)?);
    stream.write_all(b"GET /-/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer);
    Ok(answer)
}

#[test]
fn a_certificate_from_files_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let (certificate, key) = (dir.path().join("cert.pem"), dir.path().join("key.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = TlsConfig { certificate: Some(certificate), key: Some(key), self_signed: Vec::new() };
    let s = served(tls, dir);
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
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
