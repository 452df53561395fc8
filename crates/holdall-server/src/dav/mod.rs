//! WebDAV (RFC 4918, classes 1 and 2) over the same collections as S3.
//!
//! Owns: [`Dav`]. asks says what is understood, own whose address it is, digests what a body must
//! be. From the bottom: path has names as paths, locks and if_header who may
//! change it; get, put and carry answer requests for bytes and trees, folder and lock
//! those for folders made and locks, list, propfind and proppatch those for properties.

mod asks;
mod carry;
mod conditions;
mod digests;
mod error;
mod folder;
mod get;
mod if_header;
mod list;
mod lock;
mod lock_table;
mod multistatus;
mod own;
mod path;
mod propfind;
mod proppatch;
mod put;

use crate::http::{answer::set, host::Domain};
use error::{Result, blocking, refusal};
pub use list::{Resource, collections, page};
pub use lock_table::Locks;
pub use path::{Path, parse};

use crate::http::body::{self, Whole};
use crate::http::digest::Announced;
use crate::objects::edit_verbs::{Asked, answer, incoming};
use crate::objects::node::{self, Node};
use crate::objects::{edit::Condition, place::Place, put::Objects};
use crate::refusal::{Refusal, Why};
use crate::users::{Right, User, Users};
use bytes::Bytes;
use conditions::{Conditions, Found};
use holdall::Version;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use if_header::{Asks, IfHeader};
use own::Own;
use s3s::Body;
use s3s::dto::StreamingBlob;
use std::sync::Arc;

/// Most bytes of a body of XML.
const MOST_XML: usize = 64 << 10;
/// The same for a lock, which all who ask for it may read.
const MOST_LOCK: usize = 8 << 10;

/// Answers WebDAV. Clones share all.
#[derive(Clone)]
pub struct Dav {
    objects: Objects,
    users: Users,
    locks: Locks,
    domain: Option<Arc<Domain>>,
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
    path: Path,
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

    /// As [`Head::check`], of a request that the root does not know.
    fn check_below_root(&self, right: Right) -> Result<()> {
        if self.place.collection.is_none() {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        }
        self.check(right)
    }

    /// Refuses what the user may not do in the place's collection.
    fn check(&self, right: Right) -> Result<()> {
        Ok(Users::check(&self.user, right, self.place.collection.as_deref().unwrap_or_default())?)
    }

    /// How deep the request goes.
    ///
    /// # Errors
    /// Status 400 for what is no depth.
    fn depth(&self) -> Result<Depth> {
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
    fn overwrites(&self) -> Result<bool> {
        let Some(value) = self.headers.get("overwrite") else { return Ok(true) };
        match value.as_bytes() {
            b"T" | b"t" => Ok(true),
            b"F" | b"f" => Ok(false),
            _ => Err(refusal(StatusCode::BAD_REQUEST, "the header Overwrite is T or F")),
        }
    }

    /// Refuses a change of something that does not meet the conditions, and returns the version
    /// that the change must be of if there are any.
    ///
    /// # Errors
    /// Status 412.
    fn check_conditions(&self, node: &Node, pinned: bool) -> Result<Option<Version>> {
        if self.conditions.any() {
            self.conditions.check_change(Found::from_node(node).as_ref())?;
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
    /// All below it; also by default.
    Infinity,
}

/// Asks a client for a name and a password.
fn asks_password() -> Response<Body> {
    let mut response = refusal(StatusCode::UNAUTHORIZED, "a password is required").answer();
    let asks = "Basic realm=\"Holdall\", charset=\"UTF-8\"";
    set(&mut response, header::WWW_AUTHENTICATE, asks);
    response
}

impl Dav {
    /// Serves the collections of a server to its users, who may call it by `domain`, too. Blocks:
    /// locks are read.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn new(
        objects: Objects,
        users: Users,
        domain: Option<Arc<Domain>>,
    ) -> holdall::Result<Self> {
        let locks = Locks::open(objects.catalog.clone())?;
        Ok(Self { objects, users, locks, domain })
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

    /// Answers a request of a user who is known. If nobody is, a right that is missing is
    /// answered 401.
    pub async fn answer_as(&self, user: Arc<User>, req: Request<Body>) -> Response<Body> {
        let unknown = user.name.is_empty();
        let (parts, body) = req.into_parts();
        let answered = match self.head(&parts, user) {
            Ok(head) => self.dispatch(head, body).await,
            Err(e) => Err(e),
        };
        answered.unwrap_or_else(|e| {
            let login = "log in: everybody has no right to this";
            let asks = e.denied && unknown;
            if asks { refusal(StatusCode::UNAUTHORIZED, login).answer() } else { e.answer() }
        })
    }

    /// What a request asks, of which nothing is left out.
    fn head(&self, parts: &http::request::Parts, user: Arc<User>) -> Result<Head> {
        asks::check(parts)?;
        let own = Own::new(parts, self.domain.clone())?;
        let (method, headers) = (parts.method.clone(), &parts.headers);
        let path = path::parse(parts.uri.path())?;
        let part = matches!(method.as_str(), "PATCH" | "POST")
            || headers.contains_key(header::CONTENT_RANGE);
        let changes = !matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "PROPFIND");
        let head = Head {
            user,
            method,
            place: Place::from_path(&path)?,
            own,
            conditions: Conditions::from_headers(headers, changes)?,
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

    async fn dispatch(&self, head: Head, body: Body) -> Result<Response<Body>> {
        match head.method.as_str() {
            "GET" | "HEAD" => self.get(head).await,
            "PUT" | "PATCH" => self.put(head, body).await,
            "POST" => self.edit(head, body).await,
            "DELETE" => self.delete(head).await,
            "COPY" | "MOVE" => self.copy_or_move(head).await,
            "OPTIONS" => self.options(head, body).await,
            "PROPFIND" => self.propfind(head, body).await,
            "PROPPATCH" => self.proppatch(head, body).await,
            "MKCOL" => self.mkcol(head, body).await,
            "LOCK" => self.lock(head, body).await,
            "UNLOCK" => self.unlock(head, body).await,
            other => {
                let text = format!("{other} is not answered here");
                Err(refusal(StatusCode::METHOD_NOT_ALLOWED, text))
            }
        }
    }

    /// Takes a body of XML in, and compares it with its digests.
    async fn xml(&self, head: &Head, body: Body) -> Result<Bytes> {
        let most = if head.method.as_str() == "LOCK" { MOST_LOCK } else { MOST_XML };
        let most = most.min(self.objects.limits.xml_bytes);
        let too_long = || {
            let text = format!("the body of {} has at most {most} bytes", head.method);
            refusal(StatusCode::PAYLOAD_TOO_LARGE, text)
        };
        let taken =
            body::collect(StreamingBlob::from(body), most as u64, self.objects.limits.idle());
        let taken = taken.await.map_err(|e| match e.why {
            Why::TooLong => too_long(),
            _ => e.into(),
        })?;
        if taken.len() > most {
            return Err(too_long());
        }
        head.announced.check(&taken)?;
        Ok(taken)
    }

    /// Refuses a body that the method does not know (RFC 4918 section 8.4).
    async fn no_body(&self, head: &Head, body: Body) -> Result<()> {
        if self.xml(head, body).await?.is_empty() {
            return Ok(());
        }
        let text = format!("{} has no body", head.method);
        Err(refusal(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
    }

    /// Refuses a change of something that does not meet the conditions and the header If; returns
    /// what lies there, and the tokens that the header names.
    async fn check_met(&self, head: &Head) -> Result<(Node, Vec<String>)> {
        let (_, tokens) = self.check_if(head).await?;
        let (catalog, head) = (self.objects.catalog.clone(), head.clone());
        blocking(move || {
            let node = node::find(&catalog, &head.place)?;
            head.check_conditions(&node, false)?;
            Ok((node, tokens))
        })
        .await
    }

    /// Checks the header If; returns whether it names ETags, and its tokens.
    async fn check_if(&self, head: &Head) -> Result<(bool, Vec<String>)> {
        let Some(given) = head.text("if").map(IfHeader::parse).transpose()? else {
            return Ok((false, Vec::new()));
        };
        let (tokens, dav, head) = (given.tokens(), self.clone(), head.clone());
        let (holds, etags) = blocking(move || dav.if_holds(&given, &head)).await?;
        if !holds {
            return Err(conditions::precondition_failed("no list of the header If holds"));
        }
        Ok((etags, tokens))
    }

    /// Checks the header If and the locks in the way of a change, deep ones of all below if
    /// `deep`. True if the change must be of the state that was looked at.
    async fn may_change(&self, head: &Head, path: &Path, deep: bool) -> Result<bool> {
        let (by_etag, tokens) = self.check_if(head).await?;
        if self.locks.is_in_the_way(path, &head.user.name, deep, &tokens) {
            return Err(refusal(StatusCode::LOCKED, "it is locked by somebody else"));
        }
        Ok(by_etag)
    }

    /// Refuses a change of what others have locked.
    ///
    /// # Errors
    /// The status 423.
    pub fn check_locks(&self, path: &Path, user: &User) -> Result<(), Refusal> {
        let blocked = self.locks.is_in_the_way(path, &user.name, true, &[]);
        if blocked { Err(Why::Locked.says("it is locked")) } else { Ok(()) }
    }

    /// Whether a header If holds, and whether it names ETags. Blocks.
    fn if_holds(&self, given: &IfHeader, head: &Head) -> Result<(bool, bool)> {
        let mut by_etag = false;
        let holds = given.check(|resource, asks| {
            let path = match resource.map(|uri| head.own.path(uri)) {
                None => head.path.clone(),
                Some(Ok(path)) => path,
                // Of what is not of this server nothing is known.
                Some(Err(e)) if e.status == StatusCode::BAD_GATEWAY => {
                    return Ok(None);
                }
                Some(Err(e)) => return Err(e),
            };
            Ok(Some(match asks {
                Asks::Token(token) => self.locks.covers(&path, token),
                Asks::ETag { etag, weak } => {
                    by_etag = true;
                    let found = node::find(&self.objects.catalog, &Place::from_path(&path)?)?;
                    !weak && found.etag().as_ref() == Some(etag)
                }
            }))
        })?;
        Ok((holds, by_etag))
    }

    /// Edits a range of an object as `/BUCKET/KEY?holdall=VERB` does.
    async fn edit(&self, head: Head, body: Body) -> Result<Response<Body>> {
        head.check(Right::Write)?;
        head.object()?;
        let pinned = self.may_change(&head, &head.path, false).await?;
        let (catalog, head_) = (self.objects.catalog.clone(), head.clone());
        let (bucket, version) = blocking(move || {
            let bucket = node::collection(&catalog, &head_.place)?;
            let node = node::find(&catalog, &head_.place)?;
            Ok((bucket, head_.check_conditions(&node, pinned)?))
        })
        .await?;
        let condition = Condition { version, ..Condition::default() };
        let asked = Asked::parse(head.object()?, head.query.as_deref())?;
        let incoming = incoming(&head.headers, StreamingBlob::from(body), head.announced.clone());
        let done = self.objects.perform(bucket, &asked, &head.user, condition, incoming).await?;
        let (body, headers) = answer(&done);
        let mut response = Response::new(body);
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// A body that is taken as it comes.
fn no_body() -> StreamingBlob {
    StreamingBlob::new(Whole(None))
}
