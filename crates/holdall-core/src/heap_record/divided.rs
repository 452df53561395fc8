//! Records divided in two: a first part that leads to a continuation.
//!
//! Owns: the bytes that tell the parts apart and lead from one to the other (docs/format.md
//! "Heap record"). Where parts lie, the heap file knows. Pure.

use super::{Body, FIXED, KIND, Record, fixed};
use crate::bytes::{put_u16, put_u48, u16_at, u48_at};
use crate::handle_page::Location;
use crate::{Error, Oid, PageNo, Result};

/// Bit of the kind byte: the record goes on in a continuation.
const CONTINUED: u8 = 0x80;
/// Kind of a continuation.
pub(super) const CONTINUATION: u8 = 3;
/// Bytes of a first part that lead to the continuation.
pub const LINK: usize = 8;
/// Bytes that dividing a record adds, its second slot not counted.
pub const OVERHEAD: usize = LINK + FIXED;

/// What lies in a slot of a heap page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A record that is not divided.
    Whole,
    /// The first part of one whose continuation lies there.
    First(Location),
    /// The rest of a record.
    Continuation,
}

/// Whether the record goes on elsewhere.
#[inline]
pub fn is_divided(record: &[u8]) -> bool {
    record.get(FIXED - 1).is_some_and(|kind| kind & CONTINUED != 0)
}

/// Which part of a record this is, and whose.
///
/// # Errors
/// [`Error::Corrupt`] if it is too short, or leads to no place there can be.
pub fn part(record: &[u8]) -> Result<(Oid, Part)> {
    let bad = |detail: &str| Error::corrupt("heap record", detail);
    let (oid, kind) = fixed(record)?;
    if kind & CONTINUED == 0 {
        return Ok((oid, if kind == CONTINUATION { Part::Continuation } else { Part::Whole }));
    }
    let link = record.get(FIXED..).and_then(|rest| rest.first_chunk::<LINK>());
    let link = link.map(|b| Location { page: PageNo(u48_at(b, 0)), slot: u16_at(b, 6) });
    match link.filter(|link| link.is_valid() && kind & KIND != CONTINUATION) {
        Some(link) => Ok((oid, Part::First(link))),
        None => Err(bad("leads to no continuation")),
    }
}

/// The first part of a record: its first `cut` bytes and the link. `cut` lies behind the fixed
/// bytes and before the record's end.
pub fn first_part(record: &[u8], cut: usize, link: Location) -> Vec<u8> {
    let (fixed, rest) = record[..cut].split_at(FIXED);
    let mut first = Vec::with_capacity(cut + LINK);
    first.extend_from_slice(fixed);
    first[FIXED - 1] |= CONTINUED;
    first.extend_from_slice(&[0; LINK]);
    first.extend_from_slice(rest);
    set_link(&mut first, link);
    first
}

/// Has a first part lead elsewhere.
pub fn set_link(first: &mut [u8], link: Location) {
    put_u48(first, FIXED, link.page.0);
    put_u16(first, FIXED + LINK - 2, link.slot);
}

/// The continuation of a record, with its bytes from `cut` on.
pub fn continuation(record: &[u8], cut: usize) -> Vec<u8> {
    let mut rest = Vec::with_capacity(FIXED + record.len() - cut);
    rest.extend_from_slice(&record[..FIXED - 1]);
    rest.push(CONTINUATION);
    rest.extend_from_slice(&record[cut..]);
    rest
}

/// A small object divided into these, which belong together, where it lies: its record with the
/// first of its bytes for a body, and its other bytes. `None` if the parts must be joined
/// first: the object is large, or what comes before its bytes is itself divided. Constant cost.
#[inline]
pub fn in_place<'a>(first: &'a [u8], rest: &'a [u8]) -> Option<(Record<'a>, &'a [u8])> {
    let (oid, kind) = fixed(first).ok()?;
    let behind = first.get(FIXED + LINK..)?;
    let record = Record::parse_behind(oid, kind & !CONTINUED, behind).ok()?;
    let small = matches!(record.body, Body::Small(_));
    small.then_some((record, rest.get(FIXED..)?))
}

/// Checks that these are the two parts of one record, and returns whose.
///
/// # Errors
/// [`Error::Corrupt`] if they are not.
#[inline]
pub fn check_pair(first: &[u8], rest: &[u8]) -> Result<Oid> {
    let (oid, there) = (part(first)?.0, part(rest)?);
    if !is_divided(first) || there != (oid, Part::Continuation) {
        let detail = format!("is no continuation of {oid}'s: {:?} of {}", there.1, there.0);
        return Err(Error::corrupt("heap record", detail));
    }
    Ok(oid)
}

/// The record that was divided into these.
///
/// # Errors
/// As [`check_pair`].
pub fn join(first: &[u8], rest: &[u8]) -> Result<Vec<u8>> {
    check_pair(first, rest)?;
    let mut record = Vec::with_capacity(first.len() + rest.len() - OVERHEAD);
    record.extend_from_slice(&first[..FIXED]);
    record[FIXED - 1] &= !CONTINUED;
    record.extend_from_slice(&first[FIXED + LINK..]);
    record.extend_from_slice(&rest[FIXED..]);
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::super::Head;
    use super::*;
    use proptest::prelude::*;

    const AT: Location = Location { page: PageNo(77), slot: 5 };

    proptest! {
        #[test]
        fn parts_join_to_the_record(bytes in proptest::collection::vec(any::<u8>(), 1..300),
            at in any::<proptest::sample::Index>(), page in 1_u64..1 << 47, slot in any::<u16>()) {
            let oid = Oid { site: 0, page: 7, slot: 9, unique: 11 };
            let record = Head::default().small(oid, &bytes);
            let cut = FIXED + at.index(bytes.len());
            let link = Location { page: PageNo(page), slot };
            let (mut first, rest) = (first_part(&record, cut, AT), continuation(&record, cut));
            prop_assert_eq!(first.len() + rest.len(), record.len() + OVERHEAD);
            prop_assert_eq!(part(&first).unwrap(), (oid, Part::First(AT)));
            set_link(&mut first, link);
            prop_assert_eq!(part(&first).unwrap(), (oid, Part::First(link)));
            prop_assert_eq!(part(&rest).unwrap(), (oid, Part::Continuation));
            prop_assert_eq!(part(&record).unwrap(), (oid, Part::Whole));
            prop_assert_eq!(join(&first, &rest).unwrap(), record.clone());
            let (whole, end) = in_place(&first, &rest).unwrap();
            let Body::Small(begin) = whole.body else { panic!("of a small object") };
            prop_assert_eq!((whole.oid, [begin, end].concat()), (oid, bytes.clone()));
            // No part passes for a record, nor for the other part.
            prop_assert!(Record::parse(&first).is_err() && Record::parse(&rest).is_err());
            prop_assert!(join(&first, &first).is_err() && join(&rest, &rest).is_err());
            prop_assert!(join(&first, &record).is_err() && join(&record, &rest).is_err());
            let other = Head::default().small(Oid { unique: 12, ..oid }, &bytes);
            prop_assert!(join(&first, &continuation(&other, cut)).is_err());
        }

        #[test]
        fn arbitrary_bytes_never_panic(a in proptest::collection::vec(any::<u8>(), 0..40),
            b in proptest::collection::vec(any::<u8>(), 0..40)) {
            let _ = (part(&a), join(&a, &b), in_place(&a, &b).is_some());
        }
    }

    #[test]
    fn what_is_divided_before_its_bytes_is_not_read_in_place() {
        let oid = Oid { site: 0, page: 7, slot: 9, unique: 11 };
        let head = Head { name: Some(b"a name"[..].into()), ..Head::default() };
        let record = head.small(oid, &[5; 40]);
        for cut in FIXED + 1..record.len() {
            let (first, rest) = (first_part(&record, cut, AT), continuation(&record, cut));
            let there = in_place(&first, &rest);
            assert_eq!(there.is_some(), cut >= record.len() - 40, "cut at {cut}");
            if let Some((whole, end)) = there {
                assert_eq!((whole.name, end.len()), (Some(&b"a name"[..]), record.len() - cut));
            }
        }
    }

    #[test]
    fn a_continuation_goes_on_nowhere_and_a_link_must_lead_to_a_page() {
        let oid = Oid { site: 0, page: 7, slot: 9, unique: 11 };
        let record = Head::default().small(oid, &[1; 50]);
        let mut first = first_part(&record, 30, AT);
        first[FIXED - 1] = CONTINUED | CONTINUATION;
        assert!(part(&first).is_err());
        let nowhere = first_part(&record, 30, Location { page: PageNo(0), slot: 1 });
        assert!(part(&nowhere).is_err());
        assert!(part(&nowhere[..FIXED + 3]).is_err());
    }
}
