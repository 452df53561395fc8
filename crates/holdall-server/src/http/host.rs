//! The host name whose subdomains are buckets.
//!
//! Owns: [`Domain`]. A host of another name, an address, and the name itself name no bucket: the
//! path does.

use http::{HeaderMap, Uri, header};

/// The host name, without a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Domain(String);

/// A host without its port. In brackets stands an address of IPv6, which has colons of its own.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => {
            let inside = name.contains(':') && !name.ends_with(']');
            if inside { host } else { name }
        }
        _ => host,
    }
}

impl Domain {
    /// The domain of this name; a port behind it says nothing. `None` if it is no host name.
    pub fn new(name: &str) -> Option<Self> {
        let name = without_port(name).trim_end_matches('.');
        let label = |label: &str| {
            let sound = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
            !label.is_empty() && label.bytes().all(sound)
        };
        name.split('.').all(label).then(|| Self(name.to_ascii_lowercase()))
    }

    /// It.
    pub fn name(&self) -> &str {
        &self.0
    }

    /// Whether a host without a port is the domain itself.
    pub fn is(&self, host: &str) -> bool {
        host.trim_end_matches('.').eq_ignore_ascii_case(&self.0)
    }

    /// The bucket that a host names.
    pub fn bucket(&self, host: &str) -> Option<String> {
        let host = without_port(host).trim_end_matches('.').to_ascii_lowercase();
        let bucket = host.strip_suffix(&self.0)?.strip_suffix('.')?;
        (!bucket.is_empty()).then(|| bucket.to_owned())
    }

    /// The bucket that a request's host names.
    pub fn bucket_of(&self, headers: &HeaderMap, uri: &Uri) -> Option<String> {
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        self.bucket(host.or_else(|| uri.authority().map(http::uri::Authority::as_str))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_named_below_the_domain_only() {
        let domain = Domain::new("S3.example.org:9000").unwrap();
        let bucket = |host: &str| domain.bucket(host);
        for host in ["a.b.s3.example.org", "a.b.S3.Example.org:80", "a.b.s3.example.org.:80"] {
            assert_eq!(bucket(host).as_deref(), Some("a.b"), "{host}");
        }
        for host in [
            "s3.example.org",
            "s3.example.org:9000",
            ".s3.example.org",
            "as3.example.org",
            "localhost:9000",
            "127.0.0.1:9000",
            "[::1]:9000",
            "::1",
            "",
            ":",
        ] {
            assert_eq!(bucket(host), None, "{host}");
        }
        assert!(Domain::new("a..b").is_none() && Domain::new("").is_none());
    }
}
