//! The elements that messages to S3 may have: `s3s` passes over those that it does not know, so
//! that a condition or a setting of another name would be lost.
//!
//! Owns: [`known`], which also writes names without prefixes of namespaces, as `s3s` reads them.

use s3s::{S3Error, S3Result, s3_error};

/// Elements, and what each may hold; none if it holds text. The first is a root of a message.
type Elements = &'static [(&'static str, &'static [&'static str])];

const SUMS: &[&str] = &[
    "PartNumber",
    "ETag",
    "ChecksumCRC32",
    "ChecksumCRC32C",
    "ChecksumCRC64NVME",
    "ChecksumSHA1",
    "ChecksumSHA256",
];
const TAG: (&str, &[&str]) = ("Tag", &["Key", "Value"]);

/// All messages that are taken.
const MESSAGES: &[Elements] = &[
    &[
        ("AccessControlPolicy", &["Owner", "AccessControlList"]),
        ("Owner", &["ID", "DisplayName"]),
        ("AccessControlList", &["Grant"]),
        ("Grant", &["Grantee", "Permission"]),
        ("Grantee", &["ID", "DisplayName", "URI", "EmailAddress"]),
    ],
    &[("CompleteMultipartUpload", &["Part"]), ("Part", SUMS)],
    &[
        ("CORSConfiguration", &["CORSRule"]),
        (
            "CORSRule",
            &[
                "ID",
                "AllowedHeader",
                "AllowedMethod",
                "AllowedOrigin",
                "ExposeHeader",
                "MaxAgeSeconds",
            ],
        ),
    ],
    &[
        ("CreateBucketConfiguration", &["LocationConstraint", "Location", "Bucket", "Tags"]),
        ("Location", &["Name", "Type"]),
        ("Bucket", &["DataRedundancy", "Type"]),
        ("Tags", &["Tag"]),
        TAG,
    ],
    &[
        ("Delete", &["Object", "Quiet"]),
        ("Object", &["Key", "VersionId", "ETag", "LastModifiedTime", "Size"]),
    ],
    &[("Tagging", &["TagSet"]), ("TagSet", &["Tag"]), TAG],
];

fn bad(text: &str) -> S3Error {
    s3_error!(MalformedXML, "the body cannot be used: {text}")
}

/// An element that has begun.
struct Open<'x> {
    /// Its name as it is written.
    written: &'x str,
    name: &'x str,
    /// How many namespaces were known outside of it.
    outside: usize,
}

/// Where a message is.
#[derive(Default)]
struct Reader<'x> {
    open: Vec<Open<'x>>,
    /// Prefixes with their namespaces; the empty one is that of names without.
    spaces: Vec<(&'x str, &'x str)>,
    message: Option<(Elements, &'x str)>,
    out: String,
}

/// A tag up to its end, which does not stand in an attribute's value.
fn tag(text: &str) -> S3Result<(&str, &str)> {
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
        match (byte, quote) {
            (b'"' | b'\'', None) => quote = Some(byte),
            (b'>', None) => return Ok((&text[..at], &text[at + 1..])),
            (b'<', None) => break,
            (byte, Some(begun)) if byte == begun => quote = None,
            _ => {}
        }
    }
    Err(bad("a tag does not end"))
}

/// The attributes of a tag that say of namespaces.
fn spaces(mut text: &str) -> S3Result<Vec<(&str, &str)>> {
    let mut found = Vec::new();
    loop {
        text = text.trim_start();
        let Some((name, rest)) = text.split_once('=') else { break };
        let rest = rest.trim_start();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let quote = quote.ok_or_else(|| bad("an attribute has no value"))?;
        let (value, behind) =
            rest[1..].split_once(quote).ok_or_else(|| bad("an attribute does not end"))?;
        match name.trim_end().split_once(':') {
            None if name.trim_end() == "xmlns" => found.push(("", value)),
            Some(("xmlns", prefix)) => found.push((prefix, value)),
            _ => {}
        }
        text = behind;
    }
    if text.is_empty() { Ok(found) } else { Err(bad("a tag cannot be read")) }
}

impl<'x> Reader<'x> {
    fn begin(&mut self, inside: &'x str) -> S3Result<()> {
        let (inside, empty) =
            inside.strip_suffix('/').map_or((inside, false), |inside| (inside, true));
        let end = inside.find(|c: char| c.is_ascii_whitespace()).unwrap_or(inside.len());
        let (written, attributes) = inside.split_at(end);
        let outside = self.spaces.len();
        self.spaces.extend(spaces(attributes)?);
        let (prefix, name) = written.split_once(':').unwrap_or(("", written));
        let space = self.spaces.iter().rev().find(|(known, _)| *known == prefix);
        let space = match space {
            Some((_, space)) => space,
            None if prefix.is_empty() => "",
            None => return Err(bad("a prefix stands for no namespace")),
        };
        self.check(name, space)?;
        self.out += &format!("<{name}{attributes}");
        if empty {
            self.spaces.truncate(outside);
            self.out.push_str("/>");
        } else {
            self.out.push('>');
            self.open.push(Open { written, name, outside });
        }
        Ok(())
    }

    /// Refuses an element that has no place here.
    fn check(&mut self, name: &'x str, space: &'x str) -> S3Result<()> {
        let unknown = || bad(&format!("the element {name} is not known here"));
        let Some(parent) = self.open.last() else {
            let elements = MESSAGES.iter().find(|elements| elements[0].0 == name);
            let first = self.message.is_none();
            let elements = elements.filter(|_| first).ok_or_else(unknown)?;
            self.message = Some((elements, space));
            return Ok(());
        };
        let (elements, own) = self.message.ok_or_else(unknown)?;
        let mut holders = elements.iter().filter(|(holder, _)| *holder == parent.name);
        let holds = holders.next().is_some_and(|(_, held)| held.contains(&name));
        if !holds || space != own {
            return Err(unknown());
        }
        if name == "Tags" {
            return Err(s3_error!(NotImplemented, "set a bucket's tags by PutBucketTagging"));
        }
        Ok(())
    }

    fn end(&mut self, inside: &str) -> S3Result<()> {
        let open = self.open.pop().filter(|open| open.written == inside.trim_ascii_end());
        let open = open.ok_or_else(|| bad("an element ends that did not begin"))?;
        self.spaces.truncate(open.outside);
        self.out += &format!("</{}>", open.name);
        Ok(())
    }
}

/// A message whose elements are all known if they are, with names without prefixes. Comments,
/// CDATA and references by number are not in it any more (`message.rs`). Cost: one pass.
///
/// # Errors
/// MalformedXML; NotImplemented for the tags of a bucket that is made.
pub fn known(text: &str) -> S3Result<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (mut reader, mut rest) = (Reader::default(), text);
    while let Some((before, tagged)) = rest.split_once('<') {
        reader.out.push_str(before);
        let (inside, behind) = tag(tagged)?;
        match inside.as_bytes().first() {
            Some(b'/') => reader.end(&inside[1..])?,
            Some(b'!' | b'?') => return Err(bad("it declares a document type")),
            _ => reader.begin(inside)?,
        }
        rest = behind;
    }
    reader.out.push_str(rest);
    if reader.open.is_empty() { Ok(reader.out) } else { Err(bad("it ends too early")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_elements_pass_whatever_their_prefix() {
        let plain = "<Delete><Object><Key>a &lt; b</Key></Object><Quiet/></Delete>";
        assert_eq!(known(plain).unwrap(), plain);
        let prefixed = "<a:Delete xmlns:a='urn:s3'><a:Object><a:Key>a &lt; b</a:Key></a:Object>\
            <a:Quiet/></a:Delete>";
        let expected = plain.replacen("<Delete>", "<Delete xmlns:a='urn:s3'>", 1);
        assert_eq!(known(prefixed).unwrap(), expected);
        let grantee = "<AccessControlPolicy><AccessControlList><Grant><Grantee \
            xmlns:xsi=\"http://x\" xsi:type=\"a>b\"><URI>u</URI></Grantee></Grant>\
            </AccessControlList></AccessControlPolicy>";
        assert_eq!(known(grantee).unwrap(), grantee);
        // An empty body, and none that is a message: the operation says what it lacks.
        assert_eq!(known(" ").unwrap(), " ");
    }

    #[test]
    fn what_is_not_known_is_refused() {
        for text in [
            "<Foo/>",
            "<Delete><Foo/></Delete>",
            "<Delete><Object><Key>d</Key><IfMatch>x</IfMatch></Object></Delete>",
            "<Delete><Object><Key><Key>d</Key></Key></Object></Delete>",
            "<Delete><Key>d</Key></Delete>",
            "<Delete><Object><x:Key xmlns:x='urn:y'>d</x:Key></Object></Delete>",
            "<Delete xmlns='u'><Object xmlns='v'><Key>d</Key></Object></Delete>",
            "<Delete><a:Object><Key>d</Key></a:Object></Delete>",
            "<Delete></Delete><Delete></Delete>",
            "<Delete><Quiet a></Quiet></Delete>",
            "<Delete><Quiet a=b></Quiet></Delete>",
            "<Delete><Quiet a='b></Quiet></Delete>",
            "<Delete><Quiet></Delete></Quiet>",
            "<Delete>",
            "</Delete>",
            "<Delete",
            "<!DOCTYPE Delete><Delete></Delete>",
            "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value><Foo/></Tag></TagSet></Tagging>",
            "<CORSConfiguration><CORSRule><Foo/></CORSRule></CORSConfiguration>",
            "<CompleteMultipartUpload><Part><Size>3</Size></Part></CompleteMultipartUpload>",
            "<CreateBucketConfiguration><Foo>x</Foo></CreateBucketConfiguration>",
        ] {
            let code = known(text).err().map(|e| e.code().as_str().to_owned());
            assert_eq!(code.as_deref(), Some("MalformedXML"), "{text}");
        }
        let tags = "<CreateBucketConfiguration><Tags/></CreateBucketConfiguration>";
        assert_eq!(known(tags).unwrap_err().code().as_str(), "NotImplemented");
    }
}
