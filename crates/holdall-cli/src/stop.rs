//! Being asked to end: SIGTERM, SIGINT, SIGHUP.
//!
//! Owns: whether one came. A command that has changed something for the time being (rights of
//! directories, temporary files) asks now and then, puts it in order and ends. Signals that are
//! ignored when it starts (`nohup`) stay ignored.

use std::io;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicI32, Ordering};

use rustix::process::Signal;

use crate::failure::{Failure, Outcome};

/// The signal that came, 0 before.
static CAME: AtomicI32 = AtomicI32::new(0);

/// From here on these signals do not end the process, but are remembered.
pub fn watch() {
    let ignored = ignored();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let number = signal.as_raw();
        if ignored >> (number - 1) & 1 == 1 {
            continue;
        }
        let remember = move || CAME.store(number, Ordering::Relaxed);
        #[expect(unsafe_code, reason = "no safe wrapper; see the argument below")]
        // SAFETY: the action runs in a signal handler, and does nothing but store to an atomic
        // that needs no lock, which is allowed there.
        let watched = unsafe { signal_hook_registry::register(number, remember) };
        // Not watched it ends the process, as before.
        drop(watched);
    }
}

/// The signals that are ignored, the first in the lowest bit. Unknown without `/proc`.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// An error once a signal came.
///
/// # Errors
/// That the command was asked to end; its code is 128 and the signal's number, as a shell has it.
pub fn check() -> Outcome {
    match CAME.load(Ordering::Relaxed) {
        0 => Ok(()),
        number => {
            let what = format!("ended by signal {number}");
            let code = u8::try_from(128 + number).unwrap_or(u8::MAX);
            Err(Failure::Told(what, "run the command again".into(), code))
        }
    }
}

/// As [`check`], between two pieces of a file.
///
/// # Errors
/// As [`check`].
pub fn check_io() -> io::Result<()> {
    check().map_err(|_| io::Error::other("the command was asked to end"))
}

/// Goes on unless the command was asked to end.
pub fn unless_ended() -> ControlFlow<()> {
    if check().is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// What came of it; if the command was asked to end, that.
///
/// # Errors
/// As [`check`]; that of what was done.
pub fn unless_stopped<T>(done: holdall::Result<T>) -> Outcome<T> {
    match done {
        Err(holdall::Error::Cancelled) => check().and(Err(holdall::Error::Cancelled.into())),
        done => Ok(done?),
    }
}
