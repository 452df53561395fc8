//! ACLs that open a bucket or an object to everybody.
//!
//! Owns: [`Acl`]. Grants to single users and rights on ACLs themselves are the configuration's.

use serde::{Deserialize, Serialize};

/// What others than the owner may do. The owner may do everything.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Acl {
    /// Nothing.
    #[default]
    Private,
    /// Everybody reads: gets the object, lists the bucket.
    PublicRead,
    /// As that; in a bucket everybody puts and deletes, too.
    PublicReadWrite,
    /// Everybody who signs reads.
    AuthenticatedRead,
}

impl Acl {
    /// Whether it keeps things to their owner.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
    pub fn is_private(&self) -> bool {
        *self == Self::Private
    }

    /// Whether it lets others read, who sign or do not.
    pub fn opens_read(self, signed: bool) -> bool {
        match self {
            Self::Private => false,
            Self::PublicRead | Self::PublicReadWrite => true,
            Self::AuthenticatedRead => signed,
        }
    }

    /// Whether it lets others put and delete.
    pub fn opens_write(self) -> bool {
        self == Self::PublicReadWrite
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_signs_matters_where_the_acl_says_so() {
        let opened = |acl: Acl| (acl.opens_read(false), acl.opens_read(true), acl.opens_write());
        assert_eq!(opened(Acl::Private), (false, false, false));
        assert_eq!(opened(Acl::PublicRead), (true, true, false));
        assert_eq!(opened(Acl::PublicReadWrite), (true, true, true));
        assert_eq!(opened(Acl::AuthenticatedRead), (false, true, false));
    }
}
