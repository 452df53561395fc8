//! Names of objects on the command line.
//!
//! Owns: the way from arguments to name bytes. Printed forms are those of `holdall_report`.

use std::ffi::OsStr;

use crate::failure::{Failure, Outcome};
use holdall::{Key, Oid};
pub use holdall_report::name::{escape, escape_ascii, is_hidden, to_json, unescape};

/// Longest name of an object, in bytes.
pub const MAX_NAME: usize = 1024;

/// Refuses a name that no store takes, before anything is read or made for it.
pub fn check(name: &[u8]) -> Outcome {
    if name.is_empty() {
        return Err(Failure::new("a name must not be empty", "give a name of at least one byte"));
    }
    if name.len() <= MAX_NAME {
        return Ok(());
    }
    let what = format!("the name of {} bytes is too long", name.len());
    Err(Failure::new(what, format!("use at most {MAX_NAME} bytes")))
}

/// As [`check`], for the name of a collection, if one is given.
pub fn check_collection(name: Option<&str>) -> Outcome {
    name.map_or(Ok(()), |name| check(name.as_bytes()))
}

/// The name bytes of an argument or path component: on Unix exactly its bytes.
pub fn bytes(text: &OsStr) -> &[u8] {
    text.as_encoded_bytes()
}

/// The OID an argument spells, if it does.
pub fn as_oid(arg: &OsStr) -> Option<Oid> {
    arg.to_str()?.parse().ok()
}

/// What an argument refers to: an OID if it spells one, a name otherwise.
pub fn key(arg: &OsStr) -> Key<'_> {
    as_oid(arg).map_or_else(|| bytes(arg).into(), Key::Oid)
}

/// The name behind an argument; `name_of` gives the name of an object given by OID.
pub fn resolve(
    arg: &OsStr,
    name_of: impl FnOnce(Oid) -> holdall::Result<Option<Vec<u8>>>,
) -> Outcome<Vec<u8>> {
    let Some(oid) = as_oid(arg) else { return Ok(bytes(arg).to_vec()) };
    name_of(oid)?
        .ok_or_else(|| Failure::new(format!("{oid} has no name"), "give an object that has one"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_oid_is_told_from_a_name() {
        assert!(as_oid(OsStr::new("oid:0.1.2.3")).is_some());
        assert!(as_oid(OsStr::new("oid:zebra")).is_none());
    }
}
