//! The root and the collections of a state, decoded from their pages.
//!
//! Owns: nothing; decodes the root page and collection pages for reads and transactions.

use crate::handle::HandleTable;
use crate::heap::HeapFile;
use crate::names::{Names, Value};
use crate::object::StoredHints;
use crate::page_map::PageMap;
use holdall_core::page::{self, PageKind};
use holdall_core::{Error, Oid, PageNo, PageRead, Result, collection_page, root_page};

/// The collection that calls go to unless they name one.
pub const DEFAULT_COLLECTION: &str = "default";

/// A collection, decoded from its page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Collection {
    pub(crate) number: u32,
    pub(crate) page: PageNo,
    pub(crate) names: Names,
    pub(crate) heap: HeapFile,
    pub(crate) objects: u64,
    /// Wider than its place in the page: [`Collection::logical_bytes`] is asked after each change.
    pub(crate) logical_bytes: u128,
    pub(crate) hints: StoredHints,
}

impl Collection {
    pub(crate) fn load<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<Self> {
        pages.with_page(no, PageKind::Collection, |bytes| Self::decode(bytes, no))
    }

    fn decode(bytes: &[u8], no: PageNo) -> Result<Self> {
        let owner = page::owner(bytes);
        let number = u32::try_from(owner)
            .map_err(|_| Error::page(no, format!("impossible collection number {owner}")))?;
        Ok(Self {
            number,
            page: no,
            names: Names { root: collection_page::names(bytes) },
            heap: HeapFile::decode(&collection_page::heap(bytes), owner)?,
            objects: collection_page::objects(bytes),
            logical_bytes: collection_page::logical_bytes(bytes).into(),
            hints: StoredHints {
                threshold: collection_page::threshold(bytes),
                flags: collection_page::flags(bytes),
            },
        })
    }

    /// Notes that an object of `before` bytes has `after` now.
    pub(crate) fn resize(&mut self, before: u64, after: u64) {
        self.logical_bytes = self.logical_bytes.saturating_sub(before.into()) + u128::from(after);
    }

    /// The sum of its objects' sizes. A count cut off at the most its place can hold would
    /// stay wrong for ever.
    ///
    /// # Errors
    /// [`Error::Invalid`] if it is over [`u64::MAX`].
    pub(crate) fn logical_bytes(&self, name: &str) -> Result<u64> {
        u64::try_from(self.logical_bytes).map_err(|_| {
            let (sum, most) = (self.logical_bytes, u64::MAX);
            Error::Invalid(format!(
                "the objects of collection {name:?} would have {sum} bytes in all, at most {most} \
                 are possible; put some into another collection"
            ))
        })
    }

    /// Writes the collection `name` back into its page.
    ///
    /// # Errors
    /// As [`Collection::logical_bytes`].
    pub(crate) fn store(&self, name: &str, bytes: &mut [u8]) -> Result<()> {
        collection_page::set_names(bytes, self.names.root);
        collection_page::set_heap(bytes, self.heap.encode());
        collection_page::set_objects(bytes, self.objects);
        collection_page::set_logical_bytes(bytes, self.logical_bytes(name)?);
        collection_page::set_threshold(bytes, self.hints.threshold);
        collection_page::set_flags(bytes, self.hints.flags);
        Ok(())
    }
}

/// The root page, decoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Root {
    pub(crate) catalog: Names,
    pub(crate) handles: HandleTable,
    pub(crate) next_collection: u32,
}

impl Root {
    pub(crate) fn load<R: PageRead + ?Sized>(pages: &R, no: PageNo) -> Result<Self> {
        pages.with_page(no, PageKind::Root, |bytes| {
            Ok(Self {
                catalog: Names { root: root_page::catalog(bytes) },
                handles: HandleTable { map: PageMap::decode(&root_page::handles(bytes))? },
                next_collection: root_page::next_collection(bytes),
            })
        })
    }

    /// The page of a collection.
    pub(crate) fn find<R: PageRead + ?Sized>(
        &self,
        pages: &R,
        name: &str,
    ) -> Result<Option<PageNo>> {
        match self.catalog.get(pages, name.as_bytes())? {
            Some(value) => page_of(&value).map(Some),
            None => Ok(None),
        }
    }
}

/// The page a catalog entry names.
pub(crate) fn page_of(value: &Value) -> Result<PageNo> {
    let bytes: [u8; 8] = (**value)
        .try_into()
        .map_err(|_| Error::corrupt("catalog", "an entry is not a page number"))?;
    Ok(PageNo(u64::from_le_bytes(bytes)))
}

/// The object a names entry names.
pub(crate) fn oid_of(value: &[u8]) -> Result<Oid> {
    let bytes: [u8; Oid::BYTES] =
        value.try_into().map_err(|_| Error::corrupt("names", "an entry is not an OID"))?;
    Ok(Oid::from_bytes(bytes))
}
