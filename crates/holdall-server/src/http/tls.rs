//! TLS: a certificate from files, or one made at the start.

use crate::config::TlsConfig;
use crate::error::StartError;
use parking_lot::RwLock;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::path::Path;
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;

/// What accepts TLS connections, and may be replaced meanwhile. Clones share it.
#[derive(Clone)]
pub struct Shared(Arc<RwLock<TlsAcceptor>>);

impl Shared {
    /// Begins with an acceptor.
    pub fn new(acceptor: TlsAcceptor) -> Self {
        Self(Arc::new(RwLock::new(acceptor)))
    }

    /// The acceptor of now.
    pub fn get(&self) -> TlsAcceptor {
        self.0.read().clone()
    }

    /// Accepts further connections by another certificate.
    pub fn set(&self, acceptor: TlsAcceptor) {
        *self.0.write() = acceptor;
    }
}

type Pair = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// What accepts TLS connections, HTTP/2 and HTTP/1.1 in them.
///
/// # Errors
/// [`StartError::Tls`].
pub fn acceptor(config: &TlsConfig) -> Result<TlsAcceptor, StartError> {
    let (chain, key) = match (&config.certificate, &config.key) {
        (Some(certificate), Some(key)) => load(certificate, key)?,
        (None, None) if !config.self_signed.is_empty() => make(&config.self_signed)?,
        _ => {
            let text = "give both certificate and key, or self_signed with host names";
            return Err(StartError::Tls(text.into()));
        }
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = |e: rustls::Error| StartError::Tls(e.to_string());
    let mut server = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(tls)?;
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(server)))
}

fn load(certificate: &Path, key: &Path) -> Result<Pair, StartError> {
    let bad = |path: &Path| {
        let path = path.display().to_string();
        move |e: rustls::pki_types::pem::Error| StartError::Tls(format!("{path}: {e}"))
    };
    let chain = CertificateDer::pem_file_iter(certificate)
        .and_then(Iterator::collect)
        .map_err(bad(certificate))?;
    Ok((chain, PrivateKeyDer::from_pem_file(key).map_err(bad(key))?))
}

fn make(names: &[String]) -> Result<Pair, StartError> {
    let made = rcgen::generate_simple_self_signed(names.to_vec());
    let made = made.map_err(|e| StartError::Tls(format!("no certificate for {names:?}: {e}")))?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    Ok((vec![made.cert.der().clone()], PrivateKeyDer::Pkcs8(key)))
}
