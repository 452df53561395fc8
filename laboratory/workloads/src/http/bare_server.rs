//! The bare handler: what any S3 server on this machine would have to do at least.
//!
//! A put takes the body, its MD5 and a file with `fdatasync`; a get gives a file out. Nothing is
//! signed, named or kept beside.

use anyhow::{Context as _, Result};
use bytes::Bytes;
use clap::Args;
use futures::stream;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use md5::{Digest as _, Md5};
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::net::TcpListener;

/// Bytes of a file given out at a time.
const PIECE: usize = 512 << 10;

type Answer = Response<UnsyncBoxBody<Bytes, io::Error>>;

/// Options of the hidden command.
#[derive(Debug, Clone, Args)]
pub struct BareServer {
    /// Where it listens
    #[arg(long)]
    listen: SocketAddr,
    /// Where its files lie
    dir: PathBuf,
}

/// Serves until it is killed.
///
/// # Errors
/// Those of the system.
pub fn run(args: &BareServer) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind(args.listen).await.context("listening")?;
        let dir: Arc<Path> = args.dir.clone().into();
        loop {
            let (stream, _) = listener.accept().await?;
            stream.set_nodelay(true)?;
            let dir = dir.clone();
            let service = service_fn(move |request| answer(dir.clone(), request));
            let server = hyper::server::conn::http1::Builder::new();
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    })
}

fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(Full::default().map_err(|e| match e {}).boxed_unsync());
    *response.status_mut() = status;
    response
}

async fn answer(dir: Arc<Path>, request: Request<Incoming>) -> io::Result<Answer> {
    // A bucket, or all of them: nothing to do.
    if request.uri().path().trim_matches('/').split('/').count() < 2 {
        return Ok(empty(StatusCode::OK));
    }
    let name: String = request.uri().path().replace('/', "+");
    let path = dir.join(name);
    match *request.method() {
        Method::PUT => put(path, request.into_body()).await,
        Method::GET => get(&path),
        _ => Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
}

async fn put(path: PathBuf, mut body: Incoming) -> io::Result<Answer> {
    let (mut file, mut md5) = (File::create(path)?, Md5::new());
    while let Some(frame) = body.frame().await {
        if let Ok(bytes) = frame.map_err(io::Error::other)?.into_data() {
            md5.update(&bytes);
            // Into the page cache: short enough for the thread of the connections.
            file.write_all(&bytes)?;
        }
    }
    tokio::task::spawn_blocking(move || file.sync_data()).await??;
    let etag: String = md5.finalize().iter().map(|b| format!("{b:02x}")).collect();
    let mut response = empty(StatusCode::OK);
    if let Ok(etag) = HeaderValue::from_str(&format!("\"{etag}\"")) {
        response.headers_mut().insert(header::ETAG, etag);
    }
    Ok(response)
}

fn get(path: &Path) -> io::Result<Answer> {
    let file = match File::open(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(empty(StatusCode::NOT_FOUND)),
        other => other?,
    };
    let len = file.metadata()?.len();
    let pieces = stream::try_unfold((file, len), async |(mut file, left)| {
        let len = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
        if len == 0 {
            return Ok(None);
        }
        let read = tokio::task::spawn_blocking(move || {
            let mut bytes = vec![0; len];
            file.read_exact(&mut bytes).map(|()| (file, bytes))
        });
        let (file, bytes) = read.await??;
        Ok(Some((Frame::data(Bytes::from(bytes)), (file, left - len as u64))))
    });
    let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
    response.headers_mut().insert(header::CONTENT_LENGTH, len.into());
    Ok(response)
}
