//! Digests of a body as it comes in, and their comparison with what the client announced.
//!
//! Owns: [`Announced`], [`Digests`].

use crate::meta::Sums;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use s3s::crypto::{Checksum as _, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use s3s::{S3Result, TrailingHeaders, s3_error};

/// What the client said of a body beforehand, or says behind it.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    /// The header Content-MD5.
    pub md5: Option<String>,
    /// Checksums in headers.
    pub sums: Sums,
    /// Algorithms whose checksums are to be kept, as S3 calls them, in capitals.
    pub algorithms: Vec<String>,
    /// Where checksums behind the body come.
    pub trailers: Option<TrailingHeaders>,
}

impl Announced {
    /// Adds what the header x-amz-trailer announces.
    pub fn add_trailer_names(&mut self, headers: &http::HeaderMap) {
        let names = headers.get_all("x-amz-trailer").iter().filter_map(|v| v.to_str().ok());
        for name in names.flat_map(|v| v.split(',')) {
            if let Some(algorithm) = name.trim().strip_prefix("x-amz-checksum-") {
                self.algorithms.push(algorithm.to_ascii_uppercase());
            }
        }
    }

    fn wants(&self, algorithm: &str, given: Option<&String>) -> bool {
        given.is_some() || self.algorithms.iter().any(|a| a == algorithm)
    }
}

/// Digests of what has come so far.
#[derive(Default)]
pub struct Digests {
    md5: Md5,
    crc32: Option<Crc32>,
    crc32c: Option<Crc32c>,
    crc64nvme: Option<Crc64Nvme>,
    sha1: Option<Sha1>,
    sha256: Option<Sha256>,
}

/// Finished digests.
#[derive(Debug, Clone, Default)]
pub struct Digested {
    /// The MD5, in hexadecimal.
    pub md5: String,
    /// The checksums asked for.
    pub sums: Sums,
}

impl Digests {
    /// Those that `announced` needs. Their values are checked for form.
    ///
    /// # Errors
    /// InvalidDigest for a Content-MD5 that is none.
    pub fn for_body(announced: &Announced) -> S3Result<Self> {
        if let Some(md5) = &announced.md5 {
            let sound = STANDARD.decode(md5).is_ok_and(|bytes| bytes.len() == 16);
            if !sound {
                return Err(s3_error!(InvalidDigest, "Content-MD5 is not a digest in base64"));
            }
        }
        let (a, s) = (announced, &announced.sums);
        Ok(Self {
            md5: Md5::default(),
            crc32: a.wants("CRC32", s.crc32.as_ref()).then(Crc32::default),
            crc32c: a.wants("CRC32C", s.crc32c.as_ref()).then(Crc32c::default),
            crc64nvme: a.wants("CRC64NVME", s.crc64nvme.as_ref()).then(Crc64Nvme::default),
            sha1: a.wants("SHA1", s.sha1.as_ref()).then(Sha1::default),
            sha256: a.wants("SHA256", s.sha256.as_ref()).then(Sha256::default),
        })
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.md5.update(bytes);
        if let Some(sum) = &mut self.crc32 {
            sum.update(bytes);
        }
        if let Some(sum) = &mut self.crc32c {
            sum.update(bytes);
        }
        if let Some(sum) = &mut self.crc64nvme {
            sum.update(bytes);
        }
        if let Some(sum) = &mut self.sha1 {
            sum.update(bytes);
        }
        if let Some(sum) = &mut self.sha256 {
            sum.update(bytes);
        }
    }

    /// Ends them and compares them with what was announced.
    ///
    /// # Errors
    /// BadDigest where the body is not what the client meant.
    pub fn finish(self, announced: &Announced) -> S3Result<Digested> {
        let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
        let md5 = self.md5.finalize();
        if announced.md5.as_ref().is_some_and(|given| *given != base64(md5.as_ref())) {
            return Err(s3_error!(BadDigest, "the body has another MD5 than Content-MD5 says"));
        }
        let sums = Sums {
            crc32: self.crc32.map(|s| base64(s.finalize().as_ref())),
            crc32c: self.crc32c.map(|s| base64(s.finalize().as_ref())),
            crc64nvme: self.crc64nvme.map(|s| base64(s.finalize().as_ref())),
            sha1: self.sha1.map(|s| base64(s.finalize().as_ref())),
            sha256: self.sha256.map(|s| base64(s.finalize().as_ref())),
        };
        for (name, got) in named(&sums) {
            let trailer = || {
                let read = |headers: &http::HeaderMap| {
                    let value = headers.get(format!("x-amz-checksum-{}", name.to_lowercase()))?;
                    value.to_str().ok().map(str::to_owned)
                };
                announced.trailers.as_ref()?.read(read).flatten()
            };
            let in_header = named(&announced.sums).into_iter().find(|(n, _)| *n == name);
            let given = in_header.and_then(|(_, value)| value.cloned()).or_else(trailer);
            if let (Some(given), Some(got)) = (given, got)
                && given != *got
            {
                return Err(s3_error!(BadDigest, "the body has another {name} than announced"));
            }
        }
        Ok(Digested { md5: hex(md5.as_ref()), sums })
    }
}

/// All checksums with the names of their algorithms.
pub fn named(sums: &Sums) -> [(&'static str, Option<&String>); 5] {
    [
        ("CRC32", sums.crc32.as_ref()),
        ("CRC32C", sums.crc32c.as_ref()),
        ("CRC64NVME", sums.crc64nvme.as_ref()),
        ("SHA1", sums.sha1.as_ref()),
        ("SHA256", sums.sha256.as_ref()),
    ]
}

/// Bytes in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |n: u8| char::from(DIGITS[usize::from(n)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// Bytes of a text in hexadecimal; `None` where it is none.
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().as_chunks::<2>();
    if !digits.1.is_empty() || !text.is_ascii() {
        return None;
    }
    let value = |c: u8| char::from(c).to_digit(16).and_then(|n| u8::try_from(n).ok());
    digits.0.iter().map(|[a, b]| Some(value(*a)? << 4 | value(*b)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_is_not_what_was_announced_is_refused() {
        let announced = Announced {
            sums: Sums { crc32: Some("AAAAAA==".into()), ..Sums::default() },
            ..Announced::default()
        };
        let mut digests = Digests::for_body(&announced).unwrap();
        digests.update(b"hello");
        let e = digests.finish(&announced).unwrap_err();
        assert_eq!(*e.code(), s3s::S3ErrorCode::BadDigest);
    }

    #[test]
    fn hexadecimal_round_trips_and_refuses_what_is_none() {
        assert_eq!(unhex(&hex(b"\x00\xff8")), Some(b"\x00\xff8".to_vec()));
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
    }
}
