//! Digests of a body as it comes in, and their comparison with what the client announced.
//!
//! Owns: [`Announced`], [`Digests`], [`Sums`], [`Trailers`].

use crate::refusal::{Result, Why};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use parking_lot::Mutex;
use s3s::crypto::{Checksum, Crc32, Crc32c, Crc64Nvme, Md5, Sha1, Sha256};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Checksums as base64, by algorithm.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sums {
    /// CRC32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32: Option<String>,
    /// CRC32C.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc32c: Option<String>,
    /// CRC64NVME.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub crc64nvme: Option<String>,
    /// SHA1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha1: Option<String>,
    /// SHA256.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

impl Sums {
    /// The place of the checksum by this algorithm, as S3 calls it.
    pub fn place(&mut self, algorithm: &str) -> &mut Option<String> {
        match algorithm {
            "CRC32" => &mut self.crc32,
            "CRC32C" => &mut self.crc32c,
            "CRC64NVME" => &mut self.crc64nvme,
            "SHA1" => &mut self.sha1,
            _ => &mut self.sha256,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What came behind a body; nothing before its end was seen.
#[derive(Debug, Clone, Default)]
pub struct Trailers(pub Arc<Mutex<HeaderMap>>);

impl Trailers {
    /// All of them.
    pub fn get(&self) -> HeaderMap {
        self.0.lock().clone()
    }
}

/// What the client announced of a body beforehand, or says behind it.
#[derive(Debug, Clone, Default)]
pub struct Announced {
    /// The header Content-MD5.
    pub md5: Option<String>,
    /// Checksums in headers.
    pub sums: Sums,
    /// An Adler-32 in base64.
    pub adler32: Option<String>,
    /// Algorithms whose checksums are to be kept, as S3 calls them, in capitals.
    pub algorithms: Vec<String>,
    /// Algorithms whose checksums are to come behind the body.
    pub trailing: Vec<&'static str>,
    /// What came there.
    pub trailers: Trailers,
}

impl Announced {
    /// What the headers of a request announce.
    ///
    /// # Errors
    /// Invalid for a checksum that is not text.
    pub fn of_headers(headers: &HeaderMap) -> Result<Self> {
        let mut sums = Sums::default();
        for (algorithm, _) in named(&Sums::default()) {
            let name = format!("x-amz-checksum-{}", algorithm.to_lowercase());
            let text = headers.get(&name).map(|value| value.to_str().map(str::to_owned));
            let bad = |_| Why::Invalid.says(format!("{name} is not text"));
            *sums.place(algorithm) = text.transpose().map_err(bad)?;
        }
        let md5 = announced_md5(headers);
        let algorithms = sdk_algorithm(headers).into_iter().collect();
        Ok(Self { md5, sums, algorithms, ..Self::default() })
    }

    /// Compares a body at hand with what was announced of it.
    ///
    /// # Errors
    /// As [`Digests::for_body`] and [`Digests::finish`].
    pub fn check(&self, body: &[u8]) -> Result<Digested> {
        let mut digests = Digests::for_body(self)?;
        digests.update(body);
        digests.finish(self)
    }

    /// The checksums that came behind the body.
    ///
    /// # Errors
    /// BadTrailer if they are not those that were announced.
    fn behind(&self) -> Result<HeaderMap> {
        let malformed = |text: String| Why::BadTrailer.says(text);
        let behind = self.trailers.get();
        let header = |name: &str| format!("x-amz-checksum-{}", name.to_lowercase());
        if let Some(name) = self.trailing.iter().find(|name| !behind.contains_key(header(name))) {
            return Err(malformed(format!("{name} was announced and did not come")));
        }
        let announced = |name: &str| {
            name == "x-amz-trailer-signature" || self.trailing.iter().any(|a| header(a) == name)
        };
        match behind.keys().find(|name| !announced(name.as_str())) {
            Some(name) => Err(malformed(format!("{name} came and was not announced"))),
            None => Ok(behind),
        }
    }

    fn wants(&self, algorithm: &str, given: Option<&String>) -> bool {
        let named = self.algorithms.iter().any(|a| a == algorithm);
        given.is_some() || named || self.trailing.contains(&algorithm)
    }
}

/// A checksum of what has come so far.
pub trait Sum: Send {
    /// Takes more bytes.
    fn update(&mut self, bytes: &[u8]);
    /// The checksum in base64.
    fn finish(self: Box<Self>) -> String;
}

impl<C: Checksum + Send> Sum for C
where
    C::Output: AsRef<[u8]>,
{
    fn update(&mut self, bytes: &[u8]) {
        Checksum::update(self, bytes);
    }

    fn finish(self: Box<Self>) -> String {
        STANDARD.encode((*self).finalize())
    }
}

/// Begins a checksum by this algorithm, as S3 calls it; `None` for one that is not known.
pub fn begin(algorithm: &str) -> Option<Box<dyn Sum>> {
    Some(match algorithm {
        "CRC32" => Box::new(Crc32::default()),
        "CRC32C" => Box::new(Crc32c::default()),
        "CRC64NVME" => Box::new(Crc64Nvme::default()),
        "SHA1" => Box::new(Sha1::default()),
        "SHA256" => Box::new(Sha256::default()),
        _ => return None,
    })
}

/// Digests of what has come so far.
#[derive(Default)]
pub struct Digests {
    md5: Md5,
    /// Those asked for, by algorithm.
    sums: Vec<(&'static str, Box<dyn Sum>)>,
    adler32: Option<Adler32>,
}

/// The checksum of RFC 1950.
struct Adler32(u32, u32);

impl Default for Adler32 {
    fn default() -> Self {
        Self(1, 0)
    }
}

impl Adler32 {
    fn update(&mut self, bytes: &[u8]) {
        const BASE: u32 = 65521;
        // This many bytes overflow neither sum.
        for piece in bytes.chunks(5552) {
            for byte in piece {
                self.0 += u32::from(*byte);
                self.1 += self.0;
            }
            (self.0, self.1) = (self.0 % BASE, self.1 % BASE);
        }
    }

    fn finalize(&self) -> [u8; 4] {
        (self.1 << 16 | self.0).to_be_bytes()
    }
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
    /// NoDigest for a Content-MD5 that is none, Invalid for an unknown algorithm.
    pub fn for_body(announced: &Announced) -> Result<Self> {
        if let Some(md5) = &announced.md5 {
            let sound = STANDARD.decode(md5).is_ok_and(|bytes| bytes.len() == 16);
            if !sound {
                return Err(Why::NoDigest.says("Content-MD5 is not a digest in base64"));
            }
        }
        let unknown = |name: &&String| begin(name).is_none();
        if let Some(name) = announced.algorithms.iter().find(unknown) {
            return Err(Why::Invalid.says(format!("{name} is no algorithm for checksums")));
        }
        let wanted = named(&announced.sums).into_iter();
        let wanted = wanted.filter(|(name, given)| announced.wants(name, *given));
        let sums = wanted.filter_map(|(name, _)| Some((name, begin(name)?))).collect();
        let adler32 = announced.adler32.is_some().then(Adler32::default);
        Ok(Self { md5: Md5::default(), sums, adler32 })
    }

    /// Takes more bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        Checksum::update(&mut self.md5, bytes);
        self.sums.iter_mut().for_each(|(_, sum)| sum.update(bytes));
        if let Some(sum) = &mut self.adler32 {
            sum.update(bytes);
        }
    }

    /// Ends them and compares them with what was announced.
    ///
    /// # Errors
    /// OtherDigest if the body is not what the client meant, BadTrailer.
    pub fn finish(self, announced: &Announced) -> Result<Digested> {
        let base64 = |bytes: &[u8]| STANDARD.encode(bytes);
        let md5 = self.md5.finalize();
        if announced.md5.as_ref().is_some_and(|given| *given != base64(md5.as_ref())) {
            return Err(Why::OtherDigest.says("the body has another MD5 than Content-MD5 says"));
        }
        let adler32 = self.adler32.map(|sum| base64(&sum.finalize()));
        if announced.adler32.is_some() && announced.adler32 != adler32 {
            return Err(Why::OtherDigest.says("the body has another Adler-32 than announced"));
        }
        let mut sums = Sums::default();
        for (name, sum) in self.sums {
            *sums.place(name) = Some(sum.finish());
        }
        let behind = announced.behind()?;
        for (name, got) in named(&sums) {
            let trailer = || {
                let value = behind.get(format!("x-amz-checksum-{}", name.to_lowercase()))?;
                // One that is no text is no digest either.
                Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
            };
            let in_header = named(&announced.sums).into_iter().find(|(n, _)| *n == name);
            let in_header = in_header.and_then(|(_, value)| value.cloned());
            let differs = |given: Option<String>| given.is_some_and(|given| Some(&given) != got);
            if differs(in_header) || differs(trailer()) {
                return Err(
                    Why::OtherDigest.says(format!("the body has another {name} than announced"))
                );
            }
        }
        Ok(Digested { md5: hex(md5.as_ref()), sums })
    }
}

/// The header Content-MD5. One that is empty is there, and is no digest.
pub fn announced_md5(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("content-md5")?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

/// The algorithm whose checksum a client says that it sends, and that is kept in any case. `s3s`
/// does not read this header of a put.
pub fn sdk_algorithm(headers: &HeaderMap) -> Option<String> {
    let value = headers.get("x-amz-sdk-checksum-algorithm")?;
    Some(String::from_utf8_lossy(value.as_bytes()).to_ascii_uppercase())
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

/// Bytes of a text in hexadecimal; `None` if it is none.
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
        assert_eq!(e.why, Why::OtherDigest);
    }

    #[test]
    fn an_empty_md5_is_no_digest() {
        let mut headers = HeaderMap::new();
        assert_eq!(announced_md5(&headers), None);
        headers.insert("content-md5", http::HeaderValue::from_static(""));
        let announced = Announced::of_headers(&headers).unwrap();
        assert_eq!(Digests::for_body(&announced).err().unwrap().why, Why::NoDigest);
    }

    #[test]
    fn hexadecimal_round_trips_and_refuses_what_is_none() {
        assert_eq!(unhex(&hex(b"\x00\xff8")), Some(b"\x00\xff8".to_vec()));
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("zz"), None);
    }
}
