//! Users, rights and certificates read again while the server runs.
//!
//! Owns: [`Reload`]. A file that cannot be read changes nothing.

use crate::config::Config;
use crate::error::StartError;
use crate::http::tls::Shared;
use crate::users::Users;
use parking_lot::Mutex;
use std::sync::{Arc, OnceLock};

type Load = Box<dyn Fn() -> Result<Config, StartError> + Send + Sync>;

/// What may be read again. Clones share all.
#[derive(Clone)]
pub struct Reload {
    users: Users,
    tls: Option<Shared>,
    /// The configuration that holds now. Held while another one takes its place.
    config: Arc<Mutex<Config>>,
    load: Arc<OnceLock<Load>>,
}

impl std::fmt::Debug for Reload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reload").finish_non_exhaustive()
    }
}

impl Reload {
    /// For a server that began with a configuration.
    pub fn new(config: Config, users: Users, tls: Option<Shared>) -> Self {
        Self { users, tls, config: Arc::new(Mutex::new(config)), load: Arc::default() }
    }

    /// Says where the configuration is read from. The first call counts.
    pub fn set_source(&self, load: Load) {
        let _ = self.load.set(load);
    }

    /// Reads the configuration and takes its users, rights and certificate. Tells the names of
    /// other fields that differ from those at the start: they need a restart. Blocks.
    ///
    /// # Errors
    /// [`StartError`]: what held before still holds.
    pub fn run(&self) -> Result<Vec<&'static str>, StartError> {
        let none = || StartError::Config("the server was started without a configuration".into());
        let new = self.load.get().ok_or_else(none)?()?;
        let mut held = self.config.lock();
        // All that can fail comes before anything changes.
        let acceptor = match (&self.tls, &new.tls) {
            // A certificate that was made at the start stays: clients were made to trust it.
            (Some(_), Some(tls)) if !tls.self_signed.is_empty() && held.tls == new.tls => None,
            (Some(_), Some(tls)) => Some(crate::http::tls::acceptor(tls)?),
            _ => None,
        };
        self.users.replace(&new)?;
        if let (Some(shared), Some(acceptor)) = (&self.tls, acceptor) {
            shared.set(acceptor);
        }
        let restart = [
            ("public_acls", held.public_acls != new.public_acls),
            ("new_buckets", held.new_buckets != new.new_buckets),
            ("domain", held.domain != new.domain),
            ("limits", held.limits != new.limits),
            ("scrub", held.scrub != new.scrub),
            ("tls", held.tls.is_some() != new.tls.is_some()),
        ];
        let restart = restart.into_iter().filter_map(|(name, differs)| differs.then_some(name));
        let restart: Vec<_> = restart.collect();
        (held.users, held.anonymous) = (new.users, new.anonymous);
        if new.tls.is_some() && held.tls.is_some() {
            held.tls = new.tls;
        }
        drop(held);
        tracing::info!("the configuration was read again");
        if !restart.is_empty() {
            tracing::warn!(fields = restart.join(", "), "changed fields need a restart");
        }
        Ok(restart)
    }
}
