//! Which process this is among its ancestors by `fork`: [`forks`].
//!
//! Owns one counter of the process. A child has the memory of its parent, but none of its threads,
//! and what the parent does to its files afterwards it does not know.

use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

static FORKS: AtomicU32 = AtomicU32::new(0);
static WATCHED: Once = Once::new();

/// How often this process and its ancestors were forked since [`watch_forks`]. Cost: a look into
/// memory, if the number of the process is a system call.
#[inline]
#[must_use]
pub fn forks() -> u32 {
    FORKS.load(Relaxed)
}

/// Begins to count. A process made by a system call of its own, past the C library, is not seen.
pub fn watch_forks() {
    WATCHED.call_once(|| {
        extern "C" fn in_child() {
            FORKS.fetch_add(1, Relaxed);
        }
        // SAFETY: the function lives as long as the process, unwinds never, and does nothing but
        // change an atomic number, which a child may do whatever its parent's threads held.
        // If there is no memory for it, forks are not counted.
        #[expect(unsafe_code, reason = "no safe wrapper; see the argument above")]
        let _ = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}
