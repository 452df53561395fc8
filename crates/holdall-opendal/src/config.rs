//! How a service is made: of a store that is open, or of a path.

use crate::error;
use crate::service::{HoldallService, SCHEME};
use holdall::{DEFAULT_COLLECTION, Store};
use opendal_core::raw::normalize_root;
use opendal_core::{Builder, Configurator, Error, ErrorKind, OperatorUri, Result};
use serde::{Deserialize, Serialize};

/// Where a service finds its objects, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct HoldallConfig {
    /// The store's file, made if it is missing.
    pub path: Option<String>,
    /// The collection; the default one if there is none.
    pub collection: Option<String>,
    /// What all names begin with.
    pub root: Option<String>,
}

impl Configurator for HoldallConfig {
    type Builder = Holdall;

    fn from_uri(uri: &OperatorUri) -> Result<Self> {
        Self::from_iter(uri.options().clone())
    }

    fn into_builder(self) -> Holdall {
        Holdall { config: self, store: None }
    }
}

/// Makes a service.
#[derive(Debug, Clone, Default)]
pub struct Holdall {
    config: HoldallConfig,
    store: Option<Store>,
}

impl Holdall {
    /// Of a store that is open.
    pub fn new(store: Store) -> Self {
        Self { store: Some(store), ..Self::default() }
    }

    /// Of a store's file, made if it is missing. It is open for as long as the service is.
    pub fn open(path: impl Into<String>) -> Self {
        HoldallConfig { path: Some(path.into()), ..HoldallConfig::default() }.into_builder()
    }

    /// The collection, made with its first object.
    #[must_use]
    pub fn collection(mut self, name: &str) -> Self {
        self.config.collection = Some(name.into());
        self
    }

    /// What all names begin with: a folder.
    #[must_use]
    pub fn root(mut self, root: &str) -> Self {
        self.config.root = Some(root.into());
        self
    }
}

impl Builder for Holdall {
    type Config = HoldallConfig;

    fn build(self) -> Result<impl opendal_core::raw::Service> {
        let HoldallConfig { path, collection, root } = self.config;
        let store = match (self.store, path) {
            (Some(store), _) => store,
            (None, Some(path)) => {
                Store::open_or_create(&path).map_err(|e| error::convert(&path, e))?
            }
            (None, None) => {
                let text = "name the store's file as path";
                return Err(
                    Error::new(ErrorKind::ConfigInvalid, text).with_context("service", SCHEME)
                );
            }
        };
        let collection = collection.unwrap_or_else(|| DEFAULT_COLLECTION.into());
        let root = normalize_root(root.as_deref().unwrap_or("/"));
        Ok(HoldallService::new(store, &collection, root))
    }
}
