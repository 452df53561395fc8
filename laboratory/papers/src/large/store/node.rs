//! Index pages as the paper has them: 8 bytes of header, then pairs (count, pointer) with
//! counts that add up from the left (Biliris §2.1, §4.1).
//!
//! Owns: [`Format`], the bytes of a node. Pairs of 4 + 4 bytes give the paper's 511 pairs on
//! a page of 4 KiB; pairs of 8 + 8 are for objects beyond 4 GiB, which the paper's cannot
//! count.

use holdall_core::techniques::segment_tree::{Child, Node, NodeRef, Slice};
use holdall_core::techniques::{Error, Result};

const HEADER: usize = 8;
const MAGIC: u8 = 0xb1;

/// How pairs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Format {
    /// Bytes of a page.
    pub page_size: usize,
    /// Whether counts and pointers have 8 bytes each, not 4.
    pub wide: bool,
}

impl Format {
    fn half(self) -> usize {
        if self.wide { 8 } else { 4 }
    }

    /// Pairs of an index page: 511 on 4 KiB.
    pub fn fanout(self) -> usize {
        (self.page_size - HEADER) / (2 * self.half())
    }

    /// Pairs of the root: four fewer than in the others (507 on 4 KiB, §4.1).
    pub fn root_fanout(self) -> usize {
        self.fanout() - 4
    }

    /// The page of a node.
    /// Errors: [`Error::Invalid`] for too many pairs, a number too large for its field, or a slice
    /// that is not a run from the start of a page.
    pub fn encode(self, node: &Node) -> Result<Vec<u8>> {
        let mut page = vec![0; self.page_size];
        let count = node.count();
        if count == 0 || count > self.fanout() {
            return Err(Error::Invalid(format!("index page of {count} pairs")));
        }
        page[0] = MAGIC;
        page[1] = node.level();
        page[2..4].copy_from_slice(&(count as u16).to_le_bytes());
        let pairs: Vec<(u64, u64)> = match node {
            Node::Leaf(slices) => {
                if slices.iter().any(|s| !s.is_run() || s.offset != 0 || s.flags != 0) {
                    return Err(Error::Invalid("a segment that starts within a page".into()));
                }
                slices.iter().map(|s| (s.len, s.reference)).collect()
            }
            Node::Inner { children, .. } => children.iter().map(|c| (c.bytes, c.node.0)).collect(),
        };
        let half = self.half();
        let mut sum = 0u64;
        for (pair, (bytes, pointer)) in page[HEADER..].chunks_exact_mut(2 * half).zip(pairs) {
            sum += bytes;
            let fits = self.wide || sum.max(pointer) <= u64::from(u32::MAX);
            if !fits {
                return Err(Error::Invalid(format!("{sum} or {pointer} in 4 bytes")));
            }
            pair[..half].copy_from_slice(&sum.to_le_bytes()[..half]);
            pair[half..].copy_from_slice(&pointer.to_le_bytes()[..half]);
        }
        Ok(page)
    }

    /// The node of a page.
    /// Errors: [`Error::Corrupt`] for a page that is none, or counts that do not rise.
    pub fn decode(self, page: &[u8], at: u64) -> Result<Node> {
        let bad = |detail: &str| Error::corrupt(format!("index page {at}"), detail);
        let count = usize::from(u16::from_le_bytes([page[2], page[3]]));
        if page[0] != MAGIC || count == 0 || count > self.fanout() {
            return Err(bad("not an index page"));
        }
        let half = self.half();
        let mut before = 0;
        let pairs = page[HEADER..].chunks_exact(2 * half).take(count).map(|pair| {
            let (sum, pointer) = (number(&pair[..half]), number(&pair[half..]));
            let bytes = sum.checked_sub(before).filter(|n| *n > 0);
            before = sum;
            bytes.map(|n| (n, pointer)).ok_or_else(|| bad("counts that do not rise"))
        });
        Ok(match page[1] {
            0 => Node::Leaf(
                pairs.map(|p| p.map(|(n, at)| Slice::run(at, n))).collect::<Result<_>>()?,
            ),
            level => {
                let child = |(bytes, at)| Child { bytes, node: NodeRef(at) };
                Node::Inner { level, children: pairs.map(|p| p.map(child)).collect::<Result<_>>()? }
            }
        })
    }
}

fn number(bytes: &[u8]) -> u64 {
    let mut all = [0; 8];
    all[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fanouts_of_the_paper() {
        let paper = Format { page_size: 4096, wide: false };
        assert_eq!((paper.root_fanout(), paper.fanout()), (507, 511));
    }

    #[test]
    fn nodes_come_back() {
        for wide in [false, true] {
            let format = Format { page_size: 512, wide };
            let leaf = Node::Leaf(vec![Slice::run(7, 100), Slice::run(900, 4096)]);
            let children =
                vec![Child { bytes: 5, node: NodeRef(3) }, Child { bytes: 1, node: NodeRef(4) }];
            for node in [leaf, Node::Inner { level: 2, children }] {
                let page = format.encode(&node).unwrap();
                assert_eq!(format.decode(&page, 0).unwrap(), node);
            }
            assert!(format.decode(&vec![0; 512], 0).is_err());
        }
        let narrow = Format { page_size: 512, wide: false };
        assert!(narrow.encode(&Node::Leaf(vec![Slice::run(1 << 33, 1)])).is_err());
    }
}
