//! Connections: accepting, limits, TLS, what lies beside S3, stopping.
//!
//! Owns: [`Front`], which each request passes first.

use crate::config::Limits;
use crate::dav::Dav;
use crate::http::idle::{self, Busy};
use crate::http::pace::{Pace, Paced};
use crate::http::slots::{Client, Slots};
use crate::http::{host::Domain, lingering, spelling::parameter, target::Targets, tls::Shared};
use crate::metrics::Metrics;
use crate::objects::put::Objects;
use crate::s3;
use crate::s3::admit::{Admitted, admit};
use crate::s3::form::{self, Fields};
use crate::s3::{amend, cross};
use crate::users::{Peer, Wrong};
use crate::web::Web;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, Version, header};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use s3s::service::S3Service;
use s3s::{Body, HttpError, S3Error, s3_error};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

/// Most fields of a request's head.
const MOST_HEADERS: usize = 128;
/// Most bytes of a path that a line of the log shows.
const LONGEST_PATH: usize = 256;
/// Requests at a time in one HTTP/2 connection.
const MOST_STREAMS: u32 = 64;

/// What every request passes: S3 behind it, health and metrics beside it.
#[derive(Debug, Clone)]
pub struct Front {
    /// S3.
    pub s3: S3Service,
    /// WebDAV.
    pub dav: Dav,
    /// The page for browsers.
    pub web: Web,
    /// What is served.
    pub objects: Objects,
    /// The host name whose subdomains are buckets.
    pub domain: Option<Arc<Domain>>,
    /// What is counted.
    pub metrics: Metrics,
    /// Numbers for requests.
    pub ids: Arc<AtomicU64>,
}

fn plain(status: StatusCode, text: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::from(text.into()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// What Windows asks of a server's root before it looks at a folder of WebDAV.
fn dav_below() -> Response<Body> {
    let mut response = plain(StatusCode::OK, "");
    for (name, value) in [("dav", "1, 2"), ("ms-author-via", "DAV"), ("allow", "OPTIONS, GET")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Whether a request is signed in the way before SigV4, which is not offered.
fn is_signed_v2(req: &Request<Incoming>) -> bool {
    let by_header = req.headers().get(header::AUTHORIZATION);
    let old = |v: &HeaderValue| v.as_bytes().starts_with(b"AWS ");
    by_header.is_some_and(old) || parameter(req.uri(), "AWSAccessKeyId").is_some()
}

/// Whether a request names one host, as HTTP/1.1 has it, in text. Later versions have it elsewhere.
fn has_host(req: &Request<Incoming>) -> bool {
    let mut hosts = req.headers().get_all(header::HOST).iter();
    let first = hosts.next();
    let sound = first.is_none_or(|host| host.to_str().is_ok_and(|host| !host.is_empty()));
    sound && hosts.next().is_none() && (first.is_some() || req.version() != Version::HTTP_11)
}

/// Who a request to S3 says that it is from, as far as that stands in it.
struct Claimed {
    credential: Option<String>,
    fields: Option<Fields>,
}

impl Claimed {
    fn from_request(req: &Request<Incoming>) -> Self {
        let by_header = || {
            let text = req.headers().get(header::AUTHORIZATION)?.to_str().ok()?;
            let rest = text.split_once("Credential=")?.1;
            Some(rest.split(',').next().unwrap_or(rest).trim().to_owned())
        };
        let by_address = parameter(req.uri(), "X-Amz-Credential");
        Self { credential: by_address.or_else(by_header), fields: None }
    }

    /// The access key; empty if none can be read.
    fn name(&self) -> String {
        let form = || self.fields.as_ref()?.read().ok()?.get("x-amz-credential").map(str::to_owned);
        let credential = self.credential.clone().or_else(form).unwrap_or_default();
        // Date, region, service and an ending stand behind it; the key itself may hold slashes.
        credential.rsplitn(5, '/').nth(4).unwrap_or_default().to_owned()
    }
}

/// Whether a request's body is XML, which `s3s` takes into memory: it answers one that is too
/// long as an error of its own.
fn is_message(req: &Request<Incoming>) -> bool {
    let kind = req.headers().get(header::CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let edit = parameter(req.uri(), "holdall").is_some();
    req.method() == Method::POST && !kind.starts_with(b"multipart/form-data") && !edit
}

fn length(req: &Request<Incoming>) -> Option<u64> {
    req.headers().get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

fn refuse(e: S3Error) -> Result<Response<Body>, HttpError> {
    let mut answer = e.to_http_response().map_err(|e| HttpError::new(Box::new(e)))?;
    amend::sound(&mut answer);
    Ok(answer)
}

impl Front {
    /// Why a request is refused before `s3s` looks at it.
    fn refused(&self, req: &Request<Incoming>) -> Option<S3Error> {
        if is_signed_v2(req) {
            let told = "sign with SigV4; boto3: Config(signature_version='s3v4')";
            return Some(s3_error!(InvalidRequest, "{told}"));
        }
        let most = self.objects.limits.xml_bytes as u64;
        if is_message(req) && length(req).is_some_and(|len| len > most) {
            return Some(s3_error!(MaxMessageLengthExceeded, "it has at most {most} bytes"));
        }
        amend::refused_region(req.headers())
    }

    async fn answer(
        self,
        mut req: Request<Incoming>,
        (peer, client): (Peer, Client),
    ) -> Result<Response<Body>, HttpError> {
        req.extensions_mut().insert(peer);
        let pace = Pace::new(self.objects.limits.idle(), client);
        let (begun, method) = (Instant::now(), req.method().clone());
        let path = req.uri().path().to_owned();
        let id = format!("{:016x}", self.ids.fetch_add(1, Ordering::Relaxed));
        let attributes = method == Method::GET && amend::asks_attributes(req.uri());
        let cross = cross::Cross::from_request(&req, self.domain.as_deref());
        let bucket = self.domain.as_ref().and_then(|d| d.bucket_of(req.headers(), req.uri()));
        // A bucket's own host has nothing but keys.
        let own = path.strip_prefix("/-/").filter(|_| bucket.is_none());
        let answered = match own {
            _ if !has_host(&req) => Ok(plain(StatusCode::BAD_REQUEST, "name one host\n")),
            Some(own) if own == "dav" || own.starts_with("dav/") => {
                Ok(self.ask_door(None, req, pace).await)
            }
            Some(own) if own.starts_with("web/") => {
                Ok(self.ask_door(Some(&own["web/".len()..]), req, pace).await)
            }
            Some(own) => Ok(self.own(own, &method).await),
            None if method == Method::OPTIONS && path == "/" && cross.is_none() => Ok(dav_below()),
            None if method == Method::OPTIONS => {
                cross::preflight(cross.as_ref(), &self.objects.catalog).await.or_else(refuse)
            }
            None => {
                let mut answered = self.s3(req, bucket, (peer, pace)).await;
                if let (Some(cross), Ok(answer)) = (cross, &mut answered) {
                    cross.add(&self.objects.catalog, answer).await;
                }
                answered
            }
        };
        let status = answered.as_ref().map_or(0, |r| r.status().as_u16());
        let time = begun.elapsed();
        self.metrics.note(&method, status, time);
        let shown = path.get(..path.floor_char_boundary(LONGEST_PATH)).unwrap_or_default();
        tracing::info!(%method, path = shown, status, ?time, id, "request");
        let mut response = answered?;
        if status >= 400 && method != Method::HEAD {
            amend::with_id(&mut response, &id);
        } else if attributes {
            amend::unquoted(&mut response);
        }
        let headers = response.headers_mut();
        headers.insert(header::SERVER, HeaderValue::from_static("Holdall"));
        if let Ok(id) = HeaderValue::from_str(&id) {
            headers.insert("x-amz-request-id", id);
        }
        Ok(response)
    }

    /// Asks S3 what was understood, and mends the answer.
    async fn ask(&self, req: Request<Body>) -> Result<Response<Body>, HttpError> {
        let is = Admitted::from_extensions(req.extensions())
            .map_or("", |admitted| admitted.operation.name);
        let mut answer = self.s3.call(req).await?;
        match is {
            "HeadObject" => amend::with_status(&mut answer),
            "HeadBucket" => amend::with_region(&mut answer),
            "PostObject" => {
                s3::name_file(&mut answer);
                amend::unmet_policy(&mut answer);
            }
            _ => {}
        }
        if is != "GetObject" || answer.status().as_u16() >= 400 {
            amend::sound(&mut answer);
        }
        Ok(answer)
    }

    /// Asks S3. What is left of the body of a request that failed is taken in.
    async fn s3(
        &self,
        req: Request<Incoming>,
        bucket: Option<String>,
        (peer, pace): (Peer, Pace),
    ) -> Result<Response<Body>, HttpError> {
        let refused = self.refused(&req);
        let mut claimed = Claimed::from_request(&req);
        // A bucket's own host is another origin than the page's.
        let confined = bucket.is_none();
        let (req, rest) = lingering::split(req, pace);
        let admitted = match refused {
            Some(e) => Err(e),
            None => {
                let req = form::watch(req);
                claimed.fields = req.extensions().get().cloned();
                admit(req, bucket)
            }
        };
        let mut answered = match admitted {
            Err(e) => refuse(e),
            Ok(req) => self.ask(req).await,
        };
        if let (Ok(answer), true) = (&mut answered, confined) {
            // An object's script would run beside the page for browsers, with its session.
            let headers = answer.headers_mut();
            let policy = HeaderValue::from_static("sandbox");
            headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
            let nosniff = HeaderValue::from_static("nosniff");
            headers.entry(header::X_CONTENT_TYPE_OPTIONS).or_insert(nosniff);
        }
        if answered.as_ref().is_ok_and(|r| r.status().as_u16() >= 400) {
            rest.drain().await;
        }
        if answered.as_ref().is_ok_and(amend::is_wrong_key) {
            let mut extensions = http::Extensions::new();
            extensions.insert(peer);
            Wrong::named(&claimed.name()).log("s3", &extensions);
        }
        answered
    }

    /// Asks WebDAV, or the page for browsers if it is named.
    async fn ask_door(
        &self,
        page: Option<&str>,
        req: Request<Incoming>,
        pace: Pace,
    ) -> Response<Body> {
        let (req, rest) = lingering::split(req, pace);
        let answer = match page {
            None => self.dav.answer(req).await,
            Some(name) => self.web.answer(name, req).await,
        };
        if answer.status().as_u16() >= 400 {
            rest.drain().await;
        }
        answer
    }

    /// What the server itself offers.
    async fn own(&self, path: &str, method: &Method) -> Response<Body> {
        if method != Method::GET && method != Method::HEAD {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
        }
        let (catalog, metrics) = (self.objects.catalog.clone(), self.metrics.clone());
        match path {
            "health" => {
                let healthy = crate::http::body::blocking(move || {
                    let stores = catalog.stores();
                    Ok(stores
                        .iter()
                        .all(|s| s.store.read().is_ok() && s.store.begin_write().is_ok()))
                });
                match healthy.await {
                    Ok(true) => plain(StatusCode::OK, "ok\n"),
                    _ => plain(StatusCode::SERVICE_UNAVAILABLE, "a store takes no commits\n"),
                }
            }
            "metrics" => {
                let text = crate::http::body::blocking(move || Ok(metrics.text(&catalog))).await;
                text.map_or_else(
                    |_| plain(StatusCode::INTERNAL_SERVER_ERROR, "no figures\n"),
                    |text| plain(StatusCode::OK, text),
                )
            }
            _ => plain(
                StatusCode::NOT_FOUND,
                "here are /-/web/, /-/dav/, /-/health and /-/metrics\n",
            ),
        }
    }
}

/// What a connection's requests pass.
#[derive(Debug, Clone)]
struct Connection {
    front: Front,
    peer: Peer,
    client: Client,
    busy: Busy,
}

impl hyper::service::Service<Request<Incoming>> for Connection {
    type Response = Response<Body>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn call(&self, req: Request<Incoming>) -> Self::Future {
        let from = (self.peer, self.client.clone());
        let (one, answer) = (self.busy.begin(), self.front.clone().answer(req, from));
        Box::pin(async move { answer.await.map(|response| idle::keep(response, one)) })
    }
}

/// How connections speak: HTTP/1.1, or within TLS HTTP/2 if the client wants it.
#[derive(Debug, Clone)]
struct Builders {
    one: http1::Builder,
    two: http2::Builder<TokioExecutor>,
}

impl Builders {
    fn new(limits: &Limits) -> Self {
        let head = Duration::from_secs(limits.header_seconds);
        let bytes = limits.header_bytes.max(8 << 10);
        let (mut one, mut two) = (http1::Builder::new(), http2::Builder::new(TokioExecutor::new()));
        one.timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_headers(MOST_HEADERS)
            .max_buf_size(bytes);
        two.timer(TokioTimer::new())
            .max_header_list_size(u32::try_from(bytes).unwrap_or(u32::MAX))
            .max_concurrent_streams(MOST_STREAMS)
            .keep_alive_interval(Some(head));
        Self { one, two }
    }
}

/// Accepts connections until `stop`, then lets running requests end.
pub async fn run(
    listener: TcpListener,
    tls: Option<Shared>,
    front: Front,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let room = Slots::new(limits.connections);
    let (builders, graceful) = (Builders::new(&limits), GracefulShutdown::new());
    let mut stop = std::pin::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, peer) = match accepted {
            Ok((stream, peer)) => (stream, Peer(peer.ip().to_canonical())),
            Err(e) => {
                // Out of descriptors, as a rule: they come back.
                tracing::warn!(error = %e, "no connection could be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        // Only for a client that is there does another one have to go.
        let slot = tokio::select! {
            () = &mut stop => break,
            slot = room.take() => slot,
        };
        let client = slot.client();
        let _ = stream.set_nodelay(true);
        let stream = Paced::new(stream, limits.idle(), client.clone());
        let (builders, tls) = (builders.clone(), tls.as_ref().map(Shared::get));
        let connection = Connection { front: front.clone(), peer, client, busy: Busy::new() };
        let watcher = graceful.watcher();
        let head = Duration::from_secs(limits.header_seconds);
        tokio::spawn(async move {
            let (metrics, busy) = (connection.front.metrics.clone(), connection.busy.clone());
            let client = connection.client.clone();
            metrics.connections.inc();
            let answers = async {
                match tls {
                    None => first(&builders, stream, connection, watcher).await,
                    Some(tls) => match tokio::time::timeout(head, tls.accept(stream)).await {
                        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                            second(&builders, stream, connection, watcher).await;
                        }
                        Ok(Ok(stream)) => first(&builders, stream, connection, watcher).await,
                        _ => tracing::debug!("a TLS handshake failed"),
                    },
                }
            };
            tokio::select! {
                () = answers => {}
                () = busy.quiet(head, &client) => {
                    tracing::debug!("a connection that is idle, or hardly comes on, is closed");
                }
            }
            metrics.connections.dec();
            drop(slot);
        });
    }
    let most = Duration::from_secs(limits.stop_seconds);
    if tokio::time::timeout(most, graceful.shutdown()).await.is_err() {
        tracing::warn!(?most, "requests were still running; they are cut off");
    }
}

fn ended(result: hyper::Result<()>) {
    if let Err(e) = result {
        tracing::debug!(error = %e, "a connection ended early");
    }
}

/// Answers HTTP/1.1.
async fn first(
    builders: &Builders,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Connection,
    watcher: Watcher,
) {
    let connection = builders.one.serve_connection(TokioIo::new(Targets::new(stream)), service);
    ended(watcher.watch(connection).await);
}

/// Answers HTTP/2.
async fn second(
    builders: &Builders,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: Connection,
    watcher: Watcher,
) {
    let connection = builders.two.serve_connection(TokioIo::new(stream), service);
    ended(watcher.watch(connection).await);
}
