//! What a names entry holds: the OID of an object, and where its record lay.
//!
//! Owns: [`NameValue`] and its bytes (docs/format.md "Names entry"). The place is a hint: it is
//! noted when the name is and not kept up when the record moves. It says what to fetch early;
//! where the record lies the handle alone says. So a wrong place costs time and nothing else.

use crate::bytes::{Reader, put_varint};
use crate::handle_page::Location;
use crate::{Error, Oid, PageNo, Result};

/// Bits of the first byte. Entries of format version 3, which are a plain OID, begin with 0.
const IS_NEW: u8 = 1;
const HAS_SITE: u8 = 2;
const HAS_PLACE: u8 = 4;

/// Most bytes: the first one, site, page, slot and unique of the OID, page and slot of the place.
const MOST: usize = 1 + 3 + 5 + 3 + 5 + 7 + 3;

/// A names entry's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameValue {
    /// The object.
    pub oid: Oid,
    /// Where its record lay when the name was noted.
    pub place: Option<Location>,
}

/// The bytes of a [`NameValue`].
#[derive(Debug, Clone, Copy)]
pub struct Encoded {
    bytes: [u8; MOST],
    len: u8,
}

impl std::ops::Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl NameValue {
    /// Its bytes; about as many as an OID has.
    pub fn encode(&self) -> Encoded {
        let (site, place) = (u64::from(self.oid.site), self.place);
        let mut out = Encoded { bytes: [0; MOST], len: 1 };
        let has = |yes: bool, bit: u8| if yes { bit } else { 0 };
        out.bytes[0] = IS_NEW | has(site != 0, HAS_SITE) | has(place.is_some(), HAS_PLACE);
        let own = [self.oid.page, self.oid.slot.into(), self.oid.unique].map(u64::from);
        let place = place.map(|at| [at.page.0, at.slot.into()]);
        let all = (site != 0).then_some(site).into_iter().chain(own);
        for number in all.chain(place.into_iter().flatten()) {
            let at = usize::from(out.len);
            out.len += put_varint(&mut out.bytes[at..], number) as u8;
        }
        out
    }

    /// Reads it back, also from entries of format version 3.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn decode(value: &[u8]) -> Result<Self> {
        let found = match value.split_first() {
            Some((0, _)) => value.try_into().ok().map(|oid| (Oid::from_bytes(oid), None)),
            Some((first, rest)) => Self::parts(*first, rest),
            None => None,
        };
        let (oid, place) = found.ok_or_else(|| Error::corrupt("names", "an entry is no OID"))?;
        Ok(Self { oid, place })
    }

    #[inline]
    fn parts(first: u8, rest: &[u8]) -> Option<(Oid, Option<Location>)> {
        if first & IS_NEW == 0 || first & !(IS_NEW | HAS_SITE | HAS_PLACE) != 0 {
            return None;
        }
        let mut rest = Reader::new(rest);
        let site = if first & HAS_SITE == 0 { 0 } else { u16::try_from(rest.varint()?).ok()? };
        let page = u32::try_from(rest.varint()?).ok()?;
        let slot = u16::try_from(rest.varint()?).ok()?;
        let unique = u32::try_from(rest.varint()?).ok()?;
        let mut place = None;
        if first & HAS_PLACE != 0 {
            let page = PageNo(rest.varint()?);
            place = Some(Location { page, slot: u16::try_from(rest.varint()?).ok()? });
        }
        let whole = rest.rest().is_empty() && place.is_none_or(Location::is_valid);
        whole.then_some((Oid { site, page, slot, unique }, place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = NameValue> {
        let oid = (prop_oneof![Just(0), any::<u16>()], any::<u32>(), any::<u16>(), any::<u32>());
        let oid = oid.prop_map(|(site, page, slot, unique)| Oid { site, page, slot, unique });
        let page = (0..47_u32).prop_map(|bits| PageNo(1 << bits));
        let place = (page, any::<u16>()).prop_map(|(page, slot)| Location { page, slot });
        (oid, proptest::option::of(place)).prop_map(|(oid, place)| NameValue { oid, place })
    }

    proptest! {
        #[test]
        fn values_round_trip_and_no_part_or_more_of_one_is_a_value(value in value()) {
            let bytes = value.encode();
            prop_assert_eq!(NameValue::decode(&bytes).unwrap(), value);
            for len in 0..bytes.len() {
                prop_assert!(NameValue::decode(&bytes[..len]).is_err());
            }
            prop_assert!(NameValue::decode(&[&bytes, &[0][..]].concat()).is_err());
            let old = Oid { site: value.oid.site & 0xff00, ..value.oid };
            let read = NameValue::decode(&old.to_bytes()).unwrap();
            prop_assert_eq!(read, NameValue { oid: old, place: None });
        }

        #[test]
        fn other_bytes_are_an_error_or_a_value(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Ok(value) = NameValue::decode(&bytes) {
                prop_assert_eq!(NameValue::decode(&value.encode()).unwrap(), value);
            }
        }
    }

    #[test]
    fn a_value_takes_about_as_much_as_an_oid() {
        let oid = Oid { site: 0, page: 1000, slot: 900, unique: 1_000_000 };
        let place = Some(Location { page: PageNo(33_000), slot: 30 });
        assert_eq!(NameValue { oid, place }.encode().len(), Oid::BYTES);
    }
}
