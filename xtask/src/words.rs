//! Words that the project does not use, with what it says instead.
//!
//! Owns: the list. Comments and documents are searched. A word that is still in use has a
//! number of places left, which may fall and never rise.

use crate::source::File;

/// A phrase, what is said instead, and in how many lines it may still stand.
const BANNED: [(&str, &str, usize); 21] = [
    ("the ordinary way", "the slow path", 0),
    ("the short way", "the fast path", 0),
    ("the system's cache", "the page cache", 0),
    ("the operating system's cache", "the page cache", 0),
    ("a call of the system", "a system call", 0),
    ("goes home", "is flushed in place", 0),
    ("go home", "are flushed in place", 0),
    ("went home", "was flushed in place", 0),
    ("written home", "flushed in place", 0),
    ("at home", "in place", 0),
    ("brought closer", "prefetched", 0),
    ("crowd", "relocation", 0),
    ("shelf", "view cache", 0),
    ("compartment", "slot", 0),
    ("wishes", "background requests", 0),
    ("blazing", "a figure", 0),
    ("lightning", "a figure", 0),
    ("simply", "nothing", 0),
    ("obviously", "nothing", 0),
    ("utilize", "use", 0),
    ("in order to", "to", 0),
];

/// Phrases that stand where they should not.
pub fn problems(files: &[File], documents: &[File]) -> Vec<String> {
    let comments = files.iter().filter(|f| !f.path.starts_with("xtask/"));
    let lines = comments.flat_map(|f| {
        let comment = |line: &&str| line.trim_start().starts_with("//");
        f.text.lines().filter(comment).map(|line| (f.path.as_str(), line))
    });
    let documents = documents.iter();
    let prose = documents.flat_map(|f| f.text.lines().map(|line| (f.path.as_str(), line)));
    let all: Vec<(&str, String)> =
        lines.chain(prose).map(|(path, line)| (path, line.to_lowercase())).collect();
    let mut out = Vec::new();
    for (word, instead, left) in BANNED {
        let found: Vec<&str> =
            all.iter().filter(|(_, line)| has(line, word)).map(|(path, _)| *path).collect();
        if found.len() > left {
            let (n, last) = (found.len(), found.last().copied().unwrap_or_default());
            out.push(format!(
                "\"{word}\" stands in {n} lines, {left} are left (one is in {last}): say {instead}"
            ));
        }
    }
    out
}

/// Whether the line has the phrase as words of its own.
fn has(line: &str, phrase: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    line.match_indices(phrase).any(|(at, _)| {
        let behind = &line[at + phrase.len()..];
        !part(line[..at].chars().next_back()) && !part(behind.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_words() {
        assert!(has("it goes home.", "goes home"));
        assert!(!has("crowded", "crowd") && !has("at homer", "at home"));
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let code = [file("a.rs", "// Lightning fast.\nlet lightning = 1;\n")];
        let prose = [file("a.md", "in order to see")];
        assert_eq!(problems(&code, &prose).len(), 2);
    }
}
