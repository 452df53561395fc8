//! WebDAV (RFC 4918, classes 1 and 2) over the same collections as S3.
//!
//! Owns: [`Dav`]. From the bottom: path has names as paths, node what lies at one, locks and
//! if_header who may change it; get, put, tree and carry answer requests for bytes and trees, list and
//! propfind those for properties; files is what `dav-server` sees, which answers the rest:
//! properties set, folders made, locks.

mod carry;
mod conditions;
mod files;
mod get;
mod if_header;
mod list;
mod locks;
mod node;
mod path;
mod propfind;
mod put;
mod tree;

pub use list::{Resource, collections, page};
pub use locks::Locks;
pub use node::{Node, collection, find, look};
pub use path::{Place, parse};
pub use propfind::shown;
pub use tree::{Tree, carry as carry_tree};

use crate::body::{self, Whole};
use crate::edit::Condition;
use crate::s3::Server;
use crate::users::{Right, User, Users};
use crate::verbs::Verbs;
use conditions::Conditions;
use dav_server::DavHandler;
pub use dav_server::davpath::DavPath;
use dav_server::ls::DavLockSystem as _;
use files::{Asking, Files};
use holdall::Version;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use if_header::{Asks, IfHeader};
use s3s::dto::StreamingBlob;
use s3s::{Body, S3Error, S3ErrorCode, S3Result, StdError, s3_error};
use std::sync::Arc;

/// Answers WebDAV. Clones share all.
#[derive(Clone)]
pub struct Dav {
    server: Server,
    users: Users,
    verbs: Verbs,
    locks: Locks,
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
    conditions: Conditions,
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
            let found = node::found(node);
            self.conditions.check_change(found.as_ref().map(node::Is::found))?;
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
        *response.body_mut() = Body::from(bytes::Bytes::from(text));
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

impl Dav {
    /// Serves the collections of a server to its users. Blocks: locks are read.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(server: Server, users: Users) -> holdall::Result<Self> {
        let locks = Locks::open(server.catalog.clone())?;
        let handler = DavHandler::builder()
            .strip_prefix(path::PREFIX)
            .filesystem(Box::new(Files))
            .locksystem(Box::new(locks.clone()))
            .build_handler();
        let verbs = Verbs { server: server.clone(), users: users.clone() };
        Ok(Self { server, users, verbs, locks, handler })
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
        let answered = match head(&parts, user) {
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
            "OPTIONS" => self.handle(head, parts, body, Right::List).await,
            "PROPFIND" => self.propfind(head, body).await,
            "MKCOL" if head.place.key.is_none() => {
                self.handle(head, parts, body, Right::Admin).await
            }
            "PROPPATCH" | "MKCOL" | "LOCK" | "UNLOCK" => {
                self.handle(head, parts, body, Right::Write).await
            }
            other => {
                let text = format!("{other} is not answered here");
                Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text))
            }
        }
    }

    /// Lets `dav-server` answer.
    async fn handle(
        &self,
        head: Head,
        parts: http::request::Parts,
        body: Body,
        right: Right,
    ) -> S3Result<Response<Body>> {
        if head.place.collection.is_some() {
            head.check(right)?;
        } else if right != Right::List {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        }
        let most = self.server.limits.xml_bytes as u64;
        let blob = StreamingBlob::from(body);
        let xml = body::collect(blob, most, self.server.limits.idle()).await?;
        if !xml.is_empty() {
            // RFC 4918, section 8.4: a body that the method does not know.
            if matches!(head.method.as_str(), "MKCOL" | "UNLOCK") {
                let text = format!("{} has no body", head.method);
                return Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
            }
            crate::xml::check(&xml)?;
        }
        let asking = Arc::new(Asking { catalog: self.server.catalog.clone() });
        let req = Request::from_parts(parts, Full::new(xml));
        let answer = self.handler.handle_guarded(req, head.user.name.clone(), asking).await;
        Ok(answer.map(|body| {
            let body = body.map_err(|e| -> StdError { Box::new(e) });
            Body::http_body_unsync(body)
        }))
    }

    /// Checks the header If and the locks in the way of a change, deep ones of all below where
    /// `deep`. True where the change must be of the state that was looked at.
    async fn may_change(&self, head: &Head, path: &DavPath, deep: bool) -> S3Result<bool> {
        let given = head.text("if").map(IfHeader::parse).transpose()?;
        let tokens = given.as_ref().map(IfHeader::tokens).unwrap_or_default();
        let mut by_etag = false;
        if let Some(given) = given {
            let (dav, own) = (self.clone(), head.path.clone());
            let (holds, etags) = body::blocking(move || dav.if_holds(&given, &own)).await?;
            if !holds {
                return Err(s3_error!(PreconditionFailed, "no list of the header If holds"));
            }
            by_etag = etags;
        }
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
    fn if_holds(&self, given: &IfHeader, own: &DavPath) -> S3Result<(bool, bool)> {
        let mut by_etag = false;
        let holds = given.check(|resource, asks| {
            let path = match resource {
                None => own.clone(),
                // One that is not of this server holds nothing.
                Some(uri) => match destination(uri) {
                    Ok(path) => path,
                    Err(_) => return Ok(false),
                },
            };
            match asks {
                Asks::Token(token) => Ok(self.locks.covers(&path, token)),
                Asks::ETag(etag) => {
                    by_etag = true;
                    let found = node::find(&self.server.catalog, &Place::of(&path)?)?;
                    Ok(found.etag().as_ref() == Some(etag))
                }
            }
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
        self.verbs.edit(bucket, asked, condition, &head.user, (&head.headers, body)).await
    }
}

/// The path of a header that names a resource, as Destination does.
///
/// # Errors
/// InvalidURI.
fn destination(text: &str) -> S3Result<DavPath> {
    let bad = |_| s3_error!(InvalidURI, "{text:?} is no address");
    let uri: http::Uri = text.parse().map_err(bad)?;
    path::parse(uri.path())
}

fn head(parts: &http::request::Parts, user: Arc<User>) -> S3Result<Head> {
    let path = path::parse(parts.uri.path())?;
    Ok(Head {
        user,
        method: parts.method.clone(),
        place: Place::of(&path)?,
        conditions: Conditions::of(&parts.headers)?,
        path,
        headers: parts.headers.clone(),
        query: parts.uri.query().map(str::to_owned),
    })
}

/// A body that is taken as it comes.
fn no_body() -> StreamingBlob {
    StreamingBlob::new(Whole(None))
}
