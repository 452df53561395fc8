//! `holdall serve`: answers S3 over store files until it is stopped.
//!
//! Owns: the command line of the server; all else is the crate `holdall-server`.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use holdall_server::{Config, Grant, Options, Reloader, Server, StartError};
use serde_json::{Map, Value};
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Outcome};
use crate::wait::Waiting;
use crate::{notify, open, output, size};

/// Serve stores over S3
#[derive(clap::Args)]
pub struct Args {
    /// Store files, made if they are missing
    #[arg(required = true)]
    stores: Vec<PathBuf>,
    /// Address and port to listen on; port 0 takes a free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:9000")]
    listen: String,
    /// A file with users, limits and certificates (docs/serve.md)
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Answer everybody, signed or not
    #[arg(long)]
    anonymous: bool,
    /// Cache of each store in MiB
    #[arg(long, value_name = "MIB")]
    cache: Option<usize>,
    /// Bytes that each store's file may take, as 500M, 20G or 1T
    #[arg(long, value_name = "SIZE", value_parser = size::bytes)]
    max: Option<u64>,
    #[command(flatten)]
    waiting: Waiting,
    /// Print the address as one JSON object, and log in JSON
    #[arg(long)]
    json: bool,
}

/// Threads for what waits for a disk, beside those of long bodies.
const BLOCKING: usize = 512;

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Outcome {
    args.stores.iter().try_for_each(|path| open::check(path, false))?;
    log(args.json);
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        // Each long body has one: they must not be all that there are.
        .max_blocking_threads(options.config.limits.streams.saturating_add(BLOCKING))
        .build()
        .map_err(|e| Failure::new(format!("start threads: {e}"), "free some memory"))?;
    runtime.block_on(async {
        let server = holdall_server::start(options).await.map_err(failure_to_start)?;
        let address = server.address().map_err(failure_to_start)?;
        // Before anybody learns that it runs, and may send a signal.
        let stop = stop(args, &server)?;
        if args.json {
            let mut object = Map::new();
            object.insert("listening".into(), address.to_string().into());
            output::json(&Value::Object(object))?;
        } else {
            let scheme = if server.is_tls() { "https" } else { "http" };
            output::say(format_args!("listening on {scheme}://{address}"))?;
        }
        tell_manager("READY=1");
        let stopped = async {
            stop.await;
            tell_manager("STOPPING=1");
        };
        server.run(stopped).await.map_err(failure_to_start)
    })
}

fn tell_manager(state: &str) {
    if let Err(e) = notify::tell(state) {
        tracing::warn!(error = %e, state, "systemd was not notified");
    }
}

/// The configuration as its file and the command line have it.
fn config(file: Option<&Path>, anonymous: bool) -> Result<Config, StartError> {
    let mut config = file.map(Config::load).transpose()?.unwrap_or_default();
    if anonymous {
        config.anonymous = vec![Grant::everything()];
    }
    Ok(config)
}

fn options(args: &Args) -> Outcome<Options> {
    let config = config(args.config.as_deref(), args.anonymous).map_err(failure_to_start)?;
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let keys = match (set("HOLDALL_ACCESS_KEY"), set("HOLDALL_SECRET_KEY")) {
        (Some(access), Some(secret)) => Some((access, secret)),
        (None, None) => None,
        _ => {
            let what = "only one of HOLDALL_ACCESS_KEY and HOLDALL_SECRET_KEY is set";
            return Err(Failure::new(what, "set both, or neither"));
        }
    };
    let cache_bytes = args.cache.map(|mib| mib.saturating_mul(1 << 20));
    let (stores, listen) = (args.stores.clone(), args.listen.clone());
    let (max_bytes, wait) = (args.max, args.waiting.as_wait());
    Ok(Options { stores, listen, config, keys, cache_bytes, max_bytes, wait })
}

/// Logs on standard error; RUST_LOG chooses what. `s3s` takes what clients do wrong for errors of
/// the server, and writes out what they sent: it is silent unless it is named.
fn log(json: bool) {
    let asked = std::env::var("RUST_LOG").unwrap_or_default();
    let asked = if asked.is_empty() { "warn".to_owned() } else { asked };
    let silent = if asked.contains("s3s") { "" } else { ",s3s=off" };
    let filter = EnvFilter::try_new(format!("{asked}{silent}"))
        .unwrap_or_else(|_| EnvFilter::new("warn,s3s=off"));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // Fails only if a logger was set already.
    let _ = if json { format.json().try_init() } else { format.try_init() };
}

/// Ends with the first signal to stop. SIGHUP reads the configuration file again; without a file it
/// stops, too.
fn stop(args: &Args, server: &Server) -> Outcome<impl Future<Output = ()> + use<>> {
    use tokio::signal::unix::{SignalKind, signal};
    let take = |kind| {
        let failed =
            |e| Failure::new(format!("wait for signals: {e}"), "check the system's limits");
        signal(kind).map_err(failed)
    };
    let (mut interrupt, mut terminate) =
        (take(SignalKind::interrupt())?, take(SignalKind::terminate())?);
    let mut hangup = take(SignalKind::hangup())?;
    let (file, anonymous) = (args.config.clone(), args.anonymous);
    let has_file = file.is_some();
    let reloader = server.reloads_from(move || config(file.as_deref(), anonymous));
    Ok(async move {
        loop {
            tokio::select! {
                _ = interrupt.recv() => return,
                _ = terminate.recv() => return,
                _ = hangup.recv() => match has_file {
                    true => reload(reloader.clone()).await,
                    false => return,
                },
            }
        }
    })
}

/// Reads the configuration again. What cannot be read changes nothing.
async fn reload(reloader: Reloader) {
    tell_manager("RELOADING=1");
    match tokio::task::spawn_blocking(move || reloader.reload()).await {
        Ok(Ok(_)) => {}
        Ok(Err(e)) => tracing::error!(error = %e, "the configuration was not taken"),
        Err(e) => tracing::error!(error = %e, "the configuration was not read"),
    }
    tell_manager("READY=1");
}

fn failure_to_start(e: StartError) -> Failure {
    match e {
        StartError::Store { source, .. } => Failure::from(source),
        other => Failure::new(other.to_string(), "see docs/serve.md"),
    }
}
