//! Versions of objects, by which a change knows that no other came before it.
//!
//! Owns: [`Change`], which a heap record keeps, and [`Version`], its public form.
//!
//! Invariant: an object never has the same version with different bytes or attributes, not
//! even after a crash that took back commits which somebody had seen. Each recovery raises the
//! epoch, so a change made after it differs from every change that it took back.

use crate::bytes::{Reader, push_varint, varint_len};
use crate::mutation::{self, Mutation};
use crate::{Error, Oid};
use std::fmt;
use std::str::FromStr;

/// An object's last change: the recovery epoch it happened in, and its number in that epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Change {
    /// The recovery epoch (`Superblock::epoch`); 0 for an object that is as it was created.
    pub epoch: u32,
    /// Changes of the object in this epoch, this one included.
    pub count: u64,
}

impl Change {
    /// Of an object that is as it was created.
    pub const NONE: Self = Self { epoch: 0, count: 0 };
    /// Most bytes of its encoding.
    pub const MOST_BYTES: usize = 15;

    /// Whether the object is as it was created.
    pub fn is_none(self) -> bool {
        self == Self::NONE
    }

    /// The change that follows this one in epoch `epoch`.
    #[must_use]
    pub fn next(self, epoch: u32) -> Self {
        if mutation::is(Mutation::R26Change) {
            return self;
        }
        let epoch = if mutation::is(Mutation::R26Epoch) { 1 } else { epoch };
        let count = if self.epoch == epoch { self.count.saturating_add(1) } else { 1 };
        Self { epoch, count }
    }

    /// Bytes of its encoding: none if the object is as it was created.
    pub(crate) fn len(self) -> usize {
        if self.is_none() { 0 } else { varint_len(self.epoch.into()) + varint_len(self.count) }
    }

    /// Adds its encoding to `out`: two varints, or nothing.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        if !self.is_none() {
            push_varint(out, self.epoch.into());
            push_varint(out, self.count);
        }
    }

    pub(crate) fn read(r: &mut Reader<'_>) -> Option<Self> {
        let epoch = u32::try_from(r.varint()?).ok()?;
        Some(Self { epoch, count: r.varint()? })
    }
}

/// A version of an object: changes with every change of its bytes or attributes, and with
/// nothing else. Two equal versions of one store are of the same object with the same bytes.
///
/// Compare them for equality only: which of two is newer they do not tell. As text a version has
/// hexadecimal digits and hyphens.
///
/// ```
/// # use holdall_core::Version;
/// let text = "0-7-9-b-1-3";
/// assert_eq!(text.parse::<Version>()?.to_string(), text);
/// assert!("7".parse::<Version>().is_err());
/// # Ok::<(), holdall_core::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Version {
    oid: Oid,
    change: Change,
}

impl Version {
    /// Of the object `oid`, last changed by `change`.
    pub fn new(oid: Oid, change: Change) -> Self {
        Self { oid, change }
    }

    /// The object.
    pub fn oid(&self) -> Oid {
        self.oid
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Oid { site, page, slot, unique } = self.oid;
        let Change { epoch, count } = self.change;
        write!(f, "{site:x}-{page:x}-{slot:x}-{unique:x}-{epoch:x}-{count:x}")
    }
}

impl FromStr for Version {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut parts = text.split('-').map(|part| u64::from_str_radix(part, 16));
        let mut next = || parts.next()?.ok();
        let parsed = (|| {
            let (site, page) = (next()?.try_into().ok()?, next()?.try_into().ok()?);
            let (slot, unique) = (next()?.try_into().ok()?, next()?.try_into().ok()?);
            let change = Change { epoch: next()?.try_into().ok()?, count: next()? };
            Some(Self { oid: Oid { site, page, slot, unique }, change })
        })();
        let whole = parsed.filter(|_| parts.next().is_none());
        whole.ok_or_else(|| Error::Invalid(format!("{text:?} is not a version of an object")))
    }
}
