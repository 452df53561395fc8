//! Standard output: buffered, with every failure reported and a closed pipe quiet.
//!
//! Owns: [`Out`]. One thread.

use std::fmt::Arguments;
use std::io::{self, BufWriter, Stdout, Write};

use serde_json::Value;

use crate::failure::{Failure, Outcome};

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

/// Writes one JSON value on one line.
pub fn json(value: &Value) -> Outcome {
    let mut out = Out::new();
    out.line(format_args!("{value}"))?;
    out.finish()
}

/// Writes lines of text.
pub fn say(text: Arguments<'_>) -> Outcome {
    let mut out = Out::new();
    out.line(text)?;
    out.finish()
}
