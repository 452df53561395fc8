//! What all stores that are compared can do. Owns no state. Threads: none.

use super::super::pmflf::Usage;
use anyhow::Result;

/// What a look through a whole store hands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    /// Every key.
    Keys,
    /// Every value.
    Values,
    /// Every key with its value.
    Both,
}

/// Objects under keys. Errors are those of the store.
pub trait Peer {
    /// Stores an object, new or instead of another.
    fn put(&mut self, key: &str, value: &[u8]) -> Result<()>;
    /// Removes an object.
    fn remove(&mut self, key: &str) -> Result<()>;
    /// Reads an object into `out`.
    fn get(&mut self, key: &str, out: &mut Vec<u8>) -> Result<()>;
    /// Looks through everything; gives the bytes handed out.
    fn look(&mut self, look: Look) -> Result<u64>;
    /// Ends a transaction; if `durable` was asked for, what it did survives a power cut.
    fn commit(&mut self) -> Result<()>;
    /// Says that a commit will follow each change, so that each may end its own transaction.
    fn commit_each(&mut self) {}
    /// Lets reads see what was committed without waiting for it.
    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
    /// What its file of blocks holds, if it has one.
    fn usage(&self) -> Option<Usage> {
        None
    }
}
