//! What a put does about an object that is there already.
//!
//! Owns: [`PutMode`] and what it refuses. Pure.

use crate::{Error, Result, Version};
use std::fmt::Display;

/// What a put does about an object that has the name already. `V` is what the store calls a
/// version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum PutMode<V = Version> {
    /// Replaces its bytes.
    #[default]
    Overwrite,
    /// Refuses, with [`Error::Exists`].
    Create,
    /// Replaces its bytes if it still is of this version; refuses otherwise, and if there is
    /// no such object, with [`Error::Conflict`].
    Update(V),
}

impl<V: PartialEq + Display> PutMode<V> {
    /// Whether a put may go on where the object has the version `there`, or is not there.
    /// `object` names it in errors.
    ///
    /// # Errors
    /// [`Error::Exists`] and [`Error::Conflict`], as the mode says.
    pub fn check(&self, there: Option<&V>, object: &dyn Fn() -> String) -> Result<()> {
        match (self, there) {
            (Self::Create, Some(_)) => Err(Error::Exists(object())),
            (Self::Update(wanted), there) if there != Some(wanted) => {
                let there = there.map_or("it is not there".into(), |v| format!("it has {v}"));
                let detail = format!("version {wanted} is expected, {there}");
                Err(Error::Conflict { object: object(), detail })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_refuses_what_it_says() {
        let object = || "object \"a\"".to_owned();
        let told = |mode: PutMode<u8>, there: Option<u8>| {
            mode.check(there.as_ref(), &object).map_err(|e| e.to_string())
        };
        for there in [None, Some(7)] {
            assert_eq!(told(PutMode::default(), there), Ok(()));
        }
        assert_eq!(told(PutMode::Create, None), Ok(()));
        assert_eq!(told(PutMode::Create, Some(7)), Err("already exists: object \"a\"".into()));
        assert_eq!(told(PutMode::Update(7), Some(7)), Ok(()));
        let late = told(PutMode::Update(7), Some(8)).unwrap_err();
        assert!(
            late.starts_with("object \"a\" was changed since: version 7 is expected, it has 8")
        );
        let gone = told(PutMode::Update(7), None).unwrap_err();
        assert!(gone.contains("version 7 is expected, it is not there"));
    }
}
