//! Where a store's bytes lie: the search of an image or of files for markers.
//!
//! Owns: the parse of what `filefrag` says, and the walk over raw bytes. Everything a system
//! wrote is read as the paper's tool does, without asking the system. Stale copies in logs are
//! left out by the place of the log, stale versions by their number.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::markers::{MARK, Mark, Places, search};
use super::volume::tool;

/// Bytes searched at once.
const PIECE: usize = 4 << 20;
/// Of the addresses that `filefrag` is asked for.
const BLOCK: u64 = 4096;

/// A run of a file's bytes on the disk below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extent {
    /// The first byte's offset in the file.
    pub offset: u64,
    /// Its address on the disk.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

/// What `filefrag -v -b4096` printed.
fn parse(text: &str) -> Vec<Extent> {
    let first = |field: &str| field.split("..").next()?.trim().parse::<u64>().ok();
    let extent = |line: &str| {
        let mut fields = line.split(':');
        fields.next()?.trim().parse::<u64>().ok()?;
        let (offset, address) = (first(fields.next()?)?, first(fields.next()?)?);
        let length = fields.next()?.trim().parse::<u64>().ok()?;
        // Not on the disk yet, or in an inode.
        let placed = !["unknown", "delalloc", "inline"].iter().any(|flag| line.contains(flag));
        let extent =
            Extent { offset: offset * BLOCK, address: address * BLOCK, length: length * BLOCK };
        placed.then_some(extent)
    };
    text.lines().filter_map(extent).collect()
}

/// How many runs of addresses the extents are, in order of the file.
pub fn runs(extents: &[Extent]) -> usize {
    let broken = |pair: &&[Extent]| pair[0].address + pair[0].length != pair[1].address;
    extents.windows(2).filter(broken).count() + usize::from(!extents.is_empty())
}

/// The extents of `file` by FIEMAP; an error if `filefrag` is missing or the file system
/// does not tell.
pub fn extents(file: &Path) -> Result<Vec<Extent>> {
    Ok(parse(&tool("filefrag", &[&"-v", &format!("-b{BLOCK}"), &file])?))
}

/// Searches the image of a volume for markers of live versions, but not in `logs`, files of
/// the mounted volume.
pub fn of_image(image: &Path, logs: &[PathBuf], live: &dyn Fn(Mark) -> bool) -> Result<Places> {
    let mut skipped: Vec<Range<u64>> = Vec::new();
    for log in logs {
        skipped.extend(extents(log)?.iter().map(|e| e.address..e.address + e.length));
    }
    let mut places = Places::default();
    walk(image, &mut |at, mark| {
        if live(mark) && !skipped.iter().any(|range| range.contains(&at)) {
            places.add(mark.object, mark.number, at);
        }
    })?;
    Ok(places)
}

/// Searches `files` themselves; addresses are those of the disk below if the file system
/// tells them, else offsets in the files.
pub fn of_files(files: &[PathBuf], live: &dyn Fn(Mark) -> bool) -> Result<Places> {
    let mut places = Places::default();
    for (number, file) in files.iter().enumerate() {
        let extents = extents(file).unwrap_or_default();
        // Apart from each other and from real addresses.
        let own = (number as u64 + 1) << 44;
        walk(file, &mut |at, mark| {
            let after = extents.partition_point(|e| e.offset <= at);
            let extent = after.checked_sub(1).map(|i| &extents[i]);
            let within = extent.filter(|e| at - e.offset < e.length);
            let address = within.map_or(own + at, |e| e.address + (at - e.offset));
            if live(mark) {
                places.add(mark.object, mark.number, address);
            }
        })?;
    }
    Ok(places)
}

/// Every file below `dir`, in order of their paths.
pub fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![dir.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        let entries = std::fs::read_dir(&dir).with_context(|| format!("reading {}", dir.display()));
        for entry in entries? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                dirs.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Gives every marker of the file at `path` with its offset to `seen`.
fn walk(path: &Path, seen: &mut dyn FnMut(u64, Mark)) -> Result<()> {
    let reading = || format!("reading {}", path.display());
    let mut file = File::open(path).with_context(reading)?;
    let mut buf = vec![0; PIECE];
    // What was kept of the piece before, and where the buffer begins in the file.
    let (mut kept, mut base) = (0, 0);
    loop {
        let n = file.read(&mut buf[kept..]).with_context(reading)?;
        if n == 0 {
            return Ok(());
        }
        let end = kept + n;
        search(&buf[..end], |at, mark| seen(base + at as u64, mark));
        // A marker that begins in what is kept ends beyond it, so it was not found yet.
        let tail = (MARK - 1).min(end);
        buf.copy_within(end - tail..end, 0);
        base += (end - tail) as u64;
        kept = tail;
    }
}

#[cfg(test)]
mod tests {
    use super::super::markers::Content;
    use super::*;

    #[test]
    fn extents_as_filefrag_prints_them() {
        let text = "Filesystem type is: ef53\n\
                    File size of a is 12288 (3 blocks of 4096 bytes)\n \
                    ext:     logical_offset:        physical_offset: length:   expected: flags:\n   \
                    0:        0..       1:       1000..      1001:      2:\n   \
                    1:        2..       2:       2000..      2000:      1:       1002: last,eof\n   \
                    2:        3..       3:          0..         0:      0:             unknown_loc,delalloc\n\
                    a: 2 extents found\n";
        let extent = |offset: u64, address: u64, length: u64| Extent {
            offset: offset * 4096,
            address: address * 4096,
            length: length * 4096,
        };
        assert_eq!(parse(text), [extent(0, 1000, 2), extent(2, 2000, 1)]);
        assert_eq!(runs(&parse(text)), 2);
        assert_eq!(runs(&[extent(0, 1000, 2), extent(2, 1002, 1)]), 1);
        assert_eq!(runs(&[]), 0);
    }

    #[test]
    fn a_marker_on_the_border_of_two_pieces_is_found_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("raw");
        for shift in [0, 1, 12, 23, 24] {
            let mut bytes = vec![0; shift];
            let mut object = Vec::new();
            Content::new(2).fill(7, 1, PIECE + 8 * 1024, &mut object);
            bytes.extend_from_slice(&object);
            std::fs::write(&path, &bytes).unwrap();
            let mut found = Vec::new();
            walk(&path, &mut |at, mark| found.push((at, mark.number))).unwrap();
            let expected: Vec<_> =
                (0..PIECE as u64 / 1024 + 8).map(|i| (shift as u64 + i * 1024, i as u32)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn only_live_versions_count() {
        let dir = tempfile::tempdir().unwrap();
        let (mut old, mut new) = (Vec::new(), Vec::new());
        Content::new(2).fill(1, 1, 4096, &mut old);
        Content::new(2).fill(1, 2, 4096, &mut new);
        std::fs::write(dir.path().join("a"), [old, new].concat()).unwrap();
        let files = files_below(dir.path()).unwrap();
        let mut places = of_files(&files, &|mark| mark.version == 2).unwrap();
        assert_eq!(places.fragments(1), (1, 4));
    }
}
