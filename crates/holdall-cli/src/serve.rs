//! `holdall serve`: answers S3 over store files until it is told to stop.
//!
//! Owns: the command line of the server; all else is the crate `holdall-server`.

use std::io::IsTerminal;
use std::path::PathBuf;

use holdall_server::{Config, Grant, Options, StartError};
use serde_json::{Map, Value};
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Outcome};
use crate::{open, output, size};

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
    /// Print the address as one JSON object, and log in JSON
    #[arg(long)]
    json: bool,
}

/// Serves until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Outcome {
    args.stores.iter().try_for_each(|path| open::check(path, false))?;
    log(args.json);
    let options = options(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::told(format!("start threads: {e}"), "free some memory"))?;
    runtime.block_on(async {
        let server = holdall_server::start(options).await.map_err(told)?;
        let address = server.address().map_err(told)?;
        if args.json {
            let mut object = Map::new();
            object.insert("listening".into(), address.to_string().into());
            output::json(&Value::Object(object))?;
        } else {
            let scheme = if server.is_tls() { "https" } else { "http" };
            output::say(format_args!("listening on {scheme}://{address}"))?;
        }
        server.run(stop()?).await.map_err(told)
    })
}

fn options(args: &Args) -> Outcome<Options> {
    let mut config = match &args.config {
        Some(path) => Config::load(path).map_err(told)?,
        None => Config::default(),
    };
    if args.anonymous {
        config.anonymous = vec![Grant::everything()];
    }
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let keys = match (set("HOLDALL_ACCESS_KEY"), set("HOLDALL_SECRET_KEY")) {
        (Some(access), Some(secret)) => Some((access, secret)),
        (None, None) => None,
        _ => {
            let what = "only one of HOLDALL_ACCESS_KEY and HOLDALL_SECRET_KEY is set";
            return Err(Failure::told(what, "set both, or neither"));
        }
    };
    let cache_bytes = args.cache.map(|mib| mib.saturating_mul(1 << 20));
    let (stores, listen) = (args.stores.clone(), args.listen.clone());
    Ok(Options { stores, listen, config, keys, cache_bytes, max_bytes: args.max })
}

/// Logs on standard error; RUST_LOG chooses what. `s3s` would write the whole answer to each
/// request that fails beside our own line about it.
fn log(json: bool) {
    let filter = EnvFilter::try_from_default_env()
        .unwrap_or_else(|_| EnvFilter::new("warn,s3s::service=off"));
    let format = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // Fails only where a logger was set already.
    let _ = if json { format.json().try_init() } else { format.try_init() };
}

/// Ends with the first signal to stop.
fn stop() -> Outcome<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let take = |kind| {
        let failed =
            |e| Failure::told(format!("wait for signals: {e}"), "check the system's limits");
        signal(kind).map_err(failed)
    };
    let (mut interrupt, mut terminate) =
        (take(SignalKind::interrupt())?, take(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

fn told(e: StartError) -> Failure {
    match e {
        StartError::Store { source, .. } => Failure::from(source),
        other => Failure::told(other.to_string(), "see docs/serve.md"),
    }
}
