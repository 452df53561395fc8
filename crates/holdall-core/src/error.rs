//! The one error type of Holdall, from pages to the public API.
//!
//! Owns: [`Error`] and [`Result`]. Every message names the object, range, page or file
//! it is about and says what the user can do; callers branch on the variant.

use crate::busy::Busy;
use crate::types::{Oid, PageNo};
use std::time::Duration;

/// What a Holdall operation returns.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Everything that can go wrong, one variant per thing a caller can do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system refused a read, write, sync or growth.
    #[error("{action}: {source}")]
    Io {
        /// What was being done, with file, offset and length.
        action: String,
        /// The system's own error.
        source: std::io::Error,
    },
    /// Bytes on disk are not what was written: checksum, structure or reference is wrong.
    #[error("damaged: {place}: {detail}; run `holdall verify` and restore from a copy")]
    Corrupt {
        /// Page, object and range, or file part.
        place: String,
        /// What was found against what was expected.
        detail: String,
    },
    /// The file is not a Holdall store.
    #[error("{path} is not a Holdall store: {detail}")]
    NotAStore {
        /// The file.
        path: String,
        /// Why.
        detail: String,
    },
    /// The file holds nothing: it is empty, or its creation was cut short.
    #[error(
        "{path} is empty, or was cut short while it was created, and holds no store; if a store \
         was there, restore it from a copy, else create it anew in its place"
    )]
    Unfinished {
        /// The file.
        path: String,
    },
    /// What lies in the log's place is not the log of this store as it is, or may not be opened. It
    /// was left alone.
    #[error("{path} {detail}; {advice}")]
    WrongLog {
        /// The file.
        path: String,
        /// What it is.
        detail: String,
        /// What to do with it.
        advice: String,
    },
    /// The name of the open store, or of its log, no longer leads to its file, which somebody
    /// deleted, renamed or replaced. The commit did not happen; reading goes on.
    #[error("{path} {detail}; {advice}")]
    Moved {
        /// The name.
        path: String,
        /// What became of the file.
        detail: String,
        /// What to do.
        advice: String,
    },
    /// The store uses a format this build cannot read or write.
    #[error("{detail}; use a newer Holdall")]
    Unsupported {
        /// Which version or feature.
        detail: String,
    },
    /// No object under this name or OID, or no such collection.
    #[error("not found: {0}")]
    NotFound(String),
    /// The OID's slot now belongs to another object, or to none.
    #[error("dangling OID {0}: the object was deleted")]
    Dangling(Oid),
    /// Something by this name is there already.
    #[error("already exists: {0}")]
    Exists(String),
    /// The object is not of the version that a change was asked for: somebody changed or
    /// removed it. Nothing was changed; read it again and decide anew.
    #[error("{object} was changed since: {detail}; read it again and repeat the change")]
    Conflict {
        /// Name or OID.
        object: String,
        /// The version asked for, and the one it has.
        detail: String,
    },
    /// A change was sent, and whether it happened cannot be found out: no answer came, and what
    /// is there now does not tell. Repeating it blindly may do it twice. No store in a file
    /// returns this: its own answers cannot be lost.
    #[error(
        "whether the change of {object} happened is not known: {detail}; read it again before \
         repeating the change"
    )]
    OutcomeUnknown {
        /// Name or OID.
        object: String,
        /// What came in place of an answer.
        detail: String,
    },
    /// A byte range lies outside the object.
    #[error("range {start}..{end} is outside the object {object} of {size} bytes")]
    Range {
        /// Name or OID.
        object: String,
        /// First byte asked for.
        start: u64,
        /// One past the last byte asked for.
        end: u64,
        /// The object's size.
        size: u64,
    },
    /// An argument cannot be used; nothing was changed.
    #[error("{0}")]
    Invalid(String),
    /// The transaction changes more existing pages than the store may hold unwritten.
    #[error("transaction too large: {0}; split it into smaller ones")]
    TooLarge(String),
    /// No room on the disk, or the store's size limit is reached. The store stays usable.
    #[error("no space: {0}; delete objects or free room on the disk")]
    Full(String),
    /// The disk has no room for what a store needs before anything in it can be changed, deleting
    /// included: its file, its log, or what a recovery writes. Nothing was changed.
    #[error("no space: {what}: {lacks}; {advice}")]
    NoRoom {
        /// What cannot be made or done, with its path.
        what: String,
        /// What the file system lacks, and how much of it.
        lacks: String,
        /// What to do.
        advice: String,
    },
    /// The store needs its log, which is missing.
    #[error("{path} {detail}; {advice}")]
    NoLog {
        /// The log.
        path: String,
        /// Why, and what of the store may be whole.
        detail: String,
        /// What to do.
        advice: String,
    },
    /// The process was forked from the one that opened the store, which does not survive that:
    /// the parent goes on changing what the child remembers of it.
    #[error(
        "the store was opened before a fork, and only the process that opened it may use it; \
         open it again in the child, after the parent closed it, or in both for reading"
    )]
    Forked,
    /// Another process, or another handle in this one, has the store open.
    #[error("{path} is in use by {by}; close it first, or allow a wait")]
    Locked {
        /// The file.
        path: String,
        /// Who: process, command and when that started, as far as the system tells.
        by: String,
        /// The number of that process, if it is known.
        process: Option<u32>,
    },
    /// Another transaction is open, and the wait for it is over, or would be for ever since it is
    /// one of this thread. Nothing was changed.
    #[error("busy: {0}")]
    Busy(Box<Busy>),
    /// A wait was given up by the token that it was begun with. Nothing was changed.
    #[error("the wait was cancelled; nothing was changed")]
    Cancelled,
    /// A write or sync failed earlier: no commit is possible until the store is reopened.
    #[error("the store stopped accepting commits after a failed write or sync ({0}); reopen it")]
    Poisoned(String),
    /// A change was asked of a store opened for reading.
    #[error("the store is open read-only")]
    ReadOnly,
    /// The store gave the snapshot up: it was the oldest, and old page versions or freed space
    /// kept for snapshots went over their budget, or a writer had no other space left.
    #[error(
        "snapshot too old: the state it shows was replaced {:.1} s ago, and what it kept from \
         being reused went over its budget; open a new one, or allow more",
        age.as_secs_f64()
    )]
    SnapshotTooOld {
        /// How long before it was given up the first commit changed the state it shows.
        age: Duration,
    },
    /// A caller's own error that ends a transaction.
    #[error(transparent)]
    Other(#[from] Box<dyn std::error::Error + Send + Sync>),
}

/// For callers whose own errors are those of `std::io`; [`std::io::Error::downcast`] gives the
/// error back.
///
/// ```
/// use holdall_core::Error;
/// use std::io;
///
/// let e = io::Error::from(Error::NotFound("object \"a\"".into()));
/// assert_eq!(e.kind(), io::ErrorKind::NotFound);
/// assert!(matches!(e.downcast::<Error>(), Ok(Error::NotFound(_))));
/// ```
impl From<Error> for std::io::Error {
    fn from(e: Error) -> Self {
        use std::io::ErrorKind;
        let kind = match &e {
            Error::Io { source, .. } => source.kind(),
            Error::NotFound(_) | Error::Dangling(_) => ErrorKind::NotFound,
            Error::Exists(_) => ErrorKind::AlreadyExists,
            Error::Corrupt { .. } => ErrorKind::InvalidData,
            Error::Full(_) | Error::NoRoom { .. } => ErrorKind::StorageFull,
            Error::ReadOnly => ErrorKind::PermissionDenied,
            Error::Locked { .. } | Error::Busy(_) => ErrorKind::WouldBlock,
            _ => ErrorKind::Other,
        };
        Self::new(kind, e)
    }
}

impl Error {
    /// Damage found in page `page`.
    pub fn page(page: PageNo, detail: impl Into<String>) -> Self {
        Self::Corrupt { place: format!("page {page}"), detail: detail.into() }
    }

    /// Damage found in a named part.
    pub fn corrupt(place: impl Into<String>, detail: impl Into<String>) -> Self {
        Self::Corrupt { place: place.into(), detail: detail.into() }
    }

    /// A system error with what was being done.
    pub fn io(action: impl Into<String>, source: std::io::Error) -> Self {
        Self::Io { action: action.into(), source }
    }

    /// Whether this error means that bytes on disk are damaged.
    pub fn is_corrupt(&self) -> bool {
        matches!(self, Self::Corrupt { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, ErrorKind};

    #[test]
    fn an_error_of_std_io_has_the_fitting_kind_and_keeps_the_error() {
        let torn = io::Error::from(ErrorKind::UnexpectedEof);
        let oid = Oid { site: 0, page: 1, slot: 2, unique: 3 };
        let cases = [
            (Error::io("reading", torn), ErrorKind::UnexpectedEof),
            (Error::NotFound("x".into()), ErrorKind::NotFound),
            (Error::Dangling(oid), ErrorKind::NotFound),
            (Error::Exists("x".into()), ErrorKind::AlreadyExists),
            (Error::corrupt("x", "y"), ErrorKind::InvalidData),
            (Error::Full("x".into()), ErrorKind::StorageFull),
            (Error::ReadOnly, ErrorKind::PermissionDenied),
            (
                Error::Locked { path: "x".into(), by: "y".into(), process: None },
                ErrorKind::WouldBlock,
            ),
            (Error::Busy(Box::default()), ErrorKind::WouldBlock),
            (Error::Invalid("x".into()), ErrorKind::Other),
            // No kind on which callers try again by themselves.
            (Error::OutcomeUnknown { object: "x".into(), detail: "y".into() }, ErrorKind::Other),
        ];
        for (error, kind) in cases {
            let text = error.to_string();
            let wrapped = io::Error::from(error);
            assert_eq!(wrapped.kind(), kind, "{text}");
            assert_eq!(wrapped.downcast::<Error>().unwrap().to_string(), text);
        }
    }
}
