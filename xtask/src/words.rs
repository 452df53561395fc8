//! Words that the project does not use, with what it says instead.
//!
//! Owns: the list. Documents are searched, and comments, strings and identifiers of sources. A
//! phrase that is still in use has a number of places left, which may fall and never rise.

use crate::lexer::{Part, parts};
use crate::source::File;

/// A phrase, what is said instead, and in how many places it may still stand.
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

/// Grammar of another language, what English says instead, and in how many places it may still
/// stand.
const GRAMMAR: [(&str, &str, usize); 22] = [
    ("where it is", "if it is", 20),
    ("where it has", "if it has", 0),
    ("where it does", "if it does", 0),
    ("where it can", "if it can", 0),
    ("where it cannot", "if it cannot", 0),
    ("where they are", "if they are", 12),
    ("where there is", "if there is", 0),
    ("where there are", "if there are", 1),
    ("where that is", "if that is", 0),
    ("where no", "if no", 2),
    ("where none", "if none", 1),
    ("where nothing", "if nothing", 5),
    ("is told", "learns, or reports", 22),
    ("are told", "learn, or report", 9),
    ("be told", "be known, or reported", 0),
    ("tells whether", "returns whether", 0),
    ("tells how", "returns how", 0),
    ("is said", "is printed, or stated", 8),
    ("said of", "known of, or printed about", 3),
    ("so many", "this many", 2),
    ("so much", "this much", 1),
    ("whoever", "who it is", 1),
];

/// All that people read: comments, strings and identifiers of sources, paragraphs of documents.
fn readable<'f>(files: &'f [File], documents: &'f [File]) -> Vec<(&'f str, String)> {
    let mut all: Vec<(&str, String)> = Vec::new();
    for file in files.iter().filter(|f| !f.path.starts_with("xtask/")) {
        let of_it = parts(&file.text).into_iter().map(|part| match part {
            Part::Comment(text) | Part::Text(text) => text.to_lowercase(),
            Part::Name(name) => words_of(name),
        });
        all.extend(of_it.map(|text| (file.path.as_str(), text)));
    }
    for file in documents {
        let paragraphs = file.text.split("\n\n");
        all.extend(paragraphs.map(|text| (file.path.as_str(), joined(text))));
    }
    all
}

/// Prints in how many places each phrase of [`GRAMMAR`] stands.
pub fn print(files: &[File], documents: &[File]) {
    let all = readable(files, documents);
    let mut total = 0;
    for (phrase, instead, left) in GRAMMAR {
        let found: usize = all.iter().map(|(_, text)| count(text, phrase)).sum();
        total += found;
        println!("{found:>5} of {left:>3} left  {phrase} ({instead})");
    }
    println!("{total:>5} in all");
}

/// Phrases that stand where they should not.
pub fn problems(files: &[File], documents: &[File]) -> Vec<String> {
    let all = readable(files, documents);
    let mut out = Vec::new();
    for (phrase, instead, left) in BANNED.into_iter().chain(GRAMMAR) {
        let found = all.iter().flat_map(|(path, text)| vec![*path; count(text, phrase)]);
        let found: Vec<&str> = found.collect();
        if found.len() > left {
            let (n, last) = (found.len(), found.last().copied().unwrap_or_default());
            out.push(format!(
                "\"{phrase}\" stands in {n} places, {left} are left (one is in {last}): say {instead}"
            ));
        }
    }
    out
}

/// A paragraph as one line, in small letters.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The words of an identifier: `goes_home`, `GoesHome` and `GOES_HOME` are "goes home".
fn words_of(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    let mut small = false;
    for c in name.chars() {
        if c == '_' || (small && c.is_uppercase()) {
            out.push(' ');
        }
        small = c.is_lowercase() || c.is_numeric();
        out.extend(c.to_lowercase().filter(|c| *c != '_'));
    }
    out
}

/// How often the text has the phrase as words of its own.
fn count(text: &str, phrase: &str) -> usize {
    let part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let alone = |at: &usize| {
        let behind = &text[at + phrase.len()..];
        !part(text[..*at].chars().next_back()) && !part(behind.chars().next())
    };
    text.match_indices(phrase).map(|(at, _)| at).filter(alone).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_words() {
        assert_eq!(count("it goes home. he goes home", "goes home"), 2);
        assert_eq!(count("crowded", "crowd") + count("at homer", "at home"), 0);
    }

    #[test]
    fn phrases_are_found_wherever_people_read() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let prose = [file("a.md", "we do this in\norder to see")];
        for code in [
            "// Lightning fast.\n",
            "/// What goes\n/// home later.\n",
            "fn f() { say(\"it went \\\n    home\"); }\n",
            "fn page_went_home() {}\n",
            "struct WentHome;\n",
            "const WENT_HOME: u8 = 0;\n",
        ] {
            assert_eq!(problems(&[file("a.rs", code)], &[]).len(), 1, "{code}");
        }
        assert_eq!(problems(&[], &prose).len(), 1);
        let right = "// It goes.\n\n// Home is far.\nfn went() { home(); }\n";
        assert!(problems(&[file("a.rs", right)], &[]).is_empty());
    }
}
