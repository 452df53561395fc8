//! The full check of one node.
//!
//! Owns: [`Node::validate`], the pass over everything that lookups take on trust.

use super::{MAX_VALUE, Node};
use crate::{Error, Result};
use std::cmp::Ordering;

impl Node<'_> {
    /// Checks every cell, their order, that none overlap, that the byte counts are right
    /// and that no key spells out a prefix it could share. Cost: a sort of the cells.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the first thing found wrong.
    pub fn validate(&self) -> Result<()> {
        if !self.reserved_is_zero() {
            return Err(Error::page(self.no(), "reserved bytes of a names node are not zero"));
        }
        let mut places = Vec::with_capacity(self.count());
        let mut before: Option<Vec<u8>> = None;
        for i in 0..self.count() {
            let cell = self.cell(i)?;
            if let Some(before) = &before
                && cell.key.cmp_bytes(before) != Ordering::Greater
            {
                return Err(Error::page(self.no(), format!("key {i} is not above key {}", i - 1)));
            }
            before = Some(cell.key.to_vec());
            let (at, len) = self.place(i)?;
            if cell.payload.len() > MAX_VALUE || cell.cost(self.level(), self.prefix()) != len + 2 {
                return Err(Error::page(self.no(), format!("cell {i} is not stored as it should")));
            }
            places.push((at, len));
        }
        places.sort_unstable();
        if let Some(pair) = places.windows(2).find(|pair| pair[0].0 + pair[0].1 > pair[1].0) {
            let detail = format!("cells at {} and {} overlap", pair[0].0, pair[1].0);
            return Err(Error::page(self.no(), detail));
        }
        let taken: usize = places.iter().map(|&(_, len)| len + super::SLOT).sum();
        let live = taken + self.prefix().len();
        if live != self.live() {
            let detail = format!("{live} bytes taken, counted {}", self.live());
            return Err(Error::page(self.no(), detail));
        }
        if !self.is_leaf() {
            (0..=self.count()).try_for_each(|i| self.child(i).map(drop))?;
        }
        Ok(())
    }
}
