//! Backups that were broken off.
//!
//! Owns: the heads of backups that have parts and no list yet; which of these parts belong together. A
//! part begins where the one before it ends, whichever of several tries wrote them (rule 60).

use super::bucket::{Bucket, json};
use super::manifest::{Part, head_of, hex};
use super::parts::{self, Covers};
use holdall::{BackupHead, BackupId, Reached, Result};
use serde::{Deserialize, Serialize};

/// The folder of their heads.
pub(crate) const FOLDER: &str = "unfinished";

#[derive(Serialize, Deserialize)]
struct Note {
    head: String,
}

/// What is there of a backup.
pub(crate) struct Unfinished {
    pub(crate) head: BackupHead,
    pub(crate) parts: Vec<Part>,
    pub(crate) reached: Reached,
    pub(crate) pages: u64,
}

fn name(id: BackupId) -> String {
    format!("{FOLDER}/{id}")
}

/// Notes that this backup has parts.
///
/// # Errors
/// Those of asking.
pub(crate) fn note(bucket: &Bucket, head: &BackupHead) -> Result<()> {
    let Some(id) = head.info().id else { return Ok(()) };
    let bytes = json(&Note { head: hex(&head.encode()) })?;
    bucket.wait(bucket.client.put(&name(id), bytes))
}

/// This backup is whole, or given up.
///
/// # Errors
/// Those of asking.
pub(crate) fn forget(bucket: &Bucket, id: BackupId) -> Result<()> {
    bucket.wait(bucket.client.remove(&name(id)))
}

/// Backups that have parts, the newest first.
///
/// # Errors
/// Those of asking.
pub(crate) fn all(bucket: &Bucket) -> Result<Vec<BackupHead>> {
    let mut found = bucket.wait(bucket.client.list(FOLDER))?;
    found.sort_by_key(|object| std::cmp::Reverse(object.modified));
    let mut heads = Vec::new();
    for object in found {
        let bytes = bucket.wait(bucket.client.get_if(&object.name))?;
        let note: Option<Note> = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        // What is not understood is taken up by nobody.
        heads.extend(note.and_then(|note| head_of(&note.head).ok()));
    }
    Ok(heads)
}

/// What there is of this backup, from its begin on without a gap.
///
/// # Errors
/// Those of asking.
pub(crate) fn of(bucket: &Bucket, head: BackupHead, id: BackupId) -> Result<Unfinished> {
    let folder = format!("{}/{id}", parts::FOLDER);
    let found = bucket.wait(bucket.client.list(&folder))?;
    let part = |object: &super::bucket::Object| {
        let covers = Covers::of_name(object.name.rsplit('/').next()?)?;
        Some((covers, object.bytes))
    };
    let (parts, reached, pages) = joined(found.iter().filter_map(part).collect());
    Ok(Unfinished { head, parts, reached, pages })
}

fn joined(found: Vec<(Covers, u64)>) -> (Vec<Part>, Reached, u64) {
    let (mut parts, mut reached, mut pages) = (Vec::new(), Reached::default(), 0);
    loop {
        let next =
            |(covers, _): &&(Covers, u64)| covers.place == parts.len() && covers.from == reached;
        let Some((covers, bytes)) = found.iter().find(next) else { return (parts, reached, pages) };
        parts.push(Part { name: covers.name(), bytes: *bytes, crc32c: covers.crc32c });
        (reached, pages) = (covers.to, pages + covers.pages);
    }
}

#[cfg(test)]
mod tests {
    use super::parts::LAST;
    use super::*;

    #[test]
    fn parts_join_where_they_meet() {
        let at = |granule| Reached { space: 0, granule };
        let part = |place, from, to| {
            (Covers { place, from: at(from), to: at(to), pages: 3, crc32c: 7 }, 100)
        };
        let whole = vec![part(0, 0, 8), part(1, 8, 16), part(2, 16, 20)];
        let (parts, reached, pages) = joined(whole.clone());
        assert_eq!((parts.len(), reached, pages), (3, at(20), 9));
        // A gap, and a part of another try behind it.
        let (parts, reached, _) = joined(vec![whole[0], whole[2], part(1, 9, 17)]);
        assert_eq!((parts.len(), reached), (1, at(8)));
        let (parts, reached, _) = joined(vec![whole[0], part(1, 8, 12), part(2, 12, 30), whole[2]]);
        assert_eq!((parts.len(), reached), (3, at(30)));
        for (covers, _) in whole {
            assert_eq!(Covers::of_name(&covers.name()), Some(covers));
            // Nothing can follow the part that has the end of the stream.
            assert_eq!(Covers::of_name(&format!("{}{LAST}", covers.name())), None);
        }
        for text in ["", "1-0.0-0.8-3-7", "000001-0.0-0.8-3-00000007-1", "000001-0-8-3-00000007"] {
            assert_eq!(Covers::of_name(text), None, "{text}");
        }
    }
}
