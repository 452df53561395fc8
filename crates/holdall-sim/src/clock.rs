//! The clock of a seed's store: no time is given twice, and a seed gives the same ones each time.

use std::cell::Cell;

/// In September 2026, in milliseconds since 1970: a length of varint that real times have.
const START: u64 = 1_790_000_000_000;

thread_local! {
    static LAST: Cell<u64> = const { Cell::new(START) };
}

/// Begins anew.
pub(crate) fn start() {
    LAST.set(START);
}

/// The next millisecond.
pub(crate) fn next() -> u64 {
    LAST.set(LAST.get() + 1);
    LAST.get()
}
