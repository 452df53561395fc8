//! Names and values, any bytes, in JSON: as hexadecimal digits, so that each has one form.
//!
//! Owns: [`Name`].

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use std::fmt::Write;

/// A name, or another short string of any bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub Vec<u8>);

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.to_vec())
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut text = String::with_capacity(2 * self.0.len());
        for byte in &self.0 {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
        }
        to.serialize_str(&text)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        let digit = |c: u8| match c {
            b'0'..=b'9' => Some(c - b'0'),
            b'a'..=b'f' => Some(c - b'a' + 10),
            _ => None,
        };
        let pair = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes = text.as_bytes().chunks(2).map(pair).collect::<Option<Vec<u8>>>();
        bytes
            .map(Self)
            .ok_or_else(|| D::Error::custom("names are pairs of digits, 0 to 9 and a to f"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_one_form() {
        let name = Name(vec![0, 255, b'a']);
        assert_eq!(serde_json::to_string(&name).unwrap(), "\"00ff61\"");
        assert_eq!(serde_json::from_str::<Name>("\"00ff61\"").unwrap(), name);
        for text in ["\"0\"", "\"0g\"", "\"FF\"", "\"é\"", "1"] {
            assert!(serde_json::from_str::<Name>(text).is_err(), "{text}");
        }
    }
}
