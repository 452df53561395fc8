//! The configuration file.
//!
//! Owns: [`Config`]; docs/serve.md describes each field.

use crate::error::StartError;
use holdall::ScrubOptions;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What the file says. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Users with their keys and rights.
    pub users: Vec<UserConfig>,
    /// What requests without a signature may do.
    pub anonymous: Vec<Grant>,
    /// Whether ACLs that open buckets and objects to everybody are taken, and count.
    pub public_acls: bool,
    /// The store that new buckets go to; the first one if it is not said.
    pub new_buckets: Option<PathBuf>,
    /// A host name: requests to `BUCKET.NAME` are then of that bucket.
    pub domain: Option<String>,
    /// Certificate and key.
    pub tls: Option<TlsConfig>,
    /// Limits.
    pub limits: Limits,
    /// How stores are checked meanwhile.
    pub scrub: ScrubConfig,
}

/// A user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserConfig {
    /// The access key.
    pub access_key: String,
    /// The secret key.
    pub secret_key: Option<String>,
    /// A file that holds the secret key, in place of `secret_key`.
    pub secret_key_file: Option<PathBuf>,
    /// What the user may do.
    #[serde(default)]
    pub grants: Vec<Grant>,
}

impl UserConfig {
    pub(crate) fn secret(&self) -> Result<String, StartError> {
        match (&self.secret_key, &self.secret_key_file) {
            (Some(secret), None) => Ok(secret.clone()),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path)
                    .map_err(StartError::io(format!("read {}", path.display())))?;
                Ok(text.trim().to_owned())
            }
            _ => {
                let text = "needs either secret_key or secret_key_file";
                Err(StartError::Config(format!("user {:?} {text}", self.access_key)))
            }
        }
    }
}

/// A right on a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Get objects and what is known of them.
    Read,
    /// See names.
    List,
    /// Put, edit and delete objects.
    Write,
    /// Make and delete the bucket.
    Admin,
}

/// Rights on buckets.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// A bucket's name; with a star at its end, all names that begin so.
    pub bucket: String,
    /// What is allowed there.
    pub rights: Vec<Right>,
}

impl Grant {
    /// All rights on all buckets.
    pub fn everything() -> Self {
        let rights = vec![Right::Read, Right::List, Right::Write, Right::Admin];
        Self { bucket: "*".into(), rights }
    }

    pub(crate) fn matches(&self, bucket: &str) -> bool {
        match self.bucket.strip_suffix('*') {
            Some(prefix) => bucket.starts_with(prefix),
            None => self.bucket == bucket,
        }
    }
}

/// Where TLS keys come from.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsConfig {
    /// A PEM file with the certificate and those that it rests on.
    pub certificate: Option<PathBuf>,
    /// A PEM file with its key.
    pub key: Option<PathBuf>,
    /// In their place: host names for which the server makes a certificate at its start, which
    /// nobody trusts unless configured to.
    #[serde(default)]
    pub self_signed: Vec<String>,
}

/// How all of a store is read and held against its checksums now and then.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScrubConfig {
    /// Days from one pass to the next; 0: never.
    pub days: u64,
    /// Bytes a second that a pass reads at most.
    pub rate: u64,
}

impl Default for ScrubConfig {
    fn default() -> Self {
        let usual = ScrubOptions::default();
        Self { days: usual.period.as_secs() / DAY, rate: usual.rate }
    }
}

impl ScrubConfig {
    /// For the engine; `None`: never.
    pub(crate) fn options(&self) -> Option<ScrubOptions> {
        let period = Duration::from_secs(self.days.saturating_mul(DAY));
        (self.days > 0).then_some(ScrubOptions { period, rate: self.rate })
    }
}

const DAY: u64 = 24 * 3600;

/// What one client may take.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections at a time; further ones wait.
    pub connections: usize,
    /// Bytes of an object put at once, or of a part.
    pub body_bytes: u64,
    /// Bytes of a request's head.
    pub header_bytes: usize,
    /// Bytes of XML and JSON in a request.
    pub xml_bytes: usize,
    /// Seconds in which a request's head must be complete, and for which a connection may be idle.
    pub header_seconds: u64,
    /// Seconds without a byte after which a body is given up, and a request that waits for changes
    /// of others.
    pub idle_seconds: u64,
    /// Bodies over 1 MiB taken in at a time; one that does not come on makes room for one that
    /// waits. Each takes some 2 MiB of memory.
    pub streams: usize,
    /// Unfinished uploads of a bucket.
    pub uploads: usize,
    /// Days after which an unfinished upload is removed.
    pub upload_days: u64,
    /// Seconds that running requests get when the server stops.
    pub stop_seconds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 1024,
            body_bytes: 5 << 40,
            header_bytes: 64 << 10,
            xml_bytes: 4 << 20,
            header_seconds: 10,
            idle_seconds: 60,
            streams: 64,
            uploads: 10_000,
            upload_days: 7,
            stop_seconds: 30,
        }
    }
}

impl Limits {
    /// How long a body may rest.
    pub fn idle(&self) -> Duration {
        Duration::from_secs(self.idle_seconds)
    }
}

/// Line and column of a byte of a text, both from 1.
fn place_in(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[start..].chars().count() + 1)
}

/// A message of several lines in one.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// [`StartError::Io`]; [`StartError::Config`] with file, line and column of what cannot be
    /// understood.
    pub fn load(path: &Path) -> Result<Self, StartError> {
        let text = std::fs::read_to_string(path)
            .map_err(StartError::io(format!("read {}", path.display())))?;
        toml::from_str(&text).map_err(|e| {
            // Not the line itself: it may hold a key.
            let (line, column) = e.span().map_or((1, 1), |span| place_in(&text, span.start));
            let path = path.display();
            StartError::Config(format!("{path}:{line}:{column}: {}", one_line(e.message())))
        })
    }
}
