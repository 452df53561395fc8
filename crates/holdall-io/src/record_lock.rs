//! Locks of bytes far behind the end of a file, as signs for other processes: they guard nothing.
//!
//! Owns no state.

use std::fs::File;
use std::os::fd::AsRawFd;

/// Whose a lock is.
#[derive(Clone, Copy)]
pub(crate) enum Owner {
    /// The process's, which loses it when it closes any descriptor of the file.
    Process,
    /// The open file's, which has it until its last descriptor is closed.
    OpenFile,
}

/// What a lock keeps out.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Locks of others for writing.
    Read,
    /// All locks of others.
    Write,
    /// Nothing: the bytes are let go of.
    None,
}

impl Kind {
    fn number(self) -> libc::c_short {
        let kind = match self {
            Self::Read => libc::F_RDLCK,
            Self::Write => libc::F_WRLCK,
            Self::None => libc::F_UNLCK,
        };
        kind as libc::c_short
    }
}

/// A lock that somebody holds.
pub(crate) struct Held {
    pub(crate) start: u64,
    pub(crate) len: u64,
    /// Of the process, if the system tells.
    pub(crate) process: Option<u32>,
}

/// Locks `len` bytes from `start` on, or lets go of them. Returns whether that was done: not if
/// another has them locked, or the system has no such locks.
pub(crate) fn set(file: &File, owner: Owner, kind: Kind, start: u64, len: u64) -> bool {
    let Some(command) = command(owner, true) else { return false };
    call(file, command, kind, (start, len)).is_some()
}

/// The first lock of others in the range that keeps out one of `kind`.
pub(crate) fn find(file: &File, owner: Owner, kind: Kind, start: u64, len: u64) -> Option<Held> {
    let found = call(file, command(owner, false)?, kind, (start, len))?;
    if found.l_type == libc::F_UNLCK as libc::c_short {
        return None;
    }
    let number = |n: libc::off_t| u64::try_from(n).ok();
    // Of a process in a container around this one it is 0, of an open file -1.
    let process = u32::try_from(found.l_pid).ok().filter(|process| *process > 0);
    Some(Held { start: number(found.l_start)?, len: number(found.l_len)?, process })
}

fn command(owner: Owner, sets: bool) -> Option<libc::c_int> {
    match owner {
        Owner::Process => Some(if sets { libc::F_SETLK } else { libc::F_GETLK }),
        #[cfg(any(target_os = "linux", target_os = "android"))]
        Owner::OpenFile => Some(if sets { libc::F_OFD_SETLK } else { libc::F_OFD_GETLK }),
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        Owner::OpenFile => None,
    }
}

fn call(
    file: &File,
    command: libc::c_int,
    kind: Kind,
    (start, len): (u64, u64),
) -> Option<libc::flock> {
    // SAFETY: the structure has only numbers, for which 0 is a value.
    #[expect(unsafe_code, reason = "its fields differ between systems")]
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind.number();
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = start.try_into().ok()?;
    lock.l_len = len.try_into().ok()?;
    // SAFETY: the descriptor is open, and these commands read and write the structure alone,
    // which lives until the call returns.
    #[expect(unsafe_code, reason = "no safe wrapper locks a range; see the argument above")]
    let done = unsafe { libc::fcntl(file.as_raw_fd(), command, &mut lock) };
    (done == 0).then_some(lock)
}
