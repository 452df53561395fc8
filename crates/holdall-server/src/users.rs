//! Who there is, with which rights by the configuration.
//!
//! Owns: [`Users`], [`User`], [`Right`], the line of the log about a wrong password. Each door asks
//! it about each request. Users may be replaced meanwhile.

pub use crate::config::Right;
use crate::config::{Config, Grant};
use crate::error::StartError;
use crate::refusal::{Result, Why};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, header};
use parking_lot::RwLock;
use s3s::auth::SecretKey;
use s3s::crypto::{Checksum as _, Sha256};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

/// Who owns everything: S3's answers name an owner.
pub const OWNER: &str = "holdall";

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

/// Who there is at a time.
#[derive(Debug)]
struct Known {
    by_key: BTreeMap<String, Arc<User>>,
    /// An unsigned request of S3: everybody with grants, or whom ACLs may let in.
    anonymous: Option<Arc<User>>,
}

/// All users. Clones share them.
#[derive(Debug, Clone)]
pub struct Users {
    known: Arc<RwLock<Arc<Known>>>,
    /// The keys of the environment.
    own: Option<(String, String)>,
    public_acls: bool,
}

impl Users {
    /// Takes users from the configuration and, if both are set, the keys of the environment.
    ///
    /// # Errors
    /// [`StartError::NoCredentials`] if nobody could ask for anything,
    /// [`StartError::Config`].
    pub fn new(config: &Config, own: Option<(String, String)>) -> Result<Self, StartError> {
        let public_acls = config.public_acls;
        let known = Known::new(config, own.as_ref(), public_acls)?;
        Ok(Self { known: Arc::new(RwLock::new(Arc::new(known))), own, public_acls })
    }

    /// Takes the users of another configuration, in the place of all but the environment's.
    ///
    /// # Errors
    /// As [`Users::new`]; the users are then what they were.
    pub fn replace(&self, config: &Config) -> Result<(), StartError> {
        let known = Known::new(config, self.own.as_ref(), self.public_acls)?;
        *self.known.write() = Arc::new(known);
        Ok(())
    }

    fn known(&self) -> Arc<Known> {
        self.known.read().clone()
    }

    /// The user that a request is from.
    ///
    /// # Errors
    /// [`Why::Denied`] for a request without a signature if those are not allowed.
    pub fn find(&self, access_key: Option<&str>) -> Result<Arc<User>> {
        let known = self.known();
        let found = match access_key {
            Some(key) => known.by_key.get(key),
            None => known.anonymous.as_ref(),
        };
        found.cloned().ok_or_else(|| Why::Denied.says("a signature is required"))
    }

    /// The secret key of a user.
    pub fn secret(&self, access_key: &str) -> Option<SecretKey> {
        self.known().by_key.get(access_key).map(|user| user.secret.clone())
    }

    /// Everybody, if the configuration grants everybody something: ACLs of S3 do not count
    /// outside of it.
    pub fn everybody(&self) -> Option<Arc<User>> {
        self.known().anonymous.clone().filter(|user| !user.grants.is_empty())
    }

    /// The user whose access key and secret key a request has as name and password; everybody for
    /// a request without them, if that is allowed.
    ///
    /// # Errors
    /// Who was named wrongly; nobody if a password is missing.
    pub fn of_basic(&self, headers: &HeaderMap) -> Result<Arc<User>, Wrong> {
        let Some(given) = headers.get(header::AUTHORIZATION) else {
            return self.everybody().ok_or(Wrong { name: None });
        };
        let pair = || {
            let (scheme, text) = given.to_str().ok()?.split_once(' ')?;
            let decoded = STANDARD.decode(text.trim()).ok().filter(|_| is_basic(scheme))?;
            let decoded = String::from_utf8(decoded).ok()?;
            let (name, password) = decoded.split_once(':')?;
            Some((name.to_owned(), password.to_owned()))
        };
        let (name, password) = pair().ok_or_else(|| Wrong { name: Some(String::new()) })?;
        self.of_password(&name, &password)
    }

    /// The user with these keys. The comparison takes the same time wherever they differ.
    ///
    /// # Errors
    /// Who was named.
    pub fn of_password(&self, name: &str, password: &str) -> Result<Arc<User>, Wrong> {
        let wrong = || Wrong { name: Some(name.to_owned()) };
        let user = self.known().by_key.get(name).cloned().ok_or_else(wrong)?;
        let sum = |text: &str| Sha256::checksum(text.as_bytes());
        let (known, given) = (sum(user.secret.expose()), sum(password));
        let differ = known.iter().zip(&given).fold(0, |all, (a, b)| all | (a ^ b));
        if differ == 0 { Ok(user) } else { Err(wrong()) }
    }

    /// A user who logged in earlier, as he is now; none if he is gone or has another password.
    pub fn still(&self, user: &User) -> Option<Arc<User>> {
        let now = self.known().by_key.get(&user.name).cloned()?;
        (now.secret.expose() == user.secret.expose()).then_some(now)
    }

    /// Refuses what the user may not do.
    ///
    /// # Errors
    /// Denied.
    pub fn check(user: &User, right: Right, bucket: &str) -> Result<()> {
        if user.may(right, bucket) {
            return Ok(());
        }
        let who = if user.name.is_empty() { "an unsigned request" } else { "this access key" };
        Err(Why::Denied.says(format!("{who} has no right to {right:?} on {bucket}")))
    }
}

impl Known {
    fn new(
        config: &Config,
        own: Option<&(String, String)>,
        public_acls: bool,
    ) -> Result<Self, StartError> {
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
            add(name.clone(), secret.clone(), vec![Grant::everything()])?;
        }
        for user in &config.users {
            add(user.access_key.clone(), user.secret()?, user.grants.clone())?;
        }
        let grants = config.anonymous.clone();
        if by_key.is_empty() && grants.is_empty() {
            return Err(StartError::NoCredentials);
        }
        // Without grants an unsigned request may still ask for what an ACL opens.
        let asks = !grants.is_empty() || public_acls;
        let nobody = || User { name: String::new(), secret: SecretKey::from(""), grants };
        Ok(Self { by_key, anonymous: asks.then(nobody).map(Arc::new) })
    }
}

/// A name or password that is wrong, or missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wrong {
    /// Who was named; none if nobody was.
    name: Option<String>,
}

/// Longest name that a line of the log shows.
const SHOWN: usize = 64;

impl Wrong {
    /// Somebody of this name.
    pub fn named(name: &str) -> Self {
        Self { name: Some(name.to_owned()) }
    }

    /// Writes the line that fail2ban reads, which docs/serve.md promises, unless the password was
    /// only missing. The peer stands before all that a client chooses.
    pub fn log(&self, door: &str, extensions: &http::Extensions) {
        let Some(name) = &self.name else { return };
        let name: String = name.chars().take(SHOWN).collect();
        let peer = extensions.get::<Peer>().map_or_else(|| "-".to_owned(), |p| p.0.to_string());
        tracing::warn!(
            target: "holdall_server::login",
            "login failed peer={peer} door={door} user={name:?}"
        );
    }
}

/// The address that a request came from.
#[derive(Debug, Clone, Copy)]
pub struct Peer(pub IpAddr);
