//! The number of the collecting cycle, and the server's time.
//!
//! A cycle begins by raising the number. Who finds another number than his own ends before he
//! deletes what others might name: a later cycle looked at later intents.

use crate::backend::{Got, Put, Tag};
use crate::format::{Id, keys};
use crate::store::{Inner, TRIES};
use holdall::{Error, Result};
use serde::{Deserialize, Serialize};

/// What the key holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    cycle: u64,
    nonce: String,
}

/// A cycle that was begun.
#[derive(Debug, Clone)]
pub(crate) struct Cycle {
    pub(crate) number: u64,
    nonce: String,
    /// When it began, by the server's clock, in seconds since 1970 UTC.
    pub(crate) began: u64,
}

impl Cycle {
    /// Begins the next cycle.
    ///
    /// # Errors
    /// [`Error::Conflict`] if others began one each time; those of the backend.
    pub(crate) async fn begin(store: &Inner) -> Result<Self> {
        for attempt in 0..TRIES {
            let found = read(store).await?;
            let last = found.as_ref().map_or(0, |(_, stored, _)| stored.cycle);
            let number = last.checked_add(1);
            let number = number.ok_or_else(|| Error::corrupt(keys::CYCLE, "no number follows"))?;
            let nonce = store.draw()?.to_string();
            let stored = Stored { cycle: number, nonce: nonce.clone() };
            let bytes = serde_json::to_vec(&stored);
            let bytes = bytes.map_err(|e| Error::Invalid(format!("a cycle's number: {e}")))?;
            let tag = found.as_ref().map(|(tag, ..)| tag);
            let _: Put = store.backend.put_if(keys::CYCLE, tag, bytes.into()).await?;
            // Its date is the server's time, whatever was answered.
            if let Some((_, now, began)) = read(store).await?
                && now.nonce == nonce
            {
                return Ok(Self { number, nonce, began });
            }
            store.pause(attempt).await?;
        }
        let detail = "others began to collect each time".into();
        Err(Error::Conflict { object: store.name.clone(), detail })
    }

    /// Whether no other cycle began since.
    pub(crate) async fn is_own(&self, store: &Inner) -> Result<bool> {
        Ok(read(store).await?.is_some_and(|(_, stored, _)| stored.nonce == self.nonce))
    }

    /// Whether something of this time is older than the grace.
    pub(crate) fn is_old(&self, store: &Inner, seconds: u64) -> bool {
        seconds.saturating_add(store.sizes().grace) <= self.began
    }
}

async fn read(store: &Inner) -> Result<Option<(Tag, Stored, u64)>> {
    match store.backend.get(keys::CYCLE, None, None).await? {
        Got::Found(found) => {
            let stored: Stored = serde_json::from_slice(&found.bytes.whole())
                .map_err(|e| Error::corrupt(keys::CYCLE, format!("no number of a cycle: {e}")))?;
            if Id::parse(&stored.nonce).is_none() {
                return Err(Error::corrupt(keys::CYCLE, "no nonce"));
            }
            Ok(Some((found.tag, stored, found.date / 1000)))
        }
        _ => Ok(None),
    }
}
