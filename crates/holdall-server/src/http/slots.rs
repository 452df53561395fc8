//! Room for a number of clients, or of their long bodies: one that does not come on gives its room
//! to one that waits.
//!
//! Owns: [`Slots`], [`Slot`], [`Client`]. A connection takes a descriptor, a long body memory and a
//! thread, for as long as its client likes. A bound by number alone let as many silent clients keep
//! everybody else out.

use crate::refusal::{Result, Why};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Bytes that are progress.
pub const PROGRESS: u64 = 64 << 10;
/// How long a client may be waited for, since its last progress, while others wait for room.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at who holds room and does not come on.
const LOOK: Duration = Duration::from_millis(250);

/// Room for a number of clients. Clones share it.
#[derive(Debug, Clone)]
pub struct Slots {
    room: Arc<Semaphore>,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    by_number: BTreeMap<u64, Client>,
}

#[derive(Debug, Default)]
struct Holder {
    state: Mutex<State>,
    give_up: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Bytes since the last progress.
    bytes: u64,
    /// How long the client was waited for since then, up to `since`.
    waited: Duration,
    /// How many wait for it now, and since when.
    waits: usize,
    since: Option<Instant>,
}

/// A client that has room. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Client(Arc<Holder>);

/// That a client is waited for, until this is dropped.
#[derive(Debug)]
pub struct Waiting(Client);

/// Room for one client, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    client: Client,
    held: Arc<Mutex<Held>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Client {
    /// Notes that the client is waited for.
    pub fn wait(&self) -> Waiting {
        let mut state = self.0.state.lock();
        state.waits += 1;
        state.since.get_or_insert_with(Instant::now);
        Waiting(self.clone())
    }

    /// Notes bytes that passed.
    pub fn came(&self, bytes: u64) {
        let mut state = self.0.state.lock();
        state.bytes = state.bytes.saturating_add(bytes);
        if state.bytes >= PROGRESS {
            (state.bytes, state.waited) = (0, Duration::ZERO);
            state.since = state.since.map(|_| Instant::now());
        }
    }

    /// Ends once its room goes to another one.
    pub async fn given_up(&self) {
        self.0.give_up.notified().await;
    }

    /// How long it was waited for since its last progress; `None` if the server is at work.
    fn waited(&self, now: Instant) -> Option<Duration> {
        let state = self.0.state.lock();
        state.since.map(|since| state.waited + now.saturating_duration_since(since))
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut state = self.0.0.state.lock();
        state.waits -= 1;
        if state.waits == 0
            && let Some(since) = state.since.take()
        {
            state.waited += since.elapsed();
        }
    }
}

impl Slots {
    /// Room for `most` clients.
    pub fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most.max(1))), held: Arc::default() }
    }

    /// Waits for room. If there is none, the client that was waited for longest since its last
    /// progress is given up, once that is longer than a slow one needs.
    pub async fn take(&self) -> Slot {
        loop {
            if self.room.available_permits() == 0 {
                self.give_up_slowest(Instant::now());
            }
            let permit = self.room.clone().acquire_owned();
            if let Ok(permit) = tokio::time::timeout(LOOK, permit).await {
                // Nobody closes it.
                return self.slot(permit.ok());
            }
        }
    }

    fn slot(&self, permit: Option<OwnedSemaphorePermit>) -> Slot {
        let client = Client(Arc::default());
        let mut held = self.held.lock();
        held.next += 1;
        let number = held.next;
        held.by_number.insert(number, client.clone());
        Slot { number, client, held: self.held.clone(), _permit: permit }
    }

    fn give_up_slowest(&self, now: Instant) {
        let held = self.held.lock();
        let waited =
            held.by_number.values().filter_map(|client| Some((client.waited(now)?, client)));
        let slowest = waited.max_by_key(|(waited, _)| *waited);
        if let Some((_, client)) = slowest.filter(|(waited, _)| *waited > GRACE) {
            client.0.give_up.notify_one();
        }
    }
}

impl Slot {
    /// Who has it.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Waits for a piece of the body, unless the room goes to another one meanwhile.
    ///
    /// # Errors
    /// Those of `piece`; Late if the room was given to another body.
    pub async fn wait<T>(&self, piece: impl Future<Output = Result<T>>) -> Result<T> {
        let _waiting = self.client.wait();
        tokio::select! {
            got = piece => got,
            () = self.client.given_up() => {
                let told = "the body did not come on, and others waited for its room; send it again";
                Err(Why::Late.says(told))
            }
        }
    }

    /// Notes bytes that came.
    pub fn came(&self, bytes: u64) {
        self.client.came(bytes);
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.held.lock().by_number.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    fn slow(slots: &Slots) -> tokio::task::JoinHandle<Result<()>> {
        let slots = slots.clone();
        tokio::spawn(async move {
            let slot = slots.take().await;
            slot.came(PROGRESS - 1);
            slot.wait(pending::<Result<()>>()).await
        })
    }

    #[tokio::test]
    async fn who_does_not_come_on_makes_room_once_others_wait() {
        let slots = Slots::new(2);
        let (first, second) = (slow(&slots), slow(&slots));
        while slots.room.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        let third = slots.take().await;
        // One had to go, and one only.
        let ended = [first.is_finished(), second.is_finished()];
        assert!(ended[0] != ended[1], "{ended:?}");
        let gone = if ended[0] { first } else { second };
        assert_eq!(gone.await.unwrap().unwrap_err().why, Why::Late);
        drop(third);
    }

    #[tokio::test]
    async fn progress_is_what_counts() {
        let slots = Slots::new(1);
        let slot = slots.take().await;
        let waiting = slot.client().wait();
        let set = |waited| slot.client.0.state.lock().waited = waited;
        set(GRACE / 2);
        slots.give_up_slowest(Instant::now());
        slot.wait(async { Ok(()) }).await.unwrap();
        set(GRACE * 2);
        slot.came(PROGRESS);
        slots.give_up_slowest(Instant::now());
        slot.wait(async { Ok(()) }).await.unwrap();
        set(GRACE * 2);
        slots.give_up_slowest(Instant::now());
        slot.wait(pending::<Result<()>>()).await.unwrap_err();
        // The server's own work is nobody's delay.
        drop(waiting);
        set(GRACE * 2);
        slots.give_up_slowest(Instant::now());
        let given_up = slot.client.given_up();
        assert!(tokio::time::timeout(LOOK, given_up).await.is_err());
    }
}
