//! WebDAV (RFC 4918, classes 1 and 2) over the same collections as S3.
//!
//! Owns: [`Dav`]. asks says what is understood, own whose address it is, digests what a body must
//! be. From the bottom: path has names as paths, node what lies at one, locks and if_header who may
//! change it; get, put, tree and carry answer requests for bytes and trees, list and
//! propfind and proppatch those for properties; files is what `dav-server` sees, which answers the
//! rest: folders made, locks.

mod asks;
mod carry;
mod conditions;
mod digests;
mod files;
mod get;
mod if_header;
mod list;
mod locks;
mod own;
mod path;
mod propfind;
mod proppatch;
mod put;

pub use list::{Resource, collections, page};
pub use locks::Locks;
pub use path::parse;
pub use propfind::shown;

use crate::http::body::{self, Whole};
use crate::http::digest::{Announced, Digests};
use crate::http::host::Domain;
use crate::objects::edit::Condition;
use crate::objects::node::{self, Node};
use crate::objects::place::Place;
use crate::s3::Server;
use crate::s3::verbs::Verbs;
use crate::users::{Right, User, Users};
use bytes::Bytes;
use conditions::Conditions;
use dav_server::DavHandler;
pub use dav_server::davpath::DavPath;
use dav_server::ls::DavLockSystem as _;
use files::{Asking, Files};
use holdall::Version;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use if_header::{Asks, IfHeader};
use own::Own;
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Result, s3_error};
use std::sync::Arc;

/// Most bytes of a body of XML.
const MOST_XML: usize = 64 << 10;
/// The same for a lock, which is told to all who ask for it.
const MOST_LOCK: usize = 8 << 10;

/// Answers WebDAV. Clones share all.
#[derive(Clone)]
pub struct Dav {
    server: Server,
    users: Users,
    verbs: Verbs,
    locks: Locks,
    domain: Option<Arc<Domain>>,
    handler: DavHandler<Arc<Asking>>,
}

impl std::fmt::Debug for Dav {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Dav").finish_non_exhaustive()
    }
}

/// A request's head: who asks what of which place.
#[derive(Debug, Clone)]
struct Head {
    user: Arc<User>,
    method: Method,
    path: DavPath,
    place: Place,
    own: Own,
    conditions: Conditions,
    /// What the body must be.
    announced: Announced,
    headers: HeaderMap,
    query: Option<String>,
}

impl Head {
    fn text(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Refuses what the user may not do in the place's collection.
    fn check(&self, right: Right) -> S3Result<()> {
        Users::check(&self.user, right, self.place.collection.as_deref().unwrap_or_default())
    }

    /// How deep the request goes.
    ///
    /// # Errors
    /// Status 400 for what is no depth.
    fn depth(&self) -> S3Result<Depth> {
        let Some(value) = self.headers.get("depth") else { return Ok(Depth::Infinity) };
        match value.to_str() {
            Ok("0") => Ok(Depth::Zero),
            Ok("1") => Ok(Depth::One),
            Ok(text) if text.eq_ignore_ascii_case("infinity") => Ok(Depth::Infinity),
            _ => Err(refusal(StatusCode::BAD_REQUEST, "the header Depth is 0, 1 or infinity")),
        }
    }

    /// Whether what is at the destination is replaced.
    ///
    /// # Errors
    /// Status 400 for what is neither.
    fn overwrites(&self) -> S3Result<bool> {
        let Some(value) = self.headers.get("overwrite") else { return Ok(true) };
        match value.as_bytes() {
            b"T" | b"t" => Ok(true),
            b"F" | b"f" => Ok(false),
            _ => Err(refusal(StatusCode::BAD_REQUEST, "the header Overwrite is T or F")),
        }
    }

    /// Refuses a change of something that does not meet the conditions, and tells the version that
    /// the change must be of where there are any.
    ///
    /// # Errors
    /// PreconditionFailed.
    fn check_conditions(&self, node: &Node, pinned: bool) -> S3Result<Option<Version>> {
        if self.conditions.any() {
            let found = conditions::is(node);
            self.conditions.check_change(found.as_ref().map(conditions::Is::found))?;
        }
        let version = node.metadata().map(|found| found.version);
        Ok(version.filter(|_| pinned || self.conditions.any()))
    }
}

/// How deep a request goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Depth {
    /// The resource alone.
    Zero,
    /// It and what lies in it.
    One,
    /// All below it; also where nothing is said.
    Infinity,
}

/// An answer without a body.
fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Asks a client for a name and a password.
fn asks_password() -> Response<Body> {
    let mut response = told(&refusal(StatusCode::UNAUTHORIZED, "a password is required"));
    let asks = "Basic realm=\"Holdall\", charset=\"UTF-8\"";
    set(&mut response, header::WWW_AUTHENTICATE, asks);
    response
}

fn told(e: &S3Error) -> Response<Body> {
    let status = match e.code() {
        S3ErrorCode::NotModified => StatusCode::NOT_MODIFIED,
        _ => e.status_code().unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
    };
    let mut response = empty(status);
    if status != StatusCode::NOT_MODIFIED {
        let text = format!("{}\n", e.message().unwrap_or(e.code().as_str()));
        *response.body_mut() = Body::from(Bytes::from(text));
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    if let Some(headers) = e.headers() {
        response.headers_mut().extend(headers.clone());
    }
    response
}

/// An error with a status that S3 has no code for.
fn refusal(status: StatusCode, text: impl Into<String>) -> S3Error {
    crate::error::custom("WebDAV", status, text)
}

fn set(response: &mut Response<Body>, name: header::HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

/// Adds the methods that `dav-server` does not answer: clients mount for reading what lacks them.
fn allow_all(response: &mut Response<Body>, below_root: bool) {
    let allow = response.headers().get(header::ALLOW).and_then(|allow| allow.to_str().ok());
    let Some(mut allow) = allow.filter(|_| below_root).map(str::to_owned) else { return };
    if allow.contains("PROPFIND") {
        allow.push_str(",PROPPATCH");
    }
    if allow.contains("GET") {
        allow.push_str(",POST");
    }
    set(response, header::ALLOW, &allow);
}

impl Dav {
    /// Serves the collections of a server to its users, who may call it by `domain`, too. Blocks:
    /// locks are read.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(server: Server, users: Users, domain: Option<Arc<Domain>>) -> holdall::Result<Self> {
        let locks = Locks::open(server.catalog.clone())?;
        let handler = DavHandler::builder()
            .strip_prefix(path::PREFIX)
            .filesystem(Box::new(Files))
            .locksystem(Box::new(locks.clone()))
            .build_handler();
        let verbs = Verbs { server: server.clone(), users: users.clone() };
        Ok(Self { server, users, verbs, locks, domain, handler })
    }

    /// Answers a request below [`path::PREFIX`].
    pub async fn answer(&self, req: Request<Body>) -> Response<Body> {
        let user = match self.users.of_basic(req.headers()) {
            Ok(user) => user,
            Err(wrong) => {
                wrong.log("webdav", req.extensions());
                return asks_password();
            }
        };
        let unknown = user.name.is_empty();
        let response = self.answer_as(user, req).await;
        // Who is nobody yet may have the right once he says who he is.
        if unknown && response.status() == StatusCode::UNAUTHORIZED {
            return asks_password();
        }
        response
    }

    /// Answers a request of a user who is known. Where nobody is, a right that is missing is
    /// answered 401.
    pub async fn answer_as(&self, user: Arc<User>, req: Request<Body>) -> Response<Body> {
        let unknown = user.name.is_empty();
        let (parts, body) = req.into_parts();
        let answered = match self.head(&parts, user) {
            Ok(head) => self.dispatch(head, parts, body).await,
            Err(e) => Err(e),
        };
        answered.unwrap_or_else(|e| match e.code() {
            S3ErrorCode::AccessDenied if unknown => {
                told(&refusal(StatusCode::UNAUTHORIZED, "log in: everybody has no right to this"))
            }
            _ => told(&e),
        })
    }

    /// What a request asks, of which nothing is left out.
    fn head(&self, parts: &http::request::Parts, user: Arc<User>) -> S3Result<Head> {
        asks::check(parts)?;
        let own = Own::of(parts, self.domain.clone())?;
        let (method, headers) = (parts.method.clone(), &parts.headers);
        let path = path::parse(parts.uri.path())?;
        let part = matches!(method.as_str(), "PATCH" | "POST")
            || headers.contains_key(header::CONTENT_RANGE);
        let changes = !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PROPFIND");
        let head = Head {
            user,
            method,
            place: Place::of(&path)?,
            own,
            conditions: Conditions::of(headers, changes)?,
            announced: digests::announced(headers, part)?,
            path,
            headers: headers.clone(),
            query: parts.uri.query().map(str::to_owned),
        };
        // Only a copy or move can do without what is there.
        if !matches!(head.method.as_str(), "COPY" | "MOVE") && !head.overwrites()? {
            let text = "the header Overwrite is of COPY and MOVE: say If-None-Match: *";
            return Err(refusal(StatusCode::BAD_REQUEST, text));
        }
        Ok(head)
    }

    async fn dispatch(
        &self,
        head: Head,
        parts: http::request::Parts,
        body: Body,
    ) -> S3Result<Response<Body>> {
        match head.method.as_str() {
            "GET" | "HEAD" => self.get(head).await,
            "PUT" | "PATCH" => self.put(head, body).await,
            "POST" => self.edit(head, body).await,
            "DELETE" => self.delete(head).await,
            "COPY" | "MOVE" => self.copy_or_move(head).await,
            "OPTIONS" => {
                let below_root = head.place.collection.is_some();
                let mut answer = self.handle(head, parts, body, Right::List).await?;
                allow_all(&mut answer, below_root);
                Ok(answer)
            }
            "PROPFIND" => self.propfind(head, body).await,
            "MKCOL" if head.place.key.is_none() => {
                self.handle(head, parts, body, Right::Admin).await
            }
            "PROPPATCH" => self.proppatch(head, body).await,
            "MKCOL" | "LOCK" | "UNLOCK" => self.handle(head, parts, body, Right::Write).await,
            other => {
                let text = format!("{other} is not answered here");
                Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text))
            }
        }
    }

    /// Takes a body of XML in, and compares it with its digests.
    async fn xml(&self, head: &Head, body: Body) -> S3Result<Bytes> {
        let most = if head.method.as_str() == "LOCK" { MOST_LOCK } else { MOST_XML };
        let most = most.min(self.server.limits.xml_bytes);
        let taken =
            body::collect(StreamingBlob::from(body), most as u64, self.server.limits.idle());
        let taken = taken.await.map_err(|e| match e.code() {
            S3ErrorCode::EntityTooLarge => {
                let text = format!("the body of {} has at most {most} bytes", head.method);
                refusal(StatusCode::PAYLOAD_TOO_LARGE, text)
            }
            _ => e,
        })?;
        if taken.len() > most {
            let text = format!("the body of {} has at most {most} bytes", head.method);
            return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, text));
        }
        let mut digests = Digests::for_body(&head.announced)?;
        digests.update(&taken);
        digests.finish(&head.announced)?;
        Ok(taken)
    }

    /// Lets `dav-server` answer.
    async fn handle(
        &self,
        head: Head,
        mut parts: http::request::Parts,
        body: Body,
        right: Right,
    ) -> S3Result<Response<Body>> {
        if head.place.collection.is_some() {
            head.check(right)?;
        } else if right != Right::List {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        }
        let xml = self.xml(&head, body).await?;
        if !xml.is_empty() {
            // RFC 4918, section 8.4: a body that the method does not know.
            if matches!(head.method.as_str(), "MKCOL" | "UNLOCK") {
                let text = format!("{} has no body", head.method);
                return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
            crate::http::xml::check(&xml)?;
        }
        if right != Right::List {
            self.check_met(&head).await?;
            // Read here, and by the rules that the other methods have.
            for name in [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE] {
                parts.headers.remove(name);
            }
        }
        let asking = Arc::new(Asking { catalog: self.server.catalog.clone() });
        let req = Request::from_parts(parts, Full::new(xml));
        let answer = self.handler.handle_guarded(req, head.user.name.clone(), asking).await;
        let (parts, body) = answer.into_parts();
        // Bounded by what was asked.
        let told = body.collect().await.map_err(|e| crate::error::internal(&e.to_string()))?;
        let told = told.to_bytes();
        let told = match std::str::from_utf8(&told) {
            Ok(text) => Bytes::from(propfind::sound(text).into_owned()),
            Err(_) => told,
        };
        let mut answer = Response::from_parts(parts, Body::from(told));
        answer.headers_mut().remove(header::CONTENT_LENGTH);
        Ok(answer)
    }

    /// Refuses a change of something that does not meet the conditions and the header If.
    async fn check_met(&self, head: &Head) -> S3Result<()> {
        self.check_if(head).await?;
        let (catalog, head) = (self.server.catalog.clone(), head.clone());
        body::blocking(move || {
            let node = node::find(&catalog, &head.place)?;
            head.check_conditions(&node, false).map(drop)
        })
        .await
    }

    /// Checks the header If; tells whether it names ETags, and its tokens.
    async fn check_if(&self, head: &Head) -> S3Result<(bool, Vec<String>)> {
        let Some(given) = head.text("if").map(IfHeader::parse).transpose()? else {
            return Ok((false, Vec::new()));
        };
        let (tokens, dav, head) = (given.tokens(), self.clone(), head.clone());
        let (holds, etags) = body::blocking(move || dav.if_holds(&given, &head)).await?;
        if !holds {
            return Err(s3_error!(PreconditionFailed, "no list of the header If holds"));
        }
        Ok((etags, tokens))
    }

    /// Checks the header If and the locks in the way of a change, deep ones of all below where
    /// `deep`. True where the change must be of the state that was looked at.
    async fn may_change(&self, head: &Head, path: &DavPath, deep: bool) -> S3Result<bool> {
        let (by_etag, tokens) = self.check_if(head).await?;
        let user = Some(head.user.name.as_str());
        let checked = self.locks.check(path, user, false, deep, &tokens).await;
        checked.map_err(|_| refusal(StatusCode::LOCKED, "it is locked by somebody else"))?;
        Ok(by_etag)
    }

    /// Refuses a change of what others have locked.
    ///
    /// # Errors
    /// The status 423.
    pub async fn check_locks(&self, path: &DavPath, user: &User) -> S3Result<()> {
        let checked = self.locks.check(path, Some(&user.name), false, true, &[]).await;
        checked.map_err(|_| refusal(StatusCode::LOCKED, "it is locked"))
    }

    /// Whether a header If holds, and whether it names ETags. Blocks.
    fn if_holds(&self, given: &IfHeader, head: &Head) -> S3Result<(bool, bool)> {
        let mut by_etag = false;
        let holds = given.check(|resource, asks| {
            let path = match resource.map(|uri| head.own.path(uri)) {
                None => head.path.clone(),
                Some(Ok(path)) => path,
                // Of what is not of this server nothing is known.
                Some(Err(e)) if e.status_code() == Some(StatusCode::BAD_GATEWAY) => {
                    return Ok(None);
                }
                Some(Err(e)) => return Err(e),
            };
            Ok(Some(match asks {
                Asks::Token(token) => self.locks.covers(&path, token),
                Asks::ETag { etag, weak } => {
                    by_etag = true;
                    let found = node::find(&self.server.catalog, &Place::of(&path)?)?;
                    !weak && found.etag().as_ref() == Some(etag)
                }
            }))
        })?;
        Ok((holds, by_etag))
    }

    /// Edits a range of an object as `/BUCKET/KEY?holdall=VERB` does.
    async fn edit(&self, head: Head, body: Body) -> S3Result<Response<Body>> {
        head.check(Right::Write)?;
        head.object()?;
        let pinned = self.may_change(&head, &head.path, false).await?;
        let (catalog, head_) = (self.server.catalog.clone(), head.clone());
        let (bucket, version) = body::blocking(move || {
            let bucket = node::collection(&catalog, &head_.place)?;
            let node = node::find(&catalog, &head_.place)?;
            Ok((bucket, head_.check_conditions(&node, pinned)?))
        })
        .await?;
        let condition = Condition { version, ..Condition::default() };
        let asked = (head.object()?, head.query.as_deref().unwrap_or_default());
        let sent = (&head.headers, head.announced.clone(), body);
        self.verbs.edit(bucket, asked, condition, &head.user, sent).await
    }
}

/// A body that is taken as it comes.
fn no_body() -> StreamingBlob {
    StreamingBlob::new(Whole(None))
}
