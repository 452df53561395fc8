//! The numbers that distinguish one owner of a handle slot from the next.

use super::Inner;
use holdall_core::Result;
use holdall_core::mutation::{self, Mutation};
use std::sync::atomic::Ordering::SeqCst;

/// `unique` numbers taken out of the superblock at a time, at first and at most.
const FIRST_UNIQUES: u64 = 1 << 12;
const MOST_UNIQUES: u64 = 1 << 20;

impl Inner {
    /// A number no object of this store ever had. Now and then one superblock write.
    pub(crate) fn take_unique(&self) -> Result<u32> {
        let n = self.next_unique.fetch_add(1, SeqCst);
        let ceiling = self.unique_ceiling.load(SeqCst);
        if n >= ceiling {
            // A share of those given out, so that neither loads nor crashes waste many.
            let more = (n / 8).clamp(FIRST_UNIQUES, MOST_UNIQUES);
            if !mutation::is(Mutation::R12Ceiling) {
                self.pager.volume.write_superblock(|sb| sb.unique_ceiling = n + more)?;
            }
            // Both copies: an older one, should this one be damaged, must not bring back numbers
            // given out since (rule 12).
            if !mutation::is(Mutation::R12Both) {
                let written = self.pager.volume.write_superblock(|_| {})?;
                self.pager.log.note_checkpoint(written.sequence);
            }
            self.unique_ceiling.store(n + more, SeqCst);
        }
        // The low 32 bits: an OID would have to be kept through four billion creations to
        // meet a slot's new owner with the same number.
        Ok(n as u32)
    }
}
