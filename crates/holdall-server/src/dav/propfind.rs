//! Properties asked for: PROPFIND (RFC 4918 section 9.1).
//!
//! `dav-server` leaves out the status of properties that are not there and the quotes of ETags;
//! clients that rely on either fail.

use crate::body;
use crate::dav::list::{self, Resource};
use crate::dav::locks::Locks;
use crate::dav::path::PREFIX;
use crate::dav::{Dav, Depth, Head, empty, node, refusal, set};
use crate::users::Right;
use bytes::Bytes;
use dav_server::davpath::DavPath;
use dav_server::ls::DavLock;
use futures::stream;
use http::{Response, StatusCode, header};
use http_body_util::StreamBody;
use hyper::body::Frame;
use s3s::dto::{StreamingBlob, TimestampFormat};
use s3s::{Body, S3Result, StdError, s3_error};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::SystemTime;
use xmltree::Element;

const DAV: &str = "DAV:";
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
const HEAD: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:multistatus xmlns:D=\"DAV:\">";
const FINITE: &str = "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:error xmlns:D=\"DAV:\">\
    <D:propfind-finite-depth/></D:error>";

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
        let asked = crate::xml::parse(xml)?;
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
        Ok(Self::These(elements.map(name).collect()))
    }
}

/// Text as XML has it; characters that XML cannot hold are left out.
fn text(out: &mut String, text: &str) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() && !matches!(c, '\t' | '\n' | '\r') => {}
            c => out.push(c),
        }
    }
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
        out.push_str(&owner);
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
        if let Some(value) = live {
            let value = if valued { value } else { String::new() };
            let _ = write!(out, "<D:{local}>{value}</D:{local}>");
            return true;
        }
        let set = resource.props.get(&format!("{{{space}}}{local}"));
        match set.filter(|_| valued) {
            Some(xml) => out.push_str(xml),
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
                    let split = name.strip_prefix('{').and_then(|rest| rest.split_once('}'));
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

    fn all(&self, resources: &[Resource]) -> String {
        let mut out = String::with_capacity(resources.len() * 512);
        resources.iter().for_each(|resource| self.resource(&mut out, resource));
        out
    }
}

/// What is left to be written of an answer.
enum Rest {
    /// All collections.
    Collections,
    /// A folder's entries behind this name.
    Page(Option<Vec<u8>>),
    /// The end.
    End,
    Nothing,
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
        let most = self.server.limits.xml_bytes as u64;
        let xml = body::collect(StreamingBlob::from(body), most, self.server.limits.idle()).await?;
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
        *response.body_mut() = self.stream(head, writer, begun, rest);
        Ok(response)
    }

    /// The answer as it is read: a page of a folder at a time.
    fn stream(&self, head: Head, writer: Writer, begun: String, rest: Rest) -> Body {
        let catalog = self.server.catalog.clone();
        let state = (Some(begun), rest);
        let head = Arc::new(head);
        let chunks = stream::unfold(state, move |(begun, rest)| {
            let (catalog, writer, head) = (catalog.clone(), writer.clone(), head.clone());
            async move {
                if let Some(begun) = begun {
                    return Some((Ok(begun), (None, rest)));
                }
                let step = body::blocking(move || match rest {
                    Rest::Collections => {
                        let found = list::collections(&catalog, &head.user)?;
                        Ok((writer.all(&found), Rest::End))
                    }
                    Rest::Page(after) => {
                        let bucket = node::collection(&catalog, &head.place)?;
                        let shown = shown(&head.path);
                        let prefix = head.place.prefix();
                        let (found, next) = list::page(&bucket, shown, &prefix, after.as_deref())?;
                        let rest = next.map_or(Rest::End, |next| Rest::Page(Some(next)));
                        Ok((writer.all(&found), rest))
                    }
                    Rest::End => Ok(("\n</D:multistatus>\n".to_owned(), Rest::Nothing)),
                    Rest::Nothing => Ok((String::new(), Rest::Nothing)),
                });
                match step.await {
                    Ok((out, Rest::Nothing)) if out.is_empty() => None,
                    Ok((out, rest)) => Some((Ok(out), (None, rest))),
                    // The connection breaks: half an answer is none.
                    Err(e) => Some((Err(Box::new(e) as StdError), (None, Rest::Nothing))),
                }
            }
        });
        let frames = futures::StreamExt::map(chunks, |chunk: Result<String, StdError>| {
            chunk.map(|text| Frame::data(Bytes::from(text)))
        });
        Body::http_body_unsync(StreamBody::new(Box::pin(frames)))
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
        assert!(asked("").is_err() && Wanted::parse(b"<a/>").is_err());
        assert!(Wanted::parse(b"<propfind xmlns=\"DAV:\"><prop>").is_err());
    }

    #[test]
    fn text_is_escaped() {
        let mut out = String::new();
        text(&mut out, "a<b>&\"\u{1}é");
        assert_eq!(out, "a&lt;b&gt;&amp;&quot;é");
    }
}
