//! Elements of the servers' answers. Names and keys of this program need no unescaping but quotes.

/// The contents of all elements of a name that have no attributes, in their order.
pub fn all<'t>(text: &'t str, name: &str) -> impl Iterator<Item = &'t str> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut rest = text;
    std::iter::from_fn(move || {
        let begin = rest.find(&open)? + open.len();
        let len = rest[begin..].find(&close)?;
        let found = &rest[begin..begin + len];
        rest = &rest[begin + len + close.len()..];
        Some(found)
    })
}

/// The first one.
pub fn first<'t>(text: &'t str, name: &str) -> Option<&'t str> {
    all(text, name).next()
}

/// An ETag without its quotes, however they are written.
pub fn etag(text: &str) -> String {
    text.replace("&quot;", "").replace("&#34;", "").replace('"', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found() {
        let text = "<A><K>1</K><P><K>2</K></P><K/></A>";
        assert_eq!(all(text, "K").collect::<Vec<_>>(), ["1", "2"]);
        assert_eq!(first(text, "P"), Some("<K>2</K>"));
        assert_eq!(first(text, "N"), None);
        assert_eq!((etag("&#34;a&#34;"), etag("\"a\"")), ("a".into(), "a".into()));
    }
}
