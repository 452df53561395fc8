//! How numbers, escapes and queries are spelled, for all doors: in one way, so that no two readers
//! take one text for two things.
//!
//! Owns: [`digits`], [`is_escaped`], [`pairs`], [`sound_pairs`].

use http::Uri;
use percent_encoding::percent_decode_str;

/// A number in decimal digits, and nothing else: no sign, no space.
pub fn digits(text: &str) -> Option<u64> {
    let sound = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| text.parse().ok()).flatten()
}

/// Whether each `%` begins an escape.
pub fn is_escaped(text: &str) -> bool {
    let mut pieces = text.as_bytes().split(|byte| *byte == b'%');
    pieces.next();
    pieces.all(|rest| rest.len() >= 2 && rest[..2].iter().all(u8::is_ascii_hexdigit))
}

/// The parameters of a query, decoded as those of a form. What is not UTF-8 becomes U+FFFD.
pub fn pairs(query: &str) -> impl Iterator<Item = (String, String)> {
    form_urlencoded::parse(query.as_bytes()).into_owned()
}

/// As [`pairs`]; `None` if a `%` begins no escape, or something is not UTF-8: a name with U+FFFD
/// in it would be another one.
pub fn sound_pairs(query: &str) -> Option<Vec<(String, String)>> {
    let sound = is_escaped(query) && percent_decode_str(query).decode_utf8().is_ok();
    sound.then(|| pairs(query).collect())
}

/// The value of an address's parameter; the first one's if it is there twice.
pub fn parameter(uri: &Uri, wanted: &str) -> Option<String> {
    pairs(uri.query()?).find(|(name, _)| name == wanted).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_escapes_and_names_are_spelled_in_one_way() {
        assert_eq!(digits("007"), Some(7));
        for bad in ["", "+1", "-1", " 1", "1 ", "0x1", "1a", "99999999999999999999"] {
            assert_eq!(digits(bad), None, "{bad}");
        }
        assert!(is_escaped("a%20b%2F") && is_escaped(""));
        for bad in ["%", "a%2", "%zz", "%2g", "%%20"] {
            assert!(!is_escaped(bad), "{bad}");
        }
        let uri: Uri = "/b/k?a%63l&X-Amz-Expire%73=1+%2B".parse().unwrap();
        assert_eq!(parameter(&uri, "acl").as_deref(), Some(""));
        assert_eq!(parameter(&uri, "X-Amz-Expires").as_deref(), Some("1 +"));
        assert_eq!(parameter(&uri, "x-amz-expires"), None);
        let read = |query| sound_pairs(query).map(|pairs| format!("{pairs:?}"));
        let all = read("&a=b=c&%C3%A9+=%26&&d").unwrap();
        assert_eq!(all, r#"[("a", "b=c"), ("é ", "&"), ("d", "")]"#);
        for bad in ["a=%f", "a=%ff", "%C3=%A9", "%", "a=1&b=%zz"] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }
}
