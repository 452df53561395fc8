//! What the server must hold: each key's state, and the one that an unanswered request may have
//! brought about.

use bytes::Bytes;
use md5::{Digest as _, Md5};

/// An object as it must be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Its bytes.
    pub bytes: Bytes,
    /// Its ETag without quotes; none if only the server's answer would have told it.
    pub etag: Option<String>,
}

/// An object, or none.
pub type State = Option<Object>;

/// What was found under a key: bytes and ETag, or nothing.
pub type Seen = Option<(Bytes, String)>;

/// Which of the allowed states was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// The last answered one.
    Old,
    /// That of the unanswered request.
    New,
}

/// A key.
#[derive(Debug, Clone, Default)]
pub struct Entry {
    /// The last answered state.
    pub now: State,
    /// What a request under way makes of it.
    pub pending: Option<State>,
}

/// A multipart upload under way.
#[derive(Debug, Clone)]
pub struct Upload {
    /// The key's number.
    pub key: usize,
    /// The upload's id.
    pub id: String,
    /// Parts 1, 2, … that were answered: bytes and ETag.
    pub parts: Vec<(Bytes, String)>,
    /// ETag of the part under way.
    pub pending: Option<String>,
    /// Whether its completion is under way.
    pub completing: bool,
}

/// The MD5 in hexadecimal.
pub fn md5(bytes: &[u8]) -> String {
    hex(&Md5::digest(bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

impl Object {
    /// An object that was put whole.
    pub fn put(bytes: Bytes) -> Self {
        let etag = Some(md5(&bytes));
        Self { bytes, etag }
    }

    /// The object with `inserted` at byte `at`; its ETag is not known.
    pub fn insert(&self, at: usize, inserted: &[u8]) -> Self {
        let mut bytes = Vec::with_capacity(self.bytes.len() + inserted.len());
        bytes.extend_from_slice(&self.bytes[..at]);
        bytes.extend_from_slice(inserted);
        bytes.extend_from_slice(&self.bytes[at..]);
        Self { bytes: bytes.into(), etag: None }
    }

    /// What parts come to: their ETag is made of the digests of all.
    pub fn completed(parts: &[(Bytes, String)]) -> Self {
        let (mut bytes, mut md5) = (Vec::new(), Md5::new());
        for (part, _) in parts {
            bytes.extend_from_slice(part);
            md5.update(Md5::digest(part));
        }
        let etag = format!("{}-{}", hex(&md5.finalize()), parts.len());
        Self { bytes: bytes.into(), etag: Some(etag) }
    }

    fn is(&self, bytes: &Bytes, etag: &str) -> bool {
        self.bytes == bytes && self.etag.as_ref().is_none_or(|own| own == etag)
    }
}

fn is(state: &State, seen: &Seen) -> bool {
    match (state, seen) {
        (None, None) => true,
        (Some(object), Some((bytes, etag))) => object.is(bytes, etag),
        _ => false,
    }
}

/// In words, for a report.
fn words(state: Option<(&Bytes, Option<&str>)>) -> String {
    state.map_or("nothing".into(), |(bytes, etag)| {
        format!("{} bytes of MD5 {}, ETag {}", bytes.len(), md5(bytes), etag.unwrap_or("unknown"))
    })
}

impl Entry {
    /// Begins a change.
    pub fn begin(&mut self, state: State) {
        self.pending = Some(state);
    }

    /// The change under way was answered.
    pub fn answered(&mut self) {
        if let Some(state) = self.pending.take() {
            self.now = state;
        }
    }

    /// Takes what was found for the state from now on. `None` if nothing was under way.
    ///
    /// # Errors
    /// In words, what was found that may not be.
    pub fn settle(&mut self, seen: Seen) -> Result<Option<Found>, String> {
        let pending = self.pending.take();
        let old = is(&self.now, &seen);
        let found = match &pending {
            _ if old => Found::Old,
            Some(new) if is(new, &seen) => Found::New,
            _ => {
                let show = |s: &State| words(s.as_ref().map(|o| (&o.bytes, o.etag.as_deref())));
                let got = words(seen.as_ref().map(|(b, etag)| (b, Some(etag.as_str()))));
                let new = pending.as_ref().map_or(String::new(), |s| format!(" or {}", show(s)));
                return Err(format!("there is {got}; it must be {}{new}", show(&self.now)));
            }
        };
        if found == Found::New {
            let before = self.now.as_ref().and_then(|o| o.etag.as_ref());
            if let (Some(before), Some((_, etag))) = (before, &seen)
                && before == etag
            {
                return Err(format!("new bytes under the ETag {etag} of the old ones"));
            }
            self.now = seen.map(|(bytes, etag)| Object { bytes, etag: Some(etag) });
        }
        Ok(pending.map(|_| found))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(text: &'static str) -> Object {
        Object::put(Bytes::from_static(text.as_bytes()))
    }

    fn seen(text: &'static str) -> Seen {
        Some((Bytes::from_static(text.as_bytes()), md5(text.as_bytes())))
    }

    #[test]
    fn an_answered_change_must_be_there() {
        let mut entry = Entry::default();
        entry.begin(Some(object("a")));
        entry.answered();
        assert_eq!(entry.clone().settle(seen("a")), Ok(None));
        assert!(entry.clone().settle(None).is_err(), "lost");
        assert!(entry.clone().settle(seen("b")).is_err(), "other bytes");
        let wrong = Some((Bytes::from_static(b"a"), md5(b"b")));
        assert!(entry.clone().settle(wrong).is_err(), "another ETag");
        entry.begin(None);
        entry.answered();
        assert!(entry.settle(seen("a")).is_err(), "a delete that came back");
    }

    #[test]
    fn an_unanswered_change_is_whole_or_absent() {
        let mut entry = Entry { now: Some(object("old")), pending: None };
        entry.begin(Some(object("new")));
        assert!(entry.clone().settle(seen("ne")).is_err(), "half");
        assert!(entry.clone().settle(None).is_err(), "neither");
        assert_eq!(entry.clone().settle(seen("old")), Ok(Some(Found::Old)));
        assert_eq!(entry.settle(seen("new")), Ok(Some(Found::New)));
        assert_eq!(entry.now, Some(object("new")));
    }

    #[test]
    fn an_insert_brings_an_etag_of_its_own() {
        let mut entry = Entry { now: Some(object("ad")), pending: None };
        let new = entry.now.as_ref().unwrap().insert(1, b"bc");
        entry.begin(Some(new));
        let stale = Some((Bytes::from_static(b"abcd"), md5(b"ad")));
        assert!(entry.clone().settle(stale).is_err());
        let fresh = Some((Bytes::from_static(b"abcd"), "1-2".to_owned()));
        assert_eq!(entry.settle(fresh), Ok(Some(Found::New)));
        assert_eq!(entry.now.unwrap().etag.unwrap(), "1-2");
    }

    #[test]
    fn etags_are_those_of_s3() {
        assert_eq!(md5(b""), "d41d8cd98f00b204e9800998ecf8427e");
        let part = |text: &'static str| (Bytes::from_static(text.as_bytes()), String::new());
        let whole = Object::completed(&[part("ab"), part("c")]);
        assert_eq!(&whole.bytes[..], b"abc");
        let mut digests = Md5::digest(b"ab").to_vec();
        digests.extend(Md5::digest(b"c"));
        assert_eq!(whole.etag.unwrap(), format!("{}-2", md5(&digests)));
    }
}
