//! Digests of bodies as clients of WebDAV write them: Content-MD5, Digest (RFC 3230),
//! Content-Digest and Repr-Digest (RFC 9530), ownCloud's OC-Checksum, and the checksums of S3.
//!
//! Owns: [`announced`]. Each is compared with the body; one of an unknown algorithm is refused.

use crate::dav::error::{Error, Result, refusal};
use crate::http::digest::{Announced, unhex};
use crate::http::header::{list, single};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};

/// What the headers of a request say of its body, which is a `part` of an object or all of it.
///
/// # Errors
/// Status 501 for an unknown algorithm, and for the digest of a whole object with a part of it;
/// Status 400 for a value that is none, the same if two differ.
pub fn announced(headers: &HeaderMap, part: bool) -> Result<Announced> {
    let mut found = Found::default();
    if let Some(text) = single(headers, "content-md5")? {
        found.base64("content-md5", "md5", text)?;
    }
    for name in ["crc32", "crc32c", "crc64nvme", "sha1", "sha256"] {
        let header = format!("x-amz-checksum-{name}");
        if let Some(text) = single(headers, &header)? {
            found.base64(&header, name, text)?;
        }
    }
    match single(headers, "x-amz-content-sha256")? {
        None | Some("UNSIGNED-PAYLOAD") => {}
        Some(text) => found.hex("x-amz-content-sha256", "sha256", text)?,
    }
    if let Some(text) = list(headers, "content-digest")? {
        found.dictionary("content-digest", &text)?;
    }
    let of_all = ["repr-digest", "digest", "oc-checksum"];
    if let Some(name) = of_all.iter().find(|name| part && headers.contains_key(**name)) {
        let text = format!("{name} is of the whole object, and a part is sent");
        return Err(refusal(StatusCode::NOT_IMPLEMENTED, text));
    }
    if let Some(text) = list(headers, "repr-digest")? {
        found.dictionary("repr-digest", &text)?;
    }
    if let Some(text) = list(headers, "digest")? {
        found.instance(&text)?;
    }
    for one in single(headers, "oc-checksum")?.into_iter().flat_map(str::split_whitespace) {
        let (name, value) = one.split_once(':').ok_or_else(|| none("oc-checksum"))?;
        found.hex("oc-checksum", &name.to_ascii_lowercase(), value)?;
    }
    Ok(found.0)
}

fn none(header: &str) -> Error {
    refusal(StatusCode::BAD_REQUEST, format!("the header {header} holds no digest"))
}

/// Digests found so far.
#[derive(Default)]
struct Found(Announced);

impl Found {
    fn base64(&mut self, header: &str, name: &str, text: &str) -> Result<()> {
        let bytes = STANDARD.decode(text.trim()).map_err(|_| none(header))?;
        self.add(header, name, &bytes)
    }

    fn hex(&mut self, header: &str, name: &str, text: &str) -> Result<()> {
        self.add(header, name, &unhex(text.trim()).ok_or_else(|| none(header))?)
    }

    /// A dictionary of structured fields: `sha-256=:BASE64:, md5=:BASE64:`.
    fn dictionary(&mut self, header: &str, text: &str) -> Result<()> {
        for member in text.split(',') {
            let (name, value) = member.trim().split_once('=').ok_or_else(|| none(header))?;
            let inside = value.strip_prefix(':').and_then(|value| value.strip_suffix(':'));
            self.base64(header, name, inside.ok_or_else(|| none(header))?)?;
        }
        Ok(())
    }

    /// The header Digest: `SHA-256=BASE64,adler32=HEX`.
    fn instance(&mut self, text: &str) -> Result<()> {
        for member in text.split(',') {
            let (name, value) = member.trim().split_once('=').ok_or_else(|| none("digest"))?;
            match name.to_ascii_lowercase().as_str() {
                "adler32" => self.hex("digest", "adler32", value)?,
                name => self.base64("digest", name, value)?,
            }
        }
        Ok(())
    }

    fn add(&mut self, header: &str, name: &str, bytes: &[u8]) -> Result<()> {
        let sums = &mut self.0.sums;
        let (slot, len) = match name {
            "md5" => (&mut self.0.md5, 16),
            "sha" | "sha1" => (&mut sums.sha1, 20),
            "sha-256" | "sha256" => (&mut sums.sha256, 32),
            "crc32" => (&mut sums.crc32, 4),
            "crc32c" => (&mut sums.crc32c, 4),
            "crc64nvme" => (&mut sums.crc64nvme, 8),
            "adler" | "adler32" => (&mut self.0.adler32, 4),
            _ => {
                let text = format!("{header} has a digest of an unknown algorithm, {name}");
                return Err(refusal(StatusCode::NOT_IMPLEMENTED, text));
            }
        };
        if bytes.len() != len {
            return Err(none(header));
        }
        let new = STANDARD.encode(bytes);
        if slot.as_ref().is_some_and(|there| *there != new) {
            return Err(refusal(
                StatusCode::BAD_REQUEST,
                "two headers say different digests of the body",
            ));
        }
        *slot = Some(new);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::digest::Digests;
    use http::{HeaderName, HeaderValue};

    fn checked(name: &str, value: &str, part: bool) -> Result<(), u16> {
        let mut headers = HeaderMap::new();
        let name: HeaderName = name.parse().unwrap();
        headers.insert(name, HeaderValue::from_str(value).unwrap());
        let check = || {
            let announced = announced(&headers, part)?;
            let mut digests = Digests::for_body(&announced)?;
            digests.update(b"a");
            digests.update(b"bc");
            Ok(digests.finish(&announced).map(drop)?)
        };
        check().map_err(|e: Error| e.status.as_u16())
    }

    const MD5: &str = "kAFQmDzST7DWlj99KOF/cg==";
    const SHA1: &str = "qZk+NkcGgWq6PiVxeFDCbJzQ2J0=";
    const SHA256: &str = "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=";

    #[test]
    fn digests_are_compared_with_the_body() {
        let cases = [
            ("content-md5", MD5.to_owned()),
            ("x-amz-checksum-sha1", SHA1.to_owned()),
            ("x-amz-checksum-crc32", "NSRBwg==".to_owned()),
            ("content-digest", format!("sha-256=:{SHA256}:, md5=:{MD5}:")),
            ("repr-digest", format!("sha=:{SHA1}:")),
            ("digest", format!("SHA-256={SHA256},md5={MD5},ADLER32=024d0127")),
            ("oc-checksum", "MD5:900150983cd24fb0d6963f7d28e17f72".to_owned()),
            (
                "oc-checksum",
                "SHA1:a9993e364706816aba3e25717850c26c9cd0d89d ADLER32:024D0127".into(),
            ),
        ];
        for (name, value) in &cases {
            assert_eq!(checked(name, value, false), Ok(()), "{name} {value}");
            let wrong =
                value.replacen("kA", "kB", 1).replacen("qZ", "qY", 1).replacen("un", "uo", 1);
            let wrong =
                wrong.replacen("NS", "NT", 1).replacen("024", "025", 1).replacen("90", "91", 1);
            assert_eq!(checked(name, &wrong, false), Err(400), "{name} {wrong}");
        }
    }

    #[test]
    fn what_cannot_be_compared_is_refused() {
        for (name, value, status) in [
            ("content-md5", "!", 400),
            ("digest", "sha-512=AAAA", 501),
            ("digest", "sha-256", 400),
            ("content-digest", "sha-256=AAAA", 400),
            ("content-digest", "sha-256=:AAAA:", 400),
            ("repr-digest", "crc64=:AAAA:", 501),
            ("oc-checksum", "MD5:00", 400),
            ("oc-checksum", "SHA3-256:00", 501),
            ("oc-checksum", "00", 400),
            ("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", 400),
        ] {
            assert_eq!(checked(name, value, false), Err(status), "{name} {value}");
        }
        assert_eq!(checked("digest", &format!("md5={MD5}"), true), Err(501));
        assert_eq!(checked("content-md5", MD5, true), Ok(()));
    }
}
