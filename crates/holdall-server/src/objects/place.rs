//! Where something lies: in which collection, under which name.
//!
//! Owns: [`Place`]; which names may be written.

use crate::refusal::{Result, Why};

/// Most bytes of a key.
const MOST_KEY: usize = 1024;

/// Refuses keys that no object may have.
///
/// # Errors
/// [`Why::LongName`].
pub fn check_key(key: &str) -> Result<()> {
    if key.len() > MOST_KEY {
        return Err(Why::LongName.says(format!("a key has at most {MOST_KEY} bytes")));
    }
    Ok(())
}

/// A name that may be written: UTF-8, so that S3 can reach it, too.
///
/// # Errors
/// [`Why::Invalid`], [`Why::LongName`].
pub fn text(key: Vec<u8>) -> Result<String> {
    let bad = |_| Why::Invalid.says("a name that is written is UTF-8");
    let key = String::from_utf8(key).map_err(bad)?;
    check_key(&key)?;
    Ok(key)
}

/// What a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The collection; none at the root.
    pub collection: Option<String>,
    /// The name without a slash at its end; none for the collection itself. An empty one is the
    /// folder of the names that begin with a slash.
    pub key: Option<Vec<u8>>,
    /// Whether the path ends with a slash, which means the folder.
    pub slash: bool,
}

impl Place {
    /// The name; empty for the collection itself, too.
    pub fn name(&self) -> &[u8] {
        self.key.as_deref().unwrap_or_default()
    }

    /// What the names of all that lies in it begin with: a folder's name with its slash, and
    /// nothing for a collection.
    pub fn prefix(&self) -> Vec<u8> {
        self.key.as_deref().map(prefix_of).unwrap_or_default()
    }

    /// The folder that it lies in; none if that is the collection or the root.
    pub fn parent(&self) -> Option<&[u8]> {
        parent(self.key.as_deref()?)
    }

    /// Whether no object can have this name: it is empty, or ends with the slash of a folder.
    pub fn is_folders(&self) -> bool {
        self.key.as_deref().is_none_or(|key| key.is_empty() || key.ends_with(b"/"))
    }

    /// The same name, as the folder's or not.
    pub fn with_slash(&self, slash: bool) -> Self {
        Self { slash, ..self.clone() }
    }
}

/// A folder's name with the slash that all names in it begin with.
pub fn prefix_of(key: &[u8]) -> Vec<u8> {
    [key, b"/"].concat()
}

/// The folder that a name lies in, without a slash at its end.
pub fn parent(key: &[u8]) -> Option<&[u8]> {
    key.iter().rposition(|b| *b == b'/').map(|at| &key[..at])
}
