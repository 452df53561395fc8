//! Names of objects: what can be one, and how messages show it.
//!
//! Owns: [`MAX_NAME`]. Pure.

use crate::{Error, Result};

/// Longest name of an object in bytes.
pub const MAX_NAME: usize = 1024;

/// Refuses names that no object can have.
///
/// # Errors
/// [`Error::Invalid`] for no bytes, or more than [`MAX_NAME`].
pub fn check_name(name: &[u8]) -> Result<()> {
    if name.len() > MAX_NAME {
        let text = format!("a name of {} bytes is too long; at most {MAX_NAME}", name.len());
        return Err(Error::Invalid(text));
    }
    if name.is_empty() {
        return Err(Error::Invalid("a name must not be empty".into()));
    }
    Ok(())
}

/// A name in messages: quoted, and readable if it is UTF-8.
pub fn show_name(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_between_one_byte_and_the_most() {
        for (len, fits) in [(0, false), (1, true), (MAX_NAME, true), (MAX_NAME + 1, false)] {
            assert_eq!(check_name(&vec![0xff; len]).is_ok(), fits, "{len}");
        }
        assert_eq!(show_name(b"a\"\n\xff"), "\"a\\\"\\n\u{fffd}\"");
    }
}
