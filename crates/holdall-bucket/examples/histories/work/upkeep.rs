//! What a task does for the whole store: it collects, or compacts.

use super::Worker;
use crate::history::told;
use holdall::Result;
use holdall_bucket::CollectOptions;
use serde_json::json;

/// What a task does for the whole store now and then.
#[derive(Clone, Copy)]
pub(super) enum Upkeep {
    Collects,
    Compacts,
}

impl Upkeep {
    /// What a task does, and of how many of its steps one. One client collects most of the time; another
    /// comes between seldom, since a cycle that another overtakes deletes little.
    pub(super) fn of(slot: u64, task: u64) -> Option<(Self, u32)> {
        match (slot, task) {
            (0, 0) => Some((Self::Collects, 4)),
            (1, 0) => Some((Self::Collects, 60)),
            (2..4, 0) => Some((Self::Compacts, 8)),
            _ => None,
        }
    }
}

impl Worker {
    /// Does its part if it is time. Returns whether it was.
    pub(super) async fn keep_up(&mut self) -> Result<bool> {
        let Some((what, of)) = self.upkeep else { return Ok(false) };
        if !self.chance.one_in(of) {
            return Ok(false);
        }
        match what {
            Upkeep::Collects => self.collect().await?,
            Upkeep::Compacts => self.compact().await?,
        }
        Ok(true)
    }

    async fn collect(&mut self) -> Result<()> {
        let full = self.chance.one_in(6);
        let call = self.history.call(self.task, json!({"op": "collect", "full": full}))?;
        let options = CollectOptions { alone: false, full };
        let collected = self.store.collect(options, &mut |_| {}).await;
        let answer = told(
            collected,
            |c| json!({"blobs": c.blobs, "closed": c.closed, "intents": c.intents, "overtaken": c.overtaken}),
        );
        self.history.returned(call, None, answer)
    }

    /// Versions stay what they are, and so must what they hold, as those who read them say.
    async fn compact(&mut self) -> Result<()> {
        let call = self.history.call(self.task, json!({"op": "compact"}))?;
        let compacted = self.store.compact(&mut |_| {}).await;
        let answer = told(
            compacted,
            |c| json!({"objects": c.objects, "rewritten": c.rewritten, "shared": c.shared, "changed": c.changed}),
        );
        self.history.returned(call, None, answer)
    }
}
