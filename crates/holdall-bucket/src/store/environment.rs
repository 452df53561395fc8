//! What a store needs of the machine it runs on: time and chance.
//!
//! Owns: [`Environment`], so that a simulation decides both, and [`Machine`], the real one.

use crate::format::Id;
use async_trait::async_trait;
use futures::future::BoxFuture;
use holdall::{Error, Result};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Time and chance.
#[async_trait]
pub trait Environment: fmt::Debug + Send + Sync {
    /// The time, since 1970 UTC.
    fn now(&self) -> Duration;

    /// 128 bits that nobody has drawn before.
    ///
    /// # Errors
    /// [`Error::Io`] if the system has none.
    fn draw(&self) -> Result<Id>;

    /// Waits.
    async fn sleep(&self, time: Duration);

    /// Begins `work`, and goes on with it while nobody waits for what is returned, if there is
    /// something that does; it ends unfinished if that is dropped. Else it is `work` itself.
    fn begin(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}

/// The machine itself; its waits are those of a tokio runtime, which also goes on with what was begun.
#[derive(Debug, Clone, Copy, Default)]
pub struct Machine;

#[async_trait]
impl Environment for Machine {
    fn now(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }

    fn draw(&self) -> Result<Id> {
        let mut bytes = [0; Id::BYTES];
        getrandom::fill(&mut bytes).map_err(|e| Error::io("drawing random bytes", e.into()))?;
        Ok(Id(bytes))
    }

    async fn sleep(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    fn begin(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                let mut task = Task(runtime.spawn(work));
                // Who waits for what the work sends learns that it ended early.
                Box::pin(async move { drop((&mut task.0).await) })
            }
            Err(_) => work,
        }
    }
}

/// A task that ends when nobody waits for it any more.
struct Task(tokio::task::JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}
