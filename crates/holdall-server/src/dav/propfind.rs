//! Properties asked for: PROPFIND (RFC 4918 section 9.1).

use crate::dav::error::{Result, blocking, refusal};
use crate::dav::list::{self, Resource};
use crate::dav::lock_table::Locks;
use crate::dav::multistatus::{
    DAV, HEAD, TYPE, WINDOWS, WINDOWS_MODIFIED, active_lock, sound, text,
};
use crate::dav::path::PREFIX;
use crate::dav::{Dav, Depth, Head, node};
use crate::http::answer::{empty, set};
use crate::http::date;
use crate::objects::catalog::Catalog;
use crate::users::Right;
use bytes::Bytes;
use futures::stream;
use http::{Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use s3s::{Body, StdError};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;
use xmltree::Element;

/// Properties that the server knows, in the namespace of WebDAV.
const LIVE: [&str; 7] = [
    "resourcetype",
    "getcontentlength",
    "getcontenttype",
    "getetag",
    "getlastmodified",
    "supportedlock",
    "lockdiscovery",
];
const SUPPORTED: &str = "<D:lockentry><D:lockscope><D:exclusive/></D:lockscope><D:locktype>\
    <D:write/></D:locktype></D:lockentry><D:lockentry><D:lockscope><D:shared/></D:lockscope>\
    <D:locktype><D:write/></D:locktype></D:lockentry>";
const FINITE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"DAV:\">\
    <D:propfind-finite-depth/></D:error>";

/// Most properties that a request names.
const MOST_NAMES: usize = 1000;
/// Most bytes of their names and namespaces: an answer names all of them for each resource.
const MOST_BYTES: usize = 64 << 10;
/// Bytes of an answer made at a time, beside what stands of one resource.
const PIECE: usize = 64 << 10;

/// A property's namespace and name.
type Name = (String, String);

/// Which properties are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Wanted {
    /// All that there are.
    All,
    /// All names, without values.
    Names,
    /// These.
    These(Vec<Name>),
}

impl Wanted {
    fn parse(xml: &[u8]) -> Result<Self> {
        if xml.is_empty() {
            return Ok(Self::All);
        }
        let bad = || refusal(StatusCode::BAD_REQUEST, "the body is no propfind");
        let asked = crate::http::xml::parse(xml)?;
        if asked.name != "propfind" || asked.namespace.as_deref() != Some(DAV) {
            return Err(bad());
        }
        if asked.get_child("propname").is_some() {
            return Ok(Self::Names);
        }
        if asked.get_child("allprop").is_some() {
            return Ok(Self::All);
        }
        let props = asked.get_child("prop").ok_or_else(bad)?;
        let elements = props.children.iter().filter_map(xmltree::XMLNode::as_element);
        let name = |e: &Element| (e.namespace.clone().unwrap_or_default(), e.name.clone());
        let (mut known, mut names, mut bytes) = (BTreeSet::new(), Vec::new(), 0);
        // One that is named twice is answered once.
        for name in elements.map(name).filter(|name| known.insert(name.clone())) {
            bytes += name.0.len() + name.1.len();
            names.push(name);
            if names.len() > MOST_NAMES || bytes > MOST_BYTES {
                let text = format!("a propfind names {MOST_NAMES} properties at most, of");
                let text = format!("{text} {MOST_BYTES} bytes");
                return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, text));
            }
        }
        Ok(Self::These(names))
    }
}

/// Answers for one resource after another.
#[derive(Debug, Clone)]
struct Writer {
    wanted: Arc<Wanted>,
    locks: Locks,
}

impl Writer {
    /// The value of a property that the server knows; `None` if the resource has none.
    fn live(&self, resource: &Resource, name: &str) -> Option<String> {
        let mut out = String::new();
        match name {
            "resourcetype" if resource.folder => out.push_str("<D:collection/>"),
            "resourcetype" => {}
            "getcontentlength" if !resource.folder => out = resource.size.to_string(),
            "getcontenttype" => text(&mut out, resource.kind.as_ref()?),
            "getetag" => text(&mut out, &format!("\"{}\"", resource.etag.as_ref()?)),
            "getlastmodified" => out = date::text(resource.modified?).unwrap_or_default(),
            "supportedlock" => out.push_str(SUPPORTED),
            "lockdiscovery" => {
                for lock in self.locks.covering(&resource.path) {
                    let left = lock.until.duration_since(SystemTime::now()).unwrap_or_default();
                    active_lock(&mut out, &lock, left, "infinity");
                }
            }
            _ => return None,
        }
        Some(out)
    }

    /// One property: whether it is there, and it as XML.
    fn prop(&self, out: &mut String, resource: &Resource, name: &Name, valued: bool) -> bool {
        let (space, local) = name;
        let live = if space == DAV { self.live(resource, local) } else { None };
        if space == WINDOWS
            && local == WINDOWS_MODIFIED
            && let Some(at) = resource.modified.filter(|_| !resource.folder)
        {
            let value = if valued { date::text(at).unwrap_or_default() } else { String::new() };
            let _ = write!(out, "<{local} xmlns=\"{space}\">{value}</{local}>");
            return true;
        }
        if let Some(value) = live {
            let value = if valued { value } else { String::new() };
            let _ = write!(out, "<D:{local}>{value}</D:{local}>");
            return true;
        }
        let set = resource.props.get(&format!("{{{space}}}{local}"));
        match set.filter(|_| valued) {
            Some(xml) => out.push_str(&sound(xml)),
            None => {
                let _ = write!(out, "<{local} xmlns=\"");
                text(out, space);
                out.push_str("\"/>");
            }
        }
        set.is_some()
    }

    fn resource(&self, out: &mut String, resource: &Resource) {
        let (mut found, mut missing) = (String::new(), String::new());
        match &*self.wanted {
            Wanted::These(names) => {
                for name in names {
                    let mut one = String::new();
                    let there = self.prop(&mut one, resource, name, true);
                    if there { &mut found } else { &mut missing }.push_str(&one);
                }
            }
            all => {
                let valued = *all == Wanted::All;
                let live = LIVE.iter().map(|name| (DAV.to_owned(), (*name).to_owned()));
                for name in live.filter(|(_, name)| self.live(resource, name).is_some()) {
                    self.prop(&mut found, resource, &name, valued);
                }
                for name in resource.props.keys() {
                    let split = name.strip_prefix('{').and_then(|rest| rest.rsplit_once('}'));
                    let Some((space, local)) = split else { continue };
                    self.prop(&mut found, resource, &(space.into(), local.into()), valued);
                }
            }
        }
        let path = resource.address();
        let _ = write!(out, "\n<D:response><D:href>{PREFIX}{path}</D:href>");
        for (props, status) in [(found, "200 OK"), (missing, "404 Not Found")] {
            if !props.is_empty() {
                let _ = write!(
                    out,
                    "<D:propstat><D:prop>{props}</D:prop><D:status>HTTP/1.1 {status}</D:status>\
                     </D:propstat>"
                );
            }
        }
        out.push_str("</D:response>");
    }
}

/// What is left to be read for an answer.
enum Rest {
    /// All collections.
    Collections,
    /// A folder's entries behind this name.
    Page(Option<Vec<u8>>),
    /// The end.
    End,
    Nothing,
}

/// An answer as it is read: in pieces, each made when the one before has been taken.
struct Answering {
    catalog: Arc<Catalog>,
    head: Arc<Head>,
    writer: Writer,
    begun: String,
    ready: std::vec::IntoIter<Resource>,
    rest: Rest,
}

impl Answering {
    /// The next piece: some more than [`PIECE`] bytes, and what stands of one resource.
    async fn next(mut self) -> Option<(Result<String, StdError>, Self)> {
        let mut out = std::mem::take(&mut self.begun);
        loop {
            while out.len() < PIECE
                && let Some(resource) = self.ready.next()
            {
                self.writer.resource(&mut out, &resource);
            }
            if out.len() >= PIECE {
                return Some((Ok(out), self));
            }
            match std::mem::replace(&mut self.rest, Rest::Nothing) {
                Rest::End => out.push_str("\n</D:multistatus>\n"),
                Rest::Nothing if out.is_empty() => return None,
                Rest::Nothing => return Some((Ok(out), self)),
                rest => match read(self.catalog.clone(), self.head.clone(), rest).await {
                    Ok((found, rest)) => (self.ready, self.rest) = (found.into_iter(), rest),
                    // The connection breaks: half an answer is none.
                    Err(e) => {
                        self.ready = Vec::new().into_iter();
                        return Some((Err(Box::new(e) as StdError), self));
                    }
                },
            }
        }
    }
}

/// Reads on: what was found, and what is left.
async fn read(catalog: Arc<Catalog>, head: Arc<Head>, rest: Rest) -> Result<(Vec<Resource>, Rest)> {
    blocking(move || match rest {
        Rest::Collections => Ok((list::collections(&catalog, &head.user)?, Rest::End)),
        Rest::Page(after) => {
            let bucket = node::collection(&catalog, &head.place)?;
            let (folder, prefix) = (head.path.root(), head.place.prefix());
            let (found, next) = list::page(&bucket, folder, &prefix, after.as_deref())?;
            Ok((found, next.map_or(Rest::End, |next| Rest::Page(Some(next)))))
        }
        Rest::End | Rest::Nothing => Ok((Vec::new(), Rest::Nothing)),
    })
    .await
}

impl Dav {
    pub(super) async fn propfind(&self, head: Head, body: Body) -> Result<Response<Body>> {
        let deep = match head.depth()? {
            Depth::Zero => false,
            Depth::One => true,
            // By default a level is what there is room for.
            Depth::Infinity if !head.headers.contains_key("depth") => true,
            Depth::Infinity => {
                let mut response = empty(StatusCode::FORBIDDEN);
                set(&mut response, header::CONTENT_TYPE, TYPE);
                *response.body_mut() = Body::from(Bytes::from_static(FINITE.as_bytes()));
                return Ok(response);
            }
        };
        if head.place.collection.is_some() && (deep || head.check(Right::Read).is_err()) {
            head.check(Right::List)?;
        }
        let xml = self.xml(&head, body).await?;
        let wanted = Arc::new(Wanted::parse(&xml)?);
        let writer = Writer { wanted, locks: self.locks.clone() };
        let (catalog, path, first) =
            (self.objects.catalog.clone(), head.path.clone(), writer.clone());
        let (begun, folder) = blocking(move || {
            let none = || refusal(StatusCode::NOT_FOUND, "there is nothing");
            let own = list::one(&catalog, &path)?.ok_or_else(none)?;
            let mut out = HEAD.to_owned();
            first.resource(&mut out, &own);
            Ok((out, own.folder))
        })
        .await?;
        let rest = match &head.place.collection {
            _ if !folder || !deep => Rest::End,
            None => Rest::Collections,
            Some(_) => Rest::Page(None),
        };
        let mut response = empty(StatusCode::MULTI_STATUS);
        set(&mut response, header::CONTENT_TYPE, TYPE);
        let (catalog, head) = (self.objects.catalog.clone(), Arc::new(head));
        let ready = Vec::new().into_iter();
        let answering = Answering { catalog, head, writer, begun, ready, rest };
        let frames = stream::unfold(answering, Answering::next);
        let frames = futures::StreamExt::map(frames, |piece| {
            piece.map(|text| Frame::data(Bytes::from(text)))
        });
        *response.body_mut() = Body::http_body_unsync(StreamBody::new(Box::pin(frames)));
        Ok(response)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_read() {
        assert_eq!(Wanted::parse(b"").unwrap(), Wanted::All);
        let asked = |inner: &str| {
            Wanted::parse(format!("<propfind xmlns=\"DAV:\">{inner}</propfind>").as_bytes())
        };
        assert_eq!(asked("<propname/>").unwrap(), Wanted::Names);
        assert_eq!(asked("<allprop/>").unwrap(), Wanted::All);
        let these = asked("<prop><getetag/><a xmlns=\"u:x\"/><b xmlns=\"\"/></prop>").unwrap();
        let names = [(DAV, "getetag"), ("u:x", "a"), ("", "b")];
        let names = names.map(|(space, name)| (space.to_owned(), name.to_owned()));
        assert_eq!(these, Wanted::These(names.to_vec()));
        let many = |n: usize| (0..n).map(|n| format!("<a{n}/>")).collect::<String>();
        assert!(asked(&format!("<prop>{}</prop>", many(MOST_NAMES))).is_ok());
        assert!(asked(&format!("<prop>{}</prop>", many(MOST_NAMES + 1))).is_err());
        let long = format!("<prop xmlns:n=\"{}\">{{}}</prop>", "n".repeat(MOST_BYTES / 2));
        assert!(asked(&long.replace("{}", "<n:a/>")).is_ok());
        assert!(asked(&long.replace("{}", "<n:a/><n:b/><n:c/>")).is_err());
        let twice = Wanted::These(vec![(DAV.to_owned(), "getetag".to_owned())]);
        assert_eq!(asked("<prop><getetag/><getetag/></prop>").unwrap(), twice);
        assert!(asked("").is_err() && Wanted::parse(b"<a/>").is_err());
        assert!(Wanted::parse(b"<propfind xmlns=\"DAV:\"><prop>").is_err());
    }
}
