//! Deleting, many names at once.

use crate::error::blocking;
use crate::service::HoldallService;
use opendal_core::Result;
use opendal_core::raw::{OpDelete, oio};

/// Removes names. What is not there is no error.
pub struct Remover(pub HoldallService);

impl Remover {
    async fn remove(&self, paths: Vec<String>) -> Result<()> {
        let own = self.0.clone();
        blocking(move || {
            let names: Vec<String> = paths.iter().map(|path| own.name(path)).collect();
            let first = names.first().cloned().unwrap_or_default();
            own.change(&first, |tx| {
                names.iter().try_for_each(|name| tx.remove(name.as_str()).map(drop))
            })
        })
        .await
    }
}

impl oio::BatchDelete for Remover {
    async fn delete_once(&self, path: String, _: OpDelete) -> Result<()> {
        self.remove(vec![path]).await
    }

    async fn delete_batch(&self, batch: Vec<(String, OpDelete)>) -> Result<oio::BatchDeleteResult> {
        let paths = batch.iter().map(|(path, _)| path.clone()).collect();
        self.remove(paths).await?;
        Ok(oio::BatchDeleteResult { succeeded: batch, failed: Vec::new() })
    }
}
