//! Asking the processor for memory that will be needed soon.
//!
//! Owns: the instruction, and nothing else. Look-ups that are done in groups ask for what
//! each of them needs next before any of them goes on, so that they wait together instead of
//! one after the other.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "an instruction that takes a pointer; the argument is below")
)]

use std::ops::Range;

/// Bytes of a line of the processor's caches, on most.
pub(crate) const LINE: usize = 64;
/// Lines asked for at once: those behind come by themselves as bytes are read in order.
const LINES_AT_ONCE: usize = 8;

/// Begins to bring the line with this address closer. A hint: any address will do, also one
/// if nothing is; nothing is read. Does nothing on processors it was not written for.
#[inline]
pub(crate) fn line<T>(at: *const T) {
    // SAFETY: a prefetch is no access: it yields no value, changes no memory and raises no
    // fault, whatever the address. The instruction is part of every x86-64 (SSE).
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(at.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}

/// Begins to bring the first lines of these bytes after `start` closer, and the last.
#[inline]
pub(crate) fn range(start: *const u8, bytes: Range<usize>) {
    let last = bytes.end.saturating_sub(1);
    for at in bytes.step_by(LINE).take(LINES_AT_ONCE) {
        line(start.wrapping_add(at));
    }
    line(start.wrapping_add(last));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_address_will_do() {
        let some = [7_u8; 1000];
        for len in [0, 1, LINE, LINE + 1, 1000] {
            range(some.as_ptr(), 0..len);
        }
        line(std::ptr::null::<u8>());
        for at in [1, 1 << 40, 1 << 52, usize::MAX] {
            line(std::ptr::without_provenance::<u64>(at));
        }
        line(some.as_ptr().wrapping_add(1 << 30));
        assert!(some.iter().all(|b| *b == 7), "nothing is written");
    }
}
