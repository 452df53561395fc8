//! What the server keeps of buckets, in the system collection: see `side.rs` for the names.

use crate::objects::acl::Acl;
use crate::objects::side::{SYSTEM, nanos, system, time};
use holdall::{Reader, Result, WriteTx};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::SystemTime;

/// A rule of a bucket: which pages of other origins may send what.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// What the client calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Origins of pages, with at most one star each.
    pub origins: Vec<String>,
    /// Methods.
    pub methods: Vec<String>,
    /// Headers of requests, with at most one star each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// Headers of answers that pages may see.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expose: Vec<String>,
    /// For how long a browser may keep the rules.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_age: Option<i32>,
}

/// Notes when a bucket was made.
///
/// # Errors
/// Those of a transaction.
pub fn note_bucket(tx: &mut WriteTx, name: &str, now: SystemTime) -> Result<()> {
    let text = nanos(now).to_string();
    tx.collection(SYSTEM)?.put(format!("bucket/{name}"), text.as_bytes()).map(drop)
}

/// When a bucket was made, if that was noted.
///
/// # Errors
/// Those of reading.
pub fn bucket_created(reader: &Reader, name: &str) -> Result<Option<SystemTime>> {
    let Some(system) = system(reader)? else { return Ok(None) };
    let bytes = system.get(format!("bucket/{name}"))?;
    Ok(bytes.and_then(|b| std::str::from_utf8(&b).ok()?.parse().ok()).map(time))
}

/// A record as JSON. One that cannot be read is none.
fn get<T: DeserializeOwned>(reader: &Reader, kind: &str, name: &str) -> Result<Option<T>> {
    let Some(system) = system(reader)? else { return Ok(None) };
    let bytes = system.get(format!("{kind}/{name}"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

/// The same within a transaction.
fn get_in<T: DeserializeOwned>(tx: &mut WriteTx, kind: &str, name: &str) -> Result<Option<T>> {
    let bytes = tx.collection(SYSTEM)?.get(format!("{kind}/{name}"))?;
    Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
}

fn set<T: Serialize>(tx: &mut WriteTx, kind: &str, name: &str, value: Option<&T>) -> Result<()> {
    let (mut system, place) = (tx.collection(SYSTEM)?, format!("{kind}/{name}"));
    let Some(value) = value else { return system.remove(&place).map(drop) };
    let bytes = serde_json::to_vec(value).map_err(|e| holdall::Error::Invalid(e.to_string()))?;
    system.put(place, &bytes).map(drop)
}

/// Tags of a bucket; `None` if it has none.
///
/// # Errors
/// Those of reading.
pub fn bucket_tags(reader: &Reader, name: &str) -> Result<Option<BTreeMap<String, String>>> {
    get(reader, "tags", name)
}

/// Sets a bucket's tags, or removes them.
///
/// # Errors
/// Those of a transaction.
pub fn set_bucket_tags(
    tx: &mut WriteTx,
    name: &str,
    tags: Option<&BTreeMap<String, String>>,
) -> Result<()> {
    set(tx, "tags", name, tags)
}

/// A bucket's ACL. Cost: one record, read only if it opens the bucket.
///
/// # Errors
/// Those of reading.
pub fn bucket_acl(reader: &Reader, name: &str) -> Result<Acl> {
    Ok(get(reader, "acl", name)?.unwrap_or_default())
}

/// Sets a bucket's ACL.
///
/// # Errors
/// Those of a transaction.
pub fn set_bucket_acl(tx: &mut WriteTx, name: &str, acl: Acl) -> Result<()> {
    set(tx, "acl", name, Some(&acl).filter(|acl| !acl.is_private()))
}

/// A bucket's rules for other origins; `None` if it has none.
///
/// # Errors
/// Those of reading.
pub fn bucket_cors(reader: &Reader, name: &str) -> Result<Option<Vec<Rule>>> {
    get(reader, "cors", name)
}

/// Sets a bucket's rules for other origins, or removes them.
///
/// # Errors
/// Those of a transaction.
pub fn set_bucket_cors(tx: &mut WriteTx, name: &str, rules: Option<&Vec<Rule>>) -> Result<()> {
    set(tx, "cors", name, rules)
}

/// Properties that WebDAV's clients set of a collection.
///
/// # Errors
/// Those of reading.
pub fn collection_props(reader: &Reader, name: &str) -> Result<BTreeMap<String, String>> {
    Ok(get(reader, "props", name)?.unwrap_or_default())
}

/// Changes a collection's properties.
///
/// # Errors
/// Those of a transaction.
pub fn change_collection_props(
    tx: &mut WriteTx,
    name: &str,
    change: impl FnOnce(&mut BTreeMap<String, String>),
) -> Result<()> {
    let mut props = get_in(tx, "props", name)?.unwrap_or_default();
    change(&mut props);
    set(tx, "props", name, Some(&props).filter(|props| !props.is_empty()))
}

/// What a collection has beside its objects, and takes along if it is moved.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// Tags.
    pub tags: Option<BTreeMap<String, String>>,
    /// The ACL.
    pub acl: Acl,
    /// Rules for other origins.
    pub cors: Option<Vec<Rule>>,
    /// Properties that WebDAV's clients set.
    pub props: BTreeMap<String, String>,
}

impl Settings {
    /// Those of a collection.
    ///
    /// # Errors
    /// Those of reading.
    pub fn load(reader: &Reader, name: &str) -> Result<Self> {
        let (tags, acl) = (bucket_tags(reader, name)?, bucket_acl(reader, name)?);
        let (cors, props) = (bucket_cors(reader, name)?, collection_props(reader, name)?);
        Ok(Self { tags, acl, cors, props })
    }

    /// Those of a collection, within a transaction.
    ///
    /// # Errors
    /// Those of reading.
    pub fn in_tx(tx: &mut WriteTx, name: &str) -> Result<Self> {
        Ok(Self {
            tags: get_in(tx, "tags", name)?,
            acl: get_in(tx, "acl", name)?.unwrap_or_default(),
            cors: get_in(tx, "cors", name)?,
            props: get_in(tx, "props", name)?.unwrap_or_default(),
        })
    }

    /// The properties alone.
    pub fn props(props: BTreeMap<String, String>) -> Self {
        Self { props, ..Self::default() }
    }

    /// Whether there is something that no folder has.
    pub fn are_of_bucket(&self) -> bool {
        self.tags.is_some() || self.cors.is_some() || !self.acl.is_private()
    }

    /// Sets them of a collection, in place of those that it has.
    ///
    /// # Errors
    /// Those of a transaction.
    pub fn set(&self, tx: &mut WriteTx, name: &str) -> Result<()> {
        set_bucket_tags(tx, name, self.tags.as_ref())?;
        set_bucket_acl(tx, name, self.acl)?;
        set_bucket_cors(tx, name, self.cors.as_ref())?;
        change_collection_props(tx, name, |props| props.clone_from(&self.props))
    }
}

/// Forgets all that is kept of a bucket.
///
/// # Errors
/// Those of a transaction.
pub fn forget_bucket(tx: &mut WriteTx, name: &str) -> Result<()> {
    let mut system = tx.collection(SYSTEM)?;
    for kind in ["tags", "acl", "cors", "props", "bucket"] {
        system.remove(format!("{kind}/{name}"))?;
    }
    Ok(())
}
