//! Logical object identifiers of 12 bytes, and the handles they are mapped to (Eickler §3.2,
//! §5.1). Owns no state.

use std::fmt;

use holdall_core::techniques::bytes::{put_u16, put_u64, u16_at, u64_at};

/// A logical OID: site (2 bytes), handle page (4), slot (2), unique field (4), each with its
/// highest byte first, so that the order of the bytes is the order of allocation. The techniques
/// that find an OID by comparing use all behind the first 4 bytes as one serial number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Oid([u8; Oid::BYTES]);

impl Oid {
    /// Bytes of an OID.
    pub const BYTES: usize = 12;

    /// An OID that says where its handle is (§3.2).
    pub fn direct(page: u32, slot: u16, unique: u32) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[2..6].copy_from_slice(&page.to_be_bytes());
        bytes[6..8].copy_from_slice(&slot.to_be_bytes());
        bytes[8..].copy_from_slice(&unique.to_be_bytes());
        Self(bytes)
    }

    /// The n-th OID of a server that counts them (§4.1.1).
    pub fn serial(n: u64) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[4..].copy_from_slice(&n.to_be_bytes());
        Self(bytes)
    }

    /// The serial number.
    pub fn number(self) -> u64 {
        u64::from_be_bytes(array(&self.0[4..]))
    }

    /// The handle page.
    pub fn page(self) -> u32 {
        u32::from_be_bytes(array(&self.0[2..6]))
    }

    /// The slot in the handle page.
    pub fn slot(self) -> u16 {
        u16::from_be_bytes(array(&self.0[6..8]))
    }

    /// The unique field.
    pub fn unique(self) -> u32 {
        u32::from_be_bytes(array(&self.0[8..]))
    }

    /// The bytes, in the order of OIDs.
    pub fn bytes(&self) -> &[u8; Self::BYTES] {
        &self.0
    }

    /// The OID of these bytes.
    pub fn from_bytes(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// This many bytes that both begin with.
    pub fn common(&self, other: &Self) -> usize {
        self.0.iter().zip(&other.0).take_while(|(a, b)| a == b).count()
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "oid:{:x}.{:x}.{:x}", self.page(), self.slot(), self.unique())
    }
}

/// Where an object lies. It takes 20 bytes on disk, which with the unique field of 4 gives the
/// paper's 170 of a handle page; half of them are the rest of a physical address of 1995.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Handle {
    /// The data page; 0 is none.
    pub page: u64,
    /// The slot in it.
    pub slot: u16,
}

impl Handle {
    /// Bytes of a handle.
    pub const BYTES: usize = 20;

    /// Of the object number `object`, counted over data pages of [`PER_PAGE`] objects.
    pub fn of(object: usize) -> Self {
        Self { page: (object / PER_PAGE) as u64 + 1, slot: (object % PER_PAGE) as u16 }
    }

    /// Writes it to the first 20 of `bytes`.
    pub fn put(self, bytes: &mut [u8]) {
        put_u64(bytes, 0, self.page);
        put_u16(bytes, 8, self.slot);
    }

    /// Reads it from `bytes`.
    pub fn get(bytes: &[u8]) -> Self {
        Self { page: u64_at(bytes, 0), slot: u16_at(bytes, 8) }
    }
}

/// Objects of a data page (§5.2).
pub const PER_PAGE: usize = 20;

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(bytes);
    out
}
