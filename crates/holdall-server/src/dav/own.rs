//! Addresses in headers: which are this server's, and the paths that they name.
//!
//! Owns: [`Own`]. An address is this server's that names the host and port to which its request was
//! sent, or the configured domain. Its scheme says nothing: TLS may end before the server does.

use crate::dav::error::{Result, refusal};
use crate::dav::path;
use crate::dav::path::Path;
use crate::http::{header::single, host::Domain, spelling::digits};
use http::request::Parts;
use http::{StatusCode, Uri};
use std::sync::Arc;

/// By which names a request's client knows the server.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// Host and port as the request has them.
    host: Option<String>,
    domain: Option<Arc<Domain>>,
}

/// A host in small letters, and the port; `None` if the port is none.
fn split(authority: &str, default: u64) -> Option<(String, u64)> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    // In brackets stands an address of IPv6, which has colons of its own.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    let port = if port.is_empty() { default } else { digits(port)? };
    Some((name.trim_end_matches('.').to_ascii_lowercase(), port))
}

impl Own {
    /// Those of a request.
    ///
    /// # Errors
    /// Status 400 if its address names another host than its header Host.
    pub fn new(parts: &Parts, domain: Option<Arc<Domain>>) -> Result<Self> {
        let host = single(&parts.headers, "host")?.map(str::to_owned);
        let authority = parts.uri.authority().map(|authority| authority.as_str().to_owned());
        let own = Self { host: host.or_else(|| authority.clone()), domain };
        let scheme = parts.uri.scheme_str().unwrap_or("http");
        if authority.is_some_and(|authority| !own.names(scheme, &authority)) {
            let text = "the address of the request is not its host's";
            return Err(refusal(StatusCode::BAD_REQUEST, text));
        }
        Ok(own)
    }

    /// Whether an address's host is this server.
    fn names(&self, scheme: &str, authority: &str) -> bool {
        let default = match scheme.to_ascii_lowercase().as_str() {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        let Some(named) = split(authority, default) else { return false };
        let own = self.host.as_deref().and_then(|host| split(host, default));
        own.as_ref() == Some(&named)
            || self.domain.as_ref().is_some_and(|domain| domain.is(&named.0))
    }

    /// The path that an address names, as those of the headers Destination and If.
    ///
    /// # Errors
    /// Status 400 for what is no path, or has a query or a fragment. Status 502 if it is not of
    /// this server.
    pub fn path(&self, text: &str) -> Result<Path> {
        if text.contains(['?', '#']) {
            return Err(refusal(
                StatusCode::BAD_REQUEST,
                format!("{text:?}: write ? and # as %3F and %23"),
            ));
        }
        let bad = || refusal(StatusCode::BAD_REQUEST, format!("{text:?} is no address"));
        let uri: Uri = text.parse().map_err(|_| bad())?;
        match (uri.scheme_str(), uri.authority()) {
            (None, None) => {}
            (Some(scheme), Some(authority)) if self.names(scheme, authority.as_str()) => {}
            (Some(_), Some(_)) => {
                let text = format!("{text} is on another server; nothing is sent there");
                return Err(refusal(StatusCode::BAD_GATEWAY, text));
            }
            _ => return Err(bad()),
        }
        Ok(path::parse(uri.path())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own(host: &str) -> Own {
        let domain = Domain::new("dav.example.org").map(Arc::new);
        Own { host: Some(host.to_owned()), domain }
    }

    #[test]
    fn an_address_is_of_the_server_that_its_request_went_to() {
        let status = |host: &str, text: &str| match own(host).path(text) {
            Ok(path) => {
                assert_eq!(path.as_bytes(), b"/c/a");
                200
            }
            Err(e) => e.status.as_u16(),
        };
        for (host, text) in [
            ("h:9000", "/-/dav/c/a"),
            ("h:9000", "http://h:9000/-/dav/c/a"),
            ("h:9000", "HTTPS://H.:9000/-/dav/c/a"),
            ("h", "https://h/-/dav/c/a"),
            ("h", "https://h:443/-/dav/c/a"),
            ("h:80", "http://h/-/dav/c/a"),
            ("[::1]:9000", "http://[::1]:9000/-/dav/c/a"),
            ("[::1]", "http://[::1]/-/dav/c/a"),
            ("h", "https://dav.example.org/-/dav/c/a"),
        ] {
            assert_eq!(status(host, text), 200, "{host} {text}");
        }
        for (host, text) in [
            ("h:9000", "http://h/-/dav/c/a"),
            ("h:9000", "http://h:9001/-/dav/c/a"),
            ("h:9000", "http://other:9000/-/dav/c/a"),
            ("h:9000", "ftp://h:9000/-/dav/c/a"),
            ("h", "http://h@other/-/dav/c/a"),
            ("h", "http://a.dav.example.org/-/dav/c/a"),
        ] {
            assert_eq!(status(host, text), 502, "{host} {text}");
        }
        for text in ["", "c/a", "//h/-/dav/c/a", "/c/a", "/-/dav/c/a?x", "/-/dav/c/a#", "http://h"]
        {
            assert_eq!(status("h", text), 400, "{text}");
        }
    }
}
