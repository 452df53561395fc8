//! The page for browsers at `/-/web/`: browse, upload, look, delete and bring back, share.
//!
//! Owns: [`Web`]. Bytes and trees pass through WebDAV, to which it hands requests in the name of
//! the user who is logged in; what is here are sessions, listings by page, the trash, links,
//! health.

mod session;
mod trash;

use crate::http::answer::{empty, set};
use crate::refusal::{Refusal, Result, Why};
pub use trash::sweep;

use crate::dav::{self, Dav, Path};
use crate::http::{body, spelling::parameter};
use crate::metrics::Metrics;
use crate::objects::{catalog::Served, node, place::Place, put::Objects};
use crate::reload::Reload;
use crate::users::{Right, User, Users};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use percent_encoding::percent_decode_str;
use rusty_s3::{Bucket as Address, Credentials, S3Action as _, UrlStyle};
use s3s::Body;
use s3s::dto::StreamingBlob;
use serde_json::{Value, json};
use session::{Session, Sessions};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// What the page may load and do: only what is its own.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    img-src 'self' blob:; media-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";
/// For how long a wrong password is thought about.
const DOUBT: Duration = Duration::from_millis(500);

/// Answers the page. Clones share all.
#[derive(Debug, Clone)]
pub struct Web {
    objects: Objects,
    sessions: Sessions,
    dav: Dav,
    metrics: Metrics,
    /// Whether connections are TLS.
    secure: bool,
    reload: Reload,
}

fn json(status: StatusCode, value: &Value) -> Response<Body> {
    let mut response = empty(status);
    *response.body_mut() = Body::from(Bytes::from(value.to_string()));
    set(&mut response, header::CONTENT_TYPE, "application/json");
    response
}

fn told(e: &Refusal) -> Response<Body> {
    json(e.why.status(), &json!({ "error": e.text }))
}

/// A file of the page.
fn asset(name: &str) -> Option<(&'static str, &'static str)> {
    Some(match name {
        "" => ("text/html; charset=utf-8", include_str!("../../web/page.html")),
        "page.js" => ("text/javascript; charset=utf-8", include_str!("../../web/page.js")),
        "page.css" => ("text/css; charset=utf-8", include_str!("../../web/page.css")),
        "icon.svg" => ("image/svg+xml", include_str!("../../web/icon.svg")),
        _ => return None,
    })
}

/// The path of WebDAV that a parameter names.
fn path(uri: &Uri) -> Result<(Path, Place)> {
    let none = || Why::Invalid.says("the parameter path is missing");
    let path = dav::parse(&parameter(uri, "path").ok_or_else(none)?)?;
    let place = Place::from_path(&path)?;
    Ok((path, place))
}

fn entry(found: &dav::Resource) -> Value {
    let modified = found.modified.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let name = found.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
    json!({
        "name": String::from_utf8_lossy(name),
        "path": found.address(),
        "folder": found.folder,
        "size": found.size,
        "modified": modified.map(|since| since.as_millis()),
        "kind": found.kind,
    })
}

impl Web {
    /// A page over a server's collections.
    pub fn new(
        objects: Objects,
        users: Users,
        dav: Dav,
        (metrics, secure, reload): (Metrics, bool, Reload),
    ) -> Self {
        Self { objects, sessions: Sessions::new(users), dav, metrics, secure, reload }
    }

    /// Answers a request below `/-/web/`; `name` is what follows.
    pub async fn answer(&self, name: &str, req: Request<Body>) -> Response<Body> {
        let below_dav = name.starts_with("dav/");
        let mut response = match self.route(name, req).await {
            Ok(response) => response,
            Err(e) => told(&e),
        };
        // An object has a stricter policy of its own.
        if !below_dav && !response.headers().contains_key(header::CONTENT_SECURITY_POLICY) {
            set(&mut response, header::CONTENT_SECURITY_POLICY, POLICY);
        }
        set(&mut response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
        set(&mut response, header::REFERRER_POLICY, "no-referrer");
        if !response.headers().contains_key(header::CACHE_CONTROL) {
            set(&mut response, header::CACHE_CONTROL, "no-store");
        }
        response
    }

    async fn route(&self, name: &str, req: Request<Body>) -> Result<Response<Body>> {
        let get = req.method() == Method::GET || req.method() == Method::HEAD;
        if let Some((kind, text)) = asset(name).filter(|_| get) {
            let mut response = Response::new(Body::from(Bytes::from_static(text.as_bytes())));
            set(&mut response, header::CONTENT_TYPE, kind);
            set(&mut response, header::CACHE_CONTROL, "no-cache");
            return Ok(response);
        }
        if name == "login" {
            return self.login(req).await;
        }
        let Some(session) = self.sessions.find(req.headers()) else {
            return Ok(json(StatusCode::UNAUTHORIZED, &json!({ "error": "log in first" })));
        };
        if !get && !session.is_from_page(req.headers()) {
            let told = json!({ "error": "the request is not from the page" });
            return Ok(json(StatusCode::FORBIDDEN, &told));
        }
        if let Some(below) = name.strip_prefix("dav/") {
            return self.dav(below, session.user, req).await;
        }
        let unknown = session.user.name.is_empty();
        let answered = self.own(name, &session, &req, get).await;
        match answered {
            Err(e) if unknown && e.why == Why::Denied => {
                let told = json!({ "error": "log in: everybody has no right to this" });
                Ok(json(StatusCode::UNAUTHORIZED, &told))
            }
            answered => answered,
        }
    }

    async fn own(
        &self,
        name: &str,
        session: &Session,
        req: &Request<Body>,
        get: bool,
    ) -> Result<Response<Body>> {
        let (user, uri) = (&session.user, req.uri());
        let value = match (name, get) {
            ("session", true) => self.session(session).await?,
            ("logout", false) => {
                let cookie = self.sessions.end(req.headers());
                let mut response = json(StatusCode::OK, &json!({}));
                set(&mut response, header::SET_COOKIE, &cookie);
                return Ok(response);
            }
            ("list", true) => self.list(user, uri).await?,
            ("trash", true) => self.trash(user, uri).await?,
            ("trash", false) => self.delete(user, uri).await?,
            ("restore", false) => self.restore(user, uri).await?,
            ("share", false) => self.share(user, uri, req.headers())?,
            ("reload", false) => self.reload(user).await?,
            ("health", true) => self.health(user).await?,
            ("report", true) => return self.report(user, uri).await,
            _ => return Ok(json(StatusCode::NOT_FOUND, &json!({ "error": "there is nothing" }))),
        };
        Ok(json(StatusCode::OK, &value))
    }

    async fn login(&self, req: Request<Body>) -> Result<Response<Body>> {
        // A form of another site cannot send this type.
        let kind = req.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
        if req.method() != Method::POST || kind != Some(b"application/json") {
            return Err(Why::Invalid.says("log in by POST, with JSON"));
        }
        let idle = self.objects.limits.idle();
        let (head, body) = req.into_parts();
        let extensions = head.extensions;
        // A client that has not logged in yet is not waited for as others are.
        let most = Duration::from_secs(self.objects.limits.header_seconds);
        let text = body::collect(StreamingBlob::from(body), 64 << 10, idle);
        let late = |_| Why::Late.says("the name and password did not come");
        let text = tokio::time::timeout(most, text).await.map_err(late)??;
        let bad = |_| Why::Invalid.says("the body is no JSON");
        let given: Value = serde_json::from_slice(&text).map_err(bad)?;
        let field = |name: &str| given[name].as_str().unwrap_or_default().to_owned();
        let begun = self.sessions.begin(&field("name"), &field("password"), self.secure);
        let (session, cookie) = match begun {
            Ok(begun) => begun,
            Err(wrong) => {
                wrong.log("page", &extensions);
                tokio::time::sleep(DOUBT).await;
                let told = json!({ "error": "name or password is wrong" });
                return Ok(json(StatusCode::UNAUTHORIZED, &told));
            }
        };
        let value = json!({ "name": session.user.name, "csrf": session.csrf });
        let mut response = json(StatusCode::OK, &value);
        set(&mut response, header::SET_COOKIE, &cookie);
        Ok(response)
    }

    /// Who it is, and whether the page offers the health of all stores.
    async fn session(&self, session: &Session) -> Result<Value> {
        let (catalog, user) = (self.objects.catalog.clone(), session.user.clone());
        let health = body::blocking(move || {
            Ok(catalog.stores().iter().all(|served| may_see_all(&user, served).is_ok()))
        })
        .await?;
        Ok(json!({ "name": session.user.name, "csrf": session.csrf, "health": health }))
    }

    /// Hands a request to WebDAV.
    async fn dav(
        &self,
        below: &str,
        user: Arc<User>,
        mut req: Request<Body>,
    ) -> Result<Response<Body>> {
        let query = req.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        let bad = |_| Why::BadAddress.says("the path cannot be read");
        *req.uri_mut() = format!("/-/dav/{below}{query}").parse().map_err(bad)?;
        let mut answer = self.dav.answer_as(user, req).await;
        // What an object says to caches does not hold for the page's session.
        for name in [header::CACHE_CONTROL, header::EXPIRES] {
            answer.headers_mut().remove(name);
        }
        Ok(answer)
    }

    /// A page of a folder, or the collections that the user sees.
    async fn list(&self, user: &Arc<User>, uri: &Uri) -> Result<Value> {
        let (path, place) = path(uri)?;
        let after = parameter(uri, "after").map(|text| URL_SAFE_NO_PAD.decode(text)).transpose();
        let after = after.map_err(|_| Why::Invalid.says("after is no token"))?;
        let (catalog, user) = (self.objects.catalog.clone(), user.clone());
        body::blocking(move || {
            let Some(name) = &place.collection else {
                let found = dav::collections(&catalog, &user)?;
                let found: Vec<Value> = found.iter().map(entry).collect();
                return Ok(json!({ "entries": found, "write": false }));
            };
            Users::check(&user, Right::List, name)?;
            let bucket = node::collection(&catalog, &place)?;
            let (found, next) = dav::page(&bucket, path.root(), &place.prefix(), after.as_deref())?;
            let found: Vec<Value> = found.iter().map(entry).collect();
            let write = Users::check(&user, Right::Write, name).is_ok();
            let next = next.map(|next| URL_SAFE_NO_PAD.encode(next));
            Ok(json!({ "entries": found, "next": next, "write": write }))
        })
        .await
    }

    /// Deletes into the trash.
    async fn delete(&self, user: &Arc<User>, uri: &Uri) -> Result<Value> {
        let (path, place) = path(uri)?;
        Users::check(user, Right::Write, place.collection.as_deref().unwrap_or_default())?;
        self.dav.check_locks(&path, user)?;
        let catalog = self.objects.catalog.clone();
        body::blocking(move || {
            let bucket = node::collection(&catalog, &place)?;
            let id = trash::put(&bucket, &place, &node::find(&catalog, &place)?)?;
            Ok(json!({ "id": id, "days": trash::DAYS }))
        })
        .await
    }

    /// What can be brought back, of one store after the other.
    async fn trash(&self, user: &Arc<User>, uri: &Uri) -> Result<Value> {
        let bad = || Why::Invalid.says("after is no token");
        // A store's number and the name to go on after.
        let (store, after) = match parameter(uri, "after") {
            None => (0, None),
            Some(token) => {
                let (store, name) = token.split_once('.').ok_or_else(bad)?;
                let name = URL_SAFE_NO_PAD.decode(name).map_err(|_| bad())?;
                (store.parse().map_err(|_| bad())?, Some(name).filter(|name| !name.is_empty()))
            }
        };
        let (catalog, user) = (self.objects.catalog.clone(), user.clone());
        body::blocking(move || {
            let stores = catalog.stores();
            let served = stores.get(store).ok_or_else(bad)?;
            let may = |collection: &str| Users::check(&user, Right::Write, collection).is_ok();
            let (found, next) = trash::list(served, after.as_deref(), may)?;
            let shown = |one: &trash::Deleted| {
                json!({
                    "id": one.id(),
                    "collection": one.collection,
                    "name": String::from_utf8_lossy(&one.key),
                    "deleted": one.seconds.saturating_mul(1000),
                })
            };
            let next = match next {
                Some(name) => Some(format!("{store}.{}", URL_SAFE_NO_PAD.encode(name))),
                None => (store + 1 < stores.len()).then(|| format!("{}.", store + 1)),
            };
            let found: Vec<Value> = found.iter().map(shown).collect();
            Ok(json!({ "entries": found, "days": trash::DAYS, "next": next }))
        })
        .await
    }

    async fn restore(&self, user: &Arc<User>, uri: &Uri) -> Result<Value> {
        let none = || Why::Invalid.says("the parameter id is missing");
        let id = parameter(uri, "id").ok_or_else(none)?;
        let (catalog, user) = (self.objects.catalog.clone(), user.clone());
        body::blocking(move || {
            let (served, deleted) = trash::Deleted::find(&catalog, &id)?;
            if !deleted.is_for(|collection| user.may(Right::Write, collection)) {
                let text = "this access key has no right to write where it came from";
                return Err(Why::Denied.says(text));
            }
            trash::restore(&catalog, &served, &deleted)?;
            Ok(json!({}))
        })
        .await
    }

    /// An address by which anybody reads an object for a while: one of S3, signed for the user.
    fn share(&self, user: &User, uri: &Uri, headers: &HeaderMap) -> Result<Value> {
        let (_, place) = path(uri)?;
        let name = place.collection.as_deref().unwrap_or_default();
        Users::check(user, Right::Read, name)?;
        self.objects.catalog.bucket(name)?;
        let bad = |text: &str| Why::Invalid.says(text);
        let (access, secret) = user.keys().ok_or_else(|| bad("log in to share"))?;
        let key = place.key.ok_or_else(|| bad("only objects are shared"))?;
        let key = String::from_utf8(key).map_err(|_| bad("the name is not UTF-8"))?;
        let asked = parameter(uri, "seconds").and_then(|text| text.parse().ok());
        let seconds: u64 = asked.unwrap_or(24 * 3600).clamp(1, 7 * 24 * 3600);
        let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
        let scheme = if self.secure { "https" } else { "http" };
        let base = format!("{scheme}://{}", host.unwrap_or("localhost"));
        let base = base.parse().map_err(|_| bad("the host has no address"))?;
        let address = Address::new(base, UrlStyle::Path, name.to_owned(), "us-east-1");
        let address = address.map_err(|e| bad(&e.to_string()))?;
        let credentials = Credentials::new(access, secret);
        let action = address.get_object(Some(&credentials), &key);
        let url = action.sign(Duration::from_secs(seconds));
        // Segments of dots, as clients fold them, would lead to another object.
        let leads: Vec<u8> = percent_decode_str(url.path()).collect();
        if leads != format!("/{name}/{key}").as_bytes() {
            return Err(bad("no address leads to a name with . or .. between its slashes"));
        }
        Ok(json!({ "url": url.as_str(), "seconds": seconds }))
    }

    /// Reads the configuration again, for users who administrate all that is served.
    async fn reload(&self, user: &Arc<User>) -> Result<Value> {
        let (catalog, user, reload) =
            (self.objects.catalog.clone(), user.clone(), self.reload.clone());
        body::blocking(move || {
            catalog.stores().iter().try_for_each(|served| may_see_all(&user, served))?;
            let told = reload.run().map_err(|e| Why::Invalid.says(e.to_string()))?;
            Ok(json!({ "restart": told }))
        })
        .await
    }

    /// Figures of all stores, and how long requests took.
    async fn health(&self, user: &Arc<User>) -> Result<Value> {
        let (catalog, user) = (self.objects.catalog.clone(), user.clone());
        let latencies: Vec<Value> = self
            .metrics
            .latencies()
            .iter()
            .map(|l| json!({ "method": l.method, "count": l.count, "p50": l.p50, "p99": l.p99 }))
            .collect();
        let stores = body::blocking(move || {
            let stores = catalog.stores().iter().map(|served| {
                may_see_all(&user, served)?;
                let stat = served.store.stat()?;
                let frag = served.store.frag(&mut |_, _| ())?;
                let figures = holdall_report::json::stat(&stat, &frag);
                Ok(json!({ "name": name_of(served), "stat": figures, "score": frag.score.value }))
            });
            stores.collect::<Result<Vec<Value>>>()
        })
        .await?;
        Ok(json!({ "stores": stores, "latencies": latencies }))
    }

    /// How a store lies in its file: a page of its own.
    async fn report(&self, user: &Arc<User>, uri: &Uri) -> Result<Response<Body>> {
        let at = parameter(uri, "store").and_then(|text| text.parse().ok()).unwrap_or(0_usize);
        let none = || Why::NoObject.says("there is no such store");
        let served = self.objects.catalog.stores().get(at).cloned().ok_or_else(none)?;
        let user = user.clone();
        let page = body::blocking(move || {
            may_see_all(&user, &served)?;
            let report = served.store.frag(&mut |_, _| ())?;
            Ok(holdall_report::page::document(&report, &name_of(&served)))
        })
        .await?;
        let mut response = Response::new(Body::from(Bytes::from(page)));
        set(&mut response, header::CONTENT_TYPE, "text/html; charset=utf-8");
        let policy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
            frame-ancestors 'self'";
        set(&mut response, header::CONTENT_SECURITY_POLICY, policy);
        Ok(response)
    }
}

fn name_of(served: &Served) -> String {
    served.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Refuses who may not administrate all collections of a store, whose names its reports tell.
fn may_see_all(user: &User, served: &Served) -> Result<()> {
    for name in served.store.read().and_then(|r| r.collections())? {
        Users::check(user, Right::Admin, &name)?;
    }
    Ok(())
}
