//! The streams that the command was started with: which of them were open.
//!
//! Owns the answer for standard input and output, found before the runtime starts. The runtime
//! opens `/dev/null` in place of a closed one: a `put` would store nothing if its input is
//! missing, and a `get` throw away what it writes.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rustix::fs::OFlags;

use crate::failure::{Failure, Outcome};

/// A bit for each of the descriptors 0 to 2 that was not open.
static CLOSED: AtomicU8 = AtomicU8::new(0);

/// The system calls this before `main`, and so before the runtime looks at the descriptors.
#[used]
#[cfg_attr(
    not(target_vendor = "apple"),
    expect(unsafe_code, reason = "there is no safe way to run before the runtime"),
    // SAFETY: the section holds pointers to functions without arguments that the C library calls
    // once, on the only thread, after it has set itself up. This one asks the system for the
    // flags of three descriptors and sets an atomic number: it needs no runtime, allocates
    // nothing and does not unwind.
    unsafe(link_section = ".init_array")
)]
#[cfg_attr(
    target_vendor = "apple",
    expect(unsafe_code, reason = "as above"),
    // SAFETY: as above.
    unsafe(link_section = "__DATA,__mod_init_func")
)]
static LOOK: extern "C" fn() = note_closed;

extern "C" fn note_closed() {
    for number in 0..3 {
        // SAFETY: the descriptor is only asked about, which a closed one allows.
        #[expect(unsafe_code, reason = "the number may be that of no descriptor")]
        let flags = unsafe { libc::fcntl(number, libc::F_GETFD) };
        if flags < 0 {
            CLOSED.fetch_or(1 << number, Relaxed);
        }
    }
}

/// Whether the command was started without this one of the descriptors 0 to 2.
fn was_closed(number: i32) -> bool {
    (0..3).contains(&number) && CLOSED.load(Relaxed) & (1 << number) != 0
}

/// Whether `dir`, a directory of descriptors without links in its path, has under `number` what
/// the runtime opened in place of a closed descriptor of this process.
pub fn is_stand_in(dir: &Path, number: i32) -> bool {
    let process = dir.iter().nth(2).and_then(|part| part.to_str());
    let own = process.is_none_or(|process| match process.parse::<u32>() {
        Ok(process) => process == std::process::id(),
        Err(_) => true,
    });
    own && was_closed(number)
}

/// Refuses to read from a standard input that is closed.
pub fn need_input() -> Outcome {
    if was_closed(0) {
        Err(closed("input", "give a file, or `</dev/null` for nothing"))
    } else {
        Ok(())
    }
}

/// Refuses to go on if what is to be printed cannot be: standard output is closed, or open for
/// reading only, which the library takes for a place to throw text away.
pub fn need_output() -> Outcome {
    let readable = rustix::fs::fcntl_getfl(io::stdout());
    let is_input = readable.is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::RDONLY);
    if was_closed(1) || is_input {
        return Err(closed("output", "send it to a file or to /dev/null"));
    }
    Ok(())
}

fn closed(which: &str, hint: &str) -> Failure {
    Failure::new(format!("standard {which} is closed"), format!("nothing was done; {hint}"))
}
