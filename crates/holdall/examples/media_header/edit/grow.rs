//! Adding a tag to the header in front of the data.
//!
//! Owns the plan of the edit: bytes to insert at one place, and what must be replaced before it:
//! lengths of the boxes that grow, offsets of the chunks that move.

use super::make::{atom, full};
use super::parse::{Atom, Changing, Movie, Source, head_end, u32_at};
use anyhow::{Context, Result, ensure};
use holdall::WriteTx;

/// One edit of a file.
#[derive(Debug)]
pub struct Growth {
    /// Where to insert.
    pub at: u64,
    /// What to insert.
    pub bytes: Vec<u8>,
    /// What to write over before: all lies in front of `at`, so that nothing of it moves.
    pub patches: Vec<(u64, Vec<u8>)>,
}

impl Growth {
    /// Plans adding `tag` to a file that begins with `head`, all up to the end of its moov box.
    pub fn of(mut head: &[u8], tag: &[u8]) -> Result<Self> {
        let movie = Movie::parse(&mut head)?;
        let at = movie.moov.end;
        ensure!(at == head.len() as u64, "the moov box is not the last of the head");
        let (growing, bytes) = place(&mut head, &movie.moov, tag)?;
        let mut patches = Vec::new();
        for atom in growing {
            let len = u32_at(&head.bytes(atom.start..atom.start + 4)?, 0)?;
            ensure!(len > 1, "box at {} has no length of 32 bits", atom.start);
            let len = u64::from(len) + bytes.len() as u64;
            let len = u32::try_from(len).context("the header would pass 4 GiB")?;
            patches.push((atom.start, len.to_be_bytes().to_vec()));
        }
        for (number, track) in movie.tracks.iter().enumerate() {
            let mut table = Vec::new();
            for offset in &track.offsets {
                let new = if *offset >= at { offset + bytes.len() as u64 } else { *offset };
                if track.wide {
                    table.extend(new.to_be_bytes());
                } else {
                    let new = u32::try_from(new).with_context(|| {
                        format!("a chunk of track {number} would lie at {new}; that needs co64")
                    })?;
                    table.extend(new.to_be_bytes());
                }
            }
            patches.push((track.table, table));
        }
        Ok(Self { at, bytes, patches })
    }

    /// Plans adding `tag` to object `name` as the transaction sees it. Reads its head only.
    pub fn of_object(tx: &mut WriteTx, name: &str, tag: &[u8]) -> Result<Self> {
        let mut object = Changing { tx, name };
        let end = head_end(&mut object)?;
        Self::of(&object.bytes(0..end)?, tag)
    }

    /// Does it to a head in memory.
    pub fn apply(&self, head: &mut Vec<u8>) -> Result<()> {
        for (at, bytes) in &self.patches {
            let at = usize::try_from(*at)?;
            head[at..at + bytes.len()].copy_from_slice(bytes);
        }
        let at = usize::try_from(self.at)?;
        head.splice(at..at, self.bytes.iter().copied());
        Ok(())
    }
}

/// The boxes that end where moov does and grow with a tag, from the outside in, and the bytes
/// to insert there: a tag into the tags that are there, or all that must be around it.
fn place(head: &mut &[u8], moov: &Atom, tag: &[u8]) -> Result<(Vec<Atom>, Vec<u8>)> {
    let mut growing = vec![moov.clone()];
    for kind in [b"udta", b"meta", b"ilst"] {
        let Some(outer) = growing.last() else { break };
        match outer.children(head)?.pop() {
            Some(last) if last.kind == *kind => growing.push(last),
            _ => break,
        }
    }
    // Type 0 of a tag's data says: bytes.
    let item = atom(b"\xa9nse", &atom(b"data", &[&[0; 8][..], tag].concat()));
    if growing.len() == 4 {
        return Ok((growing, item));
    }
    growing.truncate(1);
    let handler = full(b"hdlr", 0, b"\0\0\0\0mdirappl\0\0\0\0\0\0\0\0\0");
    let meta = full(b"meta", 0, &[handler, atom(b"ilst", &item)].concat());
    Ok((growing, atom(b"udta", &meta)))
}
