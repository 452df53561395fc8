//! Removing what was left over: old unfinished uploads, parts and side records of nobody.
//!
//! A part is left over if its upload ended while it was being sent; a side record if
//! another program than the server removed the object.

use crate::config::Limits;
use crate::objects::catalog::{Bucket, Catalog, Served};
use crate::objects::side::{self, SYSTEM};
use crate::refusal::Result;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// Between two sweeps.
const PERIOD: Duration = Duration::from_secs(3600);
/// Objects removed in a transaction.
const BATCH: usize = 100;

/// Sweeps at once and then each hour, for ever.
pub async fn run(catalog: Arc<Catalog>, limits: Limits) {
    loop {
        let (catalog, days) = (catalog.clone(), limits.upload_days);
        let swept = crate::http::body::blocking(move || {
            let old = Duration::from_secs(days.saturating_mul(24 * 3600));
            catalog.stores().iter().try_for_each(|served| sweep(served, SystemTime::now(), old))
        });
        if let Err(e) = swept.await {
            tracing::warn!(error = %e, "left-over records could not be removed");
        }
        tokio::time::sleep(PERIOD).await;
    }
}

/// Sweeps a store; uploads begun longer than `old` ago are given up. Blocks.
///
/// # Errors
/// Those of the engine.
pub fn sweep(served: &Served, now: SystemTime, old: Duration) -> Result<()> {
    let reader = served.read()?;
    let mut ids = BTreeSet::new();
    for (name, id, upload) in side::uploads(&reader, None)? {
        if now.duration_since(upload.begun()).is_ok_and(|age| age >= old) {
            tracing::info!(bucket = name, key = upload.key, id, "unfinished upload removed");
            Bucket { name, served: served.clone() }.give_up(&id)?;
        } else {
            ids.insert(id);
        }
    }
    let nobodys = side::nobodys(&reader, &ids)?;
    crate::web::sweep(served, now)?;
    for batch in nobodys.chunks(BATCH) {
        let remove = |tx: &mut holdall::WriteTx| {
            let mut system = tx.collection(SYSTEM)?;
            batch.iter().try_for_each(|name| system.remove(name.as_slice()).map(drop))
        };
        served.write(remove)?;
    }
    Ok(())
}
