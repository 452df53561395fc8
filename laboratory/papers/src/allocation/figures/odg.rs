//! Tables 5 and 6: the object dependence graph and the fragment caches (Iyengar §4). Owns no
//! state.

use super::timed::write_out;
use crate::allocation::block::Params;
use crate::allocation::odg::Odg;
use crate::allocation::odg::sample::Sample;
use crate::allocation::odg::tables::{HoldallTables, HtodTables, Tables, files};
use crate::allocation::peers::disk_used;
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::{Pareto, Stream};
use crate::kit::claims;
use anyhow::{Result, ensure};
use holdall::Store;
use holdall_instrument::draw::{number, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::spread::Spread;
use holdall_testkit::SparseDisk;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Seconds of each step of a graph's life.
#[derive(Debug, Default)]
struct Life {
    name: &'static str,
    build: f64,
    checkpoint: f64,
    event: f64,
    shutdown: f64,
    start: f64,
    /// After some changes, without a shutdown.
    start_after_crash: f64,
    /// Pages that the events found.
    pages: u64,
    megabytes: f64,
}

fn seconds<T>(into: &mut f64, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let made = work()?;
    *into = start.elapsed().as_secs_f64();
    Ok(made)
}

/// A graph from its building to its start after a crash; `open` gives its tables.
fn live<T: Tables>(
    name: &'static str,
    sample: &Sample,
    events: usize,
    dir: &Path,
    open: &dyn Fn(&Path, bool) -> Result<T>,
    mut look: impl FnMut(&mut T) -> Result<()>,
) -> Result<Life> {
    let mut life = Life { name, ..Life::default() };
    let mut graph = Odg::create(open(dir, true)?)?;
    seconds(&mut life.build, || sample.build(&mut graph))?;
    seconds(&mut life.checkpoint, || graph.checkpoint())?;
    life.megabytes = disk_used(dir)? as f64 / 1e6;
    look(graph.tables())?;
    let mut rng = SmallRng::seed_from_u64(sample.seed);
    let mut all = 0.0;
    life.pages = seconds(&mut all, || {
        let mut pages = 0;
        for _ in 0..events {
            let event = sample.event(&mut rng);
            let event: Vec<&str> = event.iter().map(String::as_str).collect();
            pages += graph.publish(&event)?.len() as u64;
        }
        Ok(pages)
    })?;
    life.event = all / events as f64;
    write_out(dir);
    seconds(&mut life.shutdown, || graph.close())?;
    let mut graph = seconds(&mut life.start, || Odg::open(open(dir, false)?))?;
    for i in 0..100 {
        graph.add_edge(&Sample::fragment(i + sample.hubs), &Sample::page(i), b"changed")?;
    }
    graph.checkpoint()?;
    graph.add_edge(&Sample::fragment(sample.hubs), &Sample::page(1), b"changed")?;
    // What the end of the process leaves: the files as they are now, and nobody who tidies up.
    let left = dir.join("left");
    fs::create_dir(&left)?;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), left.join(entry.file_name()))?;
        }
    }
    drop(graph);
    let mut graph = seconds(&mut life.start_after_crash, || Odg::open(open(&left, false)?))?;
    let name = Sample::fragment(sample.hubs);
    ensure!(graph.publish(&[&name])?.contains(&Sample::page(0)), "an edge is gone");
    graph.close()?;
    Ok(life)
}

/// Bytes of the objects of a row of table 5, and how its file came out.
fn row(name: &str, paper: [&str; 4], usage: &Usage, file: u64) -> Vec<String> {
    let mb = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    vec![
        name.to_owned(),
        format!("{} ({})", mb(file), paper[0]),
        format!("{:.1} K ({})", usage.blocks as f64 / 1e3, paper[1]),
        format!("{} ({})", mb(usage.requested), paper[2]),
        format!("{} ({})", mb(usage.allocated), paper[3]),
        format!("{:.1} K", usage.free_blocks as f64 / 1e3),
        mb(usage.free),
        format!("{:.3}", usage.internal()),
    ]
}

/// A fragment cache: objects of a mean size, some of them replaced.
fn cache(mean: f64, objects: u64, seed: u64) -> Result<Usage> {
    let mut sizes = Pareto::olympic();
    let scale = mean / sizes.mean();
    sizes.scale *= scale;
    sizes.cutoff *= scale;
    let disk = Arc::new(SparseDisk::with_granules(512));
    let mut stream = Stream::new(disk, Params::default(), sizes, seed)?;
    for _ in 0..objects {
        stream.create()?;
    }
    for _ in 0..objects {
        stream.replace()?;
    }
    stream.verify()?;
    Ok(stream.usage())
}

fn lives(
    settings: &Settings<'_>,
    sample: &Sample,
    events: usize,
) -> Result<(Vec<Life>, [Files; 2])> {
    let mut held = [Files::default(), Files::default()];
    let mut all = Vec::new();
    for turn in 0..settings.repetitions {
        let scratch = settings.scratch()?;
        let dir = scratch.path();
        let open = |dir: &Path, _| Ok(HtodTables::new(files(dir.to_owned())));
        let look = |tables: &mut HtodTables| {
            let (nodes, edges) = (tables.usage(|t| t == 0)?, tables.usage(|t| t > 0)?);
            held = [
                Files { usage: nodes.0, bytes: nodes.1 },
                Files { usage: edges.0, bytes: edges.1 },
            ];
            Ok(())
        };
        let over_htod = live("HTOD", sample, events, dir, &open, look)?;
        let scratch = settings.scratch()?;
        let open = |dir: &Path, fresh| {
            let path = dir.join("odg.holdall");
            Ok(HoldallTables::new(if fresh { Store::create(path)? } else { Store::open(path)? }))
        };
        let over_holdall = live("Holdall", sample, events, scratch.path(), &open, |_| Ok(()))?;
        ensure!(over_htod.pages == over_holdall.pages, "the two graphs find other pages");
        all.extend([over_htod, over_holdall]);
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions));
    }
    Ok((all, held))
}

#[derive(Debug, Default, Clone, Copy)]
struct Files {
    usage: Usage,
    bytes: u64,
}

fn median(lives: &[Life], name: &str, of: fn(&Life) -> f64) -> Spread {
    let values: Vec<f64> = lives.iter().filter(|l| l.name == name).map(of).collect();
    Spread::of(&values)
}

fn size_claims(share: f64, [nodes, edges]: &[Files; 2], caches: &[Usage; 2]) -> Vec<Claim> {
    let tenth = |what: &str, ours: f64| claims::measures("I13 sample, {0}", &[&what], ours);
    let per = |u: &Usage, bytes: u64| bytes as f64 / u.blocks as f64;
    let site = |n: u64| n as f64 / share;
    // With the paper's megabytes allocated and requested, and thousands of objects.
    let fragmented = |id: &str, of: &Usage, table: [f64; 3]| {
        claims::measures(id, &[], of.internal()).because(format!(
            "A block wastes {:.0} bytes of {:.0}, its header of 8 too: sizes spread evenly over \
             grains of 512 waste half of one. By table 5 it was {:.0} of {:.0}.",
            per(of, of.allocated - of.requested),
            per(of, of.allocated),
            (table[0] - table[1]) * 1e3 / table[2],
            table[0] * 1e3 / table[2]
        ))
    };
    let (n, e, [one, two]) = (&nodes.usage, &edges.usage, caches);
    vec![
        fragmented("I13", e, [473.0, 117.0, 925.0]),
        fragmented("I13 nodes", n, [381.0, 295.0, 366.0]),
        fragmented("I13 cache 1", one, [1600.0, 1500.0, 276.0]),
        fragmented("I13 cache 2", two, [729.0, 708.0, 79.0]),
        tenth("nodes", site(n.blocks)),
        tenth("edges", site(e.blocks)),
        tenth("node", per(n, n.requested)),
        tenth("edge", per(e, e.requested)),
        tenth("node file", site(nodes.bytes) / 1e6),
        tenth("edge files", site(edges.bytes) / 1e6),
    ]
}

fn time_claims(share: f64, lives: &[Life]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for name in ["HTOD", "Holdall"] {
        let crash = median(lives, name, |l| l.start_after_crash);
        let shutdown = median(lives, name, |l| l.shutdown);
        let start = median(lives, name, |l| l.start);
        let most = 180.0 * share;
        let so = crash.median <= most;
        claims.push(claims::says(
            "ODG start after a crash, {0}",
            &[&name, &number(most)],
            crash.to_string(),
            so,
        ));
        let so = shutdown.median <= 10.0;
        claims.push(claims::says("ODG shutdown, {0}", &[&name], shutdown.to_string(), so));
        claims.push(claims::says("ODG start, {0}", &[&name], start.to_string(), true));
    }
    claims
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (share, events) = if settings.quick { (0.002, 50) } else { (0.1, 1000) };
    let sample = Sample::share(share, settings.seed);
    let (all, held) = lives(settings, &sample, events)?;
    let [nodes, edges] = &held;
    let of = |objects: f64| (objects * share) as u64;
    let caches = [
        cache(1.5e9 / 276e3, of(276e3), settings.seed)?,
        cache(708e6 / 79e3, of(79e3), settings.seed)?,
    ];
    let bytes = |u: &Usage| u.tail;
    let nodes_paper = ["407 MB", "366 K", "295 MB", "381 MB"];
    let edges_paper = ["504 MB", "925 K", "117 MB", "473 MB"];
    let rows = vec![
        row("ODG nodes", nodes_paper, &nodes.usage, nodes.bytes),
        row("ODG edge files", edges_paper, &edges.usage, edges.bytes),
        row("cache 1", ["1.8 GB", "276 K", "1.5 GB", "1.6 GB"], &caches[0], bytes(&caches[0])),
        row("cache 2", ["1.3 GB", "79 K", "708 MB", "729 MB"], &caches[1], bytes(&caches[1])),
    ];
    let head = [
        "file",
        "size",
        "objects",
        "requested",
        "allocated",
        "free blocks",
        "free",
        "internal fragmentation",
    ];
    let title = format!("Tables 5 and 6: {share} of the site (the whole site's figures)");
    let step = |what: &str, of: fn(&Life) -> f64| {
        let cell = |name| median(&all, name, of).to_string();
        vec![what.to_owned(), cell("HTOD"), cell("Holdall")]
    };
    let steps = vec![
        step("build (s)", |l| l.build),
        step("checkpoint after it (s)", |l| l.checkpoint),
        step("a publish event (ms)", |l| l.event * 1e3),
        step("shutdown (s)", |l| l.shutdown),
        step("start after a shutdown (s)", |l| l.start),
        step("start after a crash (s)", |l| l.start_after_crash),
        step("MB on disk", |l| l.megabytes),
    ];
    let tables = vec![
        table("files", &title, &head, rows),
        table("life", "The graph's life, median (least–most)", &["step", "HTOD", "Holdall"], steps),
    ];
    let mut claims = size_claims(share, &held, &caches);
    claims.extend(time_claims(share, &all));
    let found = all.first().map_or(0, |l| l.pages) as f64 / events as f64;
    let notes = vec![
        format!(
            "{} pages, {} fragments, {} of them with {} edges each in a file of their own; \
             {events} events of one to three changed fragments, which find {found:.1} pages each. \
             Both graphs run the same code over other tables and must find the same pages.",
            sample.pages, sample.fragments, sample.hubs, sample.hub_edges
        ),
        "Table 5 has 708 GB and 729 GB for cache 2, in a file of 1.3 GB: taken as MB. The caches' \
         sizes are drawn with α = 1 around the mean of the table; half of their objects are \
         replaced once. Files lie in the page cache when they are opened again. A crash is the end of the \
         process: a copy of the files is opened that was taken while the graph was open, after an \
         edge that no checkpoint followed."
            .to_owned(),
    ];
    Ok(Outcome { tables, claims, notes, ..Outcome::default() })
}
