//! The example: make versions, replay them on an object, compare after each, compare the cost
//! with putting every version whole.
//!
//! Owns the order of the steps and what is reported. The versions come from `author`.

mod author;

pub use author::{Author, Splice, apply};

use crate::shared::{self, Form, Steps, show};
use anyhow::{Context, Result, ensure};
use holdall::{Reader, Store};
use std::fmt;
use std::path::Path;

/// The object's name in the stores.
const NAME: &str = "text";

/// What the user chooses.
#[derive(clap::Args, Debug)]
pub struct Params {
    /// Number of versions after the first
    #[arg(long, default_value_t = 3000, value_parser = clap::value_parser!(u32).range(1..))]
    pub versions: u32,
    /// Size of the text in KiB, about which it stays
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(4..=1 << 16))]
    pub kb: u32,
    /// Snapshots of old versions to keep open to the end
    #[arg(long, default_value_t = 12)]
    pub readers: u32,
    /// Chooses the history
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What was done and measured.
#[derive(Debug)]
pub struct Report {
    versions: u32,
    /// Splices of all versions.
    pub splices: usize,
    cut: usize,
    inserted: usize,
    /// One transaction per version, its splices.
    pub edits: Steps,
    all_written: Option<u64>,
    /// The same history, every version put whole.
    pub puts: Steps,
    /// Snapshots that still showed their version at the end.
    pub kept: usize,
    /// The object with the first version.
    pub before: Form,
    /// The object with the last one.
    pub after: Form,
    /// The object with the last one, put whole.
    put: Form,
}

/// A snapshot and what it must show.
struct Kept {
    version: u32,
    reader: Reader,
    hash: blake3::Hash,
}

/// Runs the example in `folder`.
pub fn run(params: &Params, folder: &Path) -> Result<Report> {
    let path = folder.join("history.holdall");
    let store = Store::create(&path)?;
    let mut author = Author::new(params.seed, params.kb as usize * 1024);
    let mut text = author.first();
    store.write(|tx| tx.put(NAME, &text))?;
    store.checkpoint()?;
    let before = Form::of(&store, NAME)?;

    let (mut edits, mut kept) = (Steps::default(), Vec::new());
    let (mut splices, mut cut, mut inserted) = (0, 0, 0);
    let start = shared::written();
    for version in 0..=params.versions {
        if version > 0 {
            let changes = author.next(&text);
            edits.run(|| change(&store, &changes)).with_context(|| at(version))?;
            text = apply(&text, &changes);
            splices += changes.len();
            cut += changes.iter().map(|s| s.cut).sum::<usize>();
            inserted += changes.iter().map(|s| s.insert.len()).sum::<usize>();
        }
        let (reader, hash) = (store.read()?, blake3::hash(&text));
        compare(&reader, hash).with_context(|| at(version))?;
        if keeps(params, version) {
            kept.push(Kept { version, reader, hash });
        }
    }
    store.checkpoint()?;
    let all_written = start.zip(shared::written()).map(|(a, b)| b - a);
    for Kept { version, reader, hash } in &kept {
        compare(reader, *hash).with_context(|| format!("the snapshot kept of {}", at(*version)))?;
    }
    let (last, still) = (blake3::hash(&text), kept.len());
    // The file stays locked as long as a snapshot is there.
    drop(kept);
    let after = Form::of(&store, NAME)?;
    store.close()?;
    let store = Store::open(&path)?;
    compare(&store.read()?, last).context("the last version after reopening")?;
    shared::verify(&store)?;
    store.close()?;

    let (puts, put) = put_many(params, folder, last)?;
    let versions = params.versions;
    Ok(Report {
        versions,
        splices,
        cut,
        inserted,
        edits,
        all_written,
        puts,
        kept: still,
        before,
        after,
        put,
    })
}

fn at(version: u32) -> String {
    format!("version {version}")
}

/// Whether a snapshot of this version stays open: the first, and others evenly behind it.
fn keeps(params: &Params, version: u32) -> bool {
    let step = params.versions.div_ceil(params.readers.max(1)).max(1);
    params.readers > 0 && version < params.versions && version.is_multiple_of(step)
}

/// Makes a version of the one before: one transaction.
fn change(store: &Store, changes: &[Splice]) -> Result<()> {
    store.write(|tx| {
        // From the end, so that the places of those before stay what they are.
        for splice in changes.iter().rev() {
            let (start, end) = (splice.at as u64, (splice.at + splice.cut) as u64);
            tx.splice(NAME, start..end, &splice.insert)?;
        }
        Ok(())
    })?;
    Ok(())
}

fn compare(reader: &Reader, hash: blake3::Hash) -> Result<()> {
    let found = shared::hash_of(reader.open(NAME)?)?;
    ensure!(found == hash, "the object's hash is {found}, the model's {hash}");
    Ok(())
}

/// The same history without splices: every version put whole.
fn put_many(params: &Params, folder: &Path, last: blake3::Hash) -> Result<(Steps, Form)> {
    let store = Store::create(folder.join("puts.holdall"))?;
    let mut author = Author::new(params.seed, params.kb as usize * 1024);
    let mut text = author.first();
    store.write(|tx| tx.put(NAME, &text))?;
    store.checkpoint()?;
    let mut puts = Steps::default();
    for _ in 0..params.versions {
        let changes = author.next(&text);
        text = apply(&text, &changes);
        puts.run(|| Ok(store.write(|tx| tx.put(NAME, &text)).map(|_| ())?))?;
    }
    compare(&store.read()?, last).context("the last version, put whole")?;
    let form = Form::of(&store, NAME)?;
    store.close()?;
    Ok((puts, form))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (cut, inserted) = (show(self.cut as u64), show(self.inserted as u64));
        writeln!(
            f,
            "history:   {} versions, {} splices: {cut} cut, {inserted} inserted",
            self.versions, self.splices
        )?;
        writeln!(f, "edits:     {}", self.edits)?;
        if let Some(all) = self.all_written {
            writeln!(f, "all edits: written with the checkpoint after them: {}", show(all))?;
        }
        writeln!(f, "put whole: {}", self.puts)?;
        writeln!(f, "before:    {}", self.before)?;
        writeln!(f, "after:     {}", self.after)?;
        writeln!(f, "put whole: {}", self.put)?;
        writeln!(
            f,
            "checked:   every version by hash through a snapshot of it; {} snapshots kept to the end; the last after reopening; verify",
            self.kept
        )
    }
}
