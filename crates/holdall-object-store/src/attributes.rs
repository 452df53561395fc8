//! What is kept of an object beside its bytes.
//!
//! The form is that of `holdall serve`: attributes `content-type`, and `s3` with the
//! rest as JSON. What one of the two puts, the other one shows.

use crate::error::message;
use chrono::DateTime;
use holdall::Attributes as Kept;
use object_store::path::Path;
use object_store::{Attribute, AttributeValue, Attributes, ObjectMeta, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::time::SystemTime;

const CONTENT_TYPE: &str = "content-type";
const ABOUT: &str = "s3";

/// The part of the attribute `s3` that has a name in `object_store`.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct About {
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    disposition: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    user: BTreeMap<String, String>,
}

/// The attributes of an object that is put now.
///
/// # Errors
/// NotSupported for an attribute that has no place.
pub fn to_stored(given: &Attributes) -> Result<Kept> {
    let (mut kept, mut about) = (Kept::new(), About::default());
    for (name, value) in given {
        let value = value.as_ref().to_owned();
        match name {
            Attribute::ContentType => _ = kept.insert(CONTENT_TYPE.into(), value.into_bytes()),
            Attribute::CacheControl => about.cache_control = Some(value),
            Attribute::ContentDisposition => about.disposition = Some(value),
            Attribute::ContentEncoding => about.encoding = Some(value),
            Attribute::ContentLanguage => about.language = Some(value),
            Attribute::Metadata(name) => _ = about.user.insert(name.to_string(), value),
            other => {
                let text = format!("the attribute {other:?} has no place in the store");
                return Err(crate::error::unsupported(&text));
            }
        }
    }
    if about != About::default() {
        let json = serde_json::to_vec(&about).map_err(|e| message(e.to_string()))?;
        kept.insert(ABOUT.into(), json);
    }
    Ok(kept)
}

fn text<'k>(kept: &'k Kept, name: &str) -> Option<&'k str> {
    std::str::from_utf8(kept.get(name)?).ok()
}

/// The attributes of an object as `object_store` has them.
pub fn from_stored(kept: &Kept) -> Attributes {
    let about = text(kept, ABOUT).and_then(|json| serde_json::from_str::<About>(json).ok());
    let About { cache_control, disposition, encoding, language, user } = about.unwrap_or_default();
    let named = [
        (Attribute::ContentType, text(kept, CONTENT_TYPE).map(str::to_owned)),
        (Attribute::CacheControl, cache_control),
        (Attribute::ContentDisposition, disposition),
        (Attribute::ContentEncoding, encoding),
        (Attribute::ContentLanguage, language),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let user = user.into_iter().map(|(name, value)| (Attribute::Metadata(name.into()), value));
    named.chain(user).map(|(name, value)| (name, AttributeValue::from(value))).collect()
}

/// What is known of an object. Its time is 1970 if nobody knows it.
pub fn meta(
    location: Path,
    size: u64,
    version: impl Display,
    modified: Option<SystemTime>,
) -> ObjectMeta {
    ObjectMeta {
        location,
        last_modified: modified.map(DateTime::from).unwrap_or_default(),
        size,
        e_tag: Some(version.to_string()),
        version: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_come_back() {
        let given = Attributes::from_iter([
            (Attribute::ContentType, "text/plain"),
            (Attribute::CacheControl, "no-store"),
            (Attribute::Metadata("camera".into()), "x"),
        ]);
        assert_eq!(from_stored(&to_stored(&given).unwrap()), given);
        assert!(to_stored(&Attributes::from_iter([(Attribute::StorageClass, "COLD")])).is_err());
        let broken = Kept::from([(ABOUT.to_owned(), b"{".to_vec())]);
        assert!(from_stored(&broken).is_empty());
    }
}
