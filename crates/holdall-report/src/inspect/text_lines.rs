//! Lines of text with indentation, and how bytes and runs are shown.
//!
//! Owns: [`Text`].

use std::fmt::{self, Write as _};

/// Text being made.
#[derive(Debug, Default)]
pub(crate) struct Text(String);

impl Text {
    /// Adds a line, `depth` steps to the right.
    pub(crate) fn line(&mut self, depth: usize, line: fmt::Arguments<'_>) {
        for _ in 0..depth {
            self.0.push_str("  ");
        }
        // Writing to a String does not fail.
        let _ = writeln!(self.0, "{line}");
    }

    /// Adds lines of hexadecimal digits, `width` bytes each, for the first `most` bytes.
    pub(crate) fn hex(&mut self, depth: usize, bytes: &[u8], most: usize) {
        const WIDTH: usize = 32;
        let shown = bytes.get(..most).unwrap_or(bytes);
        for (i, part) in shown.chunks(WIDTH).enumerate() {
            self.line(depth, format_args!("{:06x}  {}", i * WIDTH, Hex(part)));
        }
        if shown.len() < bytes.len() {
            self.line(depth, format_args!("and {} more bytes", bytes.len() - shown.len()));
        }
    }

    /// The text.
    pub(crate) fn finish(self) -> String {
        self.0
    }
}

/// Bytes as hexadecimal digits.
#[derive(Debug)]
pub(crate) struct Hex<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// A name in quotes, with what is no printable text escaped so that no two look alike.
#[derive(Debug)]
pub(crate) struct Name<'a>(pub(crate) &'a [u8]);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for chunk in self.0.utf8_chunks() {
            for c in chunk.valid().chars() {
                match c {
                    '\'' => f.write_char(c)?,
                    c => write!(f, "{}", c.escape_debug())?,
                }
            }
            chunk.invalid().iter().try_for_each(|b| write!(f, "\\x{b:02x}"))?;
        }
        f.write_char('"')
    }
}

/// Joins neighbours that are alike: gives (first, last, value) for each run of `items`.
pub(crate) fn runs<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<(usize, usize, T)> {
    let mut out: Vec<(usize, usize, T)> = Vec::new();
    for (i, item) in items.enumerate() {
        match out.last_mut() {
            Some((_, last, value)) if *value == item => *last = i,
            _ => out.push((i, i, item)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_bytes_and_runs_are_shown() {
        assert_eq!(Name(b"it's \"a\"\n\\x\xff").to_string(), r#""it's \"a\"\n\\x\xff""#);
        assert_eq!(Hex(&[0, 255]).to_string(), "00ff");
        assert_eq!(runs([1, 1, 2, 1].into_iter()), [(0, 1, 1), (2, 2, 2), (3, 3, 1)]);
        let mut text = Text::default();
        text.hex(1, &[7; 40], 33);
        assert_eq!(text.finish().lines().last(), Some("  and 7 more bytes"));
    }
}
