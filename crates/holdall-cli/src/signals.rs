//! Signals that end a process unless it says otherwise.
//!
//! Owns no state. The Rust runtime ignores SIGPIPE already, so that a closed pipe is an error.

/// Makes a write beyond the greatest size of a file (`ulimit -f`) fail instead of ending the
/// process, which could neither say so nor close its store. To be called before threads start.
pub fn survive_limits() {
    // SAFETY: no handler is set that could run at a bad moment, and the system knows the number.
    // If it refuses, the process ends as it would have.
    #[expect(unsafe_code, reason = "no safe wrapper; see the argument above")]
    let _ = unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}
