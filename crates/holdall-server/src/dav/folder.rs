//! The requests MKCOL, which makes a folder or a collection, and OPTIONS.

use crate::dav::error::{Result, blocking, refusal};
use crate::dav::{Dav, Head};
use crate::http::answer::{empty, set};
use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::node::{self, Node, mark};
use crate::objects::place::{self, Place, prefix_of};
use crate::users::Right;
use http::{HeaderName, Response, StatusCode, header};
use s3s::Body;

/// The methods that each kind of thing has.
fn methods(node: &Node) -> &'static str {
    match node {
        Node::Missing => "OPTIONS,MKCOL,PUT,LOCK",
        Node::Root => "OPTIONS,PROPFIND,COPY,LOCK,UNLOCK",
        Node::Collection | Node::Folder(_) => {
            "OPTIONS,PROPFIND,COPY,MOVE,DELETE,LOCK,UNLOCK,PROPPATCH"
        }
        Node::File(_) => {
            "HEAD,GET,PATCH,PUT,OPTIONS,PROPFIND,COPY,MOVE,DELETE,LOCK,UNLOCK,PROPPATCH,POST"
        }
    }
}

/// The collection of something that is to be made, whose folder must be there.
pub fn room(catalog: &Catalog, at: &Place) -> Result<Bucket> {
    let none = |text| refusal(StatusCode::CONFLICT, text);
    let bucket = catalog.collection(at.collection.as_deref().unwrap_or_default())?;
    let bucket = bucket.ok_or_else(|| none("no such collection"))?;
    let there = node::has_parent(&mut bucket.read()?, at)?;
    if there { Ok(bucket) } else { Err(none("its folder is not there")) }
}

/// Makes a collection, or a folder in one. Blocks for a commit.
fn make(catalog: &Catalog, at: &Place) -> Result<()> {
    if node::find(catalog, at)?.is_there() {
        return Err(refusal(StatusCode::METHOD_NOT_ALLOWED, "something of its name is there"));
    }
    let name = at.collection.as_deref().unwrap_or_default();
    let Some(key) = &at.key else { return Ok(catalog.create(name, None).map(drop)?) };
    let bucket = room(catalog, at)?;
    let prefix = place::text(prefix_of(key))?.into_bytes();
    bucket.served.write(|tx| mark(tx, &bucket, &prefix))?;
    Ok(())
}

impl Dav {
    pub(super) async fn mkcol(&self, head: Head, body: Body) -> Result<Response<Body>> {
        let right = if head.place.key.is_none() { Right::Admin } else { Right::Write };
        head.check_below_root(right)?;
        self.no_body(&head, body).await?;
        let (_, tokens) = self.check_met(&head).await?;
        if self.locks.is_in_the_way(&head.path, &head.user.name, false, &tokens) {
            return Err(refusal(StatusCode::LOCKED, "it is locked by somebody else"));
        }
        let catalog = self.objects.catalog.clone();
        blocking(move || make(&catalog, &head.place)).await?;
        Ok(empty(StatusCode::CREATED))
    }

    pub(super) async fn options(&self, head: Head, body: Body) -> Result<Response<Body>> {
        if head.place.collection.is_some() {
            head.check(Right::List)?;
        }
        self.no_body(&head, body).await?;
        let catalog = self.objects.catalog.clone();
        let node = blocking(move || Ok(node::find(&catalog, &head.place)?)).await?;
        let mut response = empty(StatusCode::OK);
        set(&mut response, DAV, "1,2,3,sabredav-partialupdate");
        // Windows looks for it.
        set(&mut response, AUTHOR, "DAV");
        set(&mut response, header::ALLOW, methods(&node));
        Ok(response)
    }
}

/// What of WebDAV is offered.
const DAV: HeaderName = HeaderName::from_static("dav");
const AUTHOR: HeaderName = HeaderName::from_static("ms-author-via");
