//! What a Rust source is made of, as far as words are looked for in it: comments, strings, names.
//!
//! Owns: [`parts`]. Sources that compile are expected; of others the parts are some parts.

/// A piece of a source.
#[derive(Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Comment lines that follow each other, without slashes, joined by blanks.
    Comment(String),
    /// What stands between the quotes of a string, its line breaks as blanks.
    Text(String),
    /// An identifier or a keyword.
    Name(&'a str),
}

/// All parts, in order. Cost: one pass over the text.
pub fn parts(text: &str) -> Vec<Part<'_>> {
    let (mut out, mut at) = (Vec::new(), 0);
    // Whether only blanks and one line break lie behind the last comment.
    let mut joins = false;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = rest[..end].trim_start_matches(['/', '!']).trim();
            match out.last_mut() {
                Some(Part::Comment(before)) if joins => *before = format!("{before} {line}"),
                _ => out.push(Part::Comment(line.to_owned())),
            }
            // The next line is a comment too, or what follows is no part of this one.
            joins = rest[end..].trim_start_matches('\n').trim_start_matches(' ').starts_with("//")
                && !rest[end..].starts_with("\n\n");
            at += end;
        } else if rest.starts_with("/*") {
            let end = rest.find("*/").map_or(rest.len(), |end| end + 2);
            out.push(Part::Comment(one_line(rest[..end].trim_matches(['/', '*', '!']))));
            at += end;
        } else if let Some((inside, len)) = string(rest) {
            out.push(Part::Text(one_line(inside)));
            at += len;
        } else if c == '\'' {
            at += character(rest);
        } else if c.is_alphabetic() || c == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
            out.push(Part::Name(&rest[..end]));
            at += end;
        } else if c.is_ascii_digit() {
            at += rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        } else {
            at += c.len_utf8();
        }
    }
    out
}

/// With one blank for each run of blanks, line breaks and backslashes before them.
fn one_line(text: &str) -> String {
    text.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is inside a string that begins here, and how long it is with its quotes.
fn string(rest: &str) -> Option<(&str, usize)> {
    let marks = rest.trim_start_matches(['b', 'c']);
    let prefix = rest.len() - marks.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = marks.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let inside = raw[hashes..].strip_prefix('"')?;
        let close = format!("\"{}", "#".repeat(hashes));
        let end = inside.find(&close).unwrap_or(inside.len());
        let len = (prefix + 1 + hashes + 1 + end + close.len()).min(rest.len());
        return Some((&inside[..end], len));
    }
    let inside = marks.strip_prefix('"')?;
    let (mut escaped, mut end) = (false, inside.len());
    for (i, c) in inside.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => {
                end = i;
                break;
            }
            _ => {}
        }
    }
    Some((&inside[..end], (prefix + end + 2).min(rest.len())))
}

/// The length of a character with its quotes, or of the quote of a lifetime.
fn character(rest: &str) -> usize {
    let inside = &rest[1..];
    let mut chars = inside.char_indices();
    match chars.next() {
        Some((_, '\\')) => {
            let end = inside.char_indices().skip(2).find(|(_, c)| *c == '\'');
            end.map_or(1, |(i, _)| i + 2)
        }
        Some((_, c)) if inside[c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_strings_and_names_are_told_apart() {
        let text = concat!(
            "//! One\n//! two.\n\n// Three\nfn f<'a>(x: &'a str) -> char { // four\n",
            "    g(\"a // \\\" b \\\n       c\", 'x', '\\'', '\"', br#\"raw \"q\" r\"#); 0x1f; }\n",
            "/* five\n   six */",
        );
        let found = parts(text);
        let comments: Vec<_> = found
            .iter()
            .filter_map(|p| if let Part::Comment(c) = p { Some(&**c) } else { None })
            .collect();
        let texts: Vec<_> = found
            .iter()
            .filter_map(|p| if let Part::Text(t) = p { Some(&**t) } else { None })
            .collect();
        let names: Vec<_> = found
            .iter()
            .filter_map(|p| if let Part::Name(n) = p { Some(*n) } else { None })
            .collect();
        assert_eq!(comments, ["One two.", "Three", "four", "five six"]);
        assert_eq!(texts, ["a // \\\" b c", "raw \"q\" r"]);
        assert_eq!(names, ["fn", "f", "a", "x", "a", "str", "char", "g"]);
    }
}
