//! Signed request lines.
//!
//! All servers get the same: SigV4 in the query (presigned), the body unsigned. A line for a key
//! can be signed before the clock runs, so that the generator has least to do.

use anyhow::{Result, anyhow};
use http::Uri;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusty_s3::Method;
use std::net::SocketAddr;

/// The access key that all servers are started with.
pub const ACCESS_KEY: &str = "measuring";
/// Its secret key.
pub const SECRET_KEY: &str = "measuring-secret";
/// The region that all servers are in.
pub const REGION: &str = "us-east-1";
/// The bucket.
pub const BUCKET: &str = "bench";

/// What stays as it is in a path.
const PATH: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Signs for one server.
#[derive(Debug, Clone)]
pub struct Signer {
    address: SocketAddr,
}

impl Signer {
    /// For the server that listens there.
    pub fn new(address: SocketAddr) -> Self {
        Self { address }
    }

    /// Path and query of a request for `path`, which begins with a slash; `query` is ordered by
    /// name. Holds for an hour.
    ///
    /// # Errors
    /// A path that is none.
    pub fn line(&self, method: Method, path: &str, query: &[(&str, &str)]) -> Result<Uri> {
        let path = utf8_percent_encode(path, PATH);
        let url = format!("http://{}{path}", self.address).parse()?;
        let signed = rusty_s3::signing::sign(
            &jiff::Timestamp::now(),
            method,
            url,
            ACCESS_KEY,
            SECRET_KEY,
            None,
            REGION,
            3600,
            query.iter().copied(),
            std::iter::empty(),
        );
        let line = format!("{}?{}", signed.path(), signed.query().unwrap_or_default());
        line.parse().map_err(|e| anyhow!("{line}: {e}"))
    }

    /// As [`Signer::line`], for an object of the bucket.
    ///
    /// # Errors
    /// As [`Signer::line`].
    pub fn object(&self, method: Method, key: &str, query: &[(&str, &str)]) -> Result<Uri> {
        self.line(method, &format!("/{BUCKET}/{key}"), query)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_of_the_path_and_signed() {
        let signer = Signer::new("127.0.0.1:9000".parse().unwrap());
        let uri = signer.object(Method::Get, "a b/c", &[("x", "1")]).unwrap();
        assert_eq!(uri.path(), "/bench/a%20b/c");
        let query = uri.query().unwrap();
        assert!(query.contains("X-Amz-Signature=") && query.contains("x=1"), "{query}");
        assert_eq!(signer.line(Method::Get, "/", &[]).unwrap().path(), "/");
        let put = signer.object(Method::Put, "a b/c", &[("x", "1")]).unwrap();
        assert_ne!(put.query(), Some(query), "the method is signed");
    }
}
