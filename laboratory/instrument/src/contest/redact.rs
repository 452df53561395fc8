//! Errors without the machine's paths: results are published.

use std::path::Path;

/// `text` if an absolute path is only its last part. Paths below `dir` are replaced first,
/// because they may contain spaces.
pub(crate) fn paths(text: &str, dir: &Path) -> String {
    let text = text.replace(&*dir.to_string_lossy(), "/DIR");
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '(' | ')' | ',' | ';');
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let token = &rest[..rest.find(ends).unwrap_or(rest.len())];
        // Not in the middle of a word, and of two parts at least: "MB/s" and " / " are no paths.
        let is_path = |at: &usize| {
            let rest = &token[at + 1..];
            at_start(&token[..*at]) && (rest.contains('/') || rest.starts_with("DIR"))
        };
        match token.find('/').filter(is_path) {
            Some(at) => {
                out.push_str(&token[..at]);
                let path = token[at..].trim_end_matches(['/', '.', ':']);
                let last = path.rsplit('/').next().unwrap_or_default();
                out.push_str(last);
                out.push_str(&token[at + path.len()..].replace('/', ""));
            }
            None => out.push_str(token),
        }
        rest = &rest[token.len()..];
        let end = rest.chars().next().map_or(0, char::len_utf8);
        out.push_str(&rest[..end]);
        rest = &rest[end..];
    }
    out
}

/// Whether a slash after this begins a path.
fn at_start(before: &str) -> bool {
    before.is_empty() || before.ends_with(['=', ':', '[', '<', '{'])
}

#[cfg(test)]
mod tests {
    use super::paths;
    use std::path::Path;

    #[test]
    fn only_last_parts_stay() {
        let dir = Path::new("/mnt/my disk/bench");
        let shown = |text| paths(text, dir);
        assert_eq!(shown("opening /mnt/my disk/bench/w1/a.db: no space"), "opening a.db: no space");
        assert_eq!(shown("IO error: /home/me/x/y.sst: full"), "IO error: y.sst: full");
        assert_eq!(shown("at path:/home/me/y, \"/etc/x\""), "at path:y, \"x\"");
        assert_eq!(shown("3 MB/s of 1/2; a / b"), "3 MB/s of 1/2; a / b");
        assert_eq!(shown("in /mnt/my disk/bench"), "in DIR");
        assert_eq!(shown("é /ö/ü."), "é ü.");
    }
}
