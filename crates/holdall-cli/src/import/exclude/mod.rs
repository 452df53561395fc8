//! Patterns of `--exclude`: which entries of the tree an import leaves out.
//!
//! Owns: [`Excludes`]. They are those of `rsync` and `.gitignore`: a pattern without a slash is for
//! the last part of a path, at any depth; one with a slash is for the path from the imported
//! directory on; a slash at the end means directories only. Cost of a comparison: the length of
//! the pattern times that of the path, whatever stars there are.

mod set;

use std::ffi::OsString;

use crate::name;
use set::Set;

/// All patterns given.
#[derive(Default)]
pub struct Excludes(Vec<Pattern>);

struct Pattern {
    /// For the whole path, not for its last part.
    whole: bool,
    dirs_only: bool,
    tokens: Vec<Token>,
}

enum Token {
    One(u32),
    /// `?`
    Any,
    /// `*`: any number within a part.
    Star,
    /// `**`: any number, slashes too.
    Deep,
    /// `**/`: any number of whole parts.
    Parts,
    /// `[…]`, or all others with `[!…]`.
    Set(Set),
}

const SLASH: u32 = b'/' as u32;

/// Characters; a byte that belongs to none counts as one of its own.
fn units(text: &[u8]) -> Vec<u32> {
    let of_chunk = |chunk: std::str::Utf8Chunk<'_>| {
        let valid: Vec<u32> = chunk.valid().chars().map(u32::from).collect();
        let others = chunk.invalid().iter().map(|byte| 0x11_0000 + u32::from(*byte));
        valid.into_iter().chain(others).collect::<Vec<_>>()
    };
    text.utf8_chunks().flat_map(of_chunk).collect()
}

impl Excludes {
    /// Reads patterns.
    ///
    /// # Errors
    /// What is wrong with the first one that nothing could match.
    pub fn parse(patterns: &[OsString]) -> Result<Self, String> {
        let parse = |text: &OsString| {
            Pattern::parse(name::bytes(text))
                .map_err(|why| format!("pattern {}: {why}", name::escape(name::bytes(text))))
        };
        patterns.iter().map(parse).collect::<Result<_, _>>().map(Self)
    }

    /// Whether the entry at `path`, relative to the imported directory, is left out.
    pub fn leave_out(&self, path: &[u8], is_dir: bool) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let path = units(path);
        let last = path.rsplit(|unit| *unit == SLASH).next().unwrap_or_default();
        self.0.iter().any(|pattern| {
            (is_dir || !pattern.dirs_only)
                && matches(&pattern.tokens, if pattern.whole { &path } else { last })
        })
    }

    /// Whether a file at `path` is left out, or a directory that it would lie in.
    pub fn cover(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
        let mut dirs = slashes.filter_map(|(at, _)| path.get(..at));
        !self.0.is_empty()
            && (dirs.any(|dir| self.leave_out(dir, true)) || self.leave_out(path, false))
    }
}

impl Pattern {
    fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let (text, dirs_only) = match text.strip_suffix(b"/") {
            Some(text) => (text, true),
            None => (text, false),
        };
        let (text, rooted) = match text.strip_prefix(b"/") {
            Some(text) => (text, true),
            None => (text, false),
        };
        if text.is_empty() {
            return Err("it is empty");
        }
        if text.split(|byte| *byte == b'/').any(|part| matches!(part, b"" | b"." | b"..")) {
            return Err("no path has an empty part, . or ..");
        }
        let tokens = tokens(&units(text))?;
        Ok(Self { whole: rooted || text.contains(&b'/'), dirs_only, tokens })
    }
}

fn tokens(text: &[u32]) -> Result<Vec<Token>, &'static str> {
    let is = |unit: Option<&u32>, c: u8| unit == Some(&u32::from(c));
    let mut out = Vec::new();
    let mut rest = text;
    while let Some((&unit, after)) = rest.split_first() {
        rest = after;
        match u8::try_from(unit) {
            Ok(b'?') => out.push(Token::Any),
            Ok(b'*') if is(rest.first(), b'*') => {
                let stars = rest.iter().take_while(|unit| is(Some(unit), b'*')).count();
                rest = rest.get(stars..).unwrap_or_default();
                let starts = matches!(out.last(), None | Some(Token::One(SLASH) | Token::Parts));
                match rest.split_first() {
                    Some((&SLASH, after)) if starts => {
                        rest = after;
                        out.push(Token::Parts);
                    }
                    _ => out.push(Token::Deep),
                }
            }
            Ok(b'*') => out.push(Token::Star),
            Ok(b'\\') => {
                let (&unit, after) = rest.split_first().ok_or("nothing follows its \\")?;
                rest = after;
                out.push(Token::One(unit));
            }
            Ok(b'[') => {
                let (set, after) = Set::parse(rest)?;
                rest = after;
                out.push(Token::Set(set));
            }
            _ => out.push(Token::One(unit)),
        }
    }
    Ok(out)
}

/// Whether the tokens stand for the whole text. Follows all ways at once.
fn matches(tokens: &[Token], text: &[u32]) -> bool {
    let mut at = vec![false; tokens.len() + 1];
    reach(tokens, &mut at, 0, true);
    for &unit in text {
        let mut next = vec![false; tokens.len() + 1];
        for (place, token) in tokens.iter().enumerate() {
            if !at.get(place).is_some_and(|here| *here) {
                continue;
            }
            match token {
                Token::One(wanted) if *wanted == unit => reach(tokens, &mut next, place + 1, true),
                Token::Any if unit != SLASH => reach(tokens, &mut next, place + 1, true),
                Token::Set(set) if set.has(unit) => reach(tokens, &mut next, place + 1, true),
                Token::Star if unit != SLASH => reach(tokens, &mut next, place, true),
                Token::Deep => reach(tokens, &mut next, place, true),
                // Left behind a slash only.
                Token::Parts => reach(tokens, &mut next, place, unit == SLASH),
                _ => {}
            }
        }
        at = next;
    }
    at.last().is_some_and(|end| *end)
}

/// Marks a place, and those behind it that no character is needed for.
fn reach(tokens: &[Token], at: &mut [bool], place: usize, may_leave: bool) {
    if let Some(here) = at.get_mut(place) {
        *here = true;
    }
    match tokens.get(place) {
        Some(Token::Star | Token::Deep) => reach(tokens, at, place + 1, true),
        Some(Token::Parts) if may_leave => reach(tokens, at, place + 1, true),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves_out(pattern: &str, path: &str, is_dir: bool) -> bool {
        Excludes::parse(&[pattern.into()]).unwrap().leave_out(path.as_bytes(), is_dir)
    }

    #[test]
    fn patterns_stand_for_what_they_say() {
        for (pattern, yes, no) in [
            ("*.tmp", &["a.tmp", "d/e/.tmp"][..], &["a.tmp2", "tmp", "a.tmp/b"][..]),
            ("cache", &["cache", "d/cache"], &["cache2", "d/cache/x"]),
            ("/cache", &["cache"], &["d/cache"]),
            ("d/*.o", &["d/a.o"], &["a.o", "d/e/a.o", "x/d/a.o"]),
            ("**/x", &["x", "a/x", "a/b/x"], &["ax", "a/bx", "x/a"]),
            ("a/**/x", &["a/x", "a/b/x", "a/b/c/x"], &["x", "ax", "a/bx"]),
            ("a/**", &["a/x", "a/b/c"], &["a", "b/x"]),
            ("?", &["a", "ä", "漢"], &["", "ab"]),
            ("[a-c]x[!0-9]", &["axa", "cx]"], &["dxa", "ax1"]),
            ("[]x]", &["]", "x"], &["y"]),
            (r"\*a", &["*a"], &["ba"]),
            ("[[:digit:]]*", &["1", "d/2x"], &["x1", "d"]),
            ("[![:digit:]_]", &["x", "["], &["1", "_", "xx"]),
            ("[[:alpha:][:digit:]]x", &["1x", "äx", "漢x"], &["-x", "x"]),
            ("[[:upper:]-]a", &["Aa", "Äa", "-a"], &["aa"]),
            ("[[:space:][:punct:]]", &[" ", "!", "\u{a0}"], &["a"]),
            (r"[\]x]", &["]", "x"], &["\\", "y"]),
            (r"[\\-a]", &["\\", "a", "]"], &["b", "-"]),
            ("[[x]", &["[", "x"], &["y"]),
            ("[a-]", &["a", "-"], &["b"]),
            ("[+-9]", &["1", "."], &["/", "a/b"]),
            ("a*b*c", &["abc", "axxbyyc"], &["ab", "acb"]),
        ] {
            for path in yes {
                assert!(leaves_out(pattern, path, false), "{pattern} {path}");
            }
            for path in no {
                assert!(!leaves_out(pattern, path, false), "{pattern} {path}");
            }
        }
        assert!(leaves_out("d/", "x/d", true) && !leaves_out("d/", "x/d", false));
        let raw = Excludes::parse(&["a?b".into()]).unwrap();
        assert!(raw.leave_out(b"a\xffb", false) && !raw.leave_out(b"a\xff\xfeb", false));
        let stars = format!("{}b", "a*".repeat(40));
        assert!(!leaves_out(&stars, &"a".repeat(4000), false));
    }

    #[test]
    fn what_can_match_nothing_is_refused() {
        let bad = ["", "/", "a//b", "./a", "../a", "a/..", "[a", "[", "[z-a]", "a\\", "[]", "[!]"];
        let sets = [
            "[:digit:]*",
            "[[:digit:]",
            "[[:digit]]",
            "[[:digits:]]",
            "[[.a.]]",
            "[[=a=]]",
            "[[:]",
            "[a-[:digit:]]",
            "[[:digit:]-z]",
            "[a/b]",
            r"[a\/]",
            r"[a\",
            "x[^:alpha:]",
        ];
        for pattern in bad.into_iter().chain(sets) {
            assert!(Excludes::parse(&[pattern.into()]).is_err(), "{pattern}");
        }
    }

    #[test]
    fn a_directory_covers_what_lies_in_it() {
        let excludes = Excludes::parse(&["d/".into(), "*.o".into()]).unwrap();
        assert!(excludes.cover(b"x/d/y") && excludes.cover(b"a.o") && !excludes.cover(b"x/d"));
    }
}
