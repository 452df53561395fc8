//! Conditions that S3's requests alone have: on a copy's source, and on a range.
//!
//! Owns: [`IfRange`], [`is_condition`].

use crate::http::date;
use crate::objects::condition::{ETag, Read, etag, etags, seconds, time};
use crate::objects::meta::Meta;
use http::{HeaderMap, HeaderName};
use s3s::S3Result;

impl Read {
    /// The conditions on a copy's source.
    ///
    /// # Errors
    /// As [`Read::from_headers`].
    pub fn of_source(headers: &HeaderMap) -> S3Result<Self> {
        Ok(Self {
            matches: etags(headers, "x-amz-copy-source-if-match")?,
            matches_not: etags(headers, "x-amz-copy-source-if-none-match")?,
            since: time(headers, "x-amz-copy-source-if-modified-since")?,
            not_since: time(headers, "x-amz-copy-source-if-unmodified-since")?,
        })
    }
}

/// What a range's client has: the range is of use to it only if the object is still that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfRange {
    /// An ETag.
    Is(ETag),
    /// The time of the last change, in seconds since 1970.
    At(i64),
    /// Neither: nothing is that.
    Never,
}

impl IfRange {
    /// What the header says.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get("if-range")?.to_str().unwrap_or_default().trim();
        if let Some(at) = date::parse(value) {
            return Some(Self::At(at.unix_timestamp()));
        }
        Some(etag(value).map_or(Self::Never, Self::Is))
    }

    /// Whether the object is still the one that the client has.
    pub fn holds(&self, meta: &Meta, etag: &str) -> bool {
        match self {
            Self::Is(wanted) => wanted.is(etag),
            Self::At(time) => *time == seconds(meta.modified()),
            Self::Never => false,
        }
    }
}

/// Headers that hold conditions, and are read here rather than by `s3s`.
pub fn is_condition(name: &HeaderName) -> bool {
    let name = name.as_str();
    matches!(name, "if-match" | "if-none-match" | "if-modified-since" | "if-unmodified-since")
        || name.starts_with("x-amz-copy-source-if-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_on_a_source_that_is_none_is_refused() {
        for name in ["x-amz-copy-source-if-match", "x-amz-copy-source-if-modified-since"] {
            let mut headers = HeaderMap::new();
            headers.insert(name, "a b".parse().unwrap());
            Read::of_source(&headers).unwrap_err();
        }
    }
}
