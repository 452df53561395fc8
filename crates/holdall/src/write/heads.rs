//! Changing an object's name and attributes, not its bytes.

use super::ObjectsMut;
use crate::engine::key::Key;
use crate::object::{self, Attributes, Head};
use holdall_core::name::{check_name, show_name};
use holdall_core::{Error, Result};

impl ObjectsMut {
    /// Gives an object another name; OID and bytes stay.
    ///
    /// # Errors
    /// [`Error::NotFound`]; [`Error::Exists`] if `to` is there already.
    pub fn rename(&mut self, from: impl AsRef<[u8]>, to: impl AsRef<[u8]>) -> Result<()> {
        let (from, to) = (from.as_ref(), to.as_ref());
        check_name(to)?;
        let oid = self.resolve(&from.into())?;
        if from == to {
            return Ok(());
        }
        if self.lookup(to)?.is_some() {
            return Err(Error::Exists(format!("object {}", show_name(to))));
        }
        self.with_objects(|objects, c| {
            objects.set_head(oid, |head| Head { name: Some(to.to_vec().into()), ..head })?;
            c.names.remove(objects.tx, &c.key(from))?;
            let value = objects.name_value(oid)?.encode();
            c.names.insert(objects.tx, c.owner(), &c.key(to), &value).map(|_| ())
        })
    }

    /// Replaces an object's attributes.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Dangling`], [`Error::Invalid`] if they are too long.
    pub fn set_attributes<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        attributes: &Attributes,
    ) -> Result<()> {
        let encoded = object::encode_attributes(attributes, self.page_size())?;
        let oid = self.resolve(&key.into())?;
        let sum = self.known_sum(oid);
        self.with_object(oid, |objects, _| {
            objects.set_head(oid, |head| Head { attributes: encoded.into(), ..head })
        })?;
        self.note_sum(oid, sum);
        Ok(())
    }
}
