//! XML that clients send to WebDAV, and that stores keep of it.
//!
//! Owns: [`check`] and [`parse`]. Trees of elements are built and dropped by recursion in
//! `xmltree`, so that a small body could use up a thread's stack. A body is
//! therefore read once by events, in constant memory, and is refused if it nests deeper or has
//! more in it than any client of WebDAV writes.

use crate::refusal::{Result, Why};
use xml::reader::{EventReader, ParserConfig, XmlEvent};
use xmltree::{Element, EmitterConfig};

/// Deepest element.
const DEEPEST: usize = 100;
/// Most elements of a body.
const MOST_ELEMENTS: usize = 20_000;
/// Most attributes of an element, namespaces included.
const MOST_ATTRIBUTES: usize = 64;
/// Most namespaces that are known at a time: each element copies them.
const MOST_SPACES: usize = 128;
/// Most bytes of names and namespaces, each counted for each element that has it.
const MOST_BUILT: usize = 8 << 20;

/// Refuses a body that is no XML, declares a document type, or is too deep or too large to be
/// built. Cost: one pass.
///
/// # Errors
/// BadXml.
pub fn check(bytes: &[u8]) -> Result<()> {
    let bad = |text: String| Why::BadXml.says(format!("the body cannot be used: {text}"));
    let config = ParserConfig::new()
        .allow_multiple_root_elements(false)
        .max_attributes(MOST_ATTRIBUTES)
        .max_entity_expansion_length(0)
        .max_entity_expansion_depth(1);
    let (mut depth, mut elements, mut built) = (0_usize, 0_usize, 0_usize);
    for event in EventReader::new_with_config(bytes, config) {
        match event.map_err(|e| bad(e.msg().to_string()))? {
            XmlEvent::StartElement { namespace, name, .. } => {
                (depth, elements) = (depth + 1, elements + 1);
                if depth > DEEPEST {
                    return Err(bad(format!("elements nest {DEEPEST} deep at most")));
                }
                let spaces = namespace.0.iter().map(|(short, space)| short.len() + space.len());
                built += spaces.sum::<usize>() + name.namespace.as_ref().map_or(0, String::len);
                if built > MOST_BUILT {
                    return Err(bad("its namespaces are too long".into()));
                }
                if elements > MOST_ELEMENTS || namespace.0.len() > MOST_SPACES {
                    let text = format!("it has at most {MOST_ELEMENTS} elements");
                    return Err(bad(format!("{text}, {MOST_SPACES} namespaces at a time")));
                }
            }
            XmlEvent::EndElement { .. } => depth = depth.saturating_sub(1),
            XmlEvent::Doctype { .. } => return Err(bad("it declares a document type".into())),
            _ => {}
        }
    }
    if elements == 0 {
        return Err(bad("it holds no element".into()));
    }
    Ok(())
}

/// An element as text, without a declaration before it.
///
/// # Errors
/// [`Why::BadXml`].
pub fn written(element: &Element) -> Result<String> {
    let mut out = Vec::new();
    let config = EmitterConfig::new().write_document_declaration(false);
    let bad = |e: String| Why::BadXml.says(format!("an element cannot be kept: {e}"));
    element.write_with_config(&mut out, config).map_err(|e| bad(e.to_string()))?;
    String::from_utf8(out).map_err(|e| bad(e.to_string()))
}

/// Whether XML 1.0 can hold a character.
pub fn is_xml(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{FFFD}' | '\u{10000}'..)
}

/// The root of a document that [`check`] passes.
///
/// # Errors
/// BadXml.
pub fn parse(bytes: &[u8]) -> Result<Element> {
    check(bytes)?;
    Element::parse(bytes).map_err(|e| Why::BadXml.says(format!("the body is no XML: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nested(depth: usize) -> String {
        format!("{}{}", "<a>".repeat(depth), "</a>".repeat(depth))
    }

    #[test]
    fn what_people_write_is_read() {
        assert_eq!(parse(b"<a xmlns=\"DAV:\"><b>x &amp; y</b></a>").unwrap().name, "a");
        check(nested(DEEPEST).as_bytes()).unwrap();
        check(b"<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<a/>\n").unwrap();
    }

    #[test]
    fn what_no_stack_or_memory_holds_is_refused() {
        let wide = format!("<a>{}</a>", "<b/>".repeat(MOST_ELEMENTS));
        let spaces: String = (0..MOST_SPACES).map(|n| format!("<a xmlns:n{n}=\"u\">")).collect();
        let attributes: String = (0..200).map(|n| format!(" a{n}=\"\"")).collect();
        for text in [
            &nested(DEEPEST + 1),
            &nested(1_000_000),
            &"<a>".repeat(1_000_000),
            &wide,
            &spaces,
            &format!("<a{attributes}/>"),
            &format!("<a xmlns=\"{}\">{}</a>", "n".repeat(30_000), "<b/>".repeat(1_000)),
            "",
            "<!-- nothing -->",
            "<a></b>",
            "<a/><b/>",
            "<!DOCTYPE a><a/>",
            "<!DOCTYPE a [<!ENTITY e \"x\">]><a>&e;</a>",
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{}", &text[..text.len().min(60)]);
        }
        assert!(parse(b"\xff\xfe<").is_err());
    }
}
