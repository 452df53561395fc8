//! How long somebody waits, and who may end it.
//!
//! Owns: [`Wait`] and [`Cancel`] of the public API; [`Waiting`], a wait that has begun.
//!
//! A token and a waiter meet so: the waiter enters itself, then looks at the token; the token is
//! set, then wakes who entered. One of the two sees the other.

use holdall_core::{Error, Result};
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Between two questions to a token that is asked.
pub(super) const ASK_EVERY: Duration = Duration::from_millis(50);

/// How long a call waits for others.
///
/// ```
/// # use std::time::Duration;
/// assert_eq!(holdall::Wait::from(Duration::ZERO), holdall::Wait::Not);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Wait {
    /// Until it is its turn. For a transaction of this thread it does not wait: that would be for
    /// ever, and is [`Error::Busy`](crate::Error::Busy) at once.
    #[default]
    Forever,
    /// At most so long.
    For(Duration),
    /// Not at all.
    Not,
}

impl From<Duration> for Wait {
    fn from(limit: Duration) -> Self {
        if limit.is_zero() { Self::Not } else { Self::For(limit) }
    }
}

/// Ends waits from outside: a token that waits are begun with, and that any thread sets, once and
/// for all. Clones are the same token.
///
/// ```
/// # use holdall::{Cancel, Error, Store, WriteOptions};
/// # let store = Store::in_memory()?;
/// let mut first = store.begin_write()?;
/// first.put("a", b"1")?;
/// let cancel = Cancel::new();
/// let options = WriteOptions { cancel: Some(cancel.clone()), ..WriteOptions::default() };
/// let second = std::thread::scope(|scope| {
///     let second = scope.spawn(|| store.begin_write_with(&options).map(drop));
///     cancel.cancel();
///     second.join().expect("does not panic")
/// });
/// assert!(matches!(second, Err(Error::Cancelled)));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Cancel(Arc<Token>);

#[derive(Default)]
struct Token {
    set: AtomicBool,
    waiting: Mutex<Vec<Arc<dyn Wake>>>,
    asks: Option<Box<dyn Fn() -> bool + Send + Sync>>,
}

/// Somebody who waits with a token.
pub(super) trait Wake: Send + Sync {
    fn wake(&self);
}

impl Cancel {
    /// A token that is not set.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is also set once `asked` says so. A waiting thread asks it every 50 ms: for
    /// what only that thread can notice, such as signals of an interpreter.
    pub fn when(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(Token { asks: Some(Box::new(asked)), ..Token::default() }))
    }

    /// Sets it: each wait that was begun with it ends at once with
    /// [`Error::Cancelled`](crate::Error::Cancelled), and none begins. Not for signal handlers.
    pub fn cancel(&self) {
        self.0.set.store(true, SeqCst);
        let waiting = std::mem::take(&mut *self.0.waiting.lock());
        waiting.iter().for_each(|waiter| waiter.wake());
    }

    /// Whether it was set.
    pub fn is_cancelled(&self) -> bool {
        self.0.set.load(SeqCst)
    }

    pub(super) fn is_asked(&self) -> bool {
        self.0.asks.is_some()
    }

    /// Asks, if it is to be asked; returns whether it is set now.
    fn ask(&self) -> bool {
        if !self.is_cancelled() && self.0.asks.as_ref().is_some_and(|asks| asks()) {
            self.cancel();
        }
        self.is_cancelled()
    }

    pub(super) fn enter(&self, waiter: Arc<dyn Wake>) {
        self.0.waiting.lock().push(waiter);
    }

    pub(super) fn leave(&self, waiter: &Arc<dyn Wake>) {
        self.0.waiting.lock().retain(|other| !Arc::ptr_eq(other, waiter));
    }
}

impl std::fmt::Debug for Cancel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}

/// A wait that has begun: all that a call waits for counts.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    pub(super) wait: Wait,
    until: Option<Instant>,
    cancel: Option<Cancel>,
    pub(super) maintenance: bool,
}

impl Waiting {
    /// A wait that begins now.
    pub fn begin(wait: Wait, cancel: Option<&Cancel>) -> Self {
        let until = match wait {
            Wait::Forever => None,
            Wait::For(limit) => Instant::now().checked_add(limit),
            Wait::Not => Some(Instant::now()),
        };
        Self { wait, until, cancel: cancel.cloned(), maintenance: false }
    }

    /// That of work for which users do not wait, but it for them.
    pub fn maintenance() -> Self {
        Self { maintenance: true, ..Self::default() }
    }

    /// Whether nothing but its turn ends it.
    pub fn is_endless(&self) -> bool {
        self.until.is_none() && self.cancel.is_none()
    }

    /// When its time is over; None if it has no end.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.cancel.as_ref().is_some_and(Cancel::is_cancelled)
    }

    pub(super) fn cancel(&self) -> Option<&Cancel> {
        self.cancel.as_ref()
    }

    /// Asks the token. No lock may be held: it calls what others wrote.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn check(&self) -> Result<()> {
        if self.cancel.as_ref().is_some_and(Cancel::ask) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// Whether its time is over.
    pub fn is_over(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }

    /// The longest that a thread may sleep, of `most`, before it looks at its wait again.
    pub fn slice(&self, most: Duration) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(most, |left| left.min(most))
    }
}
