//! Giving up snapshots: the oldest go when they keep more old versions of pages than the budget.
//!
//! Owns no state. Snapshots that keep freed pages from reuse are given up by the allocator.

use super::Pager;

impl Pager {
    /// Keeps old versions within their budget, giving up the oldest snapshots if need be.
    pub(super) fn bound_old_versions(&self) {
        let budget = self.limits.old_version_bytes / self.page_size();
        if self.pool.old_versions() <= budget {
            return;
        }
        self.pool.prune(&self.needed());
        // A snapshot of the newest durable state holds nothing that others do not.
        let visible = self.horizon.visible();
        while self.pool.old_versions() > budget
            && self.horizon.oldest_snapshot().is_some_and(|oldest| oldest < visible)
        {
            self.horizon.give_up_oldest();
            self.pool.prune(&self.needed());
        }
    }
}
