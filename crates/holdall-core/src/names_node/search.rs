//! Searching one node: by keys' first eight bytes, from where a key probably lies.
//!
//! Owns: the search within a node and the order of keys there.

use super::Share;
use super::key::{HEAD, last_word};
use super::read::{Node, slot};
use crate::bytes::u16_at;
use crate::{PageNo, Result};
use std::cmp::Ordering;
use std::ops::Range;

impl Node<'_> {
    /// Which child holds `key`. Cost: a binary search; if keys arrive in order one look.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn child_index(&self, key: &[u8]) -> Result<usize> {
        let last = self.count.saturating_sub(1);
        let found = self.search_within(&self.sought(key), 0..self.count, last)?;
        Ok(found.map_or_else(|i| i, |i| i + 1))
    }

    /// The cell with this key, or where it would be. Cost: a binary search; the prefix is
    /// compared once.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn search(&self, key: &[u8]) -> Result<Result<usize, usize>> {
        self.search_within(&self.sought(key), 0..self.count, self.count / 2)
    }

    /// Whether `key` lies beyond the last cell's; false in a node without cells.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn is_beyond(&self, key: &[u8]) -> Result<bool> {
        let Some(last) = self.count.checked_sub(1) else { return Ok(false) };
        let order = self.order(&self.sought(key), last).ok_or_else(|| self.bad_cell(last))?;
        Ok(order == Ordering::Less)
    }

    fn sought<'k>(&self, key: &'k [u8]) -> SoughtKey<'k> {
        let rest = key.strip_prefix(self.prefix);
        // If the prefix differs, it alone decides against all keys that have it.
        let against = if rest.is_some() { Ordering::Equal } else { self.prefix.cmp(key) };
        SoughtKey {
            whole: Sought::new(key),
            rest: rest.map(|rest| Sought::end(key, rest)),
            against,
        }
    }

    /// A binary search that looks at cell `middle` first.
    fn search_within(
        &self,
        key: &SoughtKey<'_>,
        Range { start: mut low, end: mut high }: Range<usize>,
        mut middle: usize,
    ) -> Result<Result<usize, usize>> {
        while low < high {
            match self.order(key, middle).ok_or_else(|| self.bad_cell(middle))? {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Ok(Ok(middle)),
            }
            middle = low + (high - low) / 2;
        }
        Ok(Err(low))
    }

    /// How the key of cell `i` compares with the one sought; `None` for a malformed cell.
    #[inline]
    fn order(&self, key: &SoughtKey<'_>, i: usize) -> Option<Ordering> {
        let (shared, head, tail) = self.key_at(i)?;
        Some(match (shared, &key.rest) {
            (true, Some(rest)) => rest.order_of(self.page, head, tail),
            (true, None) => key.against,
            (false, _) => key.whole.order_of(self.page, head, tail),
        })
    }

    /// The head of cell `i`'s key after the prefix; `None` if it does not have the prefix.
    #[inline]
    fn head_of(&self, i: usize) -> Option<u64> {
        let (shared, head, _) = self.key_at(i)?;
        (shared || self.prefix.is_empty()).then_some(head)
    }

    /// As [`Node::search`], beginning at the cell that `near`, from the parent, points to.
    /// If keys are spread evenly, as numbers and hashes are, one look or two find the key:
    /// each look at a cell lies elsewhere in memory.
    ///
    /// # Errors
    /// As [`Node::cell`].
    pub fn search_near(&self, key: &[u8], near: Option<Share>) -> Result<Result<usize, usize>> {
        self.near(&self.sought(key), near)
    }

    /// The cell that a search which begins at `near` looks at first; 0 in an empty node.
    #[inline]
    pub fn first_look(&self, near: Option<Share>) -> usize {
        match near {
            Some(share) => share.scale(self.count),
            None => self.count / 2,
        }
    }

    /// Where in the page the slot of cell `i` lies, if there is one.
    #[inline]
    pub fn slot_offset(&self, i: usize) -> Option<usize> {
        (i < self.count).then_some(slot(i).start)
    }

    /// Where in the page cell `i` begins, if there is one; not checked.
    #[inline]
    pub fn cell_offset(&self, i: usize) -> Option<usize> {
        Some(usize::from(u16_at(self.page, self.slot_offset(i)?)))
    }

    fn near(&self, key: &SoughtKey<'_>, near: Option<Share>) -> Result<Result<usize, usize>> {
        let (mut low, mut high) = (0, self.count);
        let near = near.or_else(|| self.guess(key));
        let guess = self.first_look(near);
        if near.is_none() || high == 0 {
            return self.search_within(key, low..high, guess);
        }
        let (mut step, mut at) = (NEAR, guess);
        let look = |at| self.order(key, at).ok_or_else(|| self.bad_cell(at));
        let first = look(at)?;
        let mut order = first;
        // Away from the guess in growing steps, until the key is passed.
        loop {
            match order {
                Ordering::Less => low = at + 1,
                Ordering::Greater => high = at,
                Ordering::Equal => return Ok(Ok(at)),
            }
            if order != first || low >= high {
                break;
            }
            at = match order {
                Ordering::Less => (at + step).min(high - 1),
                _ => at.saturating_sub(step).max(low),
            };
            (step, order) = (step * STRIDE, look(at)?);
        }
        self.search_within(key, low..high, low + (high - low) / 2)
    }

    /// The child that holds `key`, with where in it to begin: see [`Node::search_near`].
    ///
    /// # Errors
    /// As [`Node::child`].
    pub fn child_near(&self, key: &[u8], near: Option<Share>) -> Result<(PageNo, Option<Share>)> {
        let key = self.sought(key);
        let i = self.near(&key, near)?.map_or_else(|i| i, |i| i + 1);
        Ok((self.child(i)?, self.share(&key, i)))
    }

    /// How far between the ends of a node of some cells the key is, if no parent says it.
    fn guess(&self, key: &SoughtKey<'_>) -> Option<Share> {
        let last = self.count.checked_sub(1).filter(|last| *last >= NEAR * STRIDE)?;
        let (below, above) = (self.head_of(0)?, self.head_of(last)?);
        let whole = above.checked_sub(below).filter(|w| *w > 0)?;
        Some(Share::ratio(key.rest.as_ref()?.head.saturating_sub(below), whole))
    }

    /// How far between the separators on its two sides the key is that child `i` holds. At
    /// either end of the node, as if the child held as much as its neighbour.
    fn share(&self, key: &SoughtKey<'_>, i: usize) -> Option<Share> {
        let last = self.count.checked_sub(2)?;
        let left = i.saturating_sub(1).min(last);
        let (below, above) = (self.head_of(left)?, self.head_of(left + 1)?);
        let whole = above.checked_sub(below).filter(|w| *w > 0)?;
        let from = match i {
            0 => below.saturating_sub(whole),
            _ if i > left + 1 => above,
            _ => below,
        };
        let part = key.rest.as_ref()?.head.checked_sub(from)?;
        Some(Share::ratio(part, whole))
    }
}

/// Cells passed by the first step away from a guess that was wrong.
const NEAR: usize = 2;
/// How much longer each further step is.
const STRIDE: usize = 4;

/// A key sought in a node: whole, and without the node's prefix if it has it.
struct SoughtKey<'a> {
    whole: Sought<'a>,
    rest: Option<Sought<'a>>,
    /// How keys with the prefix compare with one without.
    against: Ordering,
}

/// Bytes sought among others: most differ in their first eight, which are one number.
struct Sought<'a> {
    bytes: &'a [u8],
    head: u64,
}

impl<'a> Sought<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, head: head(bytes) }
    }

    /// The end of `key`.
    #[inline]
    fn end(key: &[u8], bytes: &'a [u8]) -> Self {
        match key.last_chunk() {
            // The bytes and some before them, which the shift takes away.
            Some(last) if bytes.len() < HEAD && !bytes.is_empty() => {
                let head = u64::from_be_bytes(*last) << (8 * (HEAD - bytes.len()));
                Self { bytes, head }
            }
            _ => Self::new(bytes),
        }
    }

    /// How the bytes `range` of `page`, which exist and have this head, compare with those
    /// sought.
    #[inline]
    fn order_of(&self, page: &[u8], head: u64, range: Range<usize>) -> Ordering {
        match head.cmp(&self.head) {
            Ordering::Equal => self.order_behind(page, range),
            order => order,
        }
    }

    /// As [`Sought::order_of`] if the heads are equal.
    fn order_behind(&self, page: &[u8], range: Range<usize>) -> Ordering {
        let len = range.len();
        // Equal heads of which one is padded: it begins the other, or is it.
        match (page[range].get(HEAD..), self.bytes.get(HEAD..)) {
            (Some(a), Some(b)) => a.cmp(b),
            _ => len.cmp(&self.bytes.len()),
        }
    }
}

/// The first bytes, padded with zeros, as a number that compares as they do.
#[inline]
fn head(bytes: &[u8]) -> u64 {
    match bytes.first_chunk() {
        Some(chunk) => u64::from_be_bytes(*chunk),
        None => last_word(bytes, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Cell;
    use super::super::key::cut;
    use super::*;

    /// A node of `level` whose cells hold every third number.
    fn numbers(level: u8) -> Vec<u8> {
        let no = PageNo(7);
        let mut page = vec![0; 4096];
        crate::page::format(&mut page, crate::page::PageKind::Names, no, 1);
        let child = super::super::child_bytes(PageNo(9));
        let keys: Vec<Vec<u8>> =
            (0..60).map(|i: u64| [b"n/", &(i * 3).to_be_bytes()[..]].concat()).collect();
        let cells: Vec<_> =
            keys.iter().map(|key| Cell { key: (&key[..]).into(), payload: &child }).collect();
        let leftmost = if level > 0 { PageNo(8) } else { PageNo::NONE };
        let mut node = super::super::NodeMut::new(no, &mut page);
        node.build(level, leftmost, &cells, b"n/\0\0").unwrap();
        page
    }

    #[test]
    fn a_search_ends_at_the_same_cell_wherever_it_begins() {
        for level in [0, 1] {
            let page = numbers(level);
            let node = Node::open(PageNo(7), &page).unwrap();
            assert_eq!(node.count(), 60);
            for i in 0..200_u64 {
                let key = [b"n/", &i.to_be_bytes()[..]].concat();
                for key in [&key[..], &key[..9], b"m", b"n/", b"o"] {
                    let found = node.search(key).unwrap();
                    for share in [0, 1 << 20, 1 << 30, 1 << 31, 3 << 30, u32::MAX] {
                        let near = Some(Share(share));
                        assert_eq!(node.search_near(key, near).unwrap(), found, "{key:?}");
                    }
                    assert_eq!(node.search_near(key, None).unwrap(), found);
                    if level > 0 {
                        let child = node.child(node.child_index(key).unwrap()).unwrap();
                        assert_eq!(node.child_near(key, None).unwrap().0, child);
                    }
                }
            }
        }
    }

    #[test]
    fn a_share_says_how_far_between_the_separators_a_key_is() {
        let page = numbers(1);
        let node = Node::open(PageNo(7), &page).unwrap();
        let share = |i: u64| {
            let key = [b"n/", &i.to_be_bytes()[..]].concat();
            // Shares are rounded down.
            node.child_near(&key, None).unwrap().1.map(|s| ((u64::from(s.0) + 1) * 3) >> 32)
        };
        // Thirds of the way; at the right end as if the child held as much as the others.
        assert_eq!([30, 31, 32, 177, 178].map(share), [0, 1, 2, 0, 1].map(Some));
        assert_eq!(share(1000), Some(3), "at the very end");
    }

    #[test]
    fn heads_order_as_bytes_do() {
        let texts: [&[u8]; 14] = [
            b"",
            b"\0",
            b"\0\0",
            b"\0\x01",
            b"a",
            b"a\0",
            b"a\0\0\0\0\0\0\0",
            b"a\0\0\0\0\0\0\0\0",
            b"a\0\0\0\0\0\0\0\x01",
            b"abcdefg",
            b"abcdefgh",
            b"abcdefghi",
            b"abcdefgi",
            b"\xff",
        ];
        for a in texts {
            for b in texts {
                // In the middle of other bytes, and at the very end.
                for after in [&b""[..], b"\xff\xff\xff\xff\xff\xff\xff\xff\xff"] {
                    let page = [b"12", a, after].concat();
                    let head = cut(last_word(&page, 2), a.len());
                    let order = Sought::new(b).order_of(&page, head, 2..2 + a.len());
                    assert_eq!(order, a.cmp(b), "{a:?} {b:?}");
                }
            }
        }
    }
}
