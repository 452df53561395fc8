//! Shared bytes of a page, and the memory that the pages of a store lie in.
//!
//! Owns: [`PageRef`] and [`PageMemory`]. Random gets touch several pages each, of a cache far larger
//! than what the processor's table of addresses covers in pages of 4 KiB. Frames are cut from
//! pieces, which [`PageMemory::collapse`] moves to huge pages when they are full: who needs a page
//! does not wait for one.
//!
//! Threads: any. A frame is given back without a lock, so that a child that was forked while
//! another thread took one can drop what it has.
//!
//! The argument for the unsafe code:
//! - A frame is a header and `len` bytes behind it, from the heap or cut from a mapping of its
//!   [`PageMemory`]. Who holds a count of the header's may read the bytes; they are written only by
//!   whom [`PageRef::get_mut`] found to have the only count, as `Arc` does it: the count is
//!   given up with release, and taken over with acquire.
//! - A frame of a mapping owns a count of its [`PageMemory`], so that the mapping outlives it.
//! - A frame that was given back is on one of two lists, linked through its first bytes. Only
//!   whom the lock of `Taken` lets takes frames from a list, and from the list without a lock all at
//!   once: a link read is never one of a frame that somebody took meanwhile.
//! - A piece goes back to the system when its [`PageMemory`] is dropped, or later: while somebody
//!   borrows that, all pieces are there.
#![expect(unsafe_code, reason = "memory cut from mappings; the argument is above")]

use crate::piece::{self, HUGE, Piece};
use std::alloc::{self, Layout};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::ptr::{self, NonNull};
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Before the bytes of a frame.
const HEADER: usize = size_of::<Header>();

#[repr(C, align(16))]
struct Header {
    count: AtomicUsize,
    /// Whose memory it is, from [`Arc::into_raw`]; null: the heap's.
    home: *const Frames,
}

/// One version of a page; immutable, cheap to clone.
pub struct PageRef {
    /// The bytes, behind their header.
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: shared bytes are not written, and the count is atomic (see the head of this file).
unsafe impl Send for PageRef {}
// SAFETY: as above.
unsafe impl Sync for PageRef {}

impl PageRef {
    /// `len` bytes of zeros, from the heap.
    #[must_use]
    pub fn zeroed(len: usize) -> Self {
        let layout = layout(len);
        // SAFETY: the layout has a header, so its size is not zero.
        let memory = unsafe { alloc::alloc_zeroed(layout) };
        let Some(memory) = NonNull::new(memory) else { alloc::handle_alloc_error(layout) };
        // SAFETY: the memory has this layout and nobody else has it.
        unsafe { Self::begin(memory, ptr::null(), len) }
    }

    /// Takes over memory for a header and `len` bytes.
    ///
    /// # Safety
    /// It is aligned to a header, nobody else has it, and it is of `home`.
    unsafe fn begin(memory: NonNull<u8>, home: *const Frames, len: usize) -> Self {
        let header = Header { count: AtomicUsize::new(1), home };
        // SAFETY: the caller's word.
        unsafe { memory.cast::<Header>().write(header) };
        // SAFETY: within the memory.
        Self { start: unsafe { memory.add(HEADER) }, len }
    }

    fn header(&self) -> &Header {
        // SAFETY: a frame's bytes lie behind its header, which is there while a count is.
        unsafe { self.start.sub(HEADER).cast::<Header>().as_ref() }
    }

    /// The bytes to be written, if nobody else has them.
    pub fn get_mut(&mut self) -> Option<&mut [u8]> {
        if self.header().count.load(Acquire) != 1 {
            return None;
        }
        // SAFETY: the only count, and it is borrowed; `len` bytes were initialized.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }

    /// The bytes to be written, of a copy in the same memory if somebody else has them.
    pub fn make_mut(&mut self) -> &mut [u8] {
        if self.header().count.load(Acquire) != 1 {
            *self = self.copy();
        }
        // SAFETY: as in `get_mut`.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }

    /// Another frame of the same memory with the same bytes.
    #[must_use]
    pub fn copy(&self) -> Self {
        let home = self.header().home;
        if home.is_null() {
            return Self::from(&**self);
        }
        // SAFETY: the frame has a count of its home, which is borrowed here and not given up.
        let home = ManuallyDrop::new(unsafe { Arc::from_raw(home) });
        home.frame(|memory| memory.copy_from_slice(self))
    }

    /// Counts those who have the bytes.
    #[must_use]
    pub fn count(&self) -> usize {
        self.header().count.load(Relaxed)
    }

    /// Whether both are one frame.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        self.start == other.start
    }

    /// Its bytes as a pointer that owns the count.
    #[must_use]
    pub fn into_raw(self) -> *const u8 {
        let start = self.start.as_ptr();
        std::mem::forget(self);
        start
    }

    /// Takes the count back.
    ///
    /// # Safety
    /// `start` came from [`PageRef::into_raw`] of as many bytes, and its count is given to this.
    #[must_use]
    pub unsafe fn from_raw(start: *const u8, len: usize) -> Self {
        // SAFETY: the caller's word: not null.
        Self { start: unsafe { NonNull::new_unchecked(start.cast_mut()) }, len }
    }
}

fn layout(len: usize) -> Layout {
    let layout = Layout::from_size_align(HEADER + len, align_of::<Header>());
    // A length that no memory has: the sum cannot pass the largest.
    layout.unwrap_or_else(|_| alloc::handle_alloc_error(Layout::new::<Header>()))
}

impl Clone for PageRef {
    fn clone(&self) -> Self {
        let before = self.header().count.fetch_add(1, Relaxed);
        if before > isize::MAX as usize {
            std::process::abort();
        }
        Self { start: self.start, len: self.len }
    }
}

impl Drop for PageRef {
    fn drop(&mut self) {
        if self.header().count.fetch_sub(1, Release) != 1 {
            return;
        }
        fence(Acquire);
        let home = self.header().home;
        // SAFETY: within the frame.
        let memory = unsafe { self.start.sub(HEADER) };
        if home.is_null() {
            // SAFETY: the last count; the memory came from the heap with this layout.
            unsafe { alloc::dealloc(memory.as_ptr(), layout(self.len)) };
        } else {
            // SAFETY: the frame's own count of its home, given up with it.
            let home = unsafe { Arc::from_raw(home) };
            home.give_back(memory);
        }
    }
}

impl Deref for PageRef {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: initialized bytes that nobody writes while a count is there.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl From<&[u8]> for PageRef {
    fn from(bytes: &[u8]) -> Self {
        let mut made = Self::zeroed(bytes.len());
        made.make_mut().copy_from_slice(bytes);
        made
    }
}

impl From<Vec<u8>> for PageRef {
    fn from(bytes: Vec<u8>) -> Self {
        Self::from(&*bytes)
    }
}

impl fmt::Debug for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl PartialEq for PageRef {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for PageRef {}

/// Memory for pages of one size, for huge pages. What is given back is used again; when this is
/// dropped the system has all of it again but the pieces in which a page is still held.
#[derive(Debug)]
pub struct PageMemory(Arc<Frames>);

impl PageMemory {
    /// None yet, for pages of `len` bytes.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let none = (ptr::null_mut(), 0);
        let taken = Taken { free: ptr::null_mut(), pieces: Vec::new(), rest: none, collapsed: 0 };
        let (returned, taken) = (AtomicPtr::default(), Mutex::new(taken));
        Self(Arc::new(Frames { len, returned, taken, full: OnceLock::new() }))
    }

    /// `full` is called each time that a piece became full and may be collapsed. Only the first
    /// call of this counts.
    pub fn on_full(&self, full: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.full.set(Full(Box::new(full)));
    }

    /// Moves one more full piece to a huge page; returns whether there are others. Cost: a copy
    /// of [`HUGE`] bytes, for which those who read and write them wait.
    pub fn collapse(&self) -> bool {
        let mut taken = self.0.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let full = taken.full(self.0.bytes());
        let Some(&(start, _)) = taken.pieces[..full].get(taken.collapsed) else { return false };
        taken.collapsed += 1;
        let more = taken.collapsed < full;
        drop(taken);
        piece::collapse(start);
        more
    }

    /// A page of zeros.
    #[must_use]
    pub fn zeroed(&self) -> PageRef {
        self.0.frame(|bytes| bytes.fill(0))
    }
}

impl Drop for PageMemory {
    fn drop(&mut self) {
        self.0.trim();
    }
}

#[derive(Debug)]
struct Frames {
    len: usize,
    /// Frames given back since somebody last looked, linked.
    returned: AtomicPtr<u8>,
    taken: Mutex<Taken>,
    full: OnceLock<Full>,
}

/// What [`PageMemory::on_full`] was given.
struct Full(Box<dyn Fn() + Send + Sync>);

impl fmt::Debug for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Full")
    }
}

#[derive(Debug)]
struct Taken {
    /// Frames to be used again, linked.
    free: *mut u8,
    /// Each with where its bytes begin: a borrow of them would meet those of pages.
    pieces: Vec<(*mut u8, Piece)>,
    /// Of the last piece, what is not cut yet.
    rest: (*mut u8, usize),
    /// How many of the first pieces were moved to huge pages, if the system had some.
    collapsed: usize,
}

// SAFETY: the pointers lead to memory of the mappings beside them, used under the lock alone.
unsafe impl Send for Taken {}

impl Frames {
    /// A frame of what `fill` writes to all of it; of the heap if there is no memory of its own.
    fn frame(self: &Arc<Self>, fill: impl FnOnce(&mut [u8])) -> PageRef {
        let mut made = match self.take() {
            None => PageRef::zeroed(self.len),
            Some(memory) => {
                let home = Arc::into_raw(Arc::clone(self));
                // SAFETY: memory of a frame that nobody has; zeros or what it held before.
                unsafe { PageRef::begin(memory, home, self.len) }
            }
        };
        fill(made.make_mut());
        made
    }

    fn take(&self) -> Option<NonNull<u8>> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if taken.free.is_null() {
            taken.free = self.returned.swap(ptr::null_mut(), Acquire);
        }
        if let Some(first) = NonNull::new(taken.free) {
            // SAFETY: a frame on a list begins with its link.
            taken.free = unsafe { first.cast::<*mut u8>().read() };
            return Some(first);
        }
        let pieces = taken.pieces.len();
        let cut = taken.cut(self.bytes());
        let is_next = taken.pieces.len() > pieces.max(1);
        drop(taken);
        if is_next && let Some(Full(full)) = self.full.get() {
            full();
        }
        cut
    }

    /// Of a frame and its header.
    fn bytes(&self) -> usize {
        HEADER + self.len.next_multiple_of(align_of::<Header>())
    }

    /// Gives the system the pieces that no page lies in. Cost: a look at each free frame.
    fn trim(&self) {
        // In a child forked while another thread had the lock, it stays locked.
        let Ok(mut taken) = self.taken.try_lock() else { return };
        let mut free = Vec::new();
        for list in [taken.free, self.returned.swap(ptr::null_mut(), Acquire)] {
            let mut next = list;
            while let Some(frame) = NonNull::new(next) {
                free.push(frame);
                // SAFETY: a frame on a list begins with its link.
                next = unsafe { frame.cast::<*mut u8>().read() };
            }
        }
        // Nothing more is cut: each piece then has as many frames as were cut of it.
        let rest = std::mem::replace(&mut taken.rest, (ptr::null_mut(), 0));
        let uncut = rest.1 / self.bytes();
        let mut pieces = std::mem::take(&mut taken.pieces);
        let last = pieces.len().saturating_sub(1);
        let cut = |at: usize| HUGE / self.bytes() - if at == last { uncut } else { 0 };
        let of = |frame: NonNull<u8>| frame.as_ptr().addr() / HUGE;
        let mut lie: HashMap<usize, usize> = HashMap::new();
        free.iter().for_each(|frame| *lie.entry(of(*frame)).or_default() += 1);
        let mut gone = HashSet::new();
        let mut at = 0..pieces.len();
        pieces.retain(|(start, _)| {
            let place = start.addr() / HUGE;
            let whole = lie.get(&place).copied().unwrap_or(0) == at.next().map_or(0, cut);
            if whole {
                gone.insert(place);
            }
            !whole
        });
        taken.pieces = pieces;
        taken.free = ptr::null_mut();
        for frame in free.into_iter().filter(|frame| !gone.contains(&of(*frame))) {
            // SAFETY: a free frame of a piece that is still there.
            unsafe { frame.cast::<*mut u8>().write(taken.free) };
            taken.free = frame.as_ptr();
        }
    }

    fn give_back(&self, memory: NonNull<u8>) {
        let mut head = self.returned.load(Relaxed);
        loop {
            // SAFETY: nobody else has the frame; it is larger than a link.
            unsafe { memory.cast::<*mut u8>().write(head) };
            match self.returned.compare_exchange_weak(head, memory.as_ptr(), Release, Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

impl Taken {
    /// How many pieces, from the first, have no memory left that was never used.
    fn full(&self, bytes: usize) -> usize {
        self.pieces.len() - usize::from(self.rest.1 >= bytes)
    }

    /// Memory that was never used.
    fn cut(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if self.rest.1 < bytes {
            let mut piece = Piece::new()?;
            let start = piece.bytes().as_mut_ptr();
            self.rest = (start, HUGE);
            self.pieces.push((start, piece));
        }
        let (start, left) = self.rest;
        // SAFETY: within the piece.
        self.rest = (unsafe { start.add(bytes) }, left - bytes);
        NonNull::new(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const LEN: usize = 4096;

    #[test]
    fn shared_bytes_are_copied_before_they_change() {
        for made in
            [PageRef::zeroed(LEN), PageMemory::new(LEN).zeroed(), PageRef::from(vec![0; LEN])]
        {
            let mut one = made;
            one.make_mut().fill(7);
            let start = one.as_ptr();
            let other = one.clone();
            assert!(one.is_same(&other) && one.count() == 2 && one.get_mut().is_none());
            one.make_mut()[5] = 1;
            assert!(!one.is_same(&other) && other.iter().all(|b| *b == 7) && one[5] == 1);
            assert_eq!((one.count(), other.count(), other.as_ptr()), (1, 1, start));
            assert_eq!(one.copy(), one);
        }
        assert_eq!(PageRef::zeroed(0).len(), 0);
    }

    #[test]
    fn a_frame_is_used_again_and_is_zeros_then() {
        let memory = PageMemory::new(LEN);
        let mut first = memory.zeroed();
        first.make_mut().fill(9);
        let start = first.as_ptr();
        drop(first);
        let again = memory.zeroed();
        assert_eq!(again.as_ptr(), start);
        assert!(again.iter().all(|b| *b == 0));
        // Also through a pointer that owned the count.
        let raw = again.into_raw();
        // SAFETY: as many bytes, and the count of just now.
        drop(unsafe { PageRef::from_raw(raw, LEN) });
        assert_eq!(memory.zeroed().as_ptr(), start);
    }

    #[test]
    fn frames_do_not_overlap_and_outlive_their_handle() {
        let memory = PageMemory::new(LEN);
        let mut all: Vec<PageRef> = (0..1500).map(|_| memory.zeroed()).collect();
        drop(memory);
        for (i, frame) in all.iter_mut().enumerate() {
            frame.make_mut().fill(i as u8);
        }
        let copies: Vec<PageRef> = all.iter().map(PageRef::copy).collect();
        assert!(all.iter().enumerate().all(|(i, f)| f.iter().all(|b| *b == i as u8)));
        assert_eq!(all, copies);
        let mut starts: Vec<usize> = all.iter().chain(&copies).map(|f| f.as_ptr().addr()).collect();
        starts.sort_unstable();
        assert!(starts.windows(2).all(|w| w[1] - w[0] >= LEN + HEADER), "frames overlap");
    }

    #[test]
    fn full_pieces_are_collapsed_while_pages_change() {
        let memory = PageMemory::new(LEN);
        let told = Arc::new(AtomicUsize::new(0));
        let tell = Arc::clone(&told);
        memory.on_full(move || {
            tell.fetch_add(1, Relaxed);
        });
        let mut all: Vec<PageRef> = (0..2600).map(|_| memory.zeroed()).collect();
        // The last is not full.
        assert_eq!(told.load(Relaxed), 5);
        thread::scope(|scope| {
            let pages = scope.spawn(|| {
                for round in 0..20_usize {
                    for (i, page) in all.iter_mut().enumerate() {
                        assert!(round == 0 || page.iter().all(|b| *b == (i + round - 1) as u8));
                        page.make_mut().fill((i + round) as u8);
                    }
                }
            });
            let calls = std::iter::repeat_with(|| memory.collapse()).take_while(|more| *more);
            assert_eq!(calls.count(), 4);
            pages.join().unwrap();
        });
        assert!(!memory.collapse());
        assert!(all.iter().enumerate().all(|(i, page)| page.iter().all(|b| *b == (i + 19) as u8)));
    }

    #[test]
    fn a_dropped_memory_keeps_only_the_pieces_that_pages_lie_in() {
        let memory = PageMemory::new(LEN);
        let frames = Arc::clone(&memory.0);
        let pieces = || frames.taken.lock().unwrap().pieces.len();
        let mut all: Vec<PageRef> = (0..1500).map(|_| memory.zeroed()).collect();
        assert_eq!(pieces(), 3);
        let mut kept = all.swap_remove(700);
        kept.make_mut().fill(3);
        drop(all);
        drop(memory);
        assert_eq!(pieces(), 1);
        assert!(kept.iter().all(|b| *b == 3));
        let copy = kept.copy();
        drop(kept);
        assert!(copy.iter().all(|b| *b == 3));
        drop(copy);
        assert_eq!(Arc::strong_count(&frames), 1, "pages gave their memory up");
    }

    #[test]
    fn threads_share_drop_and_take_at_once() {
        let memory = PageMemory::new(LEN);
        let shared = memory.zeroed();
        thread::scope(|scope| {
            for t in 0..4_u8 {
                let (memory, shared) = (&memory, &shared);
                scope.spawn(move || {
                    let mut mine: Vec<PageRef> = Vec::new();
                    for i in 0..20_000_usize {
                        let mut frame = memory.zeroed();
                        frame.make_mut()[..2].copy_from_slice(&[t, i as u8]);
                        mine.push(frame);
                        mine.push(shared.clone());
                        if i % 3 > 0 {
                            let gone = mine.swap_remove((i * 7) % mine.len());
                            assert!(gone.is_same(shared) || gone[0] == t, "another thread's frame");
                        }
                        if mine.len() > 300 {
                            mine.drain(..200);
                        }
                    }
                });
            }
        });
        assert_eq!(shared.count(), 1);
        assert!(shared.iter().all(|b| *b == 0));
    }
}
