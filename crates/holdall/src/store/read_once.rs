//! Reads of an object that is not kept open, and of a state that is not kept either.
//!
//! Owns: [`Store::get_into`], [`Store::read_at`] and [`Reader::read_at`].

use super::Store;
use crate::engine::key::Key;
use crate::read::lookup::ObjectLookup;
use crate::read::reader::Reader;
use crate::read::state::State;
use holdall_core::{Error, Result};

impl Store {
    /// All bytes of an object as the newest durable commit has it, in place of what `bytes`
    /// holds; `false` where no object has the name. As [`Store::read`] and
    /// [`Reader::get_into`], a little faster. For several objects of one state take a
    /// [`Reader`].
    ///
    /// # Errors
    /// As [`Reader::get_into`].
    pub fn get_into<'k>(&self, key: impl Into<Key<'k>>, bytes: &mut Vec<u8>) -> Result<bool> {
        let key = key.into();
        self.once(|state| ObjectLookup { state, collection: None }.get_into(&key, bytes))
    }

    /// Up to `buf.len()` bytes of an object from `offset`, as the newest durable commit has it;
    /// fewer only at the object's end, `None` where no object has the name. As [`Store::read`]
    /// and [`Reader::read_at`], a little faster.
    ///
    /// # Errors
    /// As [`Reader::read_at`].
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

impl Reader {
    /// Reads up to `buf.len()` bytes of an object from `offset`, and tells how many; fewer only
    /// at the object's end, `None` where no object has the name. For one read of an object:
    /// faster than to open it for that, and no slower where it is large or the bytes are not in
    /// memory. For several reads of one object, open it.
    ///
    /// ```
    /// # use holdall::Store;
    /// # let store = Store::in_memory()?;
    /// store.write(|tx| tx.put("a", b"first"))?;
    /// let (reader, mut buf) = (store.read()?, [0; 4]);
    /// assert_eq!(reader.read_at("a", 2, &mut buf)?, Some(3));
    /// assert_eq!(buf[..3], *b"rst");
    /// assert_eq!(reader.read_at("none", 2, &mut buf)?, None);
    /// # Ok::<(), holdall::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Reader::get`].
    pub fn read_at<'k>(
        &self,
        key: impl Into<Key<'k>>,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        self.objects().read_at(&key.into(), offset, buf)
    }
}
