//! Paths of WebDAV and of the page, and the names that they stand for: the one place where either
//! becomes the other.
//!
//! Owns: [`Path`], [`shown`] and its inverse, how a [`Place`] is read from a path.
//! `/-/dav/COLLECTION/a/b` is the object `a/b`. Each segment is shown as it is, and is taken as it
//! is written: an escape that a client writes is part of the name. Only what no address can carry
//! has another form: an empty segment, as the one in `a//b`, one that is `.` or `..`, and one that
//! holds a zero byte (in a collection's name, a slash) is [`MARK`] and its bytes in hexadecimal
//! digits. So is a segment that would be taken for such a form itself. Each name has therefore one
//! path and each path one name.
//!
//! A slash at the end means the folder: if an object lies beside a folder of its name, `a` is
//! the object and `a/` the folder. If only one of them is there, either path names it.

use crate::http::spelling::is_escaped;
use crate::objects::place::Place;
use crate::refusal::{Refusal, Result, Why};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};
use serde::{Deserialize, Serialize};

/// Where the server answers WebDAV.
pub const PREFIX: &str = "/-/dav";
/// What a segment begins with that stands for one that no address can carry.
const MARK: &str = "holdall-hex-";
/// What stands in an address as it is.
const PLAIN: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// A path below [`PREFIX`], decoded. Records have its address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Path(Vec<u8>);

impl Path {
    /// It.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// It without the slash at its end, so that no folder has two.
    pub fn root(&self) -> &[u8] {
        self.0.strip_suffix(b"/").unwrap_or(&self.0)
    }

    /// Its address, with the prefix.
    pub fn address(&self) -> String {
        format!("{PREFIX}{}", address(&self.0))
    }
}

impl From<Path> for String {
    fn from(path: Path) -> Self {
        path.address()
    }
}

impl TryFrom<String> for Path {
    type Error = Refusal;

    fn try_from(address: String) -> Result<Self> {
        parse(&address)
    }
}

impl Place {
    /// The place of a decoded path.
    ///
    /// # Errors
    /// BadAddress for a collection whose name is not UTF-8.
    pub fn from_path(path: &Path) -> Result<Self> {
        let bytes = path.as_bytes();
        let slash = bytes.ends_with(b"/");
        let mut segments = bytes.split(|b| *b == b'/').filter(|s| !s.is_empty());
        let Some(first) = segments.next() else {
            return Ok(Self { collection: None, key: None, slash });
        };
        let bad = |_| Why::BadAddress.says("a collection's name is UTF-8");
        let collection = String::from_utf8(meant(first, is_odd_collection)).map_err(bad)?;
        let names: Vec<_> = segments.map(|segment| meant(segment, is_odd)).collect();
        // A name that ends with a slash is a folder's marker, which the folder's path names.
        let slash = slash || names.last().is_some_and(Vec::is_empty);
        let key = (!names.is_empty()).then(|| names.join(&b'/'));
        Ok(Self { collection: Some(collection), key, slash })
    }
}

/// A path as a client sends it, below [`PREFIX`]. What could be read in two ways is none: an empty
/// segment, dots, an escaped slash or zero byte, an escape that is cut off.
///
/// # Errors
/// BadAddress.
pub fn parse(path: &str) -> Result<Path> {
    let bad = |text: &str| Why::BadAddress.says(format!("the path cannot be read: {text}"));
    let below =
        path.strip_prefix(PREFIX).filter(|below| below.is_empty() || below.starts_with('/'));
    let below = below.ok_or_else(|| bad("it does not begin with /-/dav/"))?;
    if below.contains(['?', '#']) {
        return Err(bad("write ? and # as %3F and %23"));
    }
    let inner = below.strip_prefix('/').unwrap_or(below);
    let inner = inner.strip_suffix('/').unwrap_or(inner);
    if inner.is_empty() && below.len() > 1 {
        return Err(bad("a segment is empty"));
    }
    for segment in inner.split('/').filter(|_| !inner.is_empty()) {
        if !is_escaped(segment) {
            return Err(bad("a % is followed by two hexadecimal digits; write %25 for itself"));
        }
        let decoded: Vec<u8> = percent_decode_str(segment).collect();
        if is_odd(&decoded) || decoded.contains(&b'/') {
            let text = "a segment is not empty, no dots, and holds no slash and no zero byte";
            return Err(bad(text));
        }
    }
    if !below.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err(bad("write what is not printable ASCII as %XX"));
    }
    let path: Vec<u8> = percent_decode_str(below).collect();
    Ok(Path(if path.is_empty() { b"/".to_vec() } else { path }))
}

/// The address of a decoded path, below [`PREFIX`].
pub fn address(path: &[u8]) -> String {
    percent_encode(path, PLAIN).to_string()
}

/// Whether no address can carry a segment of a name.
fn is_odd(segment: &[u8]) -> bool {
    matches!(segment, b"" | b"." | b"..") || segment.contains(&0)
}

/// The same for a collection's name, which is one segment.
fn is_odd_collection(name: &[u8]) -> bool {
    is_odd(name) || name.contains(&b'/')
}

/// The bytes that a segment with [`MARK`] spells.
fn spelled(segment: &[u8]) -> Option<Vec<u8>> {
    let digits = segment.strip_prefix(MARK.as_bytes())?;
    let digit = |b: &u8| match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    };
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    };
    digits.chunks(2).map(pair).collect()
}

/// Whether a segment has another form: one that is odd, or that spells one that has.
fn is_spelled(segment: &[u8], odd: fn(&[u8]) -> bool) -> bool {
    // Each turn is half as long.
    let mut at = segment.to_vec();
    loop {
        if odd(&at) {
            return true;
        }
        match spelled(&at) {
            Some(inner) => at = inner,
            None => return false,
        }
    }
}

fn form(segment: &[u8], odd: fn(&[u8]) -> bool) -> Vec<u8> {
    if is_spelled(segment, odd) {
        return format!("{MARK}{}", crate::http::digest::hex(segment)).into_bytes();
    }
    segment.to_vec()
}

/// A segment of a name as paths have it.
pub fn shown(segment: &[u8]) -> Vec<u8> {
    form(segment, is_odd)
}

/// A collection's name as paths have it.
pub fn shown_collection(name: &str) -> Vec<u8> {
    form(name.as_bytes(), is_odd_collection)
}

/// The segment that is shown so.
fn meant(shown: &[u8], odd: fn(&[u8]) -> bool) -> Vec<u8> {
    spelled(shown).filter(|inner| is_spelled(inner, odd)).unwrap_or_else(|| shown.to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    fn place(path: &str) -> Place {
        Place::from_path(&parse(&format!("{PREFIX}{path}")).unwrap()).unwrap()
    }

    #[test]
    fn ordinary_names_are_shown_as_they_are() {
        let names = [
            "a",
            "film 1.mp4",
            "50% off",
            "é",
            ".hidden",
            "a%zz",
            "%",
            "%2F",
            "100%",
            "a%",
            "...",
            "\r",
            "holdall-hex",
            "holdall-hex-61",
            "holdall-hex-2E",
            "holdall-hex-2",
        ];
        for name in names {
            assert_eq!(shown(name.as_bytes()), name.as_bytes(), "{name}");
        }
        assert_eq!(shown(b"\xff\x01"), b"\xff\x01");
    }

    #[test]
    fn every_segment_is_shown_and_found_again() {
        let mut rng = SmallRng::seed_from_u64(7);
        let pieces: [&[u8]; 12] = [
            b"a",
            b"%",
            b"2e",
            b".",
            b"\xff",
            b"\0",
            b"\xc3\xa9",
            b"holdall-hex-",
            b"/",
            b"61",
            b"00",
            b" ",
        ];
        for odd in [is_odd as fn(&[u8]) -> bool, is_odd_collection] {
            for _ in 0..50_000 {
                let len = rng.random_range(0..6);
                let pick = |_| pieces[rng.random_range(0..pieces.len())];
                let segment = (0..len).map(pick).collect::<Vec<_>>().concat();
                // Segments of names hold no slash.
                if segment.contains(&b'/') && !odd(&segment) {
                    continue;
                }
                let out = form(&segment, odd);
                assert_eq!(meant(&out, odd), segment);
                assert!(!odd(&out) && !out.contains(&b'/'), "{segment:?}");
                // And each path is that of its name.
                let name = meant(&segment, odd);
                assert!(odd(&segment) || form(&name, odd) == segment, "{segment:?}");
            }
        }
    }

    #[test]
    fn a_path_names_a_collection_and_an_object() {
        assert_eq!(place("/"), Place { collection: None, key: None, slash: true });
        let found = place("/photos/2024/a%20b.jpg");
        assert_eq!(found.collection.as_deref(), Some("photos"));
        assert_eq!(found.name(), b"2024/a b.jpg");
        assert_eq!(found.parent(), Some(&b"2024"[..]));
        assert_eq!(place("/c/").key, None);
        assert_eq!(place("/c/a/holdall-hex-/b").name(), b"a//b");
        let lead = place("/c/holdall-hex-/");
        assert_eq!((lead.key.as_deref(), lead.prefix()), (Some(&b""[..]), b"/".to_vec()));
        let below = place("/c/a/holdall-hex-");
        assert!(below.slash && below.prefix() == b"a//" && below.is_folders());
        assert!(lead.is_folders() && place("/c").is_folders() && !place("/c/a/").is_folders());
        assert_eq!(place("/c/holdall-hex-2e2e/b").name(), b"../b");
        assert_eq!(place("/c/%252E%252E/b").name(), b"%2E%2E/b");
        assert_eq!(place("/c/%25").name(), b"%");
        assert!(!place("/c/a").slash && place("/c/a/").slash);
        assert_eq!(place("/holdall-hex-612f62/x").collection.as_deref(), Some("a/b"));
        assert_eq!(place("/c/holdall-hex-612f62").name(), b"holdall-hex-612f62");
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_no_path() {
        for bad in [
            "x",
            "//",
            "/c//",
            "/c//a",
            "//c",
            "/c/a/../b",
            "/c/.",
            "/c/..",
            "/c/%2e%2e/b",
            "/c/%2E",
            "/c/a%2Fb",
            "/c/a%00",
            "/c/a%",
            "/c/a%2",
            "/c/%zz",
            "/c/a?b",
            "/c/a#b",
            "/c/é",
        ] {
            assert!(parse(&format!("{PREFIX}{bad}")).is_err(), "{bad}");
        }
        assert!(parse("/-/other/c").is_err() && parse("/c").is_err());
    }
}
