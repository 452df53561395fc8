//! The promises on space, after a storage age.

use super::Volume;
use anyhow::{Result, bail};
use std::time::{Duration, Instant};

/// How long maintenance may take to catch up.
const CATCH_UP: Duration = Duration::from_secs(300);

impl Volume {
    /// Waits for maintenance, and fails if a promise is missed.
    ///
    /// # Errors
    /// Those of the store; what was promised.
    pub(super) fn check(&mut self, age: u32) -> Result<()> {
        if self.refused_fitting > 0 {
            bail!("{} puts that fit were refused up to age {age}", self.refused_fitting);
        }
        self.store.checkpoint()?;
        let begun = Instant::now();
        loop {
            let c = self.store.frag(&mut |_, _| ())?.contract;
            if c.holds {
                break;
            }
            if begun.elapsed() > CATCH_UP || self.keeper.is_none() {
                let ratio = c.left_bytes as f64 / c.right_bytes.max(1) as f64;
                bail!("age {age}: the file takes {ratio:.3} of what the contract allows: {c:?}");
            }
            std::thread::sleep(Duration::from_millis(200));
        }
        let report = self.store.verify()?;
        if let Some(problem) = report.problems.first() {
            bail!("age {age}: {problem:?}");
        }
        Ok(())
    }
}
