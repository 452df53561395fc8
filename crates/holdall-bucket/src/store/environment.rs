//! What a store needs of the machine it runs on: time and chance.
//!
//! Owns: [`Environment`], so that a simulation decides both, and [`Machine`], the real one.

use crate::format::Id;
use async_trait::async_trait;
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
}

/// The machine itself; its waits are those of a tokio runtime.
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
}
