//! Listings page by page.

use crate::backend::Listed;
use crate::store::Inner;
use holdall::Result;

/// Keys of a page.
const PAGE: usize = 1000;

/// A listing under way.
#[derive(Debug)]
pub(crate) struct Walk {
    prefix: String,
    after: Option<String>,
    ended: bool,
}

impl Walk {
    pub(crate) fn new(prefix: &str) -> Self {
        Self { prefix: prefix.into(), after: None, ended: false }
    }

    /// The next page; `None` at the end.
    pub(crate) async fn next(&mut self, store: &Inner) -> Result<Option<Vec<Listed>>> {
        if self.ended {
            return Ok(None);
        }
        let page = store.backend.list(&self.prefix, self.after.as_deref(), false, PAGE).await?;
        self.after = page.next;
        self.ended = self.after.is_none();
        Ok(Some(page.keys))
    }
}
