//! Threads: the number of each, and what it is called, for reports of who holds what.
//!
//! Owns: the names of the threads that live and have used a store.

use parking_lot::Mutex;
use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// After a fork the lock may be held for ever by a thread that only the parent has.
const PATIENCE: Duration = Duration::from_millis(100);

static LIVING: Mutex<BTreeMap<usize, Arc<str>>> = Mutex::new(BTreeMap::new());

/// Takes a thread out when it ends.
struct End(Cell<Option<usize>>);

impl Drop for End {
    fn drop(&mut self) {
        if let (Some(number), Some(mut living)) = (self.0.get(), LIVING.try_lock_for(PATIENCE)) {
            living.remove(&number);
        }
    }
}

thread_local! {
    static END: End = const { End(Cell::new(None)) };
    static NUMBER: usize = number();
}

fn number() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    let number = NEXT.fetch_add(1, Relaxed);
    let name = match std::thread::current().name() {
        Some(name) => format!("thread {name:?}"),
        None => format!("thread number {number}"),
    };
    // One that is ending already leaves no name behind.
    if END.try_with(|end| end.0.set(Some(number))).is_ok()
        && let Some(mut living) = LIVING.try_lock_for(PATIENCE)
    {
        living.insert(number, name.into());
    }
    number
}

/// The number of this thread: threads begin in different places of what they share.
#[inline]
pub(crate) fn thread_number() -> usize {
    NUMBER.with(|n| *n)
}

/// What the thread of this number is called; `None` once it has ended.
pub(crate) fn thread_name(number: usize) -> Option<Arc<str>> {
    LIVING.try_lock_for(PATIENCE)?.get(&number).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_a_name_until_it_ends() {
        let work = || {
            let number = thread_number();
            (number, thread_name(number))
        };
        let named = std::thread::Builder::new().name("one".into()).spawn(work).unwrap();
        let (number, name) = named.join().unwrap();
        assert_eq!(name.as_deref(), Some("thread \"one\""));
        assert_eq!(thread_name(number), None);
        let (number, name) = std::thread::spawn(work).join().unwrap();
        assert_eq!(name.as_deref(), Some(format!("thread number {number}").as_str()));
    }
}
