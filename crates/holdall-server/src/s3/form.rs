//! Fields of a form that `s3s` leaves out: the ACL and the tags, which S3 calls otherwise there,
//! the file's name, and those that ask for what is not offered.
//!
//! Owns: [`watch`], [`Fields`], [`Form`]. The form passes by; what comes before its file is kept
//! and looked at once `s3s` has checked the form's signature. A form that is written in a way that
//! two readers could understand differently is refused.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use hyper::body::{Frame, SizeHint};
use parking_lot::Mutex;
use s3s::{Body, S3Result, StdError, s3_error};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Most bytes of fields, which is what `s3s` takes.
pub const MOST: usize = 1 << 20;

/// The beginning of a form that is passing by.
#[derive(Debug, Clone)]
pub struct Fields {
    boundary: String,
    seen: Arc<Mutex<Vec<u8>>>,
}

struct Watched {
    inner: Body,
    seen: Arc<Mutex<Vec<u8>>>,
}

impl hyper::body::Body for Watched {
    type Data = Bytes;
    type Error = StdError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, StdError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(bytes) = frame.data_ref()
        {
            let mut seen = self.seen.lock();
            let room = MOST - seen.len().min(MOST);
            seen.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn boundary(headers: &HeaderMap) -> Option<String> {
    let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let (first, rest) = kind.split_once("boundary=")?;
    if !first.starts_with("multipart/form-data") || rest.contains("boundary=") {
        return None;
    }
    let value = rest.split(';').next()?.trim();
    let value = value.strip_prefix('"').and_then(|v| v.strip_suffix('"')).unwrap_or(value);
    let odd = |c: char| c == '"' || c == '\\' || c.is_control();
    (!value.is_empty() && !value.contains(odd)).then(|| value.to_owned())
}

/// Keeps the beginning of a request's body in its extensions, if it is a form.
pub fn watch(req: Request<Body>) -> Request<Body> {
    let found = if req.method() == Method::POST { boundary(req.headers()) } else { None };
    let Some(boundary) = found else { return req };
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (mut head, inner) = req.into_parts();
    head.extensions.insert(Fields { boundary, seen: seen.clone() });
    Request::from_parts(head, Body::http_body(Watched { inner, seen }))
}

/// What comes before the bytes of a form's file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Form {
    /// The fields' names, in lower case, and values.
    pub fields: Vec<(String, String)>,
    /// What the client calls the file, without folders.
    pub file_name: String,
}

impl Form {
    /// The value of a field; `None` if there is none.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    /// A value in which the file's name stands for `${filename}`, as S3 has it.
    pub fn filled(&self, value: &str) -> String {
        value.replace(FILE_NAME, &self.file_name)
    }
}

/// What stands for the file's name in a field.
pub const FILE_NAME: &str = "${filename}";

impl Fields {
    /// What comes before the file.
    ///
    /// # Errors
    /// MalformedPOSTRequest for a form that two readers could understand differently.
    pub fn read(&self) -> S3Result<Form> {
        let bad =
            || s3_error!(MalformedPOSTRequest, "the form can be read in two ways, or in none");
        parse(&self.seen.lock(), &self.boundary).ok_or_else(bad)
    }
}

/// The line that begins here, and what comes behind it.
fn line(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let end = text.windows(2).position(|pair| pair == b"\r\n")?;
    Some((&text[..end], &text[end + 2..]))
}

/// The name of a part's field, the name of its file, and what comes behind its headers.
fn part(mut rest: &[u8]) -> Option<(&str, &str, &[u8])> {
    const DISPOSITION: &str = "content-disposition: form-data; name=\"";
    let mut names = None;
    loop {
        let (head, behind) = line(rest)?;
        rest = behind;
        if head.is_empty() {
            let (name, file) = names?;
            return Some((name, file, rest));
        }
        let head = std::str::from_utf8(head).ok().filter(|h| !h.contains(char::is_control))?;
        let Some(start) = head.get(..DISPOSITION.len()) else { continue };
        if start.eq_ignore_ascii_case(DISPOSITION) {
            let (name, behind) = head[DISPOSITION.len()..].split_once('"')?;
            let file = behind.strip_prefix("; filename=\"").and_then(|f| f.strip_suffix('"'));
            if names.replace((name, file.unwrap_or_default())).is_some() {
                return None;
            }
        }
    }
}

fn parse(form: &[u8], boundary: &str) -> Option<Form> {
    let mark = format!("--{boundary}");
    let (first, mut rest) = line(form.strip_prefix(b"\r\n").unwrap_or(form))?;
    if first != mark.as_bytes() {
        return None;
    }
    let mut form = Form::default();
    loop {
        let (name, file, value) = part(rest)?;
        let name = name.to_ascii_lowercase();
        if name == "file" {
            // Some browsers send the folders, too.
            form.file_name = file.rsplit(['/', '\\']).next().unwrap_or_default().to_owned();
            return Some(form);
        }
        let mut behind = value;
        let len = loop {
            let (text, next) = line(behind)?;
            if text == mark.as_bytes() {
                break value.len() - behind.len();
            }
            behind = next;
        };
        rest = line(behind)?.1;
        let text = std::str::from_utf8(&value[..len.checked_sub(2)?]).ok()?;
        if form.get(&name).is_some() {
            return None;
        }
        form.fields.push((name, text.to_owned()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(parts: &[(&str, &str)]) -> String {
        let part = |(name, value): &(&str, &str)| {
            format!("--X\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let parts: String = parts.iter().map(part).collect();
        format!("{parts}--X--\r\n")
    }

    fn field(form: &[u8], boundary: &str, name: &str) -> Option<String> {
        parse(form, boundary)?.get(name).map(str::to_owned)
    }

    #[test]
    fn the_name_of_a_file_has_no_folders() {
        let text = form(&[("key", "a/${filename}"), ("file\"; filename=\"C:\\\\b/c d.png", "x")]);
        let form = parse(text.as_bytes(), "X").unwrap();
        assert_eq!(form.filled("a/${filename}-${filename}"), "a/c d.png-c d.png");
        assert_eq!(Form::default().filled("a/${filename}"), "a/");
    }

    #[test]
    fn a_field_before_the_file_is_found() {
        let text = form(&[("key", "k"), ("ACL", "public-read"), ("t", "a\r\nb"), ("file", "x")]);
        assert_eq!(field(text.as_bytes(), "X", "acl").unwrap(), "public-read");
        assert_eq!(field(text.as_bytes(), "X", "t").unwrap(), "a\r\nb");
        assert_eq!(field(text.as_bytes(), "X", "tagging"), None);
        assert_eq!(field(text.as_bytes(), "Y", "acl"), None);
        for end in 0..text.find("\"file\"").unwrap() {
            assert_eq!(field(&text.as_bytes()[..end], "X", "acl"), None, "{end}");
        }
    }

    #[test]
    fn what_comes_behind_the_file_is_no_field() {
        let text = form(&[("file", "x"), ("acl", "public-read")]);
        assert_eq!(parse(text.as_bytes(), "X"), Some(Form::default()));
    }

    #[test]
    fn a_form_that_can_be_read_in_two_ways_has_none() {
        let open = ("acl", "public-read");
        for parts in
            [vec![open, open, ("file", "x")], vec![("key\"\n\nContent", "x"), open, ("file", "x")]]
        {
            assert_eq!(field(form(&parts).as_bytes(), "X", "acl"), None, "{parts:?}");
        }
        let twice = form(&[open, ("file", "x")]).replacen(
            "\r\n\r\n",
            "\r\nContent-Disposition: form-data; name=\"key\"\r\n\r\n",
            1,
        );
        assert_eq!(field(twice.as_bytes(), "X", "acl"), None);
    }

    #[test]
    fn a_boundary_is_told_once() {
        let told = |kind: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::CONTENT_TYPE, kind.parse().unwrap());
            boundary(&headers)
        };
        assert_eq!(told("multipart/form-data; boundary=abc").as_deref(), Some("abc"));
        assert_eq!(told("multipart/form-data; boundary=\"a c\"").as_deref(), Some("a c"));
        assert_eq!(told("multipart/form-data; boundary=a; boundary=b"), None);
        assert_eq!(told("text/plain; boundary=a"), None);
    }
}
