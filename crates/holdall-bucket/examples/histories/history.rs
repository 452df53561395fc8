//! The history that a client leaves: a line before each call and one after each answer.
//!
//! A line is one write at the end of the file: who is killed loses an answer at most. Times are of the
//! machine's monotonic clock, which all processes share.

use holdall::{Error, Result};
use holdall_bucket::store::ObjectVersion;
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Nanoseconds of the monotonic clock.
pub(crate) fn now() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// A history under way.
pub(crate) struct History {
    file: File,
    calls: AtomicU64,
}

impl History {
    pub(crate) fn open(path: &str) -> Result<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file = file.map_err(|e| Error::io(format!("opening {path}"), e))?;
        Ok(Self { file, calls: AtomicU64::new(1) })
    }

    fn write(&self, line: &Value) -> Result<()> {
        let text = format!("{line}\n");
        (&self.file).write_all(text.as_bytes()).map_err(|e| Error::io("writing a history", e))
    }

    /// Notes that a call is made; returns its number.
    pub(crate) fn call(&self, task: u64, what: Value) -> Result<u64> {
        let number = self.calls.fetch_add(1, Relaxed);
        self.write(&with(what, &[("call", number), ("task", task), ("at", now())]))?;
        Ok(number)
    }

    /// Notes what it returned, now or at a time before.
    pub(crate) fn returned(&self, number: u64, at: Option<u64>, what: Value) -> Result<()> {
        self.write(&with(what, &[("return", number), ("at", at.unwrap_or_else(now))]))
    }
}

fn with(mut what: Value, more: &[(&str, u64)]) -> Value {
    for (key, value) in more {
        what[*key] = json!(value);
    }
    what
}

/// An answer in a history: `is` says of which sort it is.
pub(crate) fn told<T>(answer: Result<T>, ok: impl FnOnce(T) -> Value) -> Value {
    let e = match answer {
        Ok(value) => return with_is(ok(value), "ok"),
        Err(e) => e,
    };
    let text = e.to_string();
    let is = match &e {
        Error::NotFound(what) => return json!({"is": "absent", "what": what, "text": text}),
        Error::Exists(_) => "exists",
        Error::Conflict { detail, .. } if detail.contains("is expected") => "version",
        Error::Conflict { detail, .. } if detail.contains("while it was renamed") => "both",
        Error::Conflict { .. } => "busy",
        Error::Range { .. } => "range",
        Error::OutcomeUnknown { .. } => "unknown",
        Error::Io { .. } => "failed",
        Error::SnapshotTooOld { .. } => "old",
        Error::Corrupt { .. } => "damaged",
        _ => "strange",
    };
    json!({"is": is, "text": text})
}

fn with_is(mut value: Value, is: &str) -> Value {
    value["is"] = json!(is);
    value
}

/// A version in a history.
pub(crate) fn version(version: ObjectVersion) -> Value {
    json!({"version": version.to_string()})
}
