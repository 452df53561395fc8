//! The parameters of a request: taken apart, and those that stand for headers turned into them.
//!
//! Owns: [`Query`]. Clients that sign an address put into it what they would send as headers.

use super::operations::Operation;
use crate::http::spelling::{digits, pairs, sound_pairs};
use crate::s3::error::custom;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use s3s::{S3Error, S3Result, s3_error};

/// What signs an address.
const SIGNS: [&str; 7] = [
    "X-Amz-Algorithm",
    "X-Amz-Credential",
    "X-Amz-Expires",
    "X-Amz-SignedHeaders",
    "X-Amz-Date",
    "X-Amz-Security-Token",
    "X-Amz-Signature",
];
/// Longest life of a signed address in seconds, as S3 has it.
const WEEK: u64 = 7 * 24 * 3600;
/// Parameters that are numbers, with the least and the greatest.
const NUMBERS: [(&str, u64, u64); 6] = [
    ("max-buckets", 1, 10_000),
    ("max-keys", 0, i32::MAX as u64),
    ("max-parts", 0, i32::MAX as u64),
    ("max-uploads", 0, i32::MAX as u64),
    ("part-number-marker", 0, i32::MAX as u64),
    ("partNumber", 1, 10_000),
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
    /// Whether it has what only a signed one has.
    pub says_signed: bool,
}

/// Whether a parameter of this name stands for a header.
fn is_header(name: &str) -> bool {
    name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("x-amz-"))
}

fn check_number(name: &str, value: &str) -> S3Result<()> {
    let Some((_, least, most)) = NUMBERS.iter().find(|(number, ..)| *number == name) else {
        return Ok(());
    };
    // An empty one says nothing, to S3 as well.
    let sound = digits(value).is_some_and(|n| (*least..=*most).contains(&n));
    if sound || (value.is_empty() && name.starts_with("max-")) {
        return Ok(());
    }
    Err(s3_error!(InvalidArgument, "{name} is a number from {least} to {most}"))
}

/// Refuses a signed address by its life alone.
fn check_life(value: &str) -> S3Result<()> {
    match (digits(value), value.strip_prefix('-').and_then(digits)) {
        (Some(seconds), _) if seconds <= WEEK => Ok(()),
        (None, Some(_)) => {
            Err(s3_error!(AccessDenied, "the address had expired when it was signed"))
        }
        _ => Err(s3_error!(
            AuthorizationQueryParametersError,
            "X-Amz-Expires is a number of seconds, at most a week: {WEEK}"
        )),
    }
}

impl Query {
    /// Those of an address.
    ///
    /// # Errors
    /// InvalidURI; those of a life that is none; InvalidArgument for one that is there twice, which
    /// two readers would understand in two ways.
    pub fn from_uri(uri: &Uri) -> S3Result<Self> {
        let mut query = Self::default();
        let mut names = Vec::new();
        let bad = || s3_error!(InvalidURI, "a % of the query is no escape, or not of UTF-8");
        for (name, value) in sound_pairs(uri.query().unwrap_or_default()).ok_or_else(bad)? {
            if names.contains(&name) {
                return Err(s3_error!(InvalidArgument, "the parameter {name} is there twice"));
            }
            names.push(name.clone());
            if name == "X-Amz-Expires" {
                check_life(&value)?;
            }
            if SIGNS.contains(&name.as_str()) {
                query.is_signed |= name == "X-Amz-Signature";
                query.says_signed |= SIGNS[..4].contains(&name.as_str());
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

    /// Refuses numbers that are none, or too small or great.
    ///
    /// # Errors
    /// InvalidArgument.
    pub fn check_numbers(&self) -> S3Result<()> {
        self.pairs.iter().try_for_each(|(name, value)| check_number(name, value))
    }

    /// Refuses parameters that the operation does not take.
    ///
    /// # Errors
    /// NotImplemented.
    pub fn refuse_unknown(&self, operation: &Operation) -> S3Result<()> {
        let is = operation.name;
        for (name, value) in &self.pairs {
            if name == "x-id" {
                if value != is {
                    let text = format!("x-id is {value}, and the rest asks {is}");
                    return Err(s3_error!(NotImplemented, "{text}"));
                }
            } else if !operation.takes(name) && !name.starts_with("x-") {
                return Err(s3_error!(NotImplemented, "{is} has no parameter {name}"));
            }
        }
        Ok(())
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Refuses an address that is signed in half, or in a request that is signed once more: either
    /// signature would answer for something else.
    ///
    /// # Errors
    /// InvalidArgument, AuthorizationQueryParametersError.
    pub fn check_signed(&self, headers: &HeaderMap) -> S3Result<()> {
        if self.is_signed && headers.contains_key(header::AUTHORIZATION) {
            let text = "sign the address or the headers, not both";
            return Err(s3_error!(InvalidArgument, "{text}"));
        }
        if self.says_signed && !self.is_signed {
            let text = "the address has what signs it, and no X-Amz-Signature";
            return Err(s3_error!(AuthorizationQueryParametersError, "{text}"));
        }
        Ok(())
    }

    /// Adds those that stand for headers to the headers.
    ///
    /// # Errors
    /// InvalidRequest if the request is not signed, so that nobody answers for the address, or
    /// if a header says something else.
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
    let kept = pairs(uri.query().unwrap_or_default()).filter(|(name, _)| !is_header(name));
    let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(kept).finish();
    let mark = if query.is_empty() { "" } else { "?" };
    let text = format!("{}{mark}{query}", uri.path());
    text.parse().map_err(|_| s3_error!(InvalidURI, "the address cannot be read"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> S3Result<Query> {
        Query::from_uri(&format!("/b/k?{query}").parse().unwrap())
    }

    #[test]
    fn an_address_lives_a_week_at_most_however_its_name_is_spelled() {
        let refused = |query: &str| parse(query).err().map(|e| e.code().as_str().to_owned());
        for name in ["X-Amz-Expires", "X-Amz-Expire%73", "%58-Amz-Expires"] {
            for (life, code) in [
                ("0", None),
                ("604800", None),
                ("604801", Some("AuthorizationQueryParametersError")),
                ("+5", Some("AuthorizationQueryParametersError")),
                ("%2B5", Some("AuthorizationQueryParametersError")),
                ("", Some("AuthorizationQueryParametersError")),
                ("99999999999999999999", Some("AuthorizationQueryParametersError")),
                ("-1", Some("AccessDenied")),
            ] {
                let query = format!("{name}={life}&X-Amz-Signature=0");
                assert_eq!(refused(&query).as_deref(), code, "{query}");
            }
        }
        let mut headers = HeaderMap::new();
        parse("X-Amz-Signature=0").unwrap().check_signed(&headers).unwrap();
        parse("X-Amz-Credential=c").unwrap().check_signed(&headers).unwrap_err();
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("AWS4-HMAC-SHA256 x"));
        parse("X-Amz-Date=0").unwrap().check_signed(&headers).unwrap();
        parse("X-Amz-Signatur%65=0").unwrap().check_signed(&headers).unwrap_err();
    }

    #[test]
    fn numbers_have_their_bounds() {
        for (query, sound) in [
            ("partNumber=1", true),
            ("partNumber=0", false),
            ("partNumber=-1", false),
            ("partNumber=+1", false),
            ("partNumber=10001", false),
            ("max-buckets=0", false),
            ("max-keys=0", true),
            ("max-keys=", true),
            ("max-keys=-1", false),
            ("max-parts=-1", false),
            ("max-uploads=%2D1", false),
            ("max-uploads=1a", false),
            ("part-number-marker=-1", false),
            ("prefix=%zz", false),
            ("prefi%=a", false),
        ] {
            let checked = parse(query).and_then(|query| query.check_numbers());
            assert_eq!(checked.is_ok(), sound, "{query}");
        }
    }

    #[test]
    fn parameters_that_stand_for_headers_become_them() {
        let query = parse(
            "x-id=PutObject&X-Amz-Meta-a=1%2B2&x-amz-tagging=a%3D1&X-Amz-Date=1&\
                        X-Amz-Signature=00&X-Amz-Content-Sha256=UNSIGNED-PAYLOAD",
        )
        .unwrap();
        assert_eq!(query.pairs, [("x-id".into(), "PutObject".into())]);
        let mut headers = HeaderMap::new();
        query.add_to(&mut headers).unwrap();
        assert_eq!(headers["x-amz-meta-a"], "1+2");
        assert_eq!(headers["x-amz-tagging"], "a=1");
        assert_eq!(headers.len(), 2);
        headers.insert("x-amz-meta-a", HeaderValue::from_static("3"));
        assert!(query.add_to(&mut headers).is_err());
        assert!(parse("x-amz-meta-a=1").unwrap().add_to(&mut HeaderMap::new()).is_err());
        assert!(parse("X-Amz-Content-Sha256=00").is_err());
        assert!(parse("acl&a%63l").is_err());
        let rest = without_headers(&"/b/k?acl&X-Amz-Date=1&x-amz-meta-a=2&a=%26".parse().unwrap());
        assert_eq!(rest.unwrap(), "/b/k?acl=&a=%26");
    }
}
