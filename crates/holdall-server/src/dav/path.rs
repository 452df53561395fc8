//! Paths of WebDAV and names of objects.
//!
//! Owns: [`Place`]; [`escape`] and its inverse. `/-/dav/COLLECTION/a/b` is the object `a/b`. Names
//! that are no path are written with escapes: `%XX` is a byte, and a lone `%` an empty segment, as
//! the one in `a//b`. An object beside a folder of its name (`a` beside `a/b`) has a `%` behind it.

use dav_server::davpath::DavPath;
use s3s::{S3Result, s3_error};

/// Where the server answers WebDAV.
pub const PREFIX: &str = "/-/dav";

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The collection; none at the root.
    pub collection: Option<String>,
    /// The name without a slash at its end; empty for the collection itself.
    pub key: Vec<u8>,
    /// Whether a folder may be meant: false where the path says that the object beside it is.
    pub plain: bool,
}

impl Place {
    /// The place of a decoded path.
    ///
    /// # Errors
    /// InvalidURI for a collection whose name is not UTF-8.
    pub fn of(path: &DavPath) -> S3Result<Self> {
        let mut segments = path.as_bytes().split(|b| *b == b'/').filter(|s| !s.is_empty());
        let Some(first) = segments.next() else {
            return Ok(Self { collection: None, key: Vec::new(), plain: true });
        };
        let bad = |_| s3_error!(InvalidURI, "a collection's name is UTF-8");
        let collection = Some(String::from_utf8(unescape(first)).map_err(bad)?);
        let (mut key, mut plain) = (Vec::new(), true);
        for (n, segment) in segments.enumerate() {
            let name = unescape(segment);
            if n > 0 {
                key.push(b'/');
            }
            plain = escape_beside(&name) != segment;
            key.extend_from_slice(&name);
        }
        Ok(Self { collection, key, plain })
    }

    /// The name of the folder's marker, which all names in it begin with; empty for a collection.
    pub fn prefix(&self) -> Vec<u8> {
        prefix_of(&self.key)
    }

    /// The folder that it lies in; none where that is the collection or the root.
    pub fn parent(&self) -> Option<&[u8]> {
        parent(&self.key)
    }
}

/// A folder's name with the slash that all names in it begin with.
pub fn prefix_of(key: &[u8]) -> Vec<u8> {
    if key.is_empty() { Vec::new() } else { [key, b"/"].concat() }
}

/// The folder that a name lies in, without a slash at its end.
pub fn parent(key: &[u8]) -> Option<&[u8]> {
    key.iter().rposition(|b| *b == b'/').map(|at| &key[..at])
}

/// A path as a client sends it, below [`PREFIX`].
///
/// # Errors
/// InvalidURI.
pub fn parse(path: &str) -> S3Result<DavPath> {
    let bad = |_| s3_error!(InvalidURI, "the path cannot be read");
    let mut parsed = DavPath::new(path).map_err(bad)?;
    parsed.set_prefix(PREFIX).map_err(bad)?;
    Ok(parsed)
}

fn is_hex_pair(bytes: &[u8]) -> bool {
    bytes.len() >= 2 && bytes[..2].iter().all(u8::is_ascii_hexdigit)
}

fn push_escaped(out: &mut Vec<u8>, byte: u8) {
    out.extend_from_slice(format!("%{byte:02X}").as_bytes());
}

/// A segment as it is shown: itself where it is a name that file systems take.
pub fn escape(segment: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(segment.len());
    if segment.is_empty() {
        return b"%".to_vec();
    }
    let dots = segment == b"." || segment == b"..";
    for chunk in segment.utf8_chunks() {
        let valid = chunk.valid().as_bytes();
        for (at, byte) in valid.iter().enumerate() {
            let rest = &valid[at + 1..];
            let ends = rest.is_empty() && chunk.invalid().is_empty();
            let taken = *byte == b'%' && (is_hex_pair(rest) || ends);
            if dots || taken || byte.is_ascii_control() || *byte == b'/' {
                push_escaped(&mut out, *byte);
            } else {
                out.push(*byte);
            }
        }
        chunk.invalid().iter().for_each(|byte| push_escaped(&mut out, *byte));
    }
    out
}

/// As [`escape`], for an object beside a folder of its name.
pub fn escape_beside(segment: &[u8]) -> Vec<u8> {
    [&escape(segment)[..], b"%"].concat()
}

/// The segment that is shown so.
pub fn unescape(shown: &[u8]) -> Vec<u8> {
    // Of an object beside a folder; a `%` of the name itself does not end it.
    let shown = match shown {
        b"%" => return Vec::new(),
        shown => shown.strip_suffix(b"%").unwrap_or(shown),
    };
    if shown == b"%" {
        return Vec::new();
    }
    let (mut out, mut at) = (Vec::with_capacity(shown.len()), 0);
    while at < shown.len() {
        if shown[at] == b'%' && is_hex_pair(&shown[at + 1..]) {
            let digit = |b: u8| char::from(b).to_digit(16).and_then(|n| u8::try_from(n).ok());
            let (high, low) = (digit(shown[at + 1]), digit(shown[at + 2]));
            out.push(high.unwrap_or(0) << 4 | low.unwrap_or(0));
            at += 3;
        } else {
            out.push(shown[at]);
            at += 1;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::SmallRng;
    use rand::{Rng as _, SeedableRng as _};

    fn place(path: &str) -> Place {
        Place::of(&parse(&format!("{PREFIX}{path}")).unwrap()).unwrap()
    }

    #[test]
    fn ordinary_names_are_shown_as_they_are() {
        for name in ["a", "film 1.mp4", "50% off", "é", ".hidden", "a%zz"] {
            assert_eq!(escape(name.as_bytes()), name.as_bytes(), "{name}");
        }
    }

    #[test]
    fn every_segment_is_shown_and_found_again() {
        let mut rng = SmallRng::seed_from_u64(7);
        let bytes = b"a%2Fe.\xff\x00\xc3\xa9/ ";
        for _ in 0..100_000 {
            let len = rng.random_range(0..6);
            let segment: Vec<u8> =
                (0..len).map(|_| bytes[rng.random_range(0..bytes.len())]).collect();
            let shown = escape(&segment);
            assert_eq!(unescape(&shown), segment);
            assert!(std::str::from_utf8(&shown).is_ok() && !shown.is_empty(), "{segment:?}");
            assert!(!shown.contains(&b'/') && shown != b"." && shown != b"..", "{segment:?}");
            let beside = escape_beside(&segment);
            assert_eq!(unescape(&beside), segment);
            assert_ne!(beside, shown, "{segment:?}");
        }
    }

    #[test]
    fn a_path_names_a_collection_and_an_object() {
        assert_eq!(place("/"), Place { collection: None, key: Vec::new(), plain: true });
        let found = place("/photos/2024/a%20b.jpg");
        assert_eq!(found.collection.as_deref(), Some("photos"));
        assert_eq!(found.key, b"2024/a b.jpg");
        assert_eq!(found.parent(), Some(&b"2024"[..]));
        assert_eq!(place("/c/a/%25/b").key, b"a//b");
        assert_eq!(place("/c/a/../b").key, b"b");
        assert_eq!(place("/c/%252E%252E/b").key, b"../b");
        assert!(place("/c/a").plain && !place("/c/a%25").plain && place("/c/a%2525").plain);
        assert_eq!(place("/c/a%25").key, b"a");
        assert!(parse("/-/other/c").is_err());
    }
}
