//! Errors on their way from one process to another.
//!
//! Owns: [`Refusal`]. Those on which callers branch arrive as what they were.

use holdall::{Busy, Error};
use serde::{Deserialize, Serialize};
use std::io;
use std::time::Duration;

/// An error of the process that writes: the variants are those of [`Error`].
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Refusal {
    NotFound { what: String },
    Dangling { oid: String },
    Exists { what: String },
    Conflict { object: String, detail: String },
    OutcomeUnknown { object: String, detail: String },
    Range { object: String, start: u64, end: u64, size: u64 },
    Invalid { what: String },
    TooLarge { what: String },
    Full { what: String },
    NoRoom { what: String, lacks: String, advice: String },
    Corrupt { place: String, detail: String },
    Moved { path: String, detail: String, advice: String },
    Poisoned { what: String },
    ReadOnly,
    SnapshotTooOld { age_ms: u64 },
    Busy { thread: String, has_ended: bool, held_ms: u64, idle_ms: u64, checkpoint: bool },
    Cancelled,
    Io { action: String, code: Option<i32>, text: String },
    Other { text: String },
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error {
            Error::NotFound(what) => Self::NotFound { what },
            Error::Dangling(oid) => Self::Dangling { oid: oid.to_string() },
            Error::Exists(what) => Self::Exists { what },
            Error::Conflict { object, detail } => Self::Conflict { object, detail },
            Error::OutcomeUnknown { object, detail } => Self::OutcomeUnknown { object, detail },
            Error::Range { object, start, end, size } => Self::Range { object, start, end, size },
            Error::Invalid(what) => Self::Invalid { what },
            Error::TooLarge(what) => Self::TooLarge { what },
            Error::Full(what) => Self::Full { what },
            Error::NoRoom { what, lacks, advice } => Self::NoRoom { what, lacks, advice },
            Error::Corrupt { place, detail } => Self::Corrupt { place, detail },
            Error::Moved { path, detail, advice } => Self::Moved { path, detail, advice },
            Error::Poisoned(what) => Self::Poisoned { what },
            Error::ReadOnly => Self::ReadOnly,
            Error::SnapshotTooOld { age } => Self::SnapshotTooOld { age_ms: millis(age) },
            Error::Busy(busy) => {
                let (held_ms, idle_ms) = (millis(busy.held), millis(busy.idle));
                let Busy { thread, has_ended, checkpoint, .. } = *busy;
                Self::Busy { thread, has_ended, held_ms, idle_ms, checkpoint }
            }
            Error::Cancelled => Self::Cancelled,
            Error::Io { action, source } => {
                Self::Io { action, code: source.raw_os_error(), text: source.to_string() }
            }
            other => Self::Other { text: other.to_string() },
        }
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::NotFound { what } => Self::NotFound(what),
            Refusal::Dangling { oid } => match oid.parse() {
                Ok(oid) => Self::Dangling(oid),
                Err(_) => Self::NotFound(format!("object {oid}")),
            },
            Refusal::Exists { what } => Self::Exists(what),
            Refusal::Conflict { object, detail } => Self::Conflict { object, detail },
            Refusal::OutcomeUnknown { object, detail } => Self::OutcomeUnknown { object, detail },
            Refusal::Range { object, start, end, size } => Self::Range { object, start, end, size },
            Refusal::Invalid { what } => Self::Invalid(what),
            Refusal::TooLarge { what } => Self::TooLarge(what),
            Refusal::Full { what } => Self::Full(what),
            Refusal::NoRoom { what, lacks, advice } => Self::NoRoom { what, lacks, advice },
            Refusal::Corrupt { place, detail } => Self::Corrupt { place, detail },
            Refusal::Moved { path, detail, advice } => Self::Moved { path, detail, advice },
            Refusal::Poisoned { what } => Self::Poisoned(what),
            Refusal::ReadOnly => Self::ReadOnly,
            Refusal::SnapshotTooOld { age_ms } => {
                Self::SnapshotTooOld { age: Duration::from_millis(age_ms) }
            }
            Refusal::Busy { thread, has_ended, held_ms, idle_ms, checkpoint } => {
                let mut busy = Box::<Busy>::default();
                (busy.thread, busy.has_ended, busy.checkpoint) = (thread, has_ended, checkpoint);
                busy.held = Duration::from_millis(held_ms);
                busy.idle = Duration::from_millis(idle_ms);
                Self::Busy(busy)
            }
            Refusal::Cancelled => Self::Cancelled,
            Refusal::Io { action, code, text } => {
                let source =
                    code.map_or_else(|| io::Error::other(text), io::Error::from_raw_os_error);
                Self::Io { action, source }
            }
            Refusal::Other { text } => Self::Other(text.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_arrive_as_what_they_were() {
        let mut busy = Box::<Busy>::default();
        (busy.thread, busy.held) = ("worker".into(), Duration::from_millis(1500));
        let errors = [
            Error::NotFound("object \"a\"".into()),
            Error::Range { object: "\"a\"".into(), start: 1, end: 9, size: 4 },
            Error::corrupt("page 7", "its checksum is wrong"),
            Error::Full("the disk".into()),
            Error::SnapshotTooOld { age: Duration::from_millis(1200) },
            Error::OutcomeUnknown { object: "\"a\"".into(), detail: "no answer came".into() },
            Error::Busy(busy),
            Error::io("writing", io::Error::from_raw_os_error(28)),
            Error::Cancelled,
        ];
        for error in errors {
            let text = error.to_string();
            let sent = serde_json::to_vec(&Refusal::from(error)).unwrap();
            let back: Refusal = serde_json::from_slice(&sent).unwrap();
            assert_eq!(Error::from(back).to_string(), text);
        }
    }
}
