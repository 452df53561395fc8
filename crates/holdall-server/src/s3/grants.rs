//! The names and lists of grants that S3 has for ACLs.

use crate::objects::acl::Acl;
use crate::s3::error::custom;
use crate::users::OWNER;
use http::StatusCode;
use s3s::dto::{AccessControlPolicy, Grant, Grantee, Permission, Type};
use s3s::{S3Error, S3Result, s3_error};

/// Everybody, as S3's grants name them.
const ALL: &str = "http://acs.amazonaws.com/groups/global/AllUsers";
/// Everybody who signs.
const SIGNED: &str = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";
/// ACLs that S3 has names for and this server has not.
const OTHERS: [&str; 2] = ["aws-exec-read", "log-delivery-write"];

/// Why an ACL is refused that gives a right to a single user, or one on the ACL itself, or opens
/// something if none may.
pub fn not_supported() -> S3Error {
    let text = "rights are given in the server's configuration; ACLs are private or, if it has \
                public_acls, public-read, public-read-write and authenticated-read";
    custom("AccessControlListNotSupported", StatusCode::BAD_REQUEST, text)
}

impl Acl {
    /// The ACL of this name. Everything belongs to one owner, so that what a name gives to the
    /// bucket's owner is given anyway.
    ///
    /// # Errors
    /// InvalidArgument for what S3 does not know either, AccessControlListNotSupported.
    pub fn named(name: &str) -> S3Result<Self> {
        match name {
            "private" | "bucket-owner-read" | "bucket-owner-full-control" => Ok(Self::Private),
            "public-read" => Ok(Self::PublicRead),
            "public-read-write" => Ok(Self::PublicReadWrite),
            "authenticated-read" => Ok(Self::AuthenticatedRead),
            other if OTHERS.contains(&other) => Err(not_supported()),
            other => Err(s3_error!(InvalidArgument, "{other:?} is no canned ACL")),
        }
    }

    /// The ACL that a list of grants amounts to.
    ///
    /// # Errors
    /// AccessControlListNotSupported if it amounts to none of them.
    pub fn of_policy(policy: &AccessControlPolicy) -> S3Result<Self> {
        let (mut owner, mut read, mut write, mut signed) = (false, false, false, false);
        for grant in policy.grants.iter().flatten() {
            let grantee = grant.grantee.as_ref();
            let id = grantee.and_then(|grantee| grantee.id.as_deref());
            let group = grantee.and_then(|grantee| grantee.uri.as_deref());
            match (id, group, grant.permission.as_ref().map(Permission::as_str)) {
                (Some(OWNER), None, Some(Permission::FULL_CONTROL)) => owner = true,
                (None, Some(ALL), Some(Permission::READ)) => read = true,
                (None, Some(ALL), Some(Permission::WRITE)) => write = true,
                (None, Some(SIGNED), Some(Permission::READ)) => signed = true,
                _ => return Err(not_supported()),
            }
        }
        match (owner, read, write, signed) {
            (true, false, false, false) => Ok(Self::Private),
            (true, true, false, false) => Ok(Self::PublicRead),
            (true, true, true, false) => Ok(Self::PublicReadWrite),
            (true, false, false, true) => Ok(Self::AuthenticatedRead),
            _ => Err(not_supported()),
        }
    }

    /// The grants that it stands for, the owner's last.
    pub fn grants(self) -> Vec<Grant> {
        let to = |uri: &str, permission| {
            let type_ = Type::from_static(Type::GROUP);
            let none = (None, None, None);
            let (display_name, id, email_address) = none;
            let uri = Some(uri.to_owned());
            let grantee = Grantee { display_name, id, type_, email_address, uri };
            let permission = Some(Permission::from_static(permission));
            Grant { grantee: Some(grantee), permission }
        };
        let mut grants = match self {
            Self::Private => Vec::new(),
            Self::PublicRead => vec![to(ALL, Permission::READ)],
            Self::PublicReadWrite => vec![to(ALL, Permission::READ), to(ALL, Permission::WRITE)],
            Self::AuthenticatedRead => vec![to(SIGNED, Permission::READ)],
        };
        let owner = Grantee {
            display_name: Some(OWNER.into()),
            id: Some(OWNER.into()),
            type_: Type::from_static(Type::CANONICAL_USER),
            email_address: None,
            uri: None,
        };
        let permission = Some(Permission::from_static(Permission::FULL_CONTROL));
        grants.push(Grant { grantee: Some(owner), permission });
        grants
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EACH: [(&str, Acl); 4] = [
        ("private", Acl::Private),
        ("public-read", Acl::PublicRead),
        ("public-read-write", Acl::PublicReadWrite),
        ("authenticated-read", Acl::AuthenticatedRead),
    ];

    fn policy(grants: Vec<Grant>) -> AccessControlPolicy {
        AccessControlPolicy { grants: Some(grants), owner: None }
    }

    #[test]
    fn names_grants_and_what_is_stored_say_the_same() {
        for (name, acl) in EACH {
            assert_eq!(Acl::named(name).unwrap(), acl);
            assert_eq!(Acl::of_policy(&policy(acl.grants())).unwrap(), acl, "{name}");
            assert_eq!(serde_json::to_string(&acl).unwrap(), format!("{name:?}"));
        }
        assert_eq!(Acl::named("bucket-owner-read").unwrap(), Acl::Private);
        assert_eq!(Acl::named("public").unwrap_err().code().as_str(), "InvalidArgument");
        let known = Acl::named("aws-exec-read").unwrap_err();
        assert_eq!(known.code().as_str(), "AccessControlListNotSupported");
    }

    #[test]
    fn grants_that_amount_to_no_named_acl_are_refused() {
        let refused = |grants| Acl::of_policy(&policy(grants)).is_err();
        assert!(refused(Vec::new()), "the owner's right cannot be taken away");
        assert!(refused(vec![Acl::PublicRead.grants().remove(0)]));
        let mut write_only = Acl::PublicReadWrite.grants();
        write_only.remove(0);
        assert!(refused(write_only));
        for permission in [Permission::READ_ACP, Permission::WRITE_ACP, Permission::FULL_CONTROL] {
            let mut grants = Acl::PublicRead.grants();
            grants[0].permission = Some(Permission::from_static(permission));
            assert!(refused(grants), "{permission}");
        }
        let mut named = Acl::PublicRead.grants();
        let grantee = named[0].grantee.as_mut().unwrap();
        (grantee.uri, grantee.id) = (None, Some("somebody".into()));
        assert!(refused(named));
    }
}
