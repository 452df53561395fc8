//! Standard output: buffered, with every failure reported and a closed pipe quiet.
//!
//! Owns: [`Out`]. One thread.

use std::fmt::{Arguments, Write as _};
use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::name::is_hidden;

/// Standard output of a subcommand. Call [`Out::finish`] at the end: a drop loses errors.
pub struct Out(BufWriter<Stdout>);

impl Out {
    /// Opens standard output with a 64 KiB buffer.
    pub fn new() -> Self {
        Self(BufWriter::with_capacity(64 << 10, io::stdout()))
    }

    /// Writes one line.
    pub fn line(&mut self, text: Arguments<'_>) -> Outcome {
        self.0.write_fmt(format_args!("{text}\n")).map_err(|e| Failure::stdout(&e))
    }

    /// Writes text as it is.
    pub fn text(&mut self, text: &str) -> Outcome {
        self.bytes(text.as_bytes())
    }

    /// Writes bytes as they are.
    pub fn bytes(&mut self, bytes: &[u8]) -> Outcome {
        self.0.write_all(bytes).map_err(|e| Failure::stdout(&e))
    }

    /// Passes on what is buffered, so that a reader sees it now.
    pub fn flush(&mut self) -> Outcome {
        self.0.flush().map_err(|e| Failure::stdout(&e))
    }

    /// Writes what is left and reports what went wrong.
    pub fn finish(mut self) -> Outcome {
        self.flush()
    }
}

/// A JSON value on one line. Hidden characters, which occur in strings only, are escaped there.
pub fn json_text(value: &Value) -> String {
    let plain = value.to_string();
    if !plain.chars().any(is_hidden) {
        return plain;
    }
    let mut text = String::with_capacity(plain.len() + 16);
    for c in plain.chars() {
        if is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String does not fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

/// Writes one JSON value on one line.
pub fn json(value: &Value) -> Outcome {
    let mut out = Out::new();
    out.line(format_args!("{}", json_text(value)))?;
    out.finish()
}

/// Writes lines of text.
pub fn say(text: Arguments<'_>) -> Outcome {
    let mut out = Out::new();
    out.line(text)?;
    out.finish()
}

/// The result of reporting `done`, which is done even if that cannot be printed.
pub fn after(done: &str, said: Outcome) -> Outcome {
    said.map_err(|failure| failure.after(done))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_shows_hidden_characters_and_means_the_same() {
        let text = "\u{e0041}a\u{9b}\u{7f}\u{202e}\u{200b}\u{feff}\n\u{85}\u{61c}\u{e4}";
        let value = serde_json::json!({ "\u{2066}": text });
        let shown = json_text(&value);
        assert!(!shown.chars().any(is_hidden), "{shown}");
        assert!(
            shown.contains(
                r"\udb40\udc41a\u009b\u007f\u202e\u200b\ufeff\n\u0085\u061c\u{e4}"
                    .replace(r"\u{e4}", "\u{e4}")
                    .as_str()
            )
        );
        assert_eq!(serde_json::from_str::<Value>(&shown).unwrap(), value);
    }
}
