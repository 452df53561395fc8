//! The queue for the writer's lock: order, overtaking, ends of waits, what errors say.

use super::{Cancel, Wait, Waiting, Writer};
use holdall_core::{Busy, Error};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread::{JoinHandle, spawn};
use std::time::{Duration, Instant};

const SHORT: Duration = Duration::from_millis(20);
const LONG: Duration = Duration::from_secs(60);

fn within(limit: Duration) -> Waiting {
    Waiting::begin(Wait::For(limit), None)
}

/// Waits until that many threads wait.
fn until_waiting(lock: &Writer, count: usize) {
    let begun = Instant::now();
    while lock.waiting() != count {
        assert!(begun.elapsed() < LONG, "{} wait, not {count}", lock.waiting());
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn busy(error: &Error) -> &Busy {
    match error {
        Error::Busy(busy) => busy,
        other => panic!("{other:?}"),
    }
}

/// A thread that takes the lock and says so.
fn taker(
    lock: &Arc<Writer>,
    waiting: impl Fn() -> Waiting + Send + 'static,
    order: &Arc<Mutex<Vec<u32>>>,
    number: u32,
) -> JoinHandle<()> {
    let (lock, order) = (lock.clone(), order.clone());
    spawn(move || {
        let _held = lock.lock(&waiting()).unwrap();
        order.lock().push(number);
    })
}

#[test]
fn waiters_are_served_in_order_of_arrival_and_maintenance_after_them() {
    let (lock, order) = (Arc::new(Writer::default()), Arc::default());
    let held = lock.lock(&Waiting::default()).unwrap();
    let mut threads = vec![taker(&lock, Waiting::maintenance, &order, 99)];
    until_waiting(&lock, 1);
    for number in 1..=8 {
        threads.push(taker(&lock, Waiting::default, &order, number));
        until_waiting(&lock, 1 + number as usize);
    }
    std::thread::sleep(Duration::from_millis(2));
    drop(held);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*order.lock(), [1, 2, 3, 4, 5, 6, 7, 8, 99]);
    assert_eq!(lock.0.state.load(SeqCst), 0);
}

#[test]
fn maintenance_that_has_waited_for_a_second_comes_first() {
    let (lock, order) = (Arc::new(Writer::default()), Arc::default());
    let held = lock.lock(&Waiting::default()).unwrap();
    let mut threads = vec![taker(&lock, Waiting::default, &order, 1)];
    until_waiting(&lock, 1);
    threads.push(taker(&lock, Waiting::maintenance, &order, 99));
    until_waiting(&lock, 2);
    std::thread::sleep(Duration::from_millis(1050));
    drop(held);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*order.lock(), [99, 1]);
}

/// A thread that takes the lock again and again must not keep a waiter out for long, and must
/// keep most turns while nobody has waited for a millisecond.
#[test]
fn a_running_thread_overtakes_for_a_millisecond_and_no_longer() {
    let lock = Arc::new(Writer::default());
    let (stop, turns) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let runner = {
        let (lock, stop, turns) = (lock.clone(), stop.clone(), turns.clone());
        spawn(move || {
            while !stop.load(SeqCst) {
                let held = lock.lock(&Waiting::default()).unwrap();
                let begun = Instant::now();
                while begun.elapsed() < Duration::from_micros(20) {}
                turns.fetch_add(1, SeqCst);
                drop(held);
            }
        })
    };
    let mut overtaken = Vec::new();
    for _ in 0..50 {
        let before = turns.load(SeqCst);
        drop(lock.lock(&within(LONG)).unwrap());
        overtaken.push(turns.load(SeqCst) - before);
        std::thread::sleep(Duration::from_micros(200));
    }
    stop.store(true, SeqCst);
    runner.join().unwrap();
    // 1 ms has 50 turns of 20 µs; a machine may be slow to wake the waiter after hand-over, but
    // no turn is taken then.
    assert!(overtaken.iter().all(|turns| *turns <= 60), "{overtaken:?}");
}

#[test]
fn a_wait_ends_when_its_time_is_over_and_says_who_has_the_lock() {
    let lock = Arc::new(Writer::default());
    let theirs = lock.clone();
    let named = std::thread::Builder::new().name("importer".into());
    let held = named.spawn(move || theirs.lock(&Waiting::default()).unwrap()).unwrap();
    let held = held.join().unwrap();
    std::thread::sleep(SHORT);
    let begun = Instant::now();
    let error = lock.lock(&within(SHORT)).unwrap_err();
    assert!(begun.elapsed() >= SHORT && begun.elapsed() < LONG);
    let by = busy(&error);
    assert!(by.thread.contains("importer") && !by.is_own && by.has_ended, "{by:?}");
    assert!(by.held >= SHORT && by.idle >= SHORT, "{by:?}");
    assert!(error.to_string().contains("the thread has ended"), "{error}");
    let error = lock.lock(&Waiting::begin(Wait::Not, None)).unwrap_err();
    assert!(!busy(&error).is_own);
    // Used here, it is this thread's.
    held.run_here();
    let error = lock.lock(&Waiting::default()).unwrap_err();
    assert!(busy(&error).is_own && busy(&error).idle < SHORT, "{error}");
    drop(held);
    assert!(lock.holder().is_none());
    assert_eq!(lock.0.state.load(SeqCst), 0);
}

#[test]
fn a_thread_waits_for_itself_only_within_a_limit() {
    let lock = Arc::new(Writer::default());
    let held = lock.lock(&Waiting::default()).unwrap();
    assert!(busy(&lock.lock(&Waiting::default()).unwrap_err()).is_own);
    let begun = Instant::now();
    assert!(busy(&lock.lock(&within(SHORT)).unwrap_err()).is_own);
    assert!(begun.elapsed() >= SHORT);
    // Another thread may end it meanwhile.
    let ender = spawn(move || {
        std::thread::sleep(SHORT);
        drop(held);
    });
    drop(lock.lock(&within(LONG)).unwrap());
    ender.join().unwrap();
}

#[test]
fn who_is_cancelled_leaves_the_queue_and_the_next_comes() {
    let (lock, order) = (Arc::new(Writer::default()), Arc::default());
    let held = lock.lock(&Waiting::default()).unwrap();
    let cancel = Cancel::new();
    let (theirs, token) = (lock.clone(), cancel.clone());
    let first = spawn(move || theirs.lock(&Waiting::begin(Wait::Forever, Some(&token))).map(drop));
    until_waiting(&lock, 1);
    let second = taker(&lock, Waiting::default, &order, 2);
    until_waiting(&lock, 2);
    let begun = Instant::now();
    cancel.cancel();
    assert!(matches!(first.join().unwrap(), Err(Error::Cancelled)));
    assert!(begun.elapsed() < LONG);
    until_waiting(&lock, 1);
    drop(held);
    second.join().unwrap();
    // A token that is set ends waits before they begin, but takes a lock that is free.
    let waiting = || Waiting::begin(Wait::For(LONG), Some(&cancel));
    let held = lock.lock(&waiting()).unwrap();
    assert!(matches!(lock.lock(&waiting()), Err(Error::Cancelled)));
    drop(held);
}

#[test]
fn a_token_that_is_asked_ends_a_wait() {
    let lock = Writer::default();
    let held = lock.lock(&Waiting::default()).unwrap();
    let begun = Instant::now();
    let cancel = Cancel::when(move || begun.elapsed() > 3 * SHORT);
    let waiting = Waiting::begin(Wait::For(LONG), Some(&cancel));
    assert!(matches!(lock.lock(&waiting), Err(Error::Cancelled)));
    assert!(begun.elapsed() < LONG);
    drop(held);
}

#[test]
fn a_token_that_panics_leaves_no_place_in_the_queue() {
    let lock = Arc::new(Writer::default());
    let held = lock.lock(&Waiting::default()).unwrap();
    let begun = Instant::now();
    let theirs = lock.clone();
    let waiter = spawn(move || {
        let cancel = Cancel::when(move || {
            assert!(begun.elapsed() < SHORT, "a panic of the test");
            false
        });
        theirs.lock(&Waiting::begin(Wait::Forever, Some(&cancel))).map(drop)
    });
    assert!(waiter.join().is_err());
    assert_eq!(lock.waiting(), 0);
    drop(held);
    drop(lock.lock(&Waiting::begin(Wait::Not, None)).unwrap());
}

/// Threads of all kinds at once: the lock keeps each out while another has it, and nobody is
/// forgotten.
#[test]
fn nobody_is_forgotten() {
    let lock = Arc::new(Writer::default());
    let inside = Arc::new(AtomicBool::new(false));
    let threads: Vec<_> = (0..6_u64)
        .map(|number| {
            let (lock, inside) = (lock.clone(), inside.clone());
            spawn(move || {
                for i in 0..2_000 {
                    let cancel = Cancel::new();
                    let waiting = match (number * 7 + i) % 5 {
                        0 => Waiting::begin(Wait::Not, None),
                        1 => within(Duration::from_micros(i % 300)),
                        2 if number == 0 => Waiting::maintenance(),
                        3 => Waiting::begin(Wait::For(LONG), Some(&cancel)),
                        _ => Waiting::default(),
                    };
                    let Ok(held) = lock.lock(&waiting) else { continue };
                    assert!(!inside.swap(true, SeqCst));
                    if i % 50 == 0 {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                    inside.store(false, SeqCst);
                    if i % 3 == 0 {
                        spawn(move || drop(held)).join().unwrap();
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(lock.0.state.load(SeqCst), 0);
    assert_eq!(lock.waiting(), 0);
}
