//! The requests that change trees: DELETE, COPY, MOVE.

use crate::dav::Depth;
use crate::dav::conditions::precondition_failed;
use crate::dav::error::{Error, Result, blocking, refusal};
use crate::dav::path::Path;
use crate::dav::put::MTIME;
use crate::dav::{Dav, Head};
use crate::http::answer::{empty, set};
use crate::http::body;
use crate::objects::node::{self, Node};
use crate::objects::tree::{self, Change, Tree, Verb};
use crate::objects::{catalog::Bucket, place::Place, place::text, records::Settings};
use crate::users::{Right, Users};
use holdall::Version;
use http::{HeaderName, Response, StatusCode};
use s3s::Body;

/// Tells in how many transactions a tree was changed, if those were several.
const TRANSACTIONS: HeaderName = HeaderName::from_static("holdall-transactions");

/// With the value `bytes` a moved object gives its bytes to the one that it replaces, which
/// remains the same otherwise: so an upload in pieces ends as one at once does.
const REPLACE: HeaderName = HeaderName::from_static("holdall-replace");

/// What lies at the two ends of a copy or move.
struct Ends {
    from: (Bucket, Node),
    to: (Option<Bucket>, Node),
    has_parent: bool,
    /// Whether both an object and a folder of the destination's name are there.
    both: bool,
    /// Whether the destination lies in the source.
    inside: bool,
    /// Whether a collection with what no folder has is moved to if it is a folder.
    loses: bool,
    /// The version that the source must have.
    version: Option<Version>,
}

fn done(status: StatusCode, transactions: usize) -> Response<Body> {
    let mut response = empty(status);
    if transactions > 1 {
        set(&mut response, TRANSACTIONS, &transactions.to_string());
    }
    response
}

/// Refuses a copy or move that cannot be, before anything happens.
fn check_ends(ends: &Ends, to: &Place, overwrites: bool) -> Result<()> {
    let (folder, target) = (ends.from.1.is_folder(), &ends.to.1);
    if !ends.from.1.is_there() {
        return Err(refusal(StatusCode::NOT_FOUND, "there is nothing"));
    }
    if !ends.has_parent {
        return Err(refusal(StatusCode::CONFLICT, "the destination's folder is not there"));
    }
    // It would be removed before it is copied.
    if ends.inside && folder && target.is_there() {
        return Err(refusal(StatusCode::FORBIDDEN, "the destination is there, in the source"));
    }
    if ends.loses {
        let text = "a folder has no tags, ACL or rules for other origins: remove the collection's";
        return Err(refusal(StatusCode::CONFLICT, text));
    }
    if to.is_folders() && !folder && to.key.is_some() {
        let text = "no object has this name, which is a folder's";
        return Err(refusal(StatusCode::CONFLICT, text));
    }
    // What takes a collection's place is a folder or a collection.
    let to_root = ends.to.0.is_none() || matches!(target, Node::Collection);
    if to_root && !folder {
        return Err(refusal(StatusCode::FORBIDDEN, "an object is no collection"));
    }
    if target.is_there() && !overwrites {
        return Err(precondition_failed("the destination is there"));
    }
    if to.slash && !folder && !target.is_there() {
        let text = "an object's path has no slash at its end";
        return Err(refusal(StatusCode::CONFLICT, text));
    }
    // What is replaced would be the one, and what is made the other.
    if ends.both && target.is_folder() != folder {
        let text = "both an object and a folder of the destination's name are there";
        return Err(refusal(StatusCode::CONFLICT, text));
    }
    Ok(())
}

/// Refuses another value of [`REPLACE`] than there is.
fn check_replace(head: &Head) -> Result<()> {
    match head.text(REPLACE) {
        None | Some("bytes") => Ok(()),
        Some(_) => Err(refusal(StatusCode::BAD_REQUEST, "Holdall-Replace is: bytes")),
    }
}

/// Whether one place lies in the other or is the same.
fn inside(outer: &Place, inner: &Place) -> bool {
    outer.collection == inner.collection
        && match (&outer.key, &inner.key) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(out), Some(key)) => out == key || key.starts_with(&outer.prefix()),
        }
}

impl Dav {
    pub(super) async fn delete(&self, head: Head) -> Result<Response<Body>> {
        if head.place.collection.is_none() {
            return Err(refusal(StatusCode::FORBIDDEN, "the root cannot be deleted"));
        }
        head.check(Right::Write)?;
        if head.place.key.is_none() {
            head.check(Right::Admin)?;
        }
        let depth = head.depth()?;
        let pinned = self.may_change(&head, &head.path, true).await?;
        let (catalog, asked) = (self.objects.catalog.clone(), head.clone());
        let (bucket, node, version) = blocking(move || {
            let bucket = node::collection(&catalog, &asked.place)?;
            let node = node::find(&catalog, &asked.place)?;
            let version = asked.check_conditions(&node, pinned)?;
            Ok((bucket, node, version))
        })
        .await?;
        if !node.is_there() {
            return Err(refusal(StatusCode::NOT_FOUND, "there is nothing"));
        }
        if node.is_folder() && depth != Depth::Infinity {
            let text = "a folder is deleted with all in it: the header Depth is infinity";
            return Err(refusal(StatusCode::BAD_REQUEST, text));
        }
        let removed = Tree::new(bucket.clone(), head.place.clone(), &node);
        let kept = head.place.key.clone().map(|key| (bucket.clone(), key));
        let pinned = version.map(|version| (removed.clone(), version));
        let change = Change { removed: Some(removed), kept, pinned, ..Change::default() };
        let count = tree::run(change).await?;
        if head.place.key.is_none() {
            self.drop_collection(bucket).await?;
        }
        self.forget_locks(&head.path, node.is_folder()).await;
        Ok(done(StatusCode::NO_CONTENT, count))
    }

    /// Drops a collection that was emptied.
    async fn drop_collection(&self, bucket: Bucket) -> Result<()> {
        let (catalog, name) = (self.objects.catalog.clone(), bucket.name.clone());
        blocking(move || Ok(bucket.give_up_all()?)).await?;
        Ok(body::blocking(move || catalog.delete(&name)).await?)
    }

    /// Forgets the locks of what is gone, those of all below if it was a folder.
    async fn forget_locks(&self, path: &Path, deep: bool) {
        if self.locks.forget(path, deep).await.is_err() {
            tracing::warn!("locks of what is gone could not be forgotten");
        }
    }

    pub(super) async fn copy_or_move(&self, head: Head) -> Result<Response<Body>> {
        let verb = match (head.method.as_str(), head.depth()?) {
            ("MOVE", Depth::Infinity) => Verb::Move,
            ("COPY", Depth::Infinity) => Verb::Copy,
            ("COPY", Depth::Zero) => Verb::CopyFolder,
            _ => {
                let text = "the header Depth is infinity, or 0 to copy a folder alone";
                return Err(refusal(StatusCode::BAD_REQUEST, text));
            }
        };
        let overwrites = head.overwrites()?;
        let named = head.text("destination");
        let none = || refusal(StatusCode::BAD_REQUEST, "the header Destination is missing");
        let to = match head.own.path(named.ok_or_else(none)?) {
            Ok(to) => to,
            Err(e) => return Err(self.unless_missing(&head, e).await),
        };
        check_replace(&head)?;
        let place = Place::from_path(&to)?;
        self.check_rights(&head, &place, verb)?;
        let mut pinned = false;
        if verb == Verb::Move {
            pinned = self.may_change(&head, &head.path, true).await?;
        }
        self.may_change(&head, &to, true).await?;
        let ends = self.ends(&head, &place, (verb, pinned)).await?;
        check_ends(&ends, &place, overwrites)?;
        let from_folder = ends.from.1.is_folder();
        let asked = head.modified()?;
        if asked.is_some() && from_folder {
            let text = "X-OC-Mtime is of an object, and this is a folder";
            return Err(refusal(StatusCode::BAD_REQUEST, text));
        }
        let there = ends.to.1.is_there();
        let count = self.carry(&head, verb, &place, ends).await?;
        if verb == Verb::Move {
            self.forget_locks(&head.path, from_folder).await;
        }
        let status = if there { StatusCode::NO_CONTENT } else { StatusCode::CREATED };
        let mut response = done(status, count);
        if asked.is_some() {
            set(&mut response, MTIME, "accepted");
        }
        Ok(response)
    }

    /// Why nothing goes to a destination that is none: its source comes first.
    async fn unless_missing(&self, head: &Head, e: Error) -> Error {
        let (catalog, place) = (self.objects.catalog.clone(), head.place.clone());
        let found = match head.check(Right::Read) {
            Ok(()) => blocking(move || Ok(node::find(&catalog, &place)?)).await,
            Err(e) => Err(e),
        };
        match found {
            Ok(node) if node.is_there() => e,
            Ok(_) => refusal(StatusCode::NOT_FOUND, "there is nothing"),
            Err(e) => e,
        }
    }

    fn check_rights(&self, head: &Head, to: &Place, verb: Verb) -> Result<()> {
        let (Some(_), Some(name)) = (&head.place.collection, &to.collection) else {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        };
        head.check(Right::Read)?;
        Users::check(&head.user, Right::Write, name)?;
        if to.key.is_none() {
            Users::check(&head.user, Right::Admin, name)?;
        }
        if verb == Verb::Move {
            head.check(Right::Write)?;
            if head.place.key.is_none() {
                head.check(Right::Admin)?;
            }
        }
        let same = inside(&head.place, to) && inside(to, &head.place);
        if same || inside(to, &head.place) || (verb == Verb::Move && inside(&head.place, to)) {
            return Err(refusal(StatusCode::FORBIDDEN, "one end lies in the other"));
        }
        if let Some(key) = &to.key {
            text(key.clone())?;
        }
        Ok(())
    }

    async fn ends(&self, head: &Head, to: &Place, (verb, pinned): (Verb, bool)) -> Result<Ends> {
        let (catalog, head, to) = (self.objects.catalog.clone(), head.clone(), to.clone());
        blocking(move || {
            let source = node::collection(&catalog, &head.place)?;
            let found = node::find(&catalog, &head.place)?;
            let version = head.check_conditions(&found, pinned)?;
            let bucket = node::collection(&catalog, &to).ok();
            let (mut has_parent, mut both) = (to.key.is_none(), false);
            if let (Some(bucket), Some(_)) = (&bucket, &to.key) {
                let mut reader = bucket.read()?;
                has_parent = node::has_parent(&mut reader, &to)?;
                both = node::is_both(&mut reader, &to)?;
            }
            let inside = inside(&head.place, &to);
            let mut loses = false;
            if verb == Verb::Move && head.place.key.is_none() && to.key.is_some() {
                let settings = source.read().and_then(|read| Settings::load(&read, &source.name));
                loses = settings?.are_of_bucket();
            }
            let (from, to) = ((source, found), (bucket, node::find(&catalog, &to)?));
            Ok(Ends { from, to, has_parent, both, inside, loses, version })
        })
        .await
    }

    async fn carry(&self, head: &Head, verb: Verb, to: &Place, ends: Ends) -> Result<usize> {
        let Ends { from: (source, node), to: (bucket, found), version, .. } = ends;
        let bucket = match bucket {
            Some(bucket) => bucket,
            None => {
                let (catalog, place) = (self.objects.catalog.clone(), to.clone());
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
        let removed = found.is_there().then(|| Tree::new(bucket.clone(), to.clone(), &found));
        let moves = verb == Verb::Move;
        let key = head.place.key.clone().filter(|_| moves);
        let kept = key.map(|key| (source.clone(), key));
        let pinned = version.map(|version| (from.clone(), version));
        let bytes_alone = moves && head.text(REPLACE) == Some("bytes");
        let (carried, modified) = (Some((verb, from, target)), head.modified()?);
        let change = Change { removed, carried, kept, pinned, bytes_alone, modified };
        let count = tree::run(change).await?;
        if to.key.is_none() {
            // Those of what it replaced: they would put their objects into what is there now.
            blocking(move || Ok(bucket.give_up_all()?)).await?;
        }
        if moves && head.place.key.is_none() {
            self.drop_collection(source).await?;
        }
        Ok(count)
    }
}
