//! A server in this process, and requests to it.

use holdall_server::{Config, Grant, Options, Reloader};
use parking_lot::Mutex;
use rusty_s3::{Bucket, Credentials, Method, S3Action, UrlStyle};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// How long signed addresses hold.
pub const HOLDS: Duration = Duration::from_secs(60);
/// The keys of the user with all rights.
pub const KEYS: (&str, &str) = ("root", "root-secret");

/// A running server. It stops with this.
pub struct Running {
    pub address: String,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
    /// The configuration that it reads when it reloads; `None` cannot be read.
    pub next: Arc<Mutex<Option<Config>>>,
    pub reloader: Reloader,
    /// Where its stores lie.
    pub dir: tempfile::TempDir,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// The text of the first element of this name.
    pub fn element(&self, name: &str) -> String {
        let text = self.text();
        let from = text.split_once(&format!("<{name}>")).unwrap_or(("", "")).1;
        from.split_once("</").unwrap_or(("", "")).0.replace("&quot;", "\"")
    }

    /// Refuses to go on unless the answer has this status.
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }
}

impl Running {
    /// Serves `a.holdall` to everybody.
    pub fn open() -> Self {
        let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
        Self::with(config, &["a.holdall"])
    }

    pub fn with(config: Config, stores: &[&str]) -> Self {
        Self::within(tempfile::tempdir().unwrap(), config, stores)
    }

    pub fn within(dir: tempfile::TempDir, config: Config, stores: &[&str]) -> Self {
        let stores = stores.iter().map(|name| dir.path().join(name)).collect();
        Self::start(dir, config, stores, None)
    }

    /// Serves a store whose file may take at most `max_bytes`.
    pub fn bounded(max_bytes: u64) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let config = Config { anonymous: vec![Grant::everything()], ..Config::default() };
        let stores = vec![dir.path().join("a.holdall")];
        Self::start(dir, config, stores, Some(max_bytes))
    }

    fn start(
        dir: tempfile::TempDir,
        config: Config,
        stores: Vec<PathBuf>,
        max_bytes: Option<u64>,
    ) -> Self {
        let keys = Some((KEYS.0.to_owned(), KEYS.1.to_owned()));
        let listen = "127.0.0.1:0".to_owned();
        let options = Options {
            stores,
            listen,
            config,
            keys,
            cache_bytes: None,
            max_bytes,
            wait: holdall::Wait::Not,
        };
        let (stop, stopped) = oneshot::channel();
        let (told, address) = std::sync::mpsc::channel();
        let next = Arc::new(Mutex::new(Some(options.config.clone())));
        let read = next.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let server = holdall_server::start(options).await.unwrap();
                let bad = || holdall_server::StartError::Config("it cannot be read".into());
                let reloader = server.reloads_from(move || read.lock().clone().ok_or_else(bad));
                told.send((server.address().unwrap().to_string(), reloader)).unwrap();
                let stop = async {
                    let _ = stopped.await;
                };
                server.run(stop).await.unwrap();
            });
        });
        let (address, reloader) = address.recv().unwrap();
        Self { address, stop: Some(stop), thread: Some(thread), next, reloader, dir }
    }

    pub fn store(&self) -> PathBuf {
        self.dir.path().join("a.holdall")
    }

    /// Stops and leaves the stores.
    pub fn stop(mut self) -> tempfile::TempDir {
        self.end();
        std::mem::replace(&mut self.dir, tempfile::tempdir().unwrap())
    }

    fn end(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }

    /// An unsigned request.
    pub fn call(&self, method: &str, path: &str, body: &[u8], headers: &[(&str, &str)]) -> Answer {
        call(method, &format!("http://{}{path}", self.address), body, headers)
    }

    pub fn put(&self, path: &str, body: &[u8]) -> Answer {
        self.call("PUT", path, body, &[])
    }

    pub fn get(&self, path: &str) -> Answer {
        self.call("GET", path, b"", &[])
    }

    pub fn head(&self, path: &str) -> Answer {
        self.call("HEAD", path, b"", &[])
    }

    pub fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, b"", &[])
    }

    pub fn post(&self, path: &str, body: &[u8]) -> Answer {
        self.call("POST", path, body, &[])
    }

    /// The address of an object, signed.
    pub fn signed_get(&self, keys: (&str, &str), bucket: &str, key: &str) -> String {
        let bucket = self.bucket(bucket);
        let credentials = Credentials::new(keys.0, keys.1);
        bucket.get_object(Some(&credentials), key).sign(HOLDS).to_string()
    }

    /// An address to put an object to, signed.
    pub fn signed_put(&self, keys: (&str, &str), bucket: &str, key: &str) -> String {
        let bucket = self.bucket(bucket);
        let credentials = Credentials::new(keys.0, keys.1);
        bucket.put_object(Some(&credentials), key).sign(HOLDS).to_string()
    }

    /// A request that is signed by its address, headers included; unsigned if the key is empty.
    pub fn signed(
        &self,
        keys: (&str, &str),
        method: &str,
        path: &str,
        body: &[u8],
        headers: &[(&str, &str)],
    ) -> Answer {
        if keys.0.is_empty() {
            return self.call(method, path, body, headers);
        }
        let url = self.sign(keys, method, path, headers);
        call(method, &url, body, headers)
    }

    /// The address of a request, signed with its headers.
    pub fn sign(
        &self,
        keys: (&str, &str),
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> String {
        let methods = [Method::Get, Method::Head, Method::Put, Method::Post, Method::Delete];
        let method = methods.into_iter().find(|m| m.to_str() == method).unwrap();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let mut pairs: Vec<_> = pairs.map(|p| p.split_once('=').unwrap_or((p, ""))).collect();
        pairs.sort_unstable();
        let mut headers = headers.to_vec();
        headers.sort_unstable();
        let url = format!("http://{}{path}", self.address).parse().unwrap();
        let (now, life) = (jiff::Timestamp::now(), HOLDS.as_secs());
        let (pairs, headers) = (pairs.into_iter(), headers.into_iter());
        rusty_s3::signing::sign(
            &now,
            method,
            url,
            keys.0,
            keys.1,
            None,
            "us-east-1",
            life,
            pairs,
            headers,
        )
        .to_string()
    }

    pub fn bucket(&self, bucket: &str) -> Bucket {
        let endpoint = format!("http://{}", self.address).parse().unwrap();
        Bucket::new(endpoint, UrlStyle::Path, bucket.to_owned(), "us-east-1").unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.end();
    }
}

/// A request to any address.
pub fn call(method: &str, url: &str, body: &[u8], headers: &[(&str, &str)]) -> Answer {
    let config = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(60)))
        .allow_non_standard_methods(true);
    let agent: ureq::Agent = config.build().into();
    let mut request = http::Request::builder().method(method).uri(url);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let chunked = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("transfer-encoding"));
    let mut response = if chunked {
        let mut body = body;
        agent.run(request.body(ureq::SendBody::from_reader(&mut body)).unwrap()).unwrap()
    } else if body.is_empty() && matches!(method, "GET" | "HEAD" | "DELETE") {
        agent.run(request.body(()).unwrap()).unwrap()
    } else {
        agent.run(request.body(body).unwrap()).unwrap()
    };
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec().unwrap();
    Answer { status, headers, body }
}

/// Bytes that are easy to tell apart.
pub fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len).map(|at| (at / 7 + at % 251 + seed) as u8).collect()
}

/// What the engine sees, once the server has let go of the store.
pub fn engine(path: &Path) -> holdall::Store {
    holdall::Store::open(path).unwrap()
}
