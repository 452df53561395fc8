//! Listings of all that begins with a prefix, page by page, several pages at once.

use super::ranges::Ranges;
use crate::backend::{Listed, Page};
use crate::store::Inner;
use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::FuturesUnordered;
use holdall::Result;

/// Keys of a page.
const PAGE: usize = 1000;
/// Pages that are asked for together.
const AT_ONCE: usize = 16;

/// A listing under way. It shows what was written before it began and is there still, each key once;
/// pages come in no order.
pub(crate) struct Walk {
    prefix: String,
    ranges: Ranges,
    under_way: FuturesUnordered<BoxFuture<'static, Result<(u64, Page)>>>,
}

impl Walk {
    pub(crate) fn new(prefix: &str) -> Self {
        let ranges = Ranges::new(prefix);
        Self { prefix: prefix.into(), ranges, under_way: FuturesUnordered::new() }
    }

    /// A page that was not given yet; `None` at the end. After an error nothing is known of the rest.
    pub(crate) async fn next(&mut self, store: &Inner) -> Result<Option<Vec<Listed>>> {
        self.ask(store);
        while let Some(answer) = self.under_way.next().await {
            let (id, page) = answer?;
            let keys = self.ranges.answered(id, page);
            self.ask(store);
            if !keys.is_empty() {
                return Ok(Some(keys));
            }
        }
        Ok(None)
    }

    fn ask(&mut self, store: &Inner) {
        while self.under_way.len() < AT_ONCE
            && let Some((id, after)) = self.ranges.ask()
        {
            let (backend, prefix) = (store.backend.clone(), self.prefix.clone());
            self.under_way.push(store.begin(async move {
                Ok((id, backend.list(&prefix, after.as_deref(), false, PAGE).await?))
            }));
        }
    }
}
