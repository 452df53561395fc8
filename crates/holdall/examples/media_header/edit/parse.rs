//! Reads the boxes of an MP4 file: of a plain one, of an object, of an object in a transaction.

use anyhow::{Context, Result, bail, ensure};
use holdall::{Object, WriteTx};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Boxes that are made of boxes.
const CONTAINERS: [&[u8; 4]; 8] =
    [b"moov", b"trak", b"mdia", b"minf", b"dinf", b"stbl", b"udta", b"ilst"];

/// Something with bytes.
pub trait Source {
    /// Its size in bytes.
    fn size(&mut self) -> Result<u64>;
    /// The bytes `range`.
    fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>>;
}

impl Source for &[u8] {
    fn size(&mut self) -> Result<u64> {
        Ok(self.len() as u64)
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let part = self.get(usize::try_from(range.start)?..usize::try_from(range.end)?);
        Ok(part.with_context(|| format!("no bytes {}..{}", range.start, range.end))?.to_vec())
    }
}

impl Source for File {
    fn size(&mut self) -> Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start)?];
        self.read_exact_at(&mut bytes, range.start)?;
        Ok(bytes)
    }
}

impl Source for Object {
    fn size(&mut self) -> Result<u64> {
        Ok(Object::size(self))
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.end - range.start)?];
        let n = self.read_at(range.start, &mut bytes)?;
        ensure!(n == bytes.len(), "the file ends before byte {}", range.end);
        Ok(bytes)
    }
}

/// An object as a transaction sees it.
pub struct Changing<'a> {
    /// The transaction.
    pub tx: &'a mut WriteTx,
    /// The object's name.
    pub name: &'a str,
}

impl Source for Changing<'_> {
    fn size(&mut self) -> Result<u64> {
        Ok(self.tx.metadata(self.name)?.size)
    }

    fn bytes(&mut self, range: Range<u64>) -> Result<Vec<u8>> {
        self.tx.get_range(self.name, range)?.context("the object is gone")
    }
}

/// A box: where it begins and ends in the file.
#[derive(Debug, Clone)]
pub struct Atom {
    /// Its type.
    pub kind: [u8; 4],
    /// Its first byte.
    pub start: u64,
    /// First byte after length and type.
    pub body: u64,
    /// First byte after it.
    pub end: u64,
}

impl Atom {
    /// The box at `start`, which must end by `limit`.
    fn read(source: &mut impl Source, start: u64, limit: u64) -> Result<Self> {
        ensure!(limit - start >= 8, "{} stray bytes at {start}", limit - start);
        let head = source.bytes(start..limit.min(start + 16))?;
        let kind = [head[4], head[5], head[6], head[7]];
        let (body, len) = match u32_at(&head, 0)? {
            0 => (start + 8, limit - start),
            1 => (start + 16, u64_at(&head, 8)?),
            len => (start + 8, u64::from(len)),
        };
        let end = start.checked_add(len).filter(|end| (body..=limit).contains(end));
        let name = String::from_utf8_lossy(&kind);
        let end = end.with_context(|| format!("box {name} at {start}: {len} bytes do not fit"))?;
        Ok(Self { kind, start, body, end })
    }

    /// The boxes that fill `range` exactly.
    fn all(source: &mut impl Source, range: Range<u64>) -> Result<Vec<Self>> {
        let (mut found, mut at) = (Vec::new(), range.start);
        while at < range.end {
            let atom = Self::read(source, at, range.end)?;
            at = atom.end;
            found.push(atom);
        }
        Ok(found)
    }

    /// The boxes inside; none if it is not made of boxes.
    pub fn children(&self, source: &mut impl Source) -> Result<Vec<Self>> {
        match &self.kind {
            kind if CONTAINERS.contains(&kind) => Self::all(source, self.body..self.end),
            // Version and flags lie before its boxes.
            b"meta" => Self::all(source, self.body + 4..self.end),
            _ => Ok(Vec::new()),
        }
    }

    /// The box of this type inside.
    fn child(&self, source: &mut impl Source, kind: &[u8; 4]) -> Result<Self> {
        self.children(source)?.into_iter().find(|a| a.kind == *kind).with_context(|| {
            let show = |kind: &[u8; 4]| String::from_utf8_lossy(kind).into_owned();
            format!("box {} at {} has no {}", show(&self.kind), self.start, show(kind))
        })
    }

    fn count(&self, source: &mut impl Source) -> Result<usize> {
        let mut all = 1;
        for child in self.children(source)? {
            all += child.count(source)?;
        }
        Ok(all)
    }
}

/// A track's tables.
#[derive(Debug)]
pub struct Track {
    /// Whether chunk offsets have 64 bits (co64), not 32 (stco).
    pub wide: bool,
    /// Where the first chunk offset is.
    pub table: u64,
    /// Where chunks begin.
    pub offsets: Vec<u64>,
    /// First chunk, counted from 1, and samples per chunk from there on.
    runs: Vec<(u64, u32)>,
    sizes: Vec<u32>,
}

impl Track {
    fn parse(source: &mut impl Source, trak: &Atom) -> Result<Self> {
        let mut stbl = trak.clone();
        for kind in [b"mdia", b"minf", b"stbl"] {
            stbl = stbl.child(source, kind)?;
        }
        let boxes = stbl.children(source)?;
        let found = boxes.iter().find(|a| [b"stco", b"co64"].contains(&&a.kind));
        let at = found.context("a track without chunk offsets")?;
        let wide = at.kind == *b"co64";
        let body = source.bytes(at.body..at.end)?;
        let count = u32_at(&body, 4)? as usize;
        let offset = |i| {
            if wide { u64_at(&body, 8 + 8 * i) } else { u32_at(&body, 8 + 4 * i).map(u64::from) }
        };
        let offsets = (0..count).map(offset).collect::<Result<_>>()?;
        let stsc = stbl.child(source, b"stsc")?;
        let body = source.bytes(stsc.body..stsc.end)?;
        let run = |i| Ok((u64::from(u32_at(&body, 8 + 12 * i)?), u32_at(&body, 12 + 12 * i)?));
        let runs = (0..u32_at(&body, 4)? as usize).map(run).collect::<Result<_>>()?;
        let stsz = stbl.child(source, b"stsz")?;
        let body = source.bytes(stsz.body..stsz.end)?;
        ensure!(u32_at(&body, 4)? == 0, "samples of one size are not expected here");
        let sizes = (0..u32_at(&body, 8)? as usize).map(|i| u32_at(&body, 12 + 4 * i));
        let sizes = sizes.collect::<Result<_>>()?;
        Ok(Self { wide, table: at.body + 8, offsets, runs, sizes })
    }

    /// Where each sample lies in the file.
    pub fn samples(&self) -> Result<Vec<Range<u64>>> {
        let (mut found, mut sizes) = (Vec::new(), self.sizes.iter());
        for (chunk, start) in (1..).zip(&self.offsets) {
            let run = self.runs.iter().take_while(|(first, _)| *first <= chunk).last();
            let (_, count) = run.with_context(|| format!("chunk {chunk} has no samples"))?;
            let mut at = *start;
            for size in sizes.by_ref().take(*count as usize) {
                found.push(at..at + u64::from(*size));
                at += u64::from(*size);
            }
        }
        ensure!(sizes.next().is_none(), "samples without a chunk");
        Ok(found)
    }
}

/// What a file's header says.
#[derive(Debug)]
pub struct Movie {
    /// The box of headers.
    pub moov: Atom,
    /// The tracks in order.
    pub tracks: Vec<Track>,
    /// Number of boxes in the whole file.
    pub boxes: usize,
}

impl Movie {
    /// Reads all headers. Every box must fill its place exactly; `source` may end before the
    /// data.
    pub fn parse(source: &mut impl Source) -> Result<Self> {
        let size = source.size()?;
        let top = Atom::all(source, 0..size)?;
        ensure!(top.first().is_some_and(|a| a.kind == *b"ftyp"), "not an MP4 file: no ftyp box");
        let Some(moov) = top.iter().find(|a| a.kind == *b"moov") else { bail!("no moov box") };
        let mut tracks = Vec::new();
        for child in moov.children(source)? {
            if child.kind == *b"trak" {
                tracks.push(Track::parse(source, &child)?);
            }
        }
        let mut boxes = 0;
        for atom in &top {
            boxes += atom.count(source)?;
        }
        Ok(Self { moov: moov.clone(), tracks, boxes })
    }
}

/// Where the moov box at the front ends.
pub fn head_end(source: &mut impl Source) -> Result<u64> {
    let (size, mut at) = (source.size()?, 0);
    while at < size {
        let atom = Atom::read(source, at, size)?;
        match &atom.kind {
            b"moov" => return Ok(atom.end),
            b"mdat" => bail!("the data lies before the moov box: nothing would have to move"),
            _ => at = atom.end,
        }
    }
    bail!("no moov box")
}

/// Big-endian number at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> Result<u32> {
    let part = bytes.get(at..at + 4).context("a box ends within a number")?;
    Ok(u32::from_be_bytes(part.try_into()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Result<u64> {
    Ok(u64::from(u32_at(bytes, at)?) << 32 | u64::from(u32_at(bytes, at + 4)?))
}
