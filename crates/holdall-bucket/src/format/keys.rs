//! The keys of a bucket: records by collection and name, blobs and intents by operation.
//!
//! A name is split at `/`, so that a server's own delimiter finds its folders. Each component is
//! percent-escaped byte by byte, so that the escaped form of a prefix is a prefix of the escaped name,
//! and listings follow the order of keys. The `!` at a record's end keeps it from being a folder of
//! another's key.

use super::{BlobId, Id};
use holdall::{Error, Result};

/// The key of the head.
pub const HEAD: &str = "holdall";
/// The key of the number of the collecting cycle.
pub const CYCLE: &str = "gc";
/// What all records' keys begin with.
pub const RECORDS: &str = "n/";
/// What all blobs' keys begin with.
pub const BLOBS: &str = "b/";
/// What all intents' keys begin with.
pub const INTENTS: &str = "i/";
/// Most bytes of a collection and a name, escaped: servers allow keys of 1,024.
pub const MAX_ESCAPED: usize = 900;

/// Stands for an empty component that something follows. No escape begins so.
const EMPTY: &str = "%_";
/// Ends the key of a record.
const END: char = '!';

/// The key of the record of `name` in `collection`.
///
/// # Errors
/// [`Error::Invalid`] for an empty collection, or names that are too long once escaped.
pub fn record(collection: &str, name: &str) -> Result<String> {
    let mut key = prefix(collection, name);
    if collection.is_empty() {
        return Err(Error::Invalid("a collection has a name of one character at least".into()));
    }
    let escaped = key.len() - RECORDS.len();
    if escaped > MAX_ESCAPED {
        return Err(Error::Invalid(format!(
            "{collection}/{name}: {escaped} bytes once escaped, at most {MAX_ESCAPED} go into a key"
        )));
    }
    key.push(END);
    Ok(key)
}

/// What the keys of all records of `collection` begin with whose names begin with `prefix`.
pub fn prefix(collection: &str, prefix: &str) -> String {
    let mut key = String::from(RECORDS);
    escape_into(&mut key, collection, true);
    key.push('/');
    let mut components = prefix.split('/').peekable();
    while let Some(component) = components.next() {
        let last = components.peek().is_none();
        if component.is_empty() && !last {
            key.push_str(EMPTY);
        }
        escape_into(&mut key, component, false);
        if !last {
            key.push('/');
        }
    }
    key
}

/// Appends `text` with all bytes escaped that some server or client changes. A first `.` is escaped so
/// that no component is `.` or `..`; of a collection `/` too.
fn escape_into(key: &mut String, text: &str, slash: bool) {
    let start = key.len();
    for c in text.chars() {
        // XML, in which listings come, lacks the last two characters of the first plane.
        let wide = !c.is_ascii() && !matches!(c, '\u{fffe}' | '\u{ffff}');
        let plain = c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '~' | '.') || wide;
        debug_assert!(slash || c != '/', "a component has no slash");
        if plain && !(c == '.' && key.len() == start) && !c.is_control() {
            key.push(c);
        } else {
            for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                key.push_str(&format!("%{byte:02X}"));
            }
        }
    }
}

/// Collection and name of a record's key, or of a folder's that ends with `/`; `None` if no record
/// has such a key.
pub fn parse_record(key: &str) -> Option<(String, String)> {
    let rest = key.strip_prefix(RECORDS)?;
    let (collection, rest) = rest.split_once('/')?;
    let folder = rest.ends_with('/');
    let body = if folder { rest } else { rest.strip_suffix(END)? };
    let mut name = String::new();
    let mut components = body.split('/').peekable();
    while let Some(component) = components.next() {
        let last = components.peek().is_none();
        if component != EMPTY {
            name.push_str(&unescape(component)?);
        }
        if !last {
            name.push('/');
        }
    }
    let collection = unescape(collection)?;
    // One key a name: what would be written otherwise is none of ours.
    let again = prefix(&collection, &name);
    let same = if folder { again == key } else { key.strip_suffix(END) == Some(&again) };
    (same && !collection.is_empty()).then_some((collection, name))
}

/// The collection that a folder below [`RECORDS`] is.
pub fn parse_collection(key: &str) -> Option<String> {
    let escaped = key.strip_prefix(RECORDS)?.strip_suffix('/')?;
    let name = unescape(escaped)?;
    let mut again = String::new();
    escape_into(&mut again, &name, true);
    (again == escaped && !name.is_empty()).then_some(name)
}

fn unescape(component: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(component.len());
    let mut rest = component.as_bytes();
    while let [first, after @ ..] = rest {
        if *first == b'%' {
            let [a, b, after @ ..] = after else { return None };
            let digit = |d: &u8| char::from(*d).to_digit(16);
            bytes.push((digit(a)? * 16 + digit(b)?) as u8);
            rest = after;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// The key of a blob.
pub fn blob(id: BlobId) -> String {
    format!("{}{}", blobs_of(id.operation), id.number)
}

/// What the keys of all blobs of an operation begin with.
pub fn blobs_of(operation: Id) -> String {
    let text = operation.to_string();
    format!("{BLOBS}{}/{text}/", &text[..2])
}

/// The blob that has this key.
pub fn parse_blob(key: &str) -> Option<BlobId> {
    let (_, rest) = key.strip_prefix(BLOBS)?.split_once('/')?;
    let (operation, number) = rest.split_once('/')?;
    let id = BlobId { operation: Id::parse(operation)?, number: number.parse().ok()? };
    (blob(id) == key).then_some(id)
}

/// The key of an intent.
pub fn intent(operation: Id) -> String {
    format!("{INTENTS}{operation}")
}

/// The operation whose intent has this key.
pub fn parse_intent(key: &str) -> Option<Id> {
    Id::parse(key.strip_prefix(INTENTS)?)
}
