//! What a run of staged data is put together of, for the log.
//!
//! Owns: the cutting of origins at the ends of runs. Pure.

use holdall_core::log_format::Part;
use holdall_core::segment_tree::{Origin, Slice};

/// The origins of bytes to come.
pub(super) struct Origins<'a> {
    left: &'a [Origin],
    /// Bytes taken of the first.
    taken: u64,
}

impl<'a> Origins<'a> {
    pub(super) fn new(all: &'a [Origin]) -> Self {
        Self { left: all, taken: 0 }
    }

    /// The parts of `run`, the next bytes; those behind the last origin are zeros that fill
    /// a page.
    pub(super) fn parts<'b>(&mut self, run: &'b [u8], page_size: u64) -> Vec<Part<'b>> {
        let (mut parts, mut at) = (Vec::new(), 0);
        while at < run.len() {
            let rest = (run.len() - at) as u64;
            let Some(first) = self.left.first() else {
                parts.push(Part::Zeros(rest));
                break;
            };
            let len = (first.len() - self.taken).min(rest);
            parts.push(match first {
                Origin::New(_) => Part::Bytes(&run[at..at + len as usize]),
                Origin::Zeros(_) => Part::Zeros(len),
                Origin::Copy(slice) => {
                    let Slice { reference, offset, .. } = slice.part(self.taken, len, page_size);
                    Part::Copy { from: reference * page_size + u64::from(offset), len }
                }
            });
            at += len as usize;
            self.taken += len;
            if self.taken == first.len() {
                (self.left, self.taken) = (&self.left[1..], 0);
            }
        }
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_cut_at_the_ends_of_runs() {
        let slice = Slice { offset: 10, ..Slice::run(3, 30) };
        let all = [Origin::New(5), Origin::Copy(slice), Origin::Zeros(7), Origin::New(2)];
        let bytes: Vec<u8> = (0..48).collect();
        let mut origins = Origins::new(&all);
        let first = origins.parts(&bytes[..16], 16);
        assert_eq!(first, [Part::Bytes(&bytes[..5]), Part::Copy { from: 58, len: 11 }]);
        let second = origins.parts(&bytes[16..], 16);
        let want = [
            Part::Copy { from: 69, len: 19 },
            Part::Zeros(7),
            Part::Bytes(&bytes[42..44]),
            Part::Zeros(4),
        ];
        assert_eq!(second, want);
    }
}
