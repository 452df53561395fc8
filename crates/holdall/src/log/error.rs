//! Errors of the system as ours. Owns no state.

use holdall_core::Error;
use holdall_io::is_out_of_inodes;

/// The error of a file that found no inode.
pub fn no_inodes(action: &str, e: &std::io::Error) -> Error {
    Error::NoRoom {
        what: action.into(),
        lacks: format!("{e}, whatever bytes it has"),
        advice: "remove files from it that are not needed, or move the store to another one".into(),
    }
}

/// Turns a system error into ours; a full disk is its own kind.
pub fn io_error(action: impl Into<String>, e: std::io::Error) -> Error {
    if is_out_of_inodes(&e) {
        return no_inodes(&action.into(), &e);
    }
    if e.kind() == std::io::ErrorKind::StorageFull {
        return Error::Full(format!("{}: the disk is full", action.into()));
    }
    Error::io(action, e)
}
