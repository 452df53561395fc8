//! Headers of requests, read whole or refused: a value that is not text, or one of two, would
//! otherwise be taken for none, and its request done without what it asked.
//!
//! Owns: [`single`], [`list`], [`number`].

use http::{HeaderMap, HeaderValue, StatusCode, header};
use s3s::{S3Result, s3_error};

fn text<'h>(name: &str, value: &'h HeaderValue) -> S3Result<&'h str> {
    value.to_str().map_err(|_| s3_error!(InvalidArgument, "the header {name} is not text in ASCII"))
}

/// The value of a header that a request has once; `None` where it is missing.
///
/// # Errors
/// InvalidArgument where it is there twice, or is not text.
pub fn single<'h>(headers: &'h HeaderMap, name: &str) -> S3Result<Option<&'h str>> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(s3_error!(InvalidArgument, "the header {name} is there twice"));
    }
    text(name, value).map(Some)
}

/// The value of a header that is a list; several headers of its name are one list.
///
/// # Errors
/// InvalidArgument where it is not text.
pub fn list(headers: &HeaderMap, name: &str) -> S3Result<Option<String>> {
    let values = headers.get_all(name).iter().map(|value| text(name, value));
    let values = values.collect::<S3Result<Vec<_>>>()?;
    Ok((!values.is_empty()).then(|| values.join(", ")))
}

/// A number of digits alone; `None` for what is none, or too great.
pub fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Refuses a body whose transfer is coded in a way that nobody here decodes.
///
/// # Errors
/// Status 501; InvalidArgument where the header is not text.
pub fn check_transfer(headers: &HeaderMap) -> S3Result<()> {
    match list(headers, header::TRANSFER_ENCODING.as_str())? {
        Some(coding) if !coding.trim().eq_ignore_ascii_case("chunked") => {
            let text = format!("Transfer-Encoding {coding} is not decoded: send chunked");
            Err(crate::error::custom("NotImplemented", StatusCode::NOT_IMPLEMENTED, text))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_whole_or_refused() {
        let mut headers = HeaderMap::new();
        assert_eq!((single(&headers, "a").unwrap(), list(&headers, "a").unwrap()), (None, None));
        headers.append("a", HeaderValue::from_static("1"));
        assert_eq!(single(&headers, "a").unwrap(), Some("1"));
        headers.append("a", HeaderValue::from_static("2"));
        assert!(single(&headers, "a").is_err());
        assert_eq!(list(&headers, "a").unwrap().unwrap(), "1, 2");
        headers.insert("a", HeaderValue::from_bytes(b"\xff").unwrap());
        assert!(single(&headers, "a").is_err() && list(&headers, "a").is_err());
        for (text, read) in [("7", Some(7)), ("+7", None), ("", None), ("7 ", None)] {
            assert_eq!(number(text), read, "{text}");
        }
        assert_eq!(number("99999999999999999999"), None);
    }

    #[test]
    fn a_transfer_is_chunked_or_refused() {
        for (coding, done) in [("chunked", true), ("Chunked", true), ("gzip, chunked", false)] {
            let mut headers = HeaderMap::new();
            headers.insert("transfer-encoding", HeaderValue::from_static(coding));
            assert_eq!(check_transfer(&headers).is_ok(), done, "{coding}");
        }
    }
}
