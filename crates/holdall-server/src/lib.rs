//! Serves Holdall stores over S3 and WebDAV.
//!
//! [`start`] opens the stores and begins to answer; `holdall serve` is this and a command line.
//! Buckets are collections, keys are names. docs/serve.md is the reference for users.
//!
//! From the bottom: error says why the server does not start, refusal why a request is not done;
//! config and users say who may; `http` has what every request needs, `objects` what every door
//! needs of the stores. Upon them stand the doors: `s3`, `dav`, and the page of `web`, which hands
//! requests to `dav`. front lets connections in. `cargo xtask tidy` checks the order.

mod config;
mod dav;
mod error;
mod front;
mod http;
mod metrics;
mod objects;
mod refusal;
mod reload;
mod s3;
mod sweep;
mod users;
mod web;

pub use config::{Config, Grant, Limits, TlsConfig, UserConfig};
pub use error::StartError;
pub use users::Right;

use holdall::{DefragOptions, Defragmenter, Scrubber, Store, Wait, WriteOptions};
use holdall_control::Control;
use http::host::Domain;
use http::tls;
use objects::catalog::{Catalog, Served};
use objects::put::Objects;
use s3::{access, door, edit_verbs, form};
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use std::future::Future;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::net::TcpListener;
use users::Users;

/// What to serve, to whom, where.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Stores; those that are missing are created.
    pub stores: Vec<PathBuf>,
    /// Address and port.
    pub listen: String,
    /// The configuration.
    pub config: Config,
    /// Access key and secret key of a user with all rights.
    pub keys: Option<(String, String)>,
    /// Bytes of cache of each store; the engine's default if it is not said.
    pub cache_bytes: Option<usize>,
    /// Bytes that each store's file may take; the disk's if it is not said.
    pub max_bytes: Option<u64>,
    /// How long the start waits for others that have a store open.
    pub wait: Wait,
}

/// A server that listens. It answers while [`Server::run`] does.
pub struct Server {
    listener: TcpListener,
    front: front::Front,
    tls: Option<tls::Shared>,
    limits: Limits,
    reload: reload::Reload,
    keepers: Vec<Defragmenter>,
    controls: Vec<Control>,
    scrubbers: Vec<Scrubber>,
}

fn open(path: &PathBuf, options: &Options) -> Result<Served, StartError> {
    let failed = |source| StartError::Store { path: path.clone(), source };
    let mut builder = Store::builder().max_bytes(options.max_bytes).wait(options.wait);
    if let Some(bytes) = options.cache_bytes {
        builder = builder.cache_bytes(bytes);
    }
    let store = builder.open_or_create(path).map_err(failed)?;
    let (attribute_bytes, path) = (store.attribute_bytes(), Arc::new(path.clone()));
    let wait = Wait::For(options.config.limits.idle());
    let waits = WriteOptions { wait, ..WriteOptions::default() };
    Ok(Served { path, store, attribute_bytes, waits })
}

/// Opens all stores: those that are there before any is made, so that one that cannot be opened
/// leaves no new file behind.
fn open_all(options: &Options) -> Result<Vec<Served>, StartError> {
    let mut opened: Vec<Option<Served>> = vec![None; options.stores.len()];
    for there in [true, false] {
        for (path, place) in options.stores.iter().zip(&mut opened) {
            if place.is_none() && path.exists() == there {
                *place = Some(open(path, options)?);
            }
        }
    }
    // A store that came between the two looks.
    let all = options.stores.iter().zip(opened);
    all.map(|(path, found)| found.map_or_else(|| open(path, options), Ok)).collect()
}

/// Checks the configuration, begins to listen, opens the stores: nothing is made before all else
/// is sure.
///
/// # Errors
/// [`StartError`].
pub async fn start(options: Options) -> Result<Server, StartError> {
    let (config, limits) = (&options.config, options.config.limits.clone());
    let users = Users::new(config, options.keys.clone())?;
    let tls = config.tls.as_ref().map(tls::acceptor).transpose()?.map(tls::Shared::new);
    let domain = domain(config)?.map(Arc::new);
    let place = |path: &PathBuf| options.stores.iter().position(|store| store == path);
    let for_new = match &config.new_buckets {
        None => 0,
        Some(path) => place(path).ok_or_else(|| {
            StartError::Config(format!("new_buckets: {} is not served", path.display()))
        })?,
    };
    if options.stores.is_empty() {
        return Err(StartError::Config("name at least one store".into()));
    }
    let listener = TcpListener::bind(&options.listen)
        .await
        .map_err(StartError::io(format!("listen on {}", options.listen)))?;
    let served = open_all(&options)?;
    let (mut keepers, mut controls, mut scrubbers) = (Vec::new(), Vec::new(), Vec::new());
    for served in &served {
        let keeper = served.store.keep_in_order(&DefragOptions::default());
        match Control::listen(&served.store, &*served.path) {
            Ok(control) => controls.push(control),
            // Others can read the store all the same, and wait for the rest.
            Err(e) => tracing::warn!(error = %e, "other processes cannot ask this one"),
        }
        let failed = |source| StartError::Store { path: (*served.path).clone(), source };
        keepers.push(keeper.map_err(failed)?);
        if let Some(options) = config.scrub.options() {
            scrubbers.push(served.store.scrub(&options).map_err(failed)?);
        }
    }
    let catalog = Arc::new(Catalog::new(served, for_new)?);
    let objects = Objects::new(catalog, limits.clone());
    let server = s3::Server { objects: objects.clone(), public_acls: config.public_acls };
    let s3 = service(server.clone(), users.clone(), config)?;
    let (metrics, ids) = (metrics::Metrics::default(), Arc::default());
    let dav = dav::Dav::new(objects.clone(), users.clone(), domain.clone()).map_err(|source| {
        let path = options.stores[0].clone();
        StartError::Store { path, source }
    })?;
    let reload = reload::Reload::new(config.clone(), users.clone(), tls.clone());
    let more = (metrics.clone(), tls.is_some(), reload.clone());
    let web = web::Web::new(objects.clone(), users, dav.clone(), more);
    let front = front::Front { s3, dav, web, objects, domain, metrics, ids };
    Ok(Server { listener, front, tls, limits, reload, keepers, controls, scrubbers })
}

fn domain(config: &Config) -> Result<Option<Domain>, StartError> {
    let Some(domain) = &config.domain else { return Ok(None) };
    let bad = || StartError::Config(format!("domain {domain:?} is no host name"));
    Domain::new(domain).map(Some).ok_or_else(bad)
}

/// What all requests to S3 pass: signatures are checked outside, operations are done inside.
fn service(
    server: s3::Server,
    users: Users,
    config: &Config,
) -> Result<s3s::service::S3Service, StartError> {
    let inner = builder(&server, &users, config)?.build();
    let mut outer = builder(&server, &users, config)?;
    let (limits, public_acls) = (config.limits.clone(), config.public_acls);
    let verbs = edit_verbs::Verbs { objects: server.objects, users };
    outer.set_route(door::Door { verbs, inner, limits, public_acls });
    Ok(outer.build())
}

fn builder(
    server: &s3::Server,
    users: &Users,
    config: &Config,
) -> Result<S3ServiceBuilder, StartError> {
    let mut builder = S3ServiceBuilder::new(server.clone());
    let mut s3 = S3Config::default();
    s3.xml_max_body_size = config.limits.xml_bytes;
    // A form's body is taken into memory whole.
    s3.post_object_max_file_size = 64 << 20;
    s3.form_max_fields_size = form::MOST;
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(s3))));
    if let Some(domain) = domain(config)? {
        builder.set_host(domain);
    }
    builder.set_validation(s3::BucketNames);
    builder.set_auth(users.clone());
    let (catalog, public_acls) = (server.objects.catalog.clone(), config.public_acls);
    builder.set_access(access::Access { users: users.clone(), catalog, public_acls });
    Ok(builder)
}

/// Reads the configuration again while the server runs. Clones do the same.
#[derive(Debug, Clone)]
pub struct Reloader(reload::Reload);

impl Reloader {
    /// Takes users, rights and certificate as the configuration has them now, and returns the names
    /// of other fields that changed: those need a restart. Blocks.
    ///
    /// # Errors
    /// [`StartError`]: what held before still holds.
    pub fn reload(&self) -> Result<Vec<&'static str>, StartError> {
        self.0.run()
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl Server {
    /// Where it listens.
    ///
    /// # Errors
    /// [`StartError::Io`].
    pub fn address(&self) -> Result<SocketAddr, StartError> {
        self.listener.local_addr().map_err(StartError::io("look at the address"))
    }

    /// Whether it speaks TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Says where the configuration is read from again, at [`Reloader::reload`] or at the page.
    pub fn reloads_from(
        &self,
        load: impl Fn() -> Result<Config, StartError> + Send + Sync + 'static,
    ) -> Reloader {
        self.reload.set_source(Box::new(load));
        Reloader(self.reload.clone())
    }

    /// Answers until `stop`; then lets running requests end and closes the stores.
    ///
    /// # Errors
    /// [`StartError::Store`] if a store cannot be closed cleanly; its next opening recovers.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), StartError> {
        let Self { listener, front, tls, limits, keepers, controls, scrubbers, .. } = self;
        let catalog = front.objects.catalog.clone();
        let sweeper = tokio::spawn(sweep::run(catalog.clone(), limits.clone()));
        front::run(listener, tls, front, limits, stop).await;
        sweeper.abort();
        let closed = tokio::task::spawn_blocking(move || {
            drop((controls, keepers, scrubbers));
            for served in catalog.stores() {
                let path = (*served.path).clone();
                let failed = |source| StartError::Store { path, source };
                served.store.clone().close().map_err(failed)?;
            }
            Ok(())
        });
        closed.await.unwrap_or_else(|e| Err(StartError::Config(e.to_string())))
    }
}
