//! The example: make the file, import it, grow its header, check it, compare.
//!
//! Owns the order of the steps and what is reported. Making lies in `make`, reading boxes in
//! `parse`, the edit in `grow`.

mod grow;
mod make;
mod parse;

pub use grow::Growth;
pub use make::{Media, make};
pub use parse::{Movie, Source, head_end};

use crate::plain;
use crate::shared::{self, Form, Steps, show};
use anyhow::{Context, Result, ensure};
use holdall::{Object, PutOptions, Store, Target};
use std::fmt;
use std::fs::File;
use std::path::Path;
use std::time::Instant;

/// The object's name in the store.
pub const NAME: &str = "film.mp4";

/// What the user chooses.
#[derive(clap::Args, Debug)]
pub struct Params {
    /// Size of the media file in MiB
    #[arg(long, default_value_t = 512, value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    pub mb: u64,
    /// Number of edits, each a transaction that adds one tag to the header
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub edits: u32,
    /// Bytes of a tag
    #[arg(long, default_value_t = 4000, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub tag_bytes: u32,
    /// Times the plain file is rewritten for comparison
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub rewrites: u32,
}

/// What was done and measured.
#[derive(Debug)]
pub struct Report {
    /// The file as made.
    pub media: Media,
    import: std::time::Duration,
    /// The edits, each a transaction.
    pub edits: Steps,
    /// Rewriting the plain file for the first of them.
    pub rewrites: Steps,
    /// Bytes of all edits and the checkpoint after them.
    all_written: Option<u64>,
    /// The object before the edits.
    pub before: Form,
    /// The object after them.
    pub after: Form,
    /// Boxes of the edited file.
    pub boxes: usize,
}

/// Runs the example in `folder`.
pub fn run(params: &Params, folder: &Path) -> Result<Report> {
    let plain = folder.join("film.mp4");
    let media = make(&plain, params.mb << 20)?;
    let path = folder.join("media.holdall");
    let store = Store::create(&path)?;
    let start = Instant::now();
    import(&store, &plain)?;
    let import = start.elapsed();
    check(store.read()?.open(NAME)?, &media).context("the file as imported")?;
    store.checkpoint()?;
    let before = Form::of(&store, NAME)?;

    let first = tag(params, 1);
    let rewritten = folder.join("rewritten.mp4");
    let mut rewrites = Steps::default();
    for _ in 0..params.rewrites {
        rewrites.run(|| rewrite(&plain, &rewritten, &first))?;
    }

    let old = store.read()?;
    let (mut edits, start) = (Steps::default(), shared::written());
    for n in 1..=params.edits {
        edits.run(|| grow_in(&store, &tag(params, n)))?;
        if n == 1 {
            // Two programs made it: the bytes must be the same.
            let ours = shared::hash_of(store.read()?.open(NAME)?)?;
            ensure!(ours == shared::hash_of(File::open(&rewritten)?)?, "differs from a rewrite");
        }
    }
    store.checkpoint()?;
    let all_written = start.zip(shared::written()).map(|(a, b)| b - a);
    check(store.read()?.open(NAME)?, &media).context("the edited file")?;
    check(old.open(NAME)?, &media).context("the snapshot from before the edits")?;
    ensure!(old.open(NAME)?.size() == media.size, "the snapshot has another size");
    drop(old);
    let after = Form::of(&store, NAME)?;
    store.close()?;

    let store = Store::open(&path)?;
    let boxes = check(store.read()?.open(NAME)?, &media).context("the file after reopening")?;
    shared::verify(&store)?;
    store.close()?;
    Ok(Report { media, import, edits, rewrites, all_written, before, after, boxes })
}

/// Streams a file into the store as one object.
pub fn import(store: &Store, plain: &Path) -> Result<()> {
    let file = File::open(plain)?;
    let options = PutOptions { expected_size: Some(file.metadata()?.len()), ..Default::default() };
    store.write(|tx| {
        let mut writer = tx.writer(Target::Name(NAME.into()), options)?;
        plain::copy(file, &mut writer).map_err(plain::give_up)?;
        writer.finish()
    })?;
    Ok(())
}

/// Adds a tag to the object's header: one transaction.
fn grow_in(store: &Store, tag: &[u8]) -> Result<()> {
    store.write(|tx| {
        let growth = Growth::of_object(tx, NAME, tag).map_err(plain::give_up)?;
        for (at, bytes) in &growth.patches {
            tx.replace(NAME, *at, bytes)?;
        }
        tx.insert(NAME, growth.at, &growth.bytes)
    })?;
    Ok(())
}

/// Adds a tag to the header of a plain file by writing another file.
fn rewrite(plain: &Path, to: &Path, tag: &[u8]) -> Result<()> {
    let mut file = File::open(plain)?;
    let end = head_end(&mut file)?;
    let mut head = file.bytes(0..end)?;
    Growth::of(&head, tag)?.apply(&mut head)?;
    plain::rewrite_file(plain, to, 0..end, &head)
}

fn tag(params: &Params, number: u32) -> Vec<u8> {
    plain::noise(u64::MAX - u64::from(number), params.tag_bytes as usize)
}

/// Parses the file and compares every sample with what was made. Returns its number of boxes.
pub fn check(mut object: Object, media: &Media) -> Result<usize> {
    let movie = Movie::parse(&mut object)?;
    ensure!(movie.tracks.len() == media.samples.len(), "{} tracks", movie.tracks.len());
    for (number, (track, made)) in movie.tracks.iter().zip(&media.samples).enumerate() {
        let samples = track.samples()?;
        ensure!(samples.len() == made.len(), "track {number} has {} samples", samples.len());
        for (i, (range, hash)) in samples.into_iter().zip(made).enumerate() {
            let bytes = object.bytes(range.clone())?;
            ensure!(
                blake3::hash(&bytes) == *hash,
                "sample {i} of track {number}, at {}..{}, is not what was made",
                range.start,
                range.end
            );
        }
    }
    Ok(movie.boxes)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [video, sound] = &self.media.samples;
        let grown = self.after.size - self.before.size;
        writeln!(
            f,
            "file:      {}, moov in front of {}",
            show(self.media.size),
            show(self.media.head)
        )?;
        writeln!(
            f,
            "samples:   {} video (co64 offsets), {} sound ({} offsets)",
            video.len(),
            sound.len(),
            if self.media.wide_sound { "co64" } else { "stco" }
        )?;
        writeln!(f, "import:    {}", shared::millis(self.import))?;
        writeln!(f, "edits:     {}", self.edits)?;
        if let Some(all) = self.all_written {
            writeln!(
                f,
                "all edits: {} inserted; written with the checkpoint after them: {}",
                show(grown),
                show(all)
            )?;
        }
        writeln!(f, "rewrites:  {}", self.rewrites)?;
        writeln!(f, "before:    {}", self.before)?;
        writeln!(f, "after:     {}", self.after)?;
        writeln!(
            f,
            "checked:   {} boxes; every sample by hash, also after reopening and in a snapshot from before; first edit equal to the rewritten file; verify",
            self.boxes
        )
    }
}
