//! Who there is, with which rights by the configuration.
//!
//! Owns: [`Users`], [`User`], [`Right`]; tells `s3s` the keys of signatures. `access.rs` asks it
//! about each request.

use crate::config::{Config, Grant};
use crate::error::StartError;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use s3s::auth::{Credentials, S3Auth, SecretKey};
use s3s::crypto::{Checksum as _, Sha256};
use s3s::{S3Result, s3_error};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Who owns everything: S3's answers name an owner.
pub const OWNER: &str = "holdall";

/// A right on a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Right {
    /// Get objects and what is known of them.
    Read,
    /// See names.
    List,
    /// Put, edit and delete objects.
    Write,
    /// Make and delete the bucket.
    Admin,
}

/// Somebody who may ask, known by an access key; or everybody.
#[derive(Debug, Clone)]
pub struct User {
    /// The access key; empty for requests without a signature.
    pub name: String,
    secret: SecretKey,
    grants: Vec<Grant>,
}

impl User {
    /// Whether the user has a right on a bucket.
    pub fn may(&self, right: Right, bucket: &str) -> bool {
        let to = |grant: &&Grant| grant.matches(bucket);
        self.grants.iter().filter(to).any(|grant| grant.rights.contains(&right))
    }

    /// The keys of a user who has some.
    pub fn keys(&self) -> Option<(&str, &str)> {
        (!self.name.is_empty()).then(|| (self.name.as_str(), self.secret.expose()))
    }

    /// Whether the user has any right on a bucket.
    pub fn sees(&self, bucket: &str) -> bool {
        self.grants.iter().any(|grant| grant.matches(bucket) && !grant.rights.is_empty())
    }
}

fn is_basic(scheme: &str) -> bool {
    scheme.eq_ignore_ascii_case("basic")
}

/// All users. Clones share them.
#[derive(Debug, Clone)]
pub struct Users {
    by_key: Arc<BTreeMap<String, Arc<User>>>,
    anonymous: Option<Arc<User>>,
}

impl Users {
    /// Takes users from the configuration and, where both are set, the keys of the environment.
    ///
    /// # Errors
    /// [`StartError::NoCredentials`] where nobody could ask for anything,
    /// [`StartError::Config`].
    pub fn new(config: &Config, own: Option<(String, String)>) -> Result<Self, StartError> {
        let mut by_key = BTreeMap::new();
        let mut add = |name: String, secret: String, grants: Vec<Grant>| {
            if name.is_empty() || secret.len() < 8 {
                let text = format!(
                    "user {name:?}: an access key is not empty and a secret key has at least 8 characters"
                );
                return Err(StartError::Config(text));
            }
            let user = User { name: name.clone(), secret: SecretKey::from(secret), grants };
            if by_key.insert(name.clone(), Arc::new(user)).is_some() {
                return Err(StartError::Config(format!("user {name:?} is named twice")));
            }
            Ok(())
        };
        if let Some((name, secret)) = own {
            add(name, secret, vec![Grant::everything()])?;
        }
        for user in &config.users {
            add(user.access_key.clone(), user.secret()?, user.grants.clone())?;
        }
        let grants = config.anonymous.clone();
        if by_key.is_empty() && grants.is_empty() {
            return Err(StartError::NoCredentials);
        }
        let nobody = || User { name: String::new(), secret: SecretKey::from(""), grants };
        // Without grants an unsigned request may still ask for what an ACL opens.
        let asks = !config.anonymous.is_empty() || config.public_acls;
        let anonymous = asks.then(nobody).map(Arc::new);
        Ok(Self { by_key: Arc::new(by_key), anonymous })
    }

    /// The user that a request is from.
    ///
    /// # Errors
    /// AccessDenied for a request without a signature where those are not allowed.
    pub fn of(&self, credentials: Option<&Credentials>) -> S3Result<Arc<User>> {
        let found = match credentials {
            Some(c) => self.by_key.get(&c.access_key),
            None => self.anonymous.as_ref(),
        };
        found.cloned().ok_or_else(|| s3_error!(AccessDenied, "a signature is required"))
    }

    /// The user whose access key and secret key a request has as name and password; whoever asks
    /// without them, where that is allowed.
    pub fn of_basic(&self, headers: &HeaderMap) -> Option<Arc<User>> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return self.anonymous.clone();
        };
        let (scheme, text) = given.to_str().ok()?.split_once(' ')?;
        let decoded = STANDARD.decode(text.trim()).ok().filter(|_| is_basic(scheme))?;
        let decoded = String::from_utf8(decoded).ok()?;
        let (name, password) = decoded.split_once(':')?;
        self.of_password(name, password)
    }

    /// The user with these keys. The comparison takes the same time wherever they differ.
    pub fn of_password(&self, name: &str, password: &str) -> Option<Arc<User>> {
        let user = self.by_key.get(name)?;
        let sum = |text: &str| Sha256::checksum(text.as_bytes());
        let (known, given) = (sum(user.secret.expose()), sum(password));
        let differ = known.iter().zip(&given).fold(0, |all, (a, b)| all | (a ^ b));
        (differ == 0).then(|| user.clone())
    }

    /// Refuses what the user may not do.
    ///
    /// # Errors
    /// AccessDenied.
    pub fn check(user: &User, right: Right, bucket: &str) -> S3Result<()> {
        if user.may(right, bucket) {
            return Ok(());
        }
        let who = if user.name.is_empty() { "an unsigned request" } else { "this access key" };
        Err(s3_error!(AccessDenied, "{who} has no right to {right:?} on {bucket}"))
    }
}

#[async_trait::async_trait]
impl S3Auth for Users {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let user = self.by_key.get(access_key);
        let unknown = || s3_error!(InvalidAccessKeyId, "no user has this access key");
        user.map(|user| user.secret.clone()).ok_or_else(unknown)
    }
}
