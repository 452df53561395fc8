//! One client: a connection that is kept, one request at a time.

use super::content::{Content, Upload};
use super::sign::Signer;
use anyhow::{Context as _, Result, bail, ensure};
use http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use http_body_util::BodyExt as _;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// What a request was answered.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The ETag without quotes; empty if there is none.
    pub etag: String,
    /// Bytes of the body.
    pub len: u64,
    /// From the request's first byte to the answer's last.
    pub took: Duration,
}

/// A client.
#[derive(Debug)]
pub struct Client {
    address: SocketAddr,
    host: HeaderValue,
    sender: Option<SendRequest<Upload>>,
    /// Signs its requests.
    pub signer: Signer,
}

impl Client {
    /// A client of the server that listens there. It connects with its first request.
    ///
    /// # Errors
    /// None in practice: an address is a header's value.
    pub fn new(address: SocketAddr) -> Result<Self> {
        let host = HeaderValue::from_str(&address.to_string())?;
        Ok(Self { address, host, sender: None, signer: Signer::new(address) })
    }

    async fn sender(&mut self) -> Result<&mut SendRequest<Upload>> {
        let usable = match &mut self.sender {
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !usable {
            let stream = TcpStream::connect(self.address).await?;
            stream.set_nodelay(true)?;
            let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
            // Its errors come back with the request.
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        self.sender.as_mut().context("no connection")
    }

    /// Sends a request and gives the answer's bytes to `take`, with the place of each piece.
    ///
    /// # Errors
    /// Those of the connection and of `take`; a connection that failed is not used again.
    pub async fn send(
        &mut self,
        method: Method,
        line: Uri,
        body: Content,
        take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Answer> {
        let done = tokio::time::timeout(PATIENCE, self.exchange(method, line, body, take)).await;
        let done = done.unwrap_or_else(|_| bail!("no answer within {PATIENCE:?}"));
        if done.is_err() {
            self.sender = None;
        }
        done
    }

    async fn exchange(
        &mut self,
        method: Method,
        line: Uri,
        body: Content,
        mut take: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Answer> {
        let host = self.host.clone();
        let sender = self.sender().await?;
        let mut request = Request::new(Upload::from(body));
        (*request.method_mut(), *request.uri_mut()) = (method, line);
        request.headers_mut().insert(header::HOST, host);
        let begun = Instant::now();
        let response = sender.send_request(request).await?;
        let (head, mut body) = response.into_parts();
        let mut len = 0;
        while let Some(frame) = body.frame().await {
            if let Some(bytes) = frame?.data_ref() {
                take(len, bytes)?;
                len += bytes.len() as u64;
            }
        }
        let took = begun.elapsed();
        let etag = head.headers.get(header::ETAG).and_then(|v| v.to_str().ok()).unwrap_or("");
        Ok(Answer { status: head.status, etag: etag.trim_matches('"').to_owned(), len, took })
    }

    /// Sends a request and takes the answer as text.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn text(
        &mut self,
        method: Method,
        line: Uri,
        body: Content,
    ) -> Result<(Answer, String)> {
        let mut all = Vec::new();
        let take = |_, bytes: &[u8]| {
            all.extend_from_slice(bytes);
            Ok(())
        };
        let answer = self.send(method, line, body, take).await?;
        Ok((answer, String::from_utf8_lossy(&all).into_owned()))
    }

    /// As [`Client::text`], if anything but success is an error.
    ///
    /// # Errors
    /// Those of the connection; an answer that is no success.
    pub async fn done(
        &mut self,
        method: Method,
        line: Uri,
        body: Content,
    ) -> Result<(Answer, String)> {
        let what = format!("{method} {}", line.path());
        let (answer, text) = self.text(method, line, body).await?;
        let begin: String = text.chars().take(300).collect();
        ensure!(answer.status.is_success(), "{what}: {} {begin}", answer.status);
        Ok((answer, text))
    }

    /// Puts an object. Returns how long it took, and the ETag.
    ///
    /// # Errors
    /// As [`Client::done`].
    pub async fn put(&mut self, key: &str, content: Content) -> Result<Answer> {
        let line = self.signer.object(rusty_s3::Method::Put, key, &[])?;
        Ok(self.done(Method::PUT, line, content).await?.0)
    }

    /// Gets an object by a signed line and checks its length and, if `all`, each byte.
    ///
    /// # Errors
    /// Those of the connection; another answer than the object.
    pub async fn get(&mut self, line: Uri, content: &Content, all: bool) -> Result<Duration> {
        let path = line.path().to_owned();
        let check = |at, bytes: &[u8]| {
            ensure!(!all || content.has(at, bytes), "{path}: other bytes near byte {at}");
            Ok(())
        };
        let answer = self.send(Method::GET, line, Content::none(), check).await?;
        let (status, len) = (answer.status, answer.len);
        ensure!(status == StatusCode::OK, "GET {path}: {status}");
        ensure!(len == content.len(), "GET {path}: {len} bytes of {}", content.len());
        Ok(answer.took)
    }
}
