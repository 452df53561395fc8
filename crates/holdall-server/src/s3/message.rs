//! Messages in XML as clients write them, for a reader that knows less of XML.
//!
//! Owns: [`read`]. `s3s` leaves out sections of CDATA, of which a key would then lack a piece, and
//! refuses references to characters that keys may have.

use crate::s3::elements;
use s3s::{S3Error, S3Result, s3_error};

fn malformed(what: &str) -> S3Error {
    s3_error!(MalformedXML, "{what}")
}

/// Appends text in the form that a reader takes as it is.
fn escape(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            c => out.push(c),
        }
    }
}

/// The character that a reference `#N` or `#xN` names.
fn character(name: &str) -> S3Result<char> {
    let number = name.strip_prefix('#').unwrap_or_default();
    let (digits, base) = number.strip_prefix('x').map_or((number, 10), |hex| (hex, 16));
    let sound = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let code = sound.then(|| u32::from_str_radix(digits, base).ok()).flatten();
    let found = code.filter(|code| *code != 0).and_then(char::from_u32);
    found.ok_or_else(|| malformed(&format!("&{name}; is no character")))
}

/// A message whose elements are known (`elements.rs`), in a form that a simple reader takes.
///
/// # Errors
/// MalformedXML; NotImplemented for what is known and not offered.
pub fn read(bytes: &[u8]) -> S3Result<String> {
    elements::known(&plain(bytes)?)
}

/// A message without CDATA and without references to characters by number. Cost: one pass.
///
/// # Errors
/// MalformedXML for what is not UTF-8, does not end, or refers to no character.
fn plain(bytes: &[u8]) -> S3Result<String> {
    const MARKS: [(&str, &str); 3] = [("<!--", "-->"), ("<?", "?>"), ("<![CDATA[", "]]>")];
    let mut rest = std::str::from_utf8(bytes).map_err(|_| malformed("it is not UTF-8"))?;
    let mut out = String::with_capacity(rest.len());
    while let Some(at) = rest.find(['<', '&']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some((begin, end)) = MARKS.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let inside = &rest[begin.len()..];
            let len = inside.find(end).ok_or_else(|| malformed("it ends too early"))?;
            if *begin == "<![CDATA[" {
                escape(&mut out, &inside[..len]);
            }
            rest = &inside[len + end.len()..];
        } else if let Some(name) = rest.strip_prefix('&').filter(|name| name.starts_with('#')) {
            let len = name.find(';').ok_or_else(|| malformed("a reference does not end"))?;
            let mut buffer = [0; 4];
            escape(&mut out, character(&name[..len])?.encode_utf8(&mut buffer));
            rest = &name[len + 1..];
        } else {
            out.push_str(&rest[..1]);
            rest = &rest[1..];
        }
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_simple_reader_would_miss_is_written_plainly() {
        for (message, expected) in [
            ("<a>x<![CDATA[<y>&z]]></a>", "<a>x&lt;y&gt;&amp;z</a>"),
            ("<a>&#1;&#x1F600;&#60;&#38;#1;</a>", "<a>\u{1}\u{1F600}&lt;&amp;#1;</a>"),
            ("<?xml version='1.0'?><!-- <![CDATA[ --><a>&amp;#13;</a>", "<a>&amp;#13;</a>"),
            ("<a>&lt;\u{e9} ]]></a>", "<a>&lt;\u{e9} ]]></a>"),
        ] {
            assert_eq!(plain(message.as_bytes()).unwrap(), expected);
        }
        let long = format!("<a>{}</a>", "&".repeat(100_000));
        assert_eq!(plain(long.as_bytes()).unwrap(), long);
        for bad in
            ["<a>&#0;</a>", "<a>&#xD800;</a>", "<a>&#;", "&#+1;", "&#1", "<!-- ", "<![CDATA[x]]"]
        {
            assert!(plain(bad.as_bytes()).is_err(), "{bad}");
        }
        assert!(plain(b"<a>\xff</a>").is_err());
    }
}
