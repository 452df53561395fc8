//! Room for long bodies: a number of them come in at a time, and one that does not come on gives its
//! room to one that waits.
//!
//! Owns: [`Slots`], [`Slot`]. A body takes memory and a thread for as long as its client sends. A
//! bound by number alone let as many silent clients keep everybody else out.

use parking_lot::Mutex;
use s3s::{S3Result, s3_error};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Bytes that are progress.
const PROGRESS: u64 = 64 << 10;
/// How long a client may be waited for, since its last progress, while others wait for room.
const GRACE: Duration = Duration::from_secs(5);
/// Between two looks at who holds room and does not come on.
const LOOK: Duration = Duration::from_millis(250);

/// Room for a number of bodies. Clones share it.
#[derive(Debug, Clone)]
pub struct Slots {
    room: Arc<Semaphore>,
    held: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    next: u64,
    by_number: BTreeMap<u64, Holder>,
}

/// A body that has room.
#[derive(Debug)]
struct Holder {
    /// Bytes since its last progress.
    bytes: u64,
    /// How long its client was waited for since then, up to `since`.
    waited: Duration,
    /// Since when it is waited for now.
    since: Option<Instant>,
    give_up: Arc<Notify>,
}

impl Holder {
    fn waited(&self, now: Instant) -> Duration {
        self.waited + self.since.map(|since| now - since).unwrap_or_default()
    }
}

/// Room for one body, until it is dropped.
#[derive(Debug)]
pub struct Slot {
    number: u64,
    give_up: Arc<Notify>,
    held: Arc<Mutex<Held>>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Slots {
    /// Room for `most` bodies.
    pub fn new(most: usize) -> Self {
        Self { room: Arc::new(Semaphore::new(most.max(1))), held: Arc::default() }
    }

    /// Waits for room. Where there is none, the body that was waited for longest since its last
    /// progress is given up, once that is longer than a slow client needs.
    pub async fn take(&self) -> Slot {
        loop {
            let permit = self.room.clone().acquire_owned();
            match tokio::time::timeout(LOOK, permit).await {
                // Nobody closes it.
                Ok(permit) => return self.slot(permit.ok()),
                Err(_) => self.give_up_slowest(Instant::now()),
            }
        }
    }

    fn slot(&self, permit: Option<OwnedSemaphorePermit>) -> Slot {
        let give_up = Arc::new(Notify::new());
        let mut held = self.held.lock();
        held.next += 1;
        let (number, since, waited) = (held.next, None, Duration::ZERO);
        let holder = Holder { bytes: 0, waited, since, give_up: give_up.clone() };
        held.by_number.insert(number, holder);
        Slot { number, give_up, held: self.held.clone(), _permit: permit }
    }

    fn give_up_slowest(&self, now: Instant) {
        let held = self.held.lock();
        let slowest = held.by_number.values().max_by_key(|holder| holder.waited(now));
        if let Some(slowest) = slowest.filter(|holder| holder.waited(now) > GRACE) {
            slowest.give_up.notify_one();
        }
    }
}

impl Slot {
    /// Waits for a piece of the body, unless the room goes to another one meanwhile.
    ///
    /// # Errors
    /// Those of `piece`; RequestTimeout where the room was given to another body.
    pub async fn wait<T>(&self, piece: impl Future<Output = S3Result<T>>) -> S3Result<T> {
        self.change(|holder| holder.since = Some(Instant::now()));
        let got = tokio::select! {
            got = piece => got,
            () = self.give_up.notified() => {
                let told = "the body did not come on, and others waited for its room; send it again";
                Err(s3_error!(RequestTimeout, "{told}"))
            }
        };
        self.change(|holder| {
            holder.waited = holder.waited(Instant::now());
            holder.since = None;
        });
        got
    }

    /// Notes bytes that came.
    pub fn came(&self, bytes: u64) {
        self.change(|holder| {
            holder.bytes = holder.bytes.saturating_add(bytes);
            if holder.bytes >= PROGRESS {
                (holder.bytes, holder.waited) = (0, Duration::ZERO);
            }
        });
    }

    fn change(&self, change: impl FnOnce(&mut Holder)) {
        self.held.lock().by_number.get_mut(&self.number).map(change);
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

    fn slow(slots: &Slots) -> tokio::task::JoinHandle<S3Result<()>> {
        let slots = slots.clone();
        tokio::spawn(async move {
            let slot = slots.take().await;
            slot.came(PROGRESS - 1);
            slot.wait(pending::<S3Result<()>>()).await
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
        assert_eq!(*gone.await.unwrap().unwrap_err().code(), s3s::S3ErrorCode::RequestTimeout);
        drop(third);
    }

    #[tokio::test]
    async fn progress_is_what_counts() {
        let slots = Slots::new(1);
        let slot = slots.take().await;
        let set = |waited| {
            slot.change(|holder| holder.waited = waited);
        };
        set(GRACE);
        slots.give_up_slowest(Instant::now());
        slot.wait(async { Ok(()) }).await.unwrap();
        set(GRACE * 2);
        slot.came(PROGRESS);
        slots.give_up_slowest(Instant::now());
        slot.wait(async { Ok(()) }).await.unwrap();
        set(GRACE * 2);
        slots.give_up_slowest(Instant::now());
        slot.wait(pending::<S3Result<()>>()).await.unwrap_err();
    }
}
