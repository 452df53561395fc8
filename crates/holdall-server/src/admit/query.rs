//! The parameters of a request: taken apart, and those that stand for headers turned into them.
//!
//! Owns: [`Query`]. Clients that sign an address put into it what they would send as headers.

use crate::error::custom;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use s3s::{S3Error, S3Result, s3_error};

/// What signs an address.
const SIGNS: [&str; 7] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Date",
    "X-Amz-Expires",
    "X-Amz-Security-Token",
    "X-Amz-SignedHeaders",
    "X-Amz-Signature",
];
/// The digest of a body in an address. All that it may say is that there is none.
const BODY: &str = "X-Amz-Content-Sha256";

/// Checksums of no bytes. An address with one of them was signed by a client that did not know the
/// body: the SDK for JavaScript writes them into each address to put to.
const OF_NOTHING: [(&str, &str); 5] = [
    ("x-amz-checksum-crc32", "AAAAAA=="),
    ("x-amz-checksum-crc32c", "AAAAAA=="),
    ("x-amz-checksum-crc64nvme", "AAAAAAAAAAA="),
    ("x-amz-checksum-sha1", "2jmj7l5rSw0yVb/vlWAYkK/YBwk="),
    ("x-amz-checksum-sha256", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
];

/// The parameters of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query {
    /// Those of the operation.
    pub pairs: Vec<(String, String)>,
    /// Those that stand for headers.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Whether the address is signed.
    pub is_signed: bool,
}

fn decoded(text: &str) -> S3Result<String> {
    let spaced = text.replace('+', " ");
    let decoded = percent_decode_str(&spaced).decode_utf8().map(std::borrow::Cow::into_owned);
    decoded.map_err(|_| s3_error!(InvalidURI, "the parameter {text:?} is not UTF-8"))
}

fn pairs(query: &str) -> impl Iterator<Item = (&str, &str)> {
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")))
}

/// Whether a parameter of this name stands for a header.
fn is_header(name: &str) -> bool {
    name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"))
}

impl Query {
    /// Those of an address.
    ///
    /// # Errors
    /// InvalidURI; InvalidArgument for one that is there twice, which two readers would understand
    /// in two ways.
    pub fn of(uri: &Uri) -> S3Result<Self> {
        let mut query = Self::default();
        let mut names = Vec::new();
        for (name, value) in pairs(uri.query().unwrap_or_default()) {
            let (name, value) = (decoded(name)?, decoded(value)?);
            if names.contains(&name) {
                return Err(s3_error!(InvalidArgument, "the parameter {name} is there twice"));
            }
            names.push(name.clone());
            if SIGNS.contains(&name.as_str()) {
                query.is_signed |= name == "X-Amz-Signature";
            } else if name == BODY {
                if value != "UNSIGNED-PAYLOAD" {
                    return Err(s3_error!(NotImplemented, "{BODY} in an address is a header"));
                }
            } else if is_header(&name) {
                let lower = name.to_ascii_lowercase();
                if OF_NOTHING.contains(&(lower.as_str(), value.as_str())) {
                    continue;
                }
                let header = HeaderName::from_bytes(lower.as_bytes()).ok();
                // Values of metadata may be any text, which a header holds as bytes.
                let header = header.zip(HeaderValue::from_bytes(value.as_bytes()).ok());
                let bad = || s3_error!(InvalidArgument, "the parameter {name} is no header");
                query.headers.push(header.ok_or_else(bad)?);
            } else {
                query.pairs.push((name, value));
            }
        }
        Ok(query)
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Adds those that stand for headers to the headers.
    ///
    /// # Errors
    /// InvalidRequest where the request is not signed, so that nobody answers for the address, or
    /// where a header says something else.
    pub fn add_to(&self, headers: &mut HeaderMap) -> S3Result<()> {
        if !self.headers.is_empty()
            && !self.is_signed
            && !headers.contains_key(header::AUTHORIZATION)
        {
            let text = "send x-amz- parameters as headers, or sign the address that holds them";
            return Err(custom("InvalidRequest", StatusCode::BAD_REQUEST, text));
        }
        for (name, value) in &self.headers {
            if headers.get(name).is_some_and(|there| there != value) {
                return Err(other(name));
            }
            headers.insert(name.clone(), value.clone());
        }
        Ok(())
    }
}

fn other(name: &HeaderName) -> S3Error {
    s3_error!(InvalidRequest, "{name} is in the address and, with another value, in a header")
}

/// An address without what signs it and what stands for headers.
pub fn without_headers(uri: &Uri) -> S3Result<Uri> {
    let own = |(name, _): &(&str, &str)| !decoded(name).is_ok_and(|name| is_header(&name));
    let kept: Vec<String> = pairs(uri.query().unwrap_or_default())
        .filter(own)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    let text = match kept.is_empty() {
        true => uri.path().to_owned(),
        false => format!("{}?{}", uri.path(), kept.join("&")),
    };
    text.parse().map_err(|_| s3_error!(InvalidURI, "the address cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(query: &str) -> S3Result<Query> {
        Query::of(&format!("/b/k?{query}").parse().unwrap())
    }

    #[test]
    fn parameters_that_stand_for_headers_become_them() {
        let query = of("x-id=PutObject&X-Amz-Meta-a=1%2B2&x-amz-tagging=a%3D1&X-Amz-Date=1&\
                        X-Amz-Signature=00&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD")
        .unwrap();
        assert_eq!(query.pairs, [("x-id".into(), "PutObject".into())]);
        let mut headers = HeaderMap::new();
        query.add_to(&mut headers).unwrap();
        assert_eq!(headers["x-amz-meta-a"], "1+2");
        assert_eq!(headers["x-amz-tagging"], "a=1");
        assert_eq!(headers.len(), 2);
        headers.insert("x-amz-meta-a", HeaderValue::from_static("3"));
        assert!(query.add_to(&mut headers).is_err());
        assert!(of("x-amz-meta-a=1").unwrap().add_to(&mut HeaderMap::new()).is_err());
        assert!(of("X-Amz-Content-Sha256=00").is_err());
        assert!(of("acl&a%63l").is_err());
        let rest = without_headers(&"/b/k?acl&X-Amz-Date=1&x-amz-meta-a=2&a=%26".parse().unwrap());
        assert_eq!(rest.unwrap(), "/b/k?acl=&a=%26");
    }
}
