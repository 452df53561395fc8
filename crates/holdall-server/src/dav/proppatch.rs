//! Properties that clients set and remove: PROPPATCH (RFC 4918 section 9.2), all of a request or
//! none.
//!
//! Windows sets times of its own: that of the last change is the object's, as it is of these very
//! bytes; the others are properties like those of any client.

use crate::dav::error::{Error, Result, blocking, refusal};
use crate::dav::list::Props;
use crate::dav::multistatus::{DAV, HEAD, TYPE, WINDOWS, WINDOWS_MODIFIED, text};
use crate::dav::{Dav, Head};
use crate::http::answer::{empty, set};
use crate::http::{date, xml};
use crate::objects::catalog::{Bucket, Catalog};
use crate::objects::node::{self, Node, mark};
use crate::objects::{place::Place, records, side};
use crate::refusal::Why;
use crate::users::Right;
use bytes::Bytes;
use holdall::{Version, WriteTx};
use http::{Response, StatusCode, header};
use s3s::Body;
use std::fmt::Write as _;
use std::time::SystemTime;
use xmltree::Element;

/// Most bytes of the properties that clients set of a resource.
const MOST_PROPS: usize = 256 << 10;
const APACHE: &str = "http://apache.org/dav/props/";
/// A property that is to change.
#[derive(Debug)]
struct Change {
    space: String,
    name: String,
    what: What,
}

/// What is to become of a property.
#[derive(Debug)]
enum What {
    /// This element; `None` if it goes.
    Kept(Option<String>),
    /// It is the time of the object's last change.
    Modified(SystemTime),
    /// The server does not let it change so.
    Refused(StatusCode),
}

/// The text of an element that holds nothing else.
fn plain(element: &Element) -> Option<String> {
    let nested = element.children.iter().any(|node| node.as_element().is_some());
    element.get_text().filter(|_| !nested).map(|text| text.into_owned())
}

impl Change {
    /// What a request asks of one property of a file, or of a folder.
    fn from_element(element: &Element, sets: bool, file: bool) -> Result<Self> {
        let (space, name) = (element.namespace.clone().unwrap_or_default(), element.name.clone());
        let what = match (space.as_str(), name.as_str()) {
            (DAV, "displayname" | "getcontentlanguage") if sets && plain(element).is_none() => {
                What::Refused(StatusCode::CONFLICT)
            }
            (DAV, "displayname" | "getcontentlanguage") => Self::kept(element, sets)?,
            (DAV | APACHE, _) => What::Refused(StatusCode::FORBIDDEN),
            (WINDOWS, WINDOWS_MODIFIED) if file && sets => {
                let at = plain(element).and_then(|text| date::parse(&text));
                let at = at.map(SystemTime::from);
                at.map_or(What::Refused(StatusCode::CONFLICT), What::Modified)
            }
            (WINDOWS, WINDOWS_MODIFIED) if file => What::Refused(StatusCode::FORBIDDEN),
            _ => Self::kept(element, sets)?,
        };
        Ok(Self { space, name, what })
    }

    fn kept(element: &Element, sets: bool) -> Result<What> {
        Ok(What::Kept(sets.then(|| xml::written(element)).transpose()?))
    }

    /// All that a body asks for, in its order.
    fn all(update: &Element, file: bool) -> Result<Vec<Self>> {
        let elements = |of: &Element, name: &str| -> Vec<Element> {
            let all = of.children.iter().filter_map(|node| node.as_element());
            all.filter(|e| name.is_empty() || e.name == name).cloned().collect()
        };
        let mut changes = Vec::new();
        for part in elements(update, "") {
            let sets = match (part.namespace.as_deref(), part.name.as_str()) {
                (Some(DAV), "set") => true,
                (Some(DAV), "remove") => false,
                _ => continue,
            };
            for prop in elements(&part, "prop") {
                for element in elements(&prop, "") {
                    changes.push(Self::from_element(&element, sets, file)?);
                }
            }
        }
        Ok(changes)
    }
}

fn patch(props: &mut Props, changes: &[Change]) -> holdall::Result<()> {
    let size = |props: &Props| props.iter().map(|(n, xml)| n.len() + xml.len()).sum::<usize>();
    let before = size(props);
    for Change { space, name, what } in changes {
        let full = format!("{{{space}}}{name}");
        match what {
            What::Kept(Some(xml)) => _ = props.insert(full, xml.clone()),
            What::Kept(None) => _ = props.remove(&full),
            What::Modified(_) | What::Refused(_) => {}
        }
    }
    // Listings tell them of each entry.
    if size(props) > MOST_PROPS.max(before) {
        let text = format!("the properties of a resource take at most {MOST_PROPS} bytes");
        return Err(Why::Full.says(text).into());
    }
    Ok(())
}

fn changed() -> holdall::Error {
    Why::Unmet.says("it was changed meanwhile; ask again").into()
}

/// Makes the changes in one transaction, if the resource is still of the version.
fn apply(
    bucket: &Bucket,
    place: &Place,
    changes: &[Change],
    version: Option<Version>,
) -> Result<()> {
    let work = |tx: &mut WriteTx| {
        let name = &bucket.name;
        if place.key.is_none() {
            let mut patched = Ok(());
            records::change_collection_props(tx, name, |p| patched = patch(p, changes))?;
            return patched;
        }
        let node = node::look(&mut node::InTx(tx, name), place)?;
        if version.is_some() && node.metadata().map(|found| found.version) != version {
            return Err(changed());
        }
        let modified = changes.iter().rev().find_map(|change| match change.what {
            What::Modified(at) => Some(at),
            _ => None,
        });
        let oid = match node {
            Node::File(found) => found.oid,
            Node::Missing => return Err(changed()),
            _ if modified.is_some() => return Err(changed()),
            _ => mark(tx, bucket, &place.prefix())?,
        };
        let mut meta = side::meta_in(tx, oid)?;
        patch(&mut meta.about.props, changes)?;
        meta.modified = modified.or(meta.modified);
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
    };
    bucket.served.write(work).map_err(Error::from)
}

/// What became of each property.
fn answer(head: &Head, changes: &[Change], done: bool) -> String {
    let path = head.path.address();
    let mut out = format!("{HEAD}<D:response><D:href>{path}</D:href>");
    let statuses = if done {
        vec![StatusCode::OK]
    } else {
        vec![StatusCode::FORBIDDEN, StatusCode::CONFLICT, StatusCode::FAILED_DEPENDENCY]
    };
    for status in statuses {
        let of = |change: &&Change| match change.what {
            What::Refused(refused) => refused == status,
            _ => done || status == StatusCode::FAILED_DEPENDENCY,
        };
        let mut props = String::new();
        for Change { space, name, .. } in changes.iter().filter(of) {
            let _ = write!(props, "<{name} xmlns=\"");
            text(&mut props, space);
            props.push_str("\"/>");
        }
        if !props.is_empty() {
            let _ = write!(
                out,
                "<D:propstat><D:prop>{props}</D:prop><D:status>HTTP/1.1 {status}</D:status>\
                 </D:propstat>"
            );
        }
    }
    out.push_str("</D:response></D:multistatus>\n");
    out
}

/// Changes what is there under the conditions of the request. Blocks.
fn change(catalog: &Catalog, head: &Head, xml: &[u8], pinned: bool) -> Result<String> {
    let node = node::find(catalog, &head.place)?;
    if !node.is_there() {
        return Err(refusal(StatusCode::NOT_FOUND, "there is nothing"));
    }
    let version = head.check_conditions(&node, pinned)?;
    let update = xml::parse(xml)?;
    if update.name != "propertyupdate" || update.namespace.as_deref() != Some(DAV) {
        return Err(refusal(StatusCode::BAD_REQUEST, "the body is no propertyupdate"));
    }
    let changes = Change::all(&update, matches!(node, Node::File(_)))?;
    let done = !changes.iter().any(|change| matches!(change.what, What::Refused(_)));
    if done {
        apply(&node::collection(catalog, &head.place)?, &head.place, &changes, version)?;
    }
    Ok(answer(head, &changes, done))
}

impl Dav {
    pub(super) async fn proppatch(&self, head: Head, body: Body) -> Result<Response<Body>> {
        if head.place.collection.is_none() {
            return Err(refusal(StatusCode::FORBIDDEN, "the root holds collections only"));
        }
        head.check(Right::Write)?;
        let xml = self.xml(&head, body).await?;
        let pinned = self.may_change(&head, &head.path, false).await?;
        let catalog = self.objects.catalog.clone();
        let told = blocking(move || change(&catalog, &head, &xml, pinned)).await?;
        let mut response = empty(StatusCode::MULTI_STATUS);
        set(&mut response, header::CONTENT_TYPE, TYPE);
        *response.body_mut() = Body::from(Bytes::from(told));
        Ok(response)
    }
}
