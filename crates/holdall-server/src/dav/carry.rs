//! The requests that change trees: DELETE, COPY, MOVE.

use crate::body;
use crate::catalog::Bucket;
use crate::dav::node::{self, Node};
use crate::dav::path::Place;
use crate::dav::put::text;
use crate::dav::tree::{self, Change, Tree, Verb};
use crate::dav::{Dav, Head, destination, empty, refusal, set};
use crate::error::from_store;
use crate::users::{Right, Users};
use dav_server::davpath::DavPath;
use dav_server::ls::DavLockSystem as _;
use http::{HeaderName, Response, StatusCode};
use s3s::{Body, S3Result};

/// Tells in how many transactions a tree was changed, where those were several.
const TRANSACTIONS: HeaderName = HeaderName::from_static("holdall-transactions");

/// What lies at the two ends of a copy or move.
struct Ends {
    from: (Bucket, Node),
    to: (Option<Bucket>, Node),
    has_parent: bool,
}

fn done(status: StatusCode, transactions: usize) -> Response<Body> {
    let mut response = empty(status);
    if transactions > 1 {
        set(&mut response, TRANSACTIONS, &transactions.to_string());
    }
    response
}

/// Whether one place lies in the other or is the same.
fn inside(outer: &Place, inner: &Place) -> bool {
    outer.collection == inner.collection
        && (outer.key == inner.key || inner.key.starts_with(&outer.prefix()))
}

impl Dav {
    pub(super) async fn delete(&self, head: Head) -> S3Result<Response<Body>> {
        if head.place.collection.is_none() {
            return Err(refusal(StatusCode::FORBIDDEN, "the root cannot be deleted"));
        }
        head.check(Right::Write)?;
        if head.place.key.is_empty() {
            head.check(Right::Admin)?;
        }
        self.may_change(&head, &head.path, true).await?;
        let (catalog, place) = (self.server.catalog.clone(), head.place.clone());
        let (bucket, node) = body::blocking(move || {
            let bucket = node::collection(&catalog, &place)?;
            Ok((bucket, node::find(&catalog, &place)?))
        })
        .await?;
        if !node.is_there() {
            return Err(refusal(StatusCode::NOT_FOUND, "there is nothing"));
        }
        let kept = Some((bucket.clone(), head.place.key.clone()));
        let removed = Some(Tree::new(bucket.clone(), head.place.clone(), &node));
        let count = tree::run(Change { removed, carried: None, kept }).await?;
        if head.place.key.is_empty() {
            self.drop_collection(bucket).await?;
        }
        self.forget_locks(&head.path).await;
        Ok(done(StatusCode::NO_CONTENT, count))
    }

    /// Drops a collection that was emptied.
    async fn drop_collection(&self, bucket: Bucket) -> S3Result<()> {
        let (catalog, name) = (self.server.catalog.clone(), bucket.name.clone());
        self.server.abort_all(bucket).await?;
        body::blocking(move || catalog.delete(&name)).await
    }

    async fn forget_locks(&self, path: &DavPath) {
        if self.locks.delete(path).await.is_err() {
            tracing::warn!("locks of what is gone could not be forgotten");
        }
    }

    pub(super) async fn copy_or_move(&self, head: Head) -> S3Result<Response<Body>> {
        let verb = match (head.method.as_str(), head.depth()) {
            ("MOVE", None) => Verb::Move,
            ("COPY", None) => Verb::Copy,
            ("COPY", Some("0")) => Verb::CopyFolder,
            _ => return Err(refusal(StatusCode::BAD_REQUEST, "this depth cannot be")),
        };
        let named = head.text("destination");
        let none = || refusal(StatusCode::BAD_REQUEST, "the header Destination is missing");
        let to = destination(named.ok_or_else(none)?)?;
        let place = Place::of(&to)?;
        self.check_rights(&head, &place, verb)?;
        if verb == Verb::Move {
            self.may_change(&head, &head.path, true).await?;
        }
        self.may_change(&head, &to, true).await?;
        let ends = self.ends(&head, &place).await?;
        let there = ends.to.1.is_there();
        let count = self.carry(&head, verb, &place, ends).await?;
        if verb == Verb::Move {
            self.forget_locks(&head.path).await;
        }
        Ok(done(if there { StatusCode::NO_CONTENT } else { StatusCode::CREATED }, count))
    }

    fn check_rights(&self, head: &Head, to: &Place, verb: Verb) -> S3Result<()> {
        let (Some(_), Some(name)) = (&head.place.collection, &to.collection) else {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        };
        head.check(Right::Read)?;
        Users::check(&head.user, Right::Write, name)?;
        if to.key.is_empty() {
            Users::check(&head.user, Right::Admin, name)?;
        }
        if verb == Verb::Move {
            head.check(Right::Write)?;
            if head.place.key.is_empty() {
                head.check(Right::Admin)?;
            }
        }
        let same = inside(&head.place, to) && inside(to, &head.place);
        if same || inside(to, &head.place) || (verb == Verb::Move && inside(&head.place, to)) {
            return Err(refusal(StatusCode::FORBIDDEN, "one end lies in the other"));
        }
        if !to.key.is_empty() {
            text(&to.key)?;
        }
        Ok(())
    }

    async fn ends(&self, head: &Head, to: &Place) -> S3Result<Ends> {
        let (catalog, from, to) = (self.server.catalog.clone(), head.place.clone(), to.clone());
        let overwrites = head.text("overwrite") != Some("F");
        let ends = body::blocking(move || {
            let source = node::collection(&catalog, &from)?;
            let from = (source, node::find(&catalog, &from)?);
            let bucket = node::collection(&catalog, &to).ok();
            let has_parent = match &bucket {
                _ if to.key.is_empty() => true,
                None => false,
                Some(bucket) => {
                    let mut reader = bucket.read().map_err(from_store)?;
                    node::has_parent(&mut reader, &to).map_err(from_store)?
                }
            };
            Ok(Ends { from, to: (bucket, node::find(&catalog, &to)?), has_parent })
        })
        .await?;
        if !ends.from.1.is_there() {
            return Err(refusal(StatusCode::NOT_FOUND, "there is nothing"));
        }
        if !ends.has_parent {
            return Err(refusal(StatusCode::CONFLICT, "the destination's folder is not there"));
        }
        // What takes a collection's place is a folder or a collection.
        let to_root = ends.to.0.is_none() || matches!(ends.to.1, Node::Collection);
        if to_root && !ends.from.1.is_folder() {
            return Err(refusal(StatusCode::FORBIDDEN, "an object is no collection"));
        }
        if ends.to.1.is_there() && !overwrites {
            return Err(refusal(StatusCode::PRECONDITION_FAILED, "the destination is there"));
        }
        Ok(ends)
    }

    async fn carry(&self, head: &Head, verb: Verb, to: &Place, ends: Ends) -> S3Result<usize> {
        let Ends { from: (source, node), to: (bucket, found), .. } = ends;
        let bucket = match bucket {
            Some(bucket) => bucket,
            None => {
                let (catalog, place) = (self.server.catalog.clone(), to.clone());
                body::blocking(move || {
                    catalog.create(place.collection.as_deref().unwrap_or_default(), None)?;
                    node::collection(&catalog, &place)
                })
                .await?
            }
        };
        let from = Tree::new(source.clone(), head.place.clone(), &node);
        let target = Tree { bucket: bucket.clone(), place: to.clone(), folder: from.folder };
        let verb = if from.folder || verb == Verb::Move { verb } else { Verb::Copy };
        // A folder copied alone leaves what is in a folder there.
        let replaced = found.is_there() && !(verb == Verb::CopyFolder && found.is_folder());
        let removed = replaced.then(|| Tree::new(bucket, to.clone(), &found));
        let moves = verb == Verb::Move;
        let kept = moves.then(|| (source.clone(), head.place.key.clone()));
        let count =
            tree::run(Change { removed, carried: Some((verb, from, target)), kept }).await?;
        if moves && head.place.key.is_empty() {
            self.drop_collection(source).await?;
        }
        Ok(count)
    }
}
