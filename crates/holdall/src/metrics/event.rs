//! What happens in a store that an operator wants to know of.
//!
//! Owns: [`Event`]. With the feature `tracing` each is an event of that crate, target `holdall`.

use std::time::Duration;

/// One of them.
#[derive(Debug)]
#[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "nobody listens"))]
pub(crate) enum Event<'a> {
    /// A checkpoint came to its end.
    Checkpoint { cause: &'a str, pages: u64, took: Duration },
    /// The file is longer now.
    Growth { bytes: u64 },
    /// Snapshots were given up, whose state was replaced this long ago.
    Expiry { snapshots: u64, age: Duration },
    /// Nothing can be committed any more.
    Poison { why: &'a str },
    /// A defragmentation has ended.
    Defragmentation { bytes: u64, stopped: bool },
    /// A scrub found damage.
    Damage { place: &'a str, why: &'a str },
    /// Work in the background failed.
    Failure { what: &'a str, why: &'a str },
}

impl Event<'_> {
    /// Tells those who listen.
    #[cfg(not(feature = "tracing"))]
    pub(crate) fn tell(&self) {}

    /// Tells those who listen.
    #[cfg(feature = "tracing")]
    pub(crate) fn tell(&self) {
        use tracing::{debug, error, info, warn};
        match self {
            Self::Checkpoint { cause, pages, took } => {
                debug!(target: "holdall", cause, pages, ?took, "checkpoint");
            }
            Self::Growth { bytes } => debug!(target: "holdall", bytes, "growth"),
            Self::Expiry { snapshots, age } => {
                warn!(target: "holdall", snapshots, ?age, "snapshots given up");
            }
            Self::Poison { why } => error!(target: "holdall", why, "no commits any more"),
            Self::Defragmentation { bytes, stopped } => {
                info!(target: "holdall", bytes, stopped, "defragmentation");
            }
            Self::Damage { place, why } => error!(target: "holdall", place, why, "damage"),
            Self::Failure { what, why } => warn!(target: "holdall", what, why, "failure"),
        }
    }
}
