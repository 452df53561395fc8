//! First-fit (McAuliffe §3.2) and the variant of DB2/2 (§4): the first page of the file with
//! room, by its inventory entry. Owns where the search stands. No threads.

use super::{Algorithm, Cause, Change, Request};
use crate::free_space::buckets::Buckets;
use crate::free_space::error::Result;
use crate::free_space::volume::Volume;
use crate::mutation::{Mutation, is};

/// FF, or FF of DB2/2: it starts at the page last used, and at the beginning of the file only
/// for a request smaller than the one before.
#[derive(Debug)]
pub struct FirstFit {
    buckets: Buckets,
    db2: bool,
    /// Page of the last object.
    last_page: u32,
    last_need: usize,
}

impl FirstFit {
    /// FF; the variant of DB2/2 where `db2`.
    #[must_use]
    pub fn new(buckets: Buckets, db2: bool) -> Self {
        Self { buckets, db2, last_page: 0, last_need: usize::MAX }
    }
}

impl Algorithm for FirstFit {
    fn load(&mut self, _: &mut Volume) -> Result<()> {
        (self.last_page, self.last_need) = (0, usize::MAX);
        Ok(())
    }

    fn choose(&mut self, request: &Request<'_>, volume: &mut Volume) -> Result<Option<u32>> {
        let from = match request.refused.last() {
            Some(&page) => page + 1,
            None => {
                let smaller = request.need < self.last_need;
                self.last_need = request.need;
                volume.count_search();
                let smaller = smaller && !is(Mutation::Db2Smaller);
                let on = if self.db2 { !smaller } else { is(Mutation::FfBeginning) };
                if on { self.last_page } else { 0 }
            }
        };
        volume.find(from, volume.pages(), self.buckets.promising(request.need))
    }

    fn refused(&mut self, _: u32) {}

    fn changed(&mut self, change: &Change) {
        if change.cause == Cause::Created {
            self.last_page = change.page;
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Buckets>()
    }
}
