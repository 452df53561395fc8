//! The example: build an archive in a store, cut and insert members, check, export, compare.
//!
//! Owns the order of the steps and what is reported. What the archive must be is in `model`,
//! how it is looked at in `check`.

mod check;
mod model;

pub use check::{Listed, compare, list_by_system};
pub use model::{Member, Model};

use crate::plain;
use crate::shared::{self, Form, Steps, show};
use anyhow::{Context, Result, bail, ensure};
use holdall::{PutOptions, Store, Target, WriteTx};
use rand::{Rng, SeedableRng, rngs::SmallRng};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The object's name in the store.
pub const NAME: &str = "archive.tar";

/// What the user chooses.
#[derive(clap::Args, Debug)]
pub struct Params {
    /// Members of the archive
    #[arg(long, default_value_t = 400, value_parser = clap::value_parser!(u32).range(1..))]
    pub members: u32,
    /// Size of the largest members in KiB; the logarithm of the sizes is spread evenly
    #[arg(long, default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..=1 << 20))]
    pub most_kb: u32,
    /// Transactions, each cutting one or two members and inserting one or two
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub edits: u32,
    /// Chooses members and edits
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// What was done and measured.
#[derive(Debug)]
pub struct Report {
    members: [usize; 2],
    /// Members cut and inserted.
    pub changed: [usize; 2],
    bytes: [u64; 2],
    /// The transactions.
    pub edits: Steps,
    all_written: Option<u64>,
    /// Cutting one member out of the plain file.
    pub rewrite: Steps,
    /// Transactions given up half way.
    pub given_up: u32,
    /// The object before.
    pub before: Form,
    /// The object after.
    pub after: Form,
    /// What the system's tar printed.
    pub listed: Listed,
}

/// One transaction to be: members that go, by number of their place, then members that come.
struct Change {
    cut: Vec<usize>,
    insert: Vec<(usize, Member)>,
    /// The bytes of those that come, made before the clock runs.
    data: Vec<Vec<u8>>,
}

/// Runs the example in `folder`.
pub fn run(params: &Params, folder: &Path) -> Result<Report> {
    let path = folder.join("archives.holdall");
    let store = Store::create(&path)?;
    let mut rng = SmallRng::seed_from_u64(params.seed);
    let most = u64::from(params.most_kb) * 1024;
    let mut model = Model::new(most);
    for _ in 0..params.members {
        let member = model.draw(&mut rng)?;
        model.members.push(member);
    }
    build(&store, &model)?;
    compare(store.read()?.open(NAME)?, &model).context("the archive as built")?;
    store.checkpoint()?;
    let (before, first) = (Form::of(&store, NAME)?, model.members.len());
    let rewrite = rewrite_plain(&store, &model, folder)?;

    let old = (store.read()?, model.clone());
    let (mut edits, mut given_up) = (Steps::default(), 0);
    let (mut changed, mut bytes) = ([0, 0], [0, 0]);
    let start = shared::written();
    for n in 0..params.edits {
        let change = draw(&mut model, &mut rng)?;
        if n % 20 == 7 {
            give_up_half_way(&store, &model, &change)?;
            given_up += 1;
        }
        edits.run(|| commit(&store, &model, &change)).with_context(|| format!("edit {n}"))?;
        changed[0] += change.cut.len();
        changed[1] += change.insert.len();
        bytes[0] += change.cut.iter().map(|i| model.members[*i].span()).sum::<u64>();
        bytes[1] += change.insert.iter().map(|(_, m)| m.span()).sum::<u64>();
        model.apply(&change.cut, change.insert);
        let size = store.read()?.open(NAME)?.size();
        ensure!(size == model.size(), "edit {n}: {size} bytes, not {}", model.size());
        if n == params.edits / 2 {
            compare(store.read()?.open(NAME)?, &model).context("half way")?;
        }
    }
    store.checkpoint()?;
    let all_written = start.zip(shared::written()).map(|(a, b)| b - a);
    compare(store.read()?.open(NAME)?, &model).context("after the edits")?;
    compare(old.0.open(NAME)?, &old.1).context("the snapshot from before the edits")?;
    drop(old);
    let after = Form::of(&store, NAME)?;
    store.close()?;

    let store = Store::open(&path)?;
    compare(store.read()?.open(NAME)?, &model).context("after reopening")?;
    shared::verify(&store)?;
    let exported = folder.join("exported.tar");
    export(&store, &exported)?;
    let listed = list_by_system(&exported, &model)?;
    store.close()?;
    let members = [first, model.members.len()];
    Ok(Report {
        members,
        changed,
        bytes,
        edits,
        all_written,
        rewrite,
        given_up,
        before,
        after,
        listed,
    })
}

/// Streams the model's archive into the store.
pub fn build(store: &Store, model: &Model) -> Result<()> {
    store.write(|tx| {
        let options = PutOptions { expected_size: Some(model.size()), ..Default::default() };
        let writer = tx.writer(Target::Name(NAME.into()), options)?;
        let writer = model.write(writer).map_err(plain::give_up)?;
        writer.finish()
    })?;
    Ok(())
}

/// One or two members to go and one or two to come, anywhere.
fn draw(model: &mut Model, rng: &mut SmallRng) -> Result<Change> {
    let mut cut = Vec::new();
    for _ in 0..rng.random_range(1..=2) {
        let at = rng.random_range(0..model.members.len().max(1));
        if at < model.members.len() && !cut.contains(&at) {
            cut.push(at);
        }
    }
    let left = model.members.len() - cut.len();
    let (mut insert, mut data) = (Vec::new(), Vec::new());
    for n in 0..rng.random_range(1..=2) {
        let member = model.draw(rng)?;
        data.push(member.data());
        insert.push((rng.random_range(0..=left + n), member));
    }
    Ok(Change { cut, insert, data })
}

/// Makes the change: one transaction.
fn commit(store: &Store, model: &Model, change: &Change) -> Result<()> {
    Ok(store.write(|tx| {
        let mut left = cut(tx, model, &change.cut)?;
        for ((at, member), data) in change.insert.iter().zip(&change.data) {
            insert(tx, &mut left, *at, (member, data))?;
        }
        Ok(())
    })?)
}

/// Cuts members out: header and padded data. Returns the lengths of those that are left.
fn cut(tx: &mut WriteTx, model: &Model, which: &[usize]) -> holdall::Result<Vec<u64>> {
    let mut left: Vec<u64> = model.members.iter().map(Member::span).collect();
    let mut which = which.to_vec();
    which.sort_unstable();
    for at in which.into_iter().rev() {
        let start: u64 = left[..at].iter().sum();
        tx.delete_range(NAME, start..start + left.remove(at))?;
    }
    Ok(left)
}

/// Puts a member in before the one at `at`: headers, data, padding, as one stream.
fn insert(
    tx: &mut WriteTx,
    left: &mut Vec<u64>,
    at: usize,
    (member, data): (&Member, &[u8]),
) -> holdall::Result<()> {
    let start = left[..at].iter().sum();
    let padding = std::io::repeat(0).take(member.padding());
    let stream = member.headers.chain(data).chain(padding);
    tx.splice_from(NAME, start..start, stream, member.span())?;
    left.insert(at, member.span());
    Ok(())
}

/// Begins the change and gives it up: the archive must stay what it was.
fn give_up_half_way(store: &Store, model: &Model, change: &Change) -> Result<()> {
    let before = shared::hash_of(store.read()?.open(NAME)?)?;
    let result = store.write(|tx| {
        cut(tx, model, &change.cut)?;
        Err::<(), _>(plain::give_up(anyhow::anyhow!("given up")))
    });
    if result.is_ok() {
        bail!("a transaction that was given up says it was committed");
    }
    let after = shared::hash_of(store.read()?.open(NAME)?)?;
    ensure!(before == after, "a transaction that was given up changed the archive");
    Ok(())
}

fn export(store: &Store, to: &Path) -> Result<()> {
    let file = File::create(to).with_context(|| format!("creating {}", to.display()))?;
    plain::copy(store.read()?.open(NAME)?, &file)?;
    Ok(file.sync_data()?)
}

/// What cutting one member out of the archive costs without a store.
fn rewrite_plain(store: &Store, model: &Model, folder: &Path) -> Result<Steps> {
    let (from, to) = (folder.join("plain.tar"), folder.join("rewritten.tar"));
    export(store, &from)?;
    let at = model.members.len() / 2;
    let start: u64 = model.members[..at].iter().map(Member::span).sum();
    let range = start..start + model.members[at].span();
    let mut steps = Steps::default();
    for _ in 0..3 {
        steps.run(|| plain::rewrite_file(&from, &to, range.clone(), &[]))?;
    }
    Ok(steps)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ([first, last], [cut, inserted]) = (self.members, self.changed);
        let [gone, come] = self.bytes.map(show);
        writeln!(
            f,
            "archive:   {first} members in {}, then {last} in {}",
            show(self.before.size),
            show(self.after.size)
        )?;
        writeln!(f, "changed:   {cut} members cut ({gone}), {inserted} inserted ({come})")?;
        writeln!(f, "edits:     {}", self.edits)?;
        if let Some(all) = self.all_written {
            writeln!(f, "all edits: written with the checkpoint after them: {}", show(all))?;
        }
        writeln!(f, "rewrites:  {}", self.rewrite)?;
        writeln!(f, "before:    {}", self.before)?;
        writeln!(f, "after:     {}", self.after)?;
        writeln!(f, "system:    {}", self.listed)?;
        writeln!(
            f,
            "checked:   every member's name, place and bytes, also half way, after reopening and in a snapshot from before; {} transactions given up; verify",
            self.given_up
        )
    }
}
