//! What a subcommand fails with: one line for people and an exit code for programs.
//!
//! Owns: [`Failure`], the exit codes, and the hint for each kind of error.
//! Invariant: a message is one line, whatever names or paths it holds.

use std::io::{self, ErrorKind, Write};
use std::path::Path;

use holdall::Error;
use holdall_io::lacks_inodes_at;
use rustix::process::{Resource, getrlimit};

use holdall_report::name::{escape, is_hidden};

/// Anything without a code of its own.
pub const ERROR: u8 = 1;
/// The command line cannot be understood.
pub const USAGE: u8 = 2;
/// No such object, collection or store.
pub const NOT_FOUND: u8 = 3;
/// Bytes of the store are not what was written.
pub const DAMAGED: u8 = 4;
/// Another process has the store open.
pub const LOCKED: u8 = 5;
/// The disk is full, or a limit on the size of the store or of any file is reached.
pub const NO_SPACE: u8 = 6;

/// Outcome of a subcommand.
pub type Outcome<T = ()> = Result<T, Failure>;

/// Why a subcommand did not succeed.
#[derive(Debug)]
pub enum Failure {
    /// The store refused.
    Store(Error),
    /// Found here: what happened, what to do about it, exit code.
    Told(String, String, u8),
    /// Nobody reads standard output any more: end without a word.
    Pipe,
    /// All was printed already; only the exit code is left.
    Reported(u8),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl Failure {
    /// An error of exit code 1.
    pub fn new(what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Told(what.into(), hint.into(), ERROR)
    }

    /// A system error while doing `action` to `path`.
    pub fn file(action: &str, path: &Path, error: &io::Error) -> Self {
        let code = io_code(error.kind());
        if code == NO_SPACE && lacks_inodes_at(path) {
            let what = format!("{action} {}: the file system has no free inodes", path.display());
            let hint = "remove files from it that are not needed, or write to another one";
            return Self::Told(what, hint.into(), code);
        }
        Self::Told(format!("{action} {}: {error}", path.display()), io_hint(error.kind()), code)
    }

    /// A system error on standard output; a closed pipe is no error.
    pub fn stdout(error: &io::Error) -> Self {
        match error.kind() {
            ErrorKind::BrokenPipe => Self::Pipe,
            kind => {
                Self::Told(format!("write standard output: {error}"), io_hint(kind), io_code(kind))
            }
        }
    }

    /// This failure of saying so, after `done` came about.
    #[must_use]
    pub fn after(self, done: &str) -> Self {
        self.behind(&format!("{done}, but "))
    }

    /// This failure of closing the store, in which `done` came about.
    #[must_use]
    pub fn of_closing(self, done: &str) -> Self {
        self.behind(&format!("{done}, but the store could not be closed: "))
    }

    fn behind(self, text: &str) -> Self {
        match self {
            Self::Told(what, hint, code) => Self::Told(format!("{text}{what}"), hint, code),
            Self::Store(error) => {
                let (what, hint) = store_message(&error);
                Self::Told(format!("{text}{what}"), hint, store_code(&error))
            }
            other => other,
        }
    }

    /// The process's exit code.
    pub fn code(&self) -> u8 {
        match self {
            Self::Pipe => 0,
            Self::Told(_, _, code) | Self::Reported(code) => *code,
            Self::Store(error) => store_code(error),
        }
    }

    /// Writes the one line on standard error, if there is something to say.
    pub fn report(&self) {
        let line = match self {
            Self::Pipe | Self::Reported(_) => return,
            Self::Told(what, hint, _) => format!("{what}: {hint}"),
            Self::Store(error) => {
                let (what, hint) = store_message(error);
                format!("{what}: {hint}")
            }
        };
        complain(&line);
    }
}

/// Writes `holdall: line` on standard error, control characters escaped.
pub fn complain(line: &str) {
    // With standard error gone there is nowhere left to report to.
    let _ = writeln!(io::stderr(), "holdall: {}", one_line(line));
}

/// Writes what is wrong with a command line on standard error, control characters escaped.
pub fn say_usage(text: &str) {
    for line in text.lines() {
        // With standard error gone there is nowhere left to report to.
        let _ = writeln!(io::stderr(), "{}", one_line(line));
    }
}

/// `line` with its control characters escaped; backslashes stay, they were escaped before.
fn one_line(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if is_hidden(c) {
            out.push_str(&escape(c.encode_utf8(&mut [0; 4]).as_bytes()));
        } else {
            out.push(c);
        }
    }
    out
}

/// A store error as a short reason for one file among many.
pub fn reason(error: &Error) -> String {
    store_message(error).0
}

fn store_code(error: &Error) -> u8 {
    match error {
        Error::Io { source, .. } => io_code(source.kind()),
        Error::NotFound(_) | Error::Dangling(_) => NOT_FOUND,
        Error::Corrupt { .. } => DAMAGED,
        Error::Locked { .. } | Error::Busy(_) => LOCKED,
        Error::Full(_) | Error::NoRoom { .. } => NO_SPACE,
        Error::NoLog { .. } => DAMAGED,
        _ => ERROR,
    }
}

/// What happened and what to do about it.
fn store_message(error: &Error) -> (String, String) {
    let (what, hint) = match error {
        Error::Io { action, source } => {
            return (format!("{action}: {source}"), io_hint(source.kind()));
        }
        Error::Corrupt { place, detail } => (
            format!("damaged: {place}: {detail}"),
            "run `holdall verify STORE`, then restore from a backup or try `holdall salvage`",
        ),
        Error::NotAStore { path, detail } => (
            format!("{path} is not a Holdall store: {detail}"),
            "give the path of a store, or make one with `holdall create`",
        ),
        Error::Unfinished { path } => (
            format!("{path} is empty or was cut short while it was created, and holds no store"),
            "if a store was there, restore it from a copy, else make one with `holdall create`",
        ),
        Error::WrongLog { path, detail, advice } => (format!("{path} {detail}"), advice.as_str()),
        Error::NoLog { path, detail, advice } => (format!("{path} {detail}"), advice.as_str()),
        Error::NoRoom { what, lacks, advice } => {
            (format!("no space: {what}: {lacks}"), advice.as_str())
        }
        Error::Moved { path, detail, advice } => (format!("{path} {detail}"), advice.as_str()),
        Error::Unsupported { detail } => (detail.clone(), "use a newer Holdall"),
        Error::NotFound(what) => {
            (format!("not found: {what}"), "see what is there with `holdall ls STORE`")
        }
        Error::Dangling(oid) => (
            format!("not found: {oid} was deleted"),
            "see what is there with `holdall ls --long STORE`",
        ),
        Error::Exists(what) => {
            (format!("already exists: {what}"), "choose another name or remove it first")
        }
        Error::OutcomeUnknown { object, detail } => (
            format!("whether {object} was changed is not known: {detail}"),
            "look at it before you run the command again",
        ),
        Error::Range { object, start, end, size } => (
            format!("range {start}:{end} is outside the object {object} of {size} bytes"),
            "ask for a range inside it",
        ),
        Error::Invalid(what) => (what.clone(), "nothing was changed; correct it and try again"),
        Error::TooLarge(what) => {
            (format!("transaction too large: {what}"), "name fewer objects at a time")
        }
        Error::Full(what) => {
            (format!("no space: {what}"), "delete objects or free room on the disk")
        }
        Error::Locked { path, by, .. } => {
            (format!("{path} is in use by {by}"), "wait for it with --wait, or end it")
        }
        Error::Busy(busy) => (format!("busy: {busy}"), "allow a longer --wait"),
        Error::Poisoned(what) => (
            format!("the store stopped accepting changes after a failed write or sync ({what})"),
            "check the disk, then run the command again",
        ),
        other => (other.to_string(), "run the command again"),
    };
    (what, hint.to_owned())
}

/// Whether the disk, the store or a file system's largest file leaves no room.
pub fn is_full(error: &Error) -> bool {
    match error {
        Error::Full(_) => true,
        Error::Io { source, .. } => io_code(source.kind()) == NO_SPACE,
        _ => false,
    }
}

fn io_code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => NO_SPACE,
        _ => ERROR,
    }
}

fn io_hint(kind: ErrorKind) -> String {
    let hint = match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => "check the path",
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "check the permissions of the file and its directory"
        }
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free room on the disk",
        ErrorKind::FileTooLarge => return too_large(),
        ErrorKind::IsADirectory => "give a file",
        ErrorKind::NotConnected => "see whether the server can be reached, and try again",
        ErrorKind::AlreadyExists => "choose another path or remove what is there",
        _ => "check the disk and try again",
    };
    hint.into()
}

/// What to do about a file that may not become larger, and how large it may be.
pub fn too_large() -> String {
    match getrlimit(Resource::Fsize).current {
        Some(most) => {
            format!("files may have {most} bytes here: raise the limit (ulimit -f) and try again")
        }
        None => "the file system allows no larger file; use another".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line() {
        assert_eq!(one_line("a\nb\\x\u{7f}\u{202e}"), "a\\nb\\x\\x7f\\xe2\\x80\\xae");
    }

    #[test]
    fn codes_follow_the_kind_of_error() {
        let full = Error::io("write s", ErrorKind::StorageFull.into());
        assert_eq!(Failure::from(full).code(), NO_SPACE);
        assert_eq!(Failure::from(Error::corrupt("x", "y")).code(), DAMAGED);
        assert_eq!(Failure::from(Error::NotFound("x".into())).code(), NOT_FOUND);
        assert_eq!(Failure::from(Error::Invalid("x".into())).code(), ERROR);
        let unknown = Error::OutcomeUnknown { object: "x".into(), detail: "y".into() };
        assert!(store_message(&unknown).1.starts_with("look at it before"));
        assert_eq!(Failure::from(unknown).code(), ERROR);
        assert_eq!(Failure::stdout(&ErrorKind::BrokenPipe.into()).code(), 0);
    }
}
