//! Names of objects for people and in JSON.
//!
//! Owns: the printed forms of name bytes.
//! Invariant: `escape` is one to one, so two names never print alike.

use std::fmt::Write as _;

use serde_json::{Map, Value};

/// Whether a terminal acts on the character, or shows nothing for it: control characters, those
/// that turn the direction of text, breaks of lines, and those without a width.
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// The name as text for people: UTF-8 as it is; backslashes, bytes that are not UTF-8 and
/// characters that [`is_hidden`] escaped as `\n`, `\t`, `\r`, `\\` and `\xNN`.
pub fn escape(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if is_hidden(c) => push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => out.push(c),
            }
        }
        push_hex(&mut out, chunk.invalid());
    }
    out
}

fn push_hex(out: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(out, "\\x{byte:02x}");
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a String does not fail.
        let _ = write!(out, "{byte:02x}");
    }
    out
}

/// Adds `field` to a JSON object: text, lossy where the bytes are not UTF-8, and then the
/// exact bytes as `field_hex`.
pub fn to_json(object: &mut Map<String, Value>, field: &str, name: &[u8]) {
    object.insert(field.into(), Value::String(String::from_utf8_lossy(name).into_owned()));
    if std::str::from_utf8(name).is_err() {
        object.insert(format!("{field}_hex"), Value::String(hex(name)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_would_act_on() {
        assert_eq!(escape("grüße zu Hause".as_bytes()), "grüße zu Hause");
        assert_eq!(escape(b"a\nb\x1b[0m\\ \xff"), "a\\nb\\x1b[0m\\\\ \\xff");
        assert_ne!(escape(b"\\n"), escape(b"\n"));
        assert_eq!(escape("\u{85}".as_bytes()), "\\xc2\\x85");
        assert_eq!(escape("\u{9b}1m\u{7f}".as_bytes()), "\\xc2\\x9b1m\\x7f");
        assert_eq!(escape("a\u{202e}gpj.exe".as_bytes()), "a\\xe2\\x80\\xaegpj.exe");
        let hidden = [0x61c, 0x200b, 0x200f, 0x2028, 0x202a, 0x2060, 0x2069, 0xfeff];
        assert!(hidden.into_iter().filter_map(char::from_u32).all(is_hidden));
        let shown = [0x61b, 0x200a, 0x2010, 0x2027, 0x202f, 0x205f, 0x206f + 1, 0x1f980];
        assert!(!shown.into_iter().filter_map(char::from_u32).any(is_hidden));
    }

    #[test]
    fn json_keeps_exact_bytes() {
        let mut object = Map::new();
        to_json(&mut object, "name", b"a\xff");
        assert_eq!(object["name_hex"], "61ff");
        assert_eq!(object["name"], "a\u{fffd}");
    }
}
