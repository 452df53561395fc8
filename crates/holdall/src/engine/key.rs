//! What objects are called by, in calls and in messages.
//!
//! Owns: [`Key`].

use holdall_core::name::show_name;
use holdall_core::{Error, Oid};
use std::borrow::Cow;

/// What objects are called by: a name in a collection, or an OID.
///
/// Calls take anything that becomes a key: what `put` takes as a name, by value or by
/// reference, and an OID. Only an array by value is copied, which costs an allocation: hot
/// code gives a reference.
///
/// ```
/// # use holdall::{Key, Store};
/// # let store = Store::in_memory()?;
/// let number = 7_u64.to_be_bytes();
/// let oid = store.write(|tx| tx.put(number, b"seven"))?;
/// let reader = store.read()?;
/// assert_eq!(reader.get(number)?, reader.get(oid)?);
/// assert_eq!(reader.get(Key::from(number))?, Some(b"seven".into()));
/// # Ok::<(), holdall::Error>(())
/// ```
///
/// A name that is missing is an answer: `None` of what reads an object, `false` of
/// [`remove`](crate::ObjectsMut::remove). An OID is never given out again, and one that names no
/// object is an error of every call: [`Error::Dangling`] if its object was deleted,
/// [`Error::NotFound`] if the store never gave it out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Key<'a> {
    /// A name, any bytes up to 1 KiB.
    Name(Cow<'a, [u8]>),
    /// An object id.
    Oid(Oid),
}

impl Key<'_> {
    /// The same, with bytes of its own.
    pub(crate) fn owned(&self) -> Key<'static> {
        match self {
            Self::Name(name) => Key::Name(Cow::Owned(name.to_vec())),
            Self::Oid(oid) => Key::Oid(*oid),
        }
    }

    /// The key in messages.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Name(name) => show_name(name),
            Self::Oid(oid) => oid.to_string(),
        }
    }
}

/// No object has this name or OID.
#[cold]
pub(crate) fn missing(key: &Key<'_>) -> Error {
    Error::NotFound(format!("object {}", key.show()))
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Key<'a> {
    #[inline]
    fn from(name: &'a T) -> Self {
        Self::Name(Cow::Borrowed(name.as_ref()))
    }
}

impl<'a> From<&'a Key<'_>> for Key<'a> {
    #[inline]
    fn from(key: &'a Key<'_>) -> Self {
        match key {
            Key::Name(name) => Self::Name(Cow::Borrowed(name)),
            Key::Oid(oid) => Self::Oid(*oid),
        }
    }
}

impl<'a> From<Cow<'a, [u8]>> for Key<'a> {
    fn from(name: Cow<'a, [u8]>) -> Self {
        Self::Name(name)
    }
}

impl From<Vec<u8>> for Key<'_> {
    fn from(name: Vec<u8>) -> Self {
        Self::Name(Cow::Owned(name))
    }
}

impl From<String> for Key<'_> {
    fn from(name: String) -> Self {
        Self::Name(Cow::Owned(name.into_bytes()))
    }
}

impl<const N: usize> From<[u8; N]> for Key<'_> {
    fn from(name: [u8; N]) -> Self {
        Self::Name(Cow::Owned(name.to_vec()))
    }
}

impl From<Oid> for Key<'_> {
    #[inline]
    fn from(oid: Oid) -> Self {
        Self::Oid(oid)
    }
}
