//! A provider's bucket in virtual time: how long requests take, how many a second there may be, and
//! what they cost.
//!
//! Owns: [`Provider`]. Latencies and rates are those that AWS documents for S3 ("Best practices design
//! patterns": small objects in roughly 100 to 200 ms, 85 to 90 MB/s for a connection, 3,500 writes and
//! 5,500 reads a second for a prefix), prices those of its region us-east-1.

use async_trait::async_trait;
use bytes::Bytes;
use holdall::Result;
use holdall_bucket::backend::{Backend, Features, Got, Memory, Page, Put, Tag};
use holdall_bucket::format::Id;
use holdall_bucket::store::Environment;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};

const LEAST: u64 = 100_000;
const SPREAD: u64 = 100_000;
/// Bytes a second of a connection.
const RATE: u64 = 85_000_000;
const WRITES: u64 = 3_500;
const READS: u64 = 5_500;
/// A request that would wait longer for its turn is refused with "slow down".
const QUEUE: Duration = Duration::from_secs(1);

/// Requests of the two prices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// PUT and LIST: 5 dollars a million.
    pub writes: u64,
    /// GET: 0.40 dollars a million.
    pub reads: u64,
    /// Deletions, which are free.
    pub deletes: u64,
    /// Requests that were refused with "slow down".
    pub slowed: u64,
}

impl Counts {
    /// Those since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            writes: self.writes - before.writes,
            reads: self.reads - before.reads,
            deletes: self.deletes - before.deletes,
            slowed: self.slowed - before.slowed,
        }
    }

    /// Dollars.
    pub fn price(self) -> f64 {
        self.writes as f64 * 5e-6 + self.reads as f64 * 0.4e-6
    }
}

/// Requests of one kind, one behind the other.
#[derive(Debug)]
struct Turns {
    next: Mutex<Option<Instant>>,
    each: Duration,
}

impl Turns {
    fn new(rate: u64) -> Self {
        Self { next: Mutex::default(), each: Duration::from_secs(1) / rate as u32 }
    }

    /// When the next turn is; `None` if that is too late.
    fn take(&self) -> Option<Instant> {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let turn = next.unwrap_or(now).max(now);
        if turn - now > QUEUE {
            return None;
        }
        *next = Some(turn + self.each);
        Some(turn)
    }
}

/// The bucket.
#[derive(Debug)]
pub struct Provider {
    memory: Memory,
    writes: Turns,
    reads: Turns,
    random: AtomicU64,
    counts: Mutex<Counts>,
}

impl Provider {
    /// An empty one.
    pub fn new() -> Self {
        Self {
            memory: Memory::default(),
            writes: Turns::new(WRITES),
            reads: Turns::new(READS),
            random: AtomicU64::new(1),
            counts: Mutex::default(),
        }
    }

    /// What was asked so far.
    pub fn counts(&self) -> Counts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.counts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for a turn, and the half of a latency; whether it was refused instead.
    async fn arrive(&self, turns: &Turns, bytes: usize) -> bool {
        let turn = turns.take();
        if let Some(turn) = turn {
            sleep_until(turn).await;
        }
        self.count(|counts| counts.slowed += u64::from(turn.is_none()));
        self.half().await;
        sleep(Duration::from_micros(bytes as u64 * 1_000_000 / RATE)).await;
        turn.is_none()
    }

    async fn half(&self) {
        let x = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        let x = (x ^ (x >> 31)).wrapping_mul(0x94D0_49BB_1331_11EB) >> 33;
        sleep(Duration::from_micros((LEAST + x % SPREAD) / 2)).await;
    }

    /// As [`Provider::arrive`], again until there is a turn, as clients do.
    async fn arrive_at_last(&self, turns: &Turns, bytes: usize) {
        while self.arrive(turns, bytes).await {
            self.half().await;
        }
    }
}

#[async_trait]
impl Backend for Provider {
    async fn get(&self, key: &str, range: Option<Range<u64>>, unless: Option<&Tag>) -> Result<Got> {
        self.count(|counts| counts.reads += 1);
        self.arrive_at_last(&self.reads, 0).await;
        let got = self.memory.get(key, range, unless).await?;
        if let Got::Found(found) = &got {
            sleep(Duration::from_micros(found.bytes.len() as u64 * 1_000_000 / RATE)).await;
        }
        self.half().await;
        Ok(got)
    }

    async fn put_new(&self, key: &str, bytes: Bytes) -> Result<()> {
        self.count(|counts| counts.writes += 1);
        self.arrive_at_last(&self.writes, bytes.len()).await;
        self.memory.put_new(key, bytes).await?;
        self.half().await;
        Ok(())
    }

    async fn put_if(&self, key: &str, expected: Option<&Tag>, bytes: Bytes) -> Result<Put> {
        self.count(|counts| counts.writes += 1);
        if self.arrive(&self.writes, bytes.len()).await {
            return Ok(Put::Unknown("503 SlowDown".into()));
        }
        let put = self.memory.put_if(key, expected, bytes).await?;
        self.half().await;
        Ok(put)
    }

    async fn delete(&self, key: &str) -> Result<()> {
        self.count(|counts| counts.deletes += 1);
        self.arrive_at_last(&self.writes, 0).await;
        self.memory.delete(key).await?;
        self.half().await;
        Ok(())
    }

    async fn delete_if(&self, key: &str, tag: &Tag) -> Result<bool> {
        self.count(|counts| counts.deletes += 1);
        self.arrive_at_last(&self.writes, 0).await;
        let done = self.memory.delete_if(key, tag).await?;
        self.half().await;
        Ok(done)
    }

    async fn list(
        &self,
        prefix: &str,
        after: Option<&str>,
        folders: bool,
        limit: usize,
    ) -> Result<Page> {
        self.count(|counts| counts.writes += 1);
        self.arrive_at_last(&self.reads, 0).await;
        let page = self.memory.list(prefix, after, folders, limit).await?;
        self.half().await;
        Ok(page)
    }

    fn features(&self) -> Features {
        Features { delete_if: true }
    }
}

/// The clock of the virtual time.
#[derive(Debug)]
pub struct Clock(Instant);

/// All processes together draw no number twice.
static DRAWN: AtomicU64 = AtomicU64::new(1);

impl Clock {
    /// Begins now, in 2026.
    pub fn new() -> Self {
        Self(Instant::now())
    }
}

#[async_trait]
impl Environment for Clock {
    fn now(&self) -> Duration {
        Duration::from_secs(1_767_225_600) + self.0.elapsed()
    }

    fn draw(&self) -> Result<Id> {
        let n = DRAWN.fetch_add(1, Ordering::Relaxed);
        let high = n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok(Id(((u128::from(high) << 64) | u128::from(n)).to_be_bytes()))
    }

    async fn sleep(&self, time: Duration) {
        sleep(time).await;
    }
}
