//! The program's version: its number and the hash of its file.
//!
//! Owns: nothing. What another build kept is not taken for this one's.

use std::fs;

/// `0.1.0 3f2a..`: the first 12 digits of the hash; the number alone if the file cannot be
/// read. Reads the program's file once.
#[must_use]
pub fn of_program() -> String {
    let number = env!("CARGO_PKG_VERSION");
    let bytes = std::env::current_exe().and_then(fs::read);
    let hash = bytes.map(|bytes| blake3::hash(&bytes).to_hex());
    hash.map_or_else(|_| number.to_owned(), |hash| format!("{number} {}", &hash[..12]))
}
