//! Names of objects for people and in JSON.
//!
//! Owns: the printed forms of name bytes.
//! Invariant: `escape` is one to one, so two names never print alike.

use std::fmt::Write as _;

use crate::letters::{is_composed, is_mark, is_unassigned};
use serde_json::{Map, Value};

/// Characters that show nothing or an empty place, beside control characters: without a width,
/// of another direction, blanks other than the space, variants of the character before.
const UNSEEN: [(u32, u32); 26] = [
    (0xa0, 0xa0),
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3000, 0x3000),
    (0x3164, 0x3164),
    (0xe000, 0xf8ff),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x13430, 0x1343f),
    (0x1bca0, 0x1bca3),
    (0x1d159, 0x1d159),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
    (0xf0000, 0xffffd),
    (0x10_0000, 0x10_fffd),
];

/// Whether a terminal acts on the character, or shows nothing, an empty place or the sign of an
/// unknown one for it.
pub fn is_hidden(c: char) -> bool {
    let code = u32::from(c);
    c.is_control()
        || is_unassigned(c)
        || UNSEEN.iter().any(|(first, last)| (*first..=*last).contains(&code))
}

/// The name as text for people: UTF-8 as it is; backslashes, spaces at either end, bytes that are
/// not UTF-8, characters that [`is_hidden`], marks with nothing to go onto and what is not in
/// composed form (NFC) escaped as `\n`, `\t`, `\r`, `\\` and `\xNN`.
pub fn escape(name: &[u8]) -> String {
    let start = name.iter().take_while(|byte| **byte == b' ').count();
    let inner = name.get(start..).unwrap_or_default();
    let end = inner.iter().rev().take_while(|byte| **byte == b' ').count();
    let mut out = String::with_capacity(name.len());
    out.extend(std::iter::repeat_n("\\x20", start));
    push_escaped(&mut out, inner.get(..inner.len() - end).unwrap_or_default());
    out.extend(std::iter::repeat_n("\\x20", end));
    out
}

/// As [`escape`], and without a character that is not ASCII: some look like others.
pub fn escape_ascii(name: &[u8]) -> String {
    let mut out = String::with_capacity(name.len());
    for c in escape(name).chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            push_hex(&mut out, c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    out
}

fn push_escaped(out: &mut String, name: &[u8]) {
    for chunk in name.utf8_chunks() {
        let mut rest = chunk.valid();
        while !rest.is_empty() {
            let (plain, behind) = rest.split_at(rest.bytes().take_while(u8::is_ascii).count());
            plain.chars().for_each(|c| push_ascii(out, c));
            let (run, after) =
                behind.split_at(behind.find(|c: char| c.is_ascii()).unwrap_or(behind.len()));
            push_run(out, plain.chars().next_back(), run);
            rest = after;
        }
        push_hex(out, chunk.invalid());
    }
}

fn push_ascii(out: &mut String, c: char) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        c if c.is_control() => push_hex(out, c.encode_utf8(&mut [0; 4]).as_bytes()),
        c => out.push(c),
    }
}

/// Characters that are not ASCII, behind `before`. None of them goes together with what follows,
/// so that they are in composed form or not by themselves.
fn push_run(out: &mut String, before: Option<char>, run: &str) {
    let composed = is_composed(&before.into_iter().chain(run.chars()).collect::<String>());
    // Whether there is a character that a mark can go onto, and not a part of an escape.
    let mut carries = before.is_some_and(|c| !c.is_control() && c != '\\');
    for c in run.chars() {
        let shown = composed && !is_hidden(c) && (carries || !is_mark(c));
        match shown {
            true => out.push(c),
            false => push_hex(out, c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
        carries = shown;
    }
}

/// The bytes that [`escape`] has written as `text`.
///
/// # Errors
/// What is wrong with a backslash that [`escape`] does not write.
pub fn unescape(text: &[u8]) -> Result<Vec<u8>, &'static str> {
    const UNKNOWN: &str = "a backslash begins \\n, \\t, \\r, \\\\ or \\xNN only";
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            out.push(byte);
            continue;
        }
        let (&kind, after) = rest.split_first().ok_or(UNKNOWN)?;
        rest = after;
        out.push(match kind {
            b'\\' => b'\\',
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'x' => {
                let (digits, after) = rest.split_at_checked(2).ok_or(UNKNOWN)?;
                rest = after;
                let digit = |at: usize| char::from(*digits.get(at)?).to_digit(16);
                let value = digit(0).zip(digit(1)).map(|(high, low)| high * 16 + low);
                value.and_then(|value| u8::try_from(value).ok()).ok_or(UNKNOWN)?
            }
            _ => return Err(UNKNOWN),
        });
    }
    Ok(out)
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

/// Adds `field` to a JSON object: text, lossy if the bytes are not UTF-8, and then the
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
        assert_eq!(escape(b" a b  "), "\\x20a b\\x20\\x20");
        assert_eq!(escape(b"   "), "\\x20\\x20\\x20");
        assert_eq!(
            escape("a\u{a0}b\u{3000}\u{ad}".as_bytes()),
            "a\\xc2\\xa0b\\xe3\\x80\\x80\\xc2\\xad"
        );
        assert_eq!(escape_ascii("p\u{430}y\u{e4} \\".as_bytes()), "p\\xd0\\xb0y\\xc3\\xa4 \\\\");
        let hidden = [
            0xa0, 0xad, 0x3164, 0xfe0f, 0xe0041, 0x61c, 0x200b, 0x200f, 0x2028, 0x202a, 0x2060,
            0x2069, 0xfeff,
        ];
        assert!(hidden.into_iter().filter_map(char::from_u32).all(is_hidden));
        let shown = [0x20, 0x61b, 0x1ffe, 0x2010, 0x2027, 0x2030, 0x206f + 1, 0x1f980];
        assert!(!shown.into_iter().filter_map(char::from_u32).any(is_hidden));
    }

    #[test]
    fn of_names_that_mean_the_same_one_is_shown_as_it_is() {
        let alike = [
            ("\u{e9}", "e\u{301}"),
            ("\u{c5}", "\u{212b}"),
            ("\u{c5}", "A\u{30a}"),
            ("\u{3a9}", "\u{2126}"),
            ("\u{8c48}", "\u{f900}"),
            ("\u{ac00}", "\u{1100}\u{1161}"),
            ("\u{ac01}", "\u{ac00}\u{11a8}"),
            ("a\u{323}\u{302}b", "a\u{302}\u{323}b"),
            ("x\u{e4}y", "xa\u{308}y"),
        ];
        for (one, other) in alike {
            let (shown, escaped) = (escape(one.as_bytes()), escape(other.as_bytes()));
            assert!(shown != escaped && !is_composed(other), "{shown} {escaped}");
            let kept = other.chars().filter(|c| !c.is_ascii()).any(|c| escaped.contains(c));
            assert!(!kept && escaped.contains("\\x"), "{escaped}");
            assert_eq!(unescape(escaped.as_bytes()).unwrap(), other.as_bytes());
        }
        assert_eq!(escape("\u{e9}\u{ac00}z\u{ac01}".as_bytes()), "\u{e9}\u{ac00}z\u{ac01}");
        // Marks that stand for themselves, or would go onto an escape.
        assert_eq!(escape("\u{338}a".as_bytes()), "\\xcc\\xb8a");
        assert_eq!(escape("  \u{338}".as_bytes()), "\\x20\\x20\\xcc\\xb8");
        assert_eq!(escape("\n\u{338}".as_bytes()), "\\n\\xcc\\xb8");
        assert_eq!(escape("\\\u{338}".as_bytes()), "\\\\\\xcc\\xb8");
        assert_eq!(escape(b"\xff\xcc\xb8"), "\\xff\\xcc\\xb8");
        assert_eq!(escape("x\u{338}".as_bytes()), "x\u{338}");
        // No characters: never, and not yet.
        for none in ["\u{fdd0}", "\u{ffff}", "\u{1fffe}", "\u{378}", "\u{e1000}"] {
            assert!(escape(none.as_bytes()).starts_with("\\x"), "{none:?}");
        }
    }

    #[test]
    fn what_is_escaped_can_be_read_back() {
        let names: [&[u8]; 8] = [
            "e\u{301}\u{fdd0}".as_bytes(),
            "\u{301}".as_bytes(),
            b"plain",
            b" a\\n\n\r\t\x00 ",
            b"\xff\xfe",
            b"",
            "ä\u{202e}".as_bytes(),
            b"\\x41",
        ];
        for name in names {
            assert_eq!(unescape(escape(name).as_bytes()).unwrap(), name);
            assert_eq!(unescape(escape_ascii(name).as_bytes()).unwrap(), name);
        }
        for text in ["\\", "\\q", "\\x", "\\x4", "\\xg0", "\\x+1"] {
            assert!(unescape(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn json_keeps_exact_bytes() {
        let mut object = Map::new();
        to_json(&mut object, "name", b"a\xff");
        assert_eq!(object["name_hex"], "61ff");
        assert_eq!(object["name"], "a\u{fffd}");
    }
}
