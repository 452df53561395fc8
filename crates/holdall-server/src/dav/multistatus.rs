//! What answers of WebDAV about properties and locks are written in.

use crate::dav::lock_table::Lock;
use crate::http::xml::is_xml;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

/// The namespace of WebDAV.
pub const DAV: &str = "DAV:";
/// The namespace of Windows' times and attributes.
pub const WINDOWS: &str = "urn:schemas-microsoft-com:";
/// The time of the last change, as Windows has it.
pub const WINDOWS_MODIFIED: &str = "Win32LastModifiedTime";

/// The type of such an answer.
pub const TYPE: &str = "application/xml; charset=utf-8";
/// How an answer about properties begins.
pub const HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">";

/// Text as XML has it. Readers take a carriage return, and in a namespace each white space, for
/// another character unless it is a reference; what XML cannot hold is U+FFFD.
pub fn text(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if is_xml(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// XML that was written by `xmltree`, which writes some characters as they are that readers take for
/// others.
pub fn sound(xml: &str) -> Cow<'_, str> {
    if xml.chars().all(|c| c != '\r' && is_xml(c)) {
        return Cow::Borrowed(xml);
    }
    let mut out = String::with_capacity(xml.len() + 64);
    for c in xml.chars() {
        match c {
            '\r' => out.push_str("&#13;"),
            c if is_xml(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(out)
}

/// A lock, which has this time `left`; `infinity` is how the deepest depth is written.
pub fn active_lock(out: &mut String, lock: &Lock, left: Duration, infinity: &str) {
    let scope = if lock.shared { "shared" } else { "exclusive" };
    let depth = if lock.deep { infinity } else { "0" };
    let left = left.as_secs();
    // Writing into a string does not fail.
    let _ = write!(
        out,
        "<D:activelock><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype>\
         <D:depth>{depth}</D:depth><D:timeout>Second-{left}</D:timeout><D:locktoken><D:href>{}\
         </D:href></D:locktoken><D:lockroot><D:href>{}</D:href></D:lockroot>",
        lock.token,
        lock.path.address(),
    );
    if let Some(owner) = &lock.owner {
        // Records of earlier servers declare their version of XML.
        let declared = owner.split_once("?>").filter(|(begin, _)| begin.starts_with("<?xml"));
        out.push_str(&sound(declared.map_or(owner, |(_, element)| element)));
    }
    out.push_str("</D:activelock>");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        text(&mut out, "a<b>&\"\u{1}é\r\n\t");
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;\u{fffd}é&#13;&#10;&#9;");
        assert_eq!(sound("<a>\r\n\u{ffff}</a>"), "<a>&#13;\n\u{fffd}</a>");
        assert!(matches!(sound("<a>\n</a>"), Cow::Borrowed(_)));
    }
}
