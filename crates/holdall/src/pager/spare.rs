//! Memory of page versions that nobody has any more, kept for the next ones.
//!
//! A commit copies each page it changes, and what it replaces is given up by another thread,
//! at a checkpoint. For pieces of a page's size the system's allocator then splits, joins and
//! asks for memory again and again (docs/design.md, "Memory of pages").
//!
//! Invariant: what lies here has no other owner, else it is not taken and not written to.

use holdall_core::PageRef;
use parking_lot::Mutex;
use std::sync::Arc;

/// Most pages kept: about what one checkpoint gives up.
const MOST: usize = 512;

/// Spare pages of one size.
#[derive(Debug, Default)]
pub(super) struct Spare(Mutex<Vec<PageRef>>);

impl Spare {
    /// Takes a page's memory if this was its last owner.
    pub(super) fn put(&self, mut page: PageRef) {
        if Arc::get_mut(&mut page).is_none() {
            return;
        }
        let mut all = self.0.lock();
        if all.len() < MOST {
            all.push(page);
        }
    }

    fn take(&self, len: usize) -> Option<PageRef> {
        let page = self.0.lock().pop();
        page.filter(|page| page.len() == len)
    }

    /// A copy with one owner.
    pub(super) fn copy_of(&self, page: &[u8]) -> PageRef {
        if let Some(mut copy) = self.take(page.len())
            && let Some(bytes) = Arc::get_mut(&mut copy)
        {
            bytes.copy_from_slice(page);
            return copy;
        }
        page.into()
    }

    /// A page of zeros with one owner.
    pub(super) fn zeros(&self, len: usize) -> PageRef {
        if let Some(mut page) = self.take(len)
            && let Some(bytes) = Arc::get_mut(&mut page)
        {
            bytes.fill(0);
            return page;
        }
        std::iter::repeat_n(0, len).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_without_another_owner_is_used_again() {
        let spare = Spare::default();
        let shared: PageRef = vec![1; 8].into();
        spare.put(shared.clone());
        assert_eq!(spare.take(8), None, "another owner reads it");
        let at = shared.as_ptr();
        spare.put(shared);
        let copy = spare.copy_of(&[2; 8]);
        assert_eq!((copy.as_ptr(), &*copy), (at, &[2; 8][..]));
        spare.put(copy);
        let zeros = spare.zeros(8);
        assert_eq!((zeros.as_ptr(), &*zeros), (at, &[0; 8][..]));
        spare.put(zeros);
        assert_eq!(&*spare.copy_of(&[3; 4]), &[3; 4], "of another length");
        assert_eq!(&*spare.zeros(4), &[0; 4]);
        (0..2 * MOST).for_each(|_| spare.put(vec![0; 8].into()));
        assert_eq!(spare.0.lock().len(), MOST);
    }
}
