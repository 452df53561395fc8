//! Reads of one object, of a state that is not kept open.
//!
//! Owns: [`Store::get_into`], [`Store::read_at`].

use super::Store;
use crate::engine::key::Key;
use crate::read::lookup::ObjectLookup;
use crate::read::state::State;
use holdall_core::{Error, Result};

impl Store {
    /// All bytes of an object as the newest durable commit has it, in place of what `bytes`
    /// holds; `false` where no object has the name. As [`Store::read`] and
    /// [`Reader::get_into`](crate::Reader::get_into), a little faster. For several objects of one state take a
    /// [`Reader`](crate::Reader).
    ///
    /// # Errors
    /// As [`Reader::get_into`](crate::Reader::get_into).
    pub fn get_into<'k>(&self, key: impl Into<Key<'k>>, bytes: &mut Vec<u8>) -> Result<bool> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None }.get_into(&key, bytes))
    }

    /// Up to `buf.len()` bytes of an object from `offset`, as the newest durable commit has it;
    /// fewer only at the object's end, `None` where no object has the name. As [`Store::read`]
    /// and [`Reader::read_at`](crate::Reader::read_at), a little faster.
    ///
    /// # Errors
    /// As [`Reader::read_at`](crate::Reader::read_at).
    pub fn read_at<'k>(
        &self,
        key: impl Into<Key<'k>>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None }.read_at(&key, offset, buf))
    }

    /// What `f` finds in the newest durable state; in a newer one where that was given up
    /// meanwhile.
    #[inline]
    fn once<T>(&self, mut f: impl FnMut(&State) -> Result<T>) -> Result<T> {
        loop {
            match f(&self.state(false)?) {
                Err(Error::SnapshotTooOld { .. }) => {}
                result => return result,
            }
        }
    }
}
