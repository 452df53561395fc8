//! Copying to memory that is too large for the processor's caches.
//!
//! Owns: [`copy`], and nothing else. An ordinary store first reads the line it writes to, and
//! puts out of the caches what will be used again; if the destination is much larger than
//! they are, both are waste. Stores that go past the caches do neither.
#![cfg_attr(
    all(target_arch = "x86_64", not(miri)),
    expect(unsafe_code, reason = "instructions that take pointers; the argument is below")
)]

/// Fills `to` with `from`, which are equally long, past the processor's caches if it can.
/// For pieces of some KiB at least: it waits at its end until all is on its way.
///
/// # Panics
/// If the lengths differ, as `copy_from_slice` does.
pub(crate) fn copy(from: &[u8], to: &mut [u8]) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        assert_eq!(from.len(), to.len(), "as much is copied as there is room for");
        // Whole lines only: a part of one costs a read of memory.
        let head = to.as_ptr().align_offset(LINE).min(to.len());
        let whole = (to.len() - head) / LINE * LINE;
        let (first, rest) = from.split_at(head);
        let (lines, last) = rest.split_at(whole);
        let (to_first, rest) = to.split_at_mut(head);
        let (to_lines, to_last) = rest.split_at_mut(whole);
        to_first.copy_from_slice(first);
        copy_lines(lines, to_lines);
        to_last.copy_from_slice(last);
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    to.copy_from_slice(from);
}

/// Bytes of a line of the processor's caches.
#[cfg(all(target_arch = "x86_64", not(miri)))]
const LINE: usize = 64;

/// Copies lines, to a multiple of [`LINE`].
#[cfg(all(target_arch = "x86_64", not(miri)))]
fn copy_lines(from: &[u8], to: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    for (from, to) in from.as_chunks::<LINE>().0.iter().zip(to.as_chunks_mut::<LINE>().0) {
        let (from, to) = (from.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
        debug_assert!(to.is_aligned(), "streamed to whole lines only");
        // SAFETY: `from` and `to` are the first of LINE bytes each, which are four vectors, in
        // separate slices. Loads need no alignment; `to` has it: the caller begins at a
        // multiple of LINE, and lines follow one another. SSE2 is part of every x86-64.
        unsafe {
            let vectors = [0, 1, 2, 3].map(|i| _mm_loadu_si128(from.add(i)));
            for (i, vector) in vectors.into_iter().enumerate() {
                _mm_stream_si128(to.add(i), vector);
            }
        }
    }
    // SAFETY: no memory is touched. Such stores are in no order with others: after this, who
    // knows of them sees them, as with any other store.
    unsafe {
        _mm_sfence();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lengths_to_all_alignments_are_copied_and_nothing_else_is_touched() {
        let from: Vec<u8> = (0..20_000_u32).map(|i| (i * 7 + i / 251) as u8).collect();
        for len in (0..300).chain([4095, 4096, 16_384, 16_385]) {
            for skip in [0, 1, 15, 16, 17, 48, 63, 64] {
                let mut to = vec![0xee; 64 + len + 64 + 64];
                let from = &from[skip % 5..][..len];
                copy(from, &mut to[skip..skip + len]);
                assert_eq!(&to[skip..skip + len], from, "{len} bytes at {skip}");
                let around = to[..skip].iter().chain(&to[skip + len..]);
                assert!(around.into_iter().all(|b| *b == 0xee), "{len} bytes at {skip}");
            }
        }
    }

    #[test]
    fn another_thread_sees_what_was_copied() {
        let from = vec![5_u8; 1 << 16];
        for fill in 0..50_u8 {
            let from: Vec<u8> = from.iter().map(|b| b ^ fill).collect();
            let mut to = vec![0; from.len()];
            copy(&from, &mut to);
            let to = std::thread::spawn(move || to).join().unwrap();
            assert_eq!(to, from);
        }
    }

    #[test]
    #[should_panic(expected = "as much is copied")]
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    fn lengths_that_differ_are_refused() {
        copy(&[1; 200], &mut [0; 199]);
    }
}
