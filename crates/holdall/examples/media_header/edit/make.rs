//! Makes an MP4 file: ISO BMFF boxes (ISO/IEC 14496-12) around samples of noise.
//!
//! Two tracks, their chunks in turns, all headers before the data. Sample entries name a codec
//! that does not exist: the boxes are a player's, the samples are nobody's.

use crate::plain;
use anyhow::{Context, Result};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const SCALE: u32 = 1000;
const IDENTITY: [u32; 9] = [0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x4000_0000];

/// What was made.
#[derive(Debug)]
pub struct Media {
    /// Bytes of the file.
    pub size: u64,
    /// Bytes before the data.
    pub head: u64,
    /// Hash of every sample of the video and the sound track.
    pub samples: [Vec<blake3::Hash>; 2],
    /// Whether the sound track's offsets need 64 bits.
    pub wide_sound: bool,
}

/// A track to be: bytes of its samples, and for each chunk where it begins in the data and how
/// many samples it holds.
#[derive(Default)]
struct Track {
    sizes: Vec<u32>,
    chunks: Vec<(u64, u32)>,
}

/// Writes a file of about `bytes` bytes of samples.
pub fn make(path: &Path, bytes: u64) -> Result<Media> {
    let (tracks, data) = plan(bytes);
    let wide_sound = data >= u64::from(u32::MAX) - (1 << 28);
    let head = |base| {
        let mut all = atom(b"ftyp", &[b"isom", &[0, 0, 2, 0][..], b"isomiso2mp41"].concat());
        all.extend(moov(&tracks, base, wide_sound));
        // Always with a length of 64 bits, so that the data begins at the same place.
        all.extend(1_u32.to_be_bytes());
        all.extend(b"mdat");
        all.extend((data + 16).to_be_bytes());
        all
    };
    let start = head(0).len() as u64;
    let file = File::create(path).with_context(|| format!("creating {}", path.display()))?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.write_all(&head(start))?;
    let mut samples = [Vec::new(), Vec::new()];
    // Video and sound have the same number of chunks.
    let mut sizes = tracks.each_ref().map(|t| t.sizes.iter());
    for chunk in 0..tracks[0].chunks.len() {
        for (number, track) in tracks.iter().enumerate() {
            let count = track.chunks[chunk].1 as usize;
            for size in sizes[number].by_ref().take(count) {
                let id = samples[number].len() as u64 * 2 + number as u64;
                let bytes = plain::noise(id, *size as usize);
                samples[number].push(blake3::hash(&bytes));
                out.write_all(&bytes)?;
            }
        }
    }
    let file = out.into_inner().map_err(|e| e.into_error())?;
    file.sync_data().with_context(|| format!("syncing {}", path.display()))?;
    Ok(Media { size: start + data, head: start, samples, wide_sound })
}

/// Chooses samples and chunks until there are `bytes`; returns them with the bytes there are.
fn plan(bytes: u64) -> ([Track; 2], u64) {
    let mut rng = SmallRng::seed_from_u64(bytes);
    let (mut tracks, mut data) = ([Track::default(), Track::default()], 0);
    while data < bytes {
        // The number of samples per chunk changes now and then, as encoders do it.
        let turn = tracks[0].chunks.len() as u32 / 7 % 3;
        for (number, (count, sizes)) in
            [(6 + turn, 4_000..60_000), (24 - turn, 300..1_300)].into_iter().enumerate()
        {
            tracks[number].chunks.push((data, count));
            for _ in 0..count {
                let size = rng.random_range(sizes.clone());
                tracks[number].sizes.push(size);
                data += u64::from(size);
            }
        }
    }
    (tracks, data)
}

/// A box: length, type, body.
pub(super) fn atom(kind: &[u8; 4], body: &[u8]) -> Vec<u8> {
    // Headers only: the one box of more than 4 GiB is written by hand.
    let len = (body.len() + 8) as u32;
    [&len.to_be_bytes()[..], kind, body].concat()
}

/// A box with version 0 and `flags`.
pub(super) fn full(kind: &[u8; 4], flags: u32, body: &[u8]) -> Vec<u8> {
    atom(kind, &[&flags.to_be_bytes()[..], body].concat())
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|w| w.to_be_bytes()).collect()
}

fn moov(tracks: &[Track; 2], base: u64, wide_sound: bool) -> Vec<u8> {
    let length = tracks[0].sizes.len() as u32 * 40;
    let mut header = words(&[0, 0, SCALE, length, 0x10000, 0x0100_0000, 0, 0]);
    header.extend(words(&IDENTITY));
    header.extend(words(&[0, 0, 0, 0, 0, 0, tracks.len() as u32 + 1]));
    let mut all = full(b"mvhd", 0, &header);
    all.extend(trak(&tracks[0], base, true, (1, length)));
    all.extend(trak(&tracks[1], base, wide_sound, (2, length)));
    atom(b"moov", &all)
}

/// Track `id` of `length` ticks; the first is video, the other sound.
fn trak(track: &Track, base: u64, wide: bool, (id, length): (u32, u32)) -> Vec<u8> {
    let video = id == 1;
    let (volume, width, height) = if video { (0, 1280, 720) } else { (0x0100_0000, 0, 0) };
    let mut header = words(&[0, 0, id, 0, length, 0, 0, 0, volume]);
    header.extend(words(&IDENTITY));
    header.extend(words(&[width << 16, height << 16]));
    let media = words(&[0, 0, SCALE, length, 0x55c4_0000]);
    let (kind, name) = if video { (b"vide", &b"video\0"[..]) } else { (b"soun", &b"sound\0"[..]) };
    let handler = [&[0; 4][..], kind, &[0; 12], name].concat();
    let media_header = if video { full(b"vmhd", 1, &[0; 8]) } else { full(b"smhd", 0, &[0; 4]) };
    let url = full(b"url ", 1, &[]);
    let dinf = atom(b"dinf", &full(b"dref", 0, &[words(&[1]), url].concat()));
    let minf = [media_header, dinf, stbl(track, base, wide, (video, length))].concat();
    let mdia = [full(b"mdhd", 0, &media), full(b"hdlr", 0, &handler), atom(b"minf", &minf)];
    let tkhd = full(b"tkhd", 7, &header);
    atom(b"trak", &[tkhd, atom(b"mdia", &mdia.concat())].concat())
}

/// The sample table: descriptions, times, chunks, sizes, offsets.
fn stbl(track: &Track, base: u64, wide: bool, (video, length): (bool, u32)) -> Vec<u8> {
    // Six reserved bytes and the number of the data reference begin every sample entry.
    let mut entry = vec![0, 0, 0, 0, 0, 0, 0, 1];
    if video {
        entry.extend([0; 16]);
        entry.extend(words(&[1280 << 16 | 720, 0x0048_0000, 0x0048_0000, 0, 1 << 16]));
        entry.extend([0; 30]);
        entry.extend([0, 24, 0xff, 0xff]);
    } else {
        entry.extend(words(&[0, 0, 2 << 16 | 16, 0, 48_000 << 16]));
    }
    let stsd = [words(&[1]), atom(b"nois", &entry)].concat();
    let count = track.sizes.len() as u32;
    let stts = words(&[1, count, (length / count).max(1)]);
    let mut runs: Vec<[u32; 3]> = Vec::new();
    for (chunk, (_, samples)) in (1..).zip(&track.chunks) {
        if runs.last().is_none_or(|r| r[1] != *samples) {
            runs.push([chunk, *samples, 1]);
        }
    }
    let stsc = [words(&[runs.len() as u32]), words(runs.as_flattened())].concat();
    let stsz = [words(&[0, count]), words(&track.sizes)].concat();
    let mut offsets = words(&[track.chunks.len() as u32]);
    for (at, _) in &track.chunks {
        let at = base + at;
        if wide {
            offsets.extend(at.to_be_bytes());
        } else {
            offsets.extend((at as u32).to_be_bytes());
        }
    }
    let all = [
        full(b"stsd", 0, &stsd),
        full(b"stts", 0, &stts),
        full(b"stsc", 0, &stsc),
        full(b"stsz", 0, &stsz),
        full(if wide { b"co64" } else { b"stco" }, 0, &offsets),
    ];
    atom(b"stbl", &all.concat())
}
