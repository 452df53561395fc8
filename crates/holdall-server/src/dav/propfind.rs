//! Properties asked for: PROPFIND (RFC 4918 section 9.1).
//!
//! `dav-server` leaves out the status of properties that are not there and the quotes of ETags;
//! clients that rely on either fail.

use crate::dav::list::{self, Resource};
use crate::dav::locks::Locks;
use crate::dav::path::PREFIX;
use crate::dav::proppatch::{WINDOWS, WINDOWS_MODIFIED};
use crate::dav::{Dav, Depth, Head, empty, node, refusal, set};
use crate::http::body;
use crate::objects::catalog::Catalog;
use crate::s3::amend::is_xml;
use crate::users::Right;
use bytes::Bytes;
use dav_server::davpath::DavPath;
use dav_server::ls::DavLock;
use futures::stream;
use http::{Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use s3s::dto::TimestampFormat;
use s3s::{Body, S3Result, StdError, s3_error};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;
use xmltree::Element;

/// The namespace of WebDAV.
pub const DAV: &str = "DAV:";
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
/// How an answer about properties begins.
pub const HEAD: &str =
    "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">";
const FINITE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"DAV:\">\
    <D:propfind-finite-depth/></D:error>";

/// Most properties that a request names.
const MOST_NAMES: usize = 1000;
/// Most bytes of their names and namespaces: an answer tells all of them of each resource.
const MOST_BYTES: usize = 64 << 10;
/// Bytes of an answer made at a time, beside what is told of one resource.
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
    fn parse(xml: &[u8]) -> S3Result<Self> {
        if xml.is_empty() {
            return Ok(Self::All);
        }
        let bad = || s3_error!(MalformedXML, "the body is no propfind");
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
        // One that is named twice is told once.
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

/// Text as XML has it. Readers take a carriage return, and in a namespace each white space, for
/// another character unless it is a reference; what XML cannot hold is U+FFFD.
pub fn text(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            c if is_xml(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
}

/// XML that was written by `xmltree`, which writes some characters as they are that readers take for
/// others.
pub fn sound(xml: &str) -> Cow<'_, str> {
    if xml.chars().all(|c| c != '\r' && is_xml(c)) {
        return Cow::Borrowed(xml);
    }
    let mut out = String::with_capacity(xml.len() + 64);
    for c in xml.chars() {
        match c {
            '\r' => out.push_str("&#13;"),
            c if is_xml(c) => out.push(c),
            _ => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(out)
}

fn http_date(time: SystemTime) -> String {
    let mut date = Vec::new();
    // Times beyond the calendar have no date.
    let _ = crate::s3::timestamp(time).format(TimestampFormat::HttpDate, &mut date);
    String::from_utf8_lossy(&date).into_owned()
}

fn lock(out: &mut String, lock: &DavLock) {
    let scope = if lock.shared { "shared" } else { "exclusive" };
    let depth = if lock.deep { "infinity" } else { "0" };
    let left = lock.timeout_at.and_then(|at| at.duration_since(SystemTime::now()).ok());
    let (left, root) = (left.unwrap_or_default().as_secs(), lock.path.with_prefix());
    // Writing into a string does not fail.
    let _ = write!(
        out,
        "<D:activelock><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype>\
         <D:depth>{depth}</D:depth><D:timeout>Second-{left}</D:timeout><D:locktoken><D:href>{}\
         </D:href></D:locktoken><D:lockroot><D:href>{}</D:href></D:lockroot>",
        lock.token,
        root.as_url_string(),
    );
    if let Some(owner) = lock.owner.as_deref().and_then(Locks::owner_xml) {
        out.push_str(&sound(&owner));
    }
    out.push_str("</D:activelock>");
}

/// Answers for one resource after another.
#[derive(Debug, Clone)]
struct Writer {
    wanted: Arc<Wanted>,
    locks: Locks,
}

impl Writer {
    /// The value of a property that the server knows; `None` where the resource has none.
    fn live(&self, resource: &Resource, name: &str) -> Option<String> {
        let mut out = String::new();
        match name {
            "resourcetype" if resource.folder => out.push_str("<D:collection/>"),
            "resourcetype" => {}
            "getcontentlength" if !resource.folder => out = resource.size.to_string(),
            "getcontenttype" => text(&mut out, resource.kind.as_ref()?),
            "getetag" => text(&mut out, &format!("\"{}\"", resource.etag.as_ref()?)),
            "getlastmodified" => out = http_date(resource.modified?),
            "supportedlock" => out.push_str(SUPPORTED),
            "lockdiscovery" => {
                self.locks.covering(&resource.path).iter().for_each(|l| lock(&mut out, l));
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
            let value = if valued { http_date(at) } else { String::new() };
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
    /// The next piece: some more than [`PIECE`] bytes, and what is told of one resource.
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
async fn read(
    catalog: Arc<Catalog>,
    head: Arc<Head>,
    rest: Rest,
) -> S3Result<(Vec<Resource>, Rest)> {
    body::blocking(move || match rest {
        Rest::Collections => Ok((list::collections(&catalog, &head.user)?, Rest::End)),
        Rest::Page(after) => {
            let bucket = node::collection(&catalog, &head.place)?;
            let (folder, prefix) = (shown(&head.path), head.place.prefix());
            let (found, next) = list::page(&bucket, folder, &prefix, after.as_deref())?;
            Ok((found, next.map_or(Rest::End, |next| Rest::Page(Some(next)))))
        }
        Rest::End | Rest::Nothing => Ok((Vec::new(), Rest::Nothing)),
    })
    .await
}

impl Dav {
    pub(super) async fn propfind(&self, head: Head, body: Body) -> S3Result<Response<Body>> {
        let deep = match head.depth()? {
            Depth::Zero => false,
            Depth::One => true,
            // Where nothing is said a level is what there is room for.
            Depth::Infinity if !head.headers.contains_key("depth") => true,
            Depth::Infinity => {
                let mut response = empty(StatusCode::FORBIDDEN);
                set(&mut response, header::CONTENT_TYPE, "application/xml; charset=utf-8");
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
            (self.server.catalog.clone(), head.path.clone(), writer.clone());
        let (begun, folder) = body::blocking(move || {
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
        set(&mut response, header::CONTENT_TYPE, "application/xml; charset=utf-8");
        let (catalog, head) = (self.server.catalog.clone(), Arc::new(head));
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

/// A folder's path without the slash at its end.
pub fn shown(path: &DavPath) -> &[u8] {
    let bytes = path.as_bytes();
    bytes.strip_suffix(b"/").unwrap_or(bytes)
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

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        text(&mut out, "a<b>&\"\u{1}é\r\n\t");
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;\u{fffd}é&#13;&#10;&#9;");
        assert_eq!(sound("<a>\r\n\u{ffff}</a>"), "<a>&#13;\n\u{fffd}</a>");
        assert!(matches!(sound("<a>\n</a>"), Cow::Borrowed(_)));
    }
}
