//! What a completion names: its parts and checksums, compared with those that there are.
//!
//! Owns: [`Asked`].

use crate::http::digest::{Sums, hex, named, unhex};
use s3s::crypto::{Checksum as _, Md5};
use s3s::dto::{ChecksumType, CompletedPart, ETag};
use s3s::{S3Result, s3_error};

/// What a completion asks for.
pub struct Asked {
    /// The parts that it names.
    pub parts: Vec<CompletedPart>,
    /// The size of all of them together.
    pub size: Option<u64>,
    /// Checksums of the whole.
    pub sums: Sums,
    /// What those are of.
    pub kind: Option<ChecksumType>,
}

/// Refuses a completion with another type of checksum than the upload was begun with.
///
/// # Errors
/// InvalidRequest.
pub fn check_kind(asked: Option<&ChecksumType>, begun: Option<&str>) -> S3Result<()> {
    let asked = asked.map(ChecksumType::as_str);
    // Of an upload without an algorithm nothing is computed, which any type says truly.
    if asked.is_none() || begun.is_none() || asked == begun {
        return Ok(());
    }
    let (asked, begun) = (asked.unwrap_or_default(), begun.unwrap_or_default());
    Err(s3_error!(InvalidRequest, "the upload's checksums are {begun}, not {asked}"))
}

/// Number and ETag of a part that a completion names.
///
/// # Errors
/// MalformedXML if one of them is missing.
pub fn number_of(part: &CompletedPart) -> S3Result<(i32, &str)> {
    let etag = part.e_tag.as_ref().map(ETag::value).filter(|etag| !etag.is_empty());
    let missing = || s3_error!(MalformedXML, "each part has a PartNumber and an ETag");
    part.part_number.zip(etag).ok_or_else(missing)
}

/// Refuses a part of other checksums than it is announced to have.
///
/// # Errors
/// InvalidPart.
pub fn check_part(part: &CompletedPart, sums: &Sums) -> S3Result<()> {
    let given = Sums {
        crc32: part.checksum_crc32.clone(),
        crc32c: part.checksum_crc32c.clone(),
        crc64nvme: part.checksum_crc64nvme.clone(),
        sha1: part.checksum_sha1.clone(),
        sha256: part.checksum_sha256.clone(),
    };
    let number = part.part_number.unwrap_or_default();
    for ((name, given), (_, is)) in named(&given).into_iter().zip(named(sums)) {
        if given.is_some() && given != is {
            return Err(s3_error!(InvalidPart, "part {number} has another {name}"));
        }
    }
    Ok(())
}

/// Refuses an object of other checksums than it is announced to have.
///
/// # Errors
/// BadDigest; InvalidRequest for one that is not made.
pub fn check_sums(given: &Sums, is: &Sums, composite: bool) -> S3Result<()> {
    for ((name, given), (_, is)) in named(given).into_iter().zip(named(is)) {
        let Some(given) = given else { continue };
        let Some(is) = is else {
            let text = "the upload was not begun with this algorithm";
            return Err(s3_error!(InvalidRequest, "{name} cannot be checked: {text}"));
        };
        // Some clients leave out how many parts a composite checksum is of.
        let same = given == is
            || composite && is.rsplit_once('-').is_some_and(|(sum, _)| sum == given.as_str());
        if !same {
            return Err(s3_error!(BadDigest, "the object has another {name}"));
        }
    }
    Ok(())
}

/// The ETag of an object, from those of its parts.
pub fn etag_of_parts<'p>(etags: impl ExactSizeIterator<Item = &'p str>) -> String {
    let (mut md5, count) = (Md5::default(), etags.len());
    for etag in etags {
        md5.update(&unhex(etag).unwrap_or_default());
    }
    format!("{}-{count}", hex(md5.finalize().as_ref()))
}
