//! What is left of bytes that lie in several parts.
//!
//! Owns: [`Rest`].

/// What is left of the parts.
#[derive(Debug)]
pub(super) struct Rest<'a, P> {
    parts: &'a [P],
    /// Bytes of the first that are taken.
    taken: usize,
}

impl<'a, P: AsRef<[u8]>> Rest<'a, P> {
    pub(super) fn of(parts: &'a [P]) -> Self {
        Self { parts, taken: 0 }
    }

    /// Takes the next `len` bytes, or as many as there are.
    pub(super) fn take(&mut self, mut len: usize) -> Vec<&'a [u8]> {
        let mut all = Vec::new();
        while let Some((first, later)) = self.parts.split_first() {
            let left = &first.as_ref()[self.taken..];
            if left.len() > len {
                all.push(&left[..len]);
                self.taken += len;
                break;
            }
            all.push(left);
            len -= left.len();
            (self.parts, self.taken) = (later, 0);
        }
        all
    }
}
