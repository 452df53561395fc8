//! The requests LOCK and UNLOCK (RFC 4918 sections 9.10 and 9.11). A lock on a name at which
//! nothing is makes an empty object there.

use crate::dav::conditions::precondition_failed;
use crate::dav::error::{Result, blocking, refusal};
use crate::dav::folder::room;
use crate::dav::get::media_type;
use crate::dav::lock_table::{LIFE, Lock};
use crate::dav::multistatus::{DAV, TYPE, active_lock};
use crate::dav::{Dav, Depth, Head};
use crate::http::answer::{empty, set};
use crate::http::{spelling::digits, xml};
use crate::objects::node::Node;
use crate::objects::place::{self, Place};
use crate::objects::{catalog::Catalog, meta::Meta, side};
use crate::users::Right;
use bytes::Bytes;
use http::{Response, StatusCode, header};
use s3s::Body;
use std::time::{Duration, SystemTime};
use xmltree::Element;

/// What a body asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    shared: bool,
    /// What the client says of itself, as XML.
    owner: Option<String>,
}

fn children(element: &Element) -> impl Iterator<Item = &Element> {
    element.children.iter().filter_map(|child| child.as_element())
}

impl Asked {
    fn parse(bytes: &[u8]) -> Result<Self> {
        let bad = || refusal(StatusCode::BAD_REQUEST, "the body is no lockinfo");
        let info = xml::parse(bytes)?;
        if info.name != "lockinfo" {
            return Err(bad());
        }
        let (mut shared, mut writes, mut owner) = (None, false, None);
        for element in children(&info) {
            let inside = children(element).next().map(|inside| inside.name.as_str());
            match (element.name.as_str(), inside) {
                ("lockscope", Some("exclusive")) => shared = Some(false),
                ("lockscope", Some("shared")) => shared = Some(true),
                ("locktype", Some("write")) => writes = true,
                ("owner", _) => owner = Some(as_owner(element)?),
                _ => return Err(bad()),
            }
        }
        Ok(Self { shared: shared.filter(|_| writes).ok_or_else(bad)?, owner })
    }
}

/// The element owner as answers have it. Its prefix must be known if it stands alone.
fn as_owner(element: &Element) -> Result<String> {
    let mut owner = element.clone();
    let mut spaces = owner.namespaces.take().unwrap_or_else(xmltree::Namespace::empty);
    spaces.put("D", DAV);
    (owner.namespaces, owner.prefix) = (Some(spaces), Some("D".into()));
    Ok(xml::written(&owner)?)
}

/// How long a lock is asked for: the first value that can be read.
fn life(head: &Head) -> Duration {
    let first = head.text("timeout").and_then(|text| text.split(',').next());
    let seconds = first.and_then(|text| digits(text.trim().strip_prefix("Second-")?));
    seconds.map_or(LIFE, Duration::from_secs).min(LIFE)
}

fn lock_answer(status: StatusCode, lock: &Lock, life: Duration) -> Response<Body> {
    let mut text =
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<D:prop xmlns:D=\"DAV:\"><D:lockdiscovery>"
            .to_owned();
    active_lock(&mut text, lock, life, "Infinity");
    text.push_str("</D:lockdiscovery></D:prop>");
    let mut response = empty(status);
    set(&mut response, header::CONTENT_TYPE, TYPE);
    *response.body_mut() = Body::from(Bytes::from(text));
    response
}

/// Names a folder by its own path if a request had another one.
fn located(head: &Head, node: &Node, mut response: Response<Body>) -> Response<Body> {
    if node.is_folder() && !head.path.as_bytes().ends_with(b"/") {
        set(&mut response, header::CONTENT_LOCATION, &format!("{}/", head.path.address()));
    }
    response
}

/// Makes an empty object if nothing is. Blocks for a commit.
fn make(catalog: &Catalog, at: &Place) -> Result<()> {
    let Some(key) = at.key.as_ref().filter(|_| !at.slash) else {
        return Err(refusal(
            StatusCode::FORBIDDEN,
            "a lock makes an object, and this is a folder's",
        ));
    };
    let bucket = room(catalog, at)?;
    let (name, content_type) = (place::text(key.clone())?, Some(media_type(key)));
    let meta = Meta { content_type, ..Meta::default() };
    bucket.served.write(|tx| {
        let mut objects = bucket.objects(tx)?;
        // Somebody may have put it meanwhile.
        if objects.lookup(&name)?.is_some() {
            return Ok(());
        }
        let oid = objects.put(&name, &[])?;
        drop(objects);
        side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
    })?;
    Ok(())
}

impl Dav {
    pub(super) async fn lock(&self, head: Head, body: Body) -> Result<Response<Body>> {
        head.check_below_root(Right::Write)?;
        let xml = self.xml(&head, body).await?;
        if xml.is_empty() {
            return self.refresh(head).await;
        }
        xml::check(&xml)?;
        let (node, _) = self.check_met(&head).await?;
        let deep = match head.depth()? {
            Depth::Infinity => true,
            Depth::Zero => false,
            Depth::One => {
                return Err(refusal(StatusCode::BAD_REQUEST, "a lock has the depth 0 or infinity"));
            }
        };
        let (Asked { shared, owner }, life) = (Asked::parse(&xml)?, life(&head));
        let lock = Lock {
            token: uuid::Uuid::new_v4().urn().to_string(),
            path: head.path.clone(),
            principal: Some(head.user.name.clone()),
            owner,
            until: SystemTime::now() + life,
            shared,
            deep,
        };
        self.locks.add(lock.clone()).await?;
        if !node.is_there() {
            let (catalog, at) = (self.objects.catalog.clone(), head.place.clone());
            if let Err(e) = blocking(move || make(&catalog, &at)).await {
                self.locks.unlock(&head.path, &lock.token).await?;
                return Err(e);
            }
        }
        let status = if node.is_there() { StatusCode::OK } else { StatusCode::CREATED };
        let mut response = lock_answer(status, &lock, life);
        set(&mut response, LOCK_TOKEN, &format!("<{}>", lock.token));
        Ok(located(&head, &node, response))
    }

    /// Lets a lock live on.
    async fn refresh(&self, head: Head) -> Result<Response<Body>> {
        let (node, tokens) = self.check_met(&head).await?;
        let [token] = &tokens[..] else {
            let text = "a LOCK without a body names the one lock that it refreshes, by If";
            return Err(refusal(StatusCode::BAD_REQUEST, text));
        };
        let none = || precondition_failed("there is no such lock of yours");
        if self.locks.is_in_the_way(&head.path, &head.user.name, false, &tokens) {
            return Err(none());
        }
        let life = life(&head);
        let lock = self.locks.refresh(&head.path, token, life).await?.ok_or_else(none)?;
        Ok(located(&head, &node, lock_answer(StatusCode::OK, &lock, life)))
    }

    pub(super) async fn unlock(&self, head: Head, body: Body) -> Result<Response<Body>> {
        head.check_below_root(Right::Write)?;
        self.no_body(&head, body).await?;
        let (node, _) = self.check_met(&head).await?;
        let none = || refusal(StatusCode::BAD_REQUEST, "the header Lock-Token is missing");
        let token = head.text(LOCK_TOKEN).ok_or_else(none)?.trim_matches(['<', '>']);
        if !self.locks.unlock(&head.path, token).await? {
            return Err(refusal(StatusCode::CONFLICT, "no lock of this token covers it"));
        }
        Ok(located(&head, &node, empty(StatusCode::NO_CONTENT)))
    }
}

/// The token of a lock.
const LOCK_TOKEN: header::HeaderName = header::HeaderName::from_static("lock-token");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_body_asks_for_is_read_or_refused() {
        let asked = |inner: &str| {
            Asked::parse(format!("<lockinfo xmlns=\"DAV:\">{inner}</lockinfo>").as_bytes())
        };
        let shared = "<lockscope><shared/></lockscope>";
        let write = "<locktype><write/></locktype>";
        let found = asked(&format!("{shared}{write}<owner><href>me</href></owner>")).unwrap();
        assert!(found.shared && found.owner.unwrap().starts_with("<D:owner xmlns"));
        for bad in [
            "",
            shared,
            write,
            "<lockscope/><locktype><write/></locktype>",
            "<lockscope><both/></lockscope><locktype><write/></locktype>",
            &format!("{shared}<locktype><read/></locktype>"),
            &format!("{shared}{write}<other/>"),
        ] {
            assert_eq!(asked(bad).unwrap_err().status, StatusCode::BAD_REQUEST, "{bad}");
        }
        assert!(Asked::parse(b"<propfind xmlns=\"DAV:\"/>").is_err());
    }
}
