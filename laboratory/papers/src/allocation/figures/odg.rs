//! Tables 5 and 6, figures 22 to 25: the object dependence graph, the fragment caches and the
//! page expiry table (Iyengar §4). Owns no state.

use super::histogram;
use super::timed::write_out;
use crate::allocation::odg::Odg;
use crate::allocation::odg::sample::Sample;
use crate::allocation::odg::site::{ASSEMBLED, LIFETIME, SOURCE, Site};
use crate::allocation::odg::tables::{HoldallTables, HtodTables, LARGE, Tables, files};
use crate::allocation::peers::disk_used;
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::Pareto;
use crate::kit::claims;
use anyhow::{Result, ensure};
use holdall::Store;
use holdall_instrument::draw::{number, table};
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Panel;
use holdall_instrument::spread::Spread;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
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
) -> Result<Life> {
    let mut life = Life { name, ..Life::default() };
    let mut graph = Odg::create(open(dir, true)?)?;
    seconds(&mut life.build, || sample.build(&mut graph))?;
    seconds(&mut life.checkpoint, || graph.checkpoint())?;
    life.megabytes = disk_used(dir)? as f64 / 1e6;
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

/// What a file holds, its bytes and the sizes of its objects.
#[derive(Debug, Default)]
struct Files {
    usage: Usage,
    bytes: u64,
    sizes: Vec<usize>,
}

/// The site's files after some events: nodes, edges, the two caches.
struct Held {
    files: [Files; 4],
    /// Pages that the events built, and those that had expired once their time was over.
    built: u64,
    expired: u64,
}

/// Sizes of sources: the mean of cache 1 in table 5, α = 1.
fn source_sizes() -> Pareto {
    let mut sizes = Pareto::olympic();
    let scale = 1.5e9 / 276e3 / sizes.mean();
    sizes.scale *= scale;
    sizes.cutoff *= scale;
    sizes
}

/// A site over hash tables on disk: its graph, every source, then events.
fn site(settings: &Settings<'_>, sample: &Sample, events: usize) -> Result<Held> {
    let scratch = settings.scratch()?;
    let mut site = Site::create(HtodTables::new(files(scratch.path().to_owned())))?;
    sample.build(site.graph())?;
    // A page shows the first fragment that leads to it alone.
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    for i in sample.hubs..sample.fragments {
        let name = Sample::fragment(i);
        for page in site.graph().publish(&[&name])? {
            parts.entry(page).or_insert_with(|| name.clone());
        }
    }
    for i in (sample.hubs..sample.fragments).filter(|i| i % 8 == 0) {
        parts.insert(Sample::fragment(i + 100), Sample::fragment(i));
    }
    let sizes = source_sizes();
    let mut rng = SmallRng::seed_from_u64(sample.seed);
    let text = vec![b'x'; sizes.cutoff as usize + 1];
    let pages = (0..sample.pages).map(Sample::page);
    for name in (0..sample.fragments).map(Sample::fragment).chain(pages) {
        let part: Vec<Vec<u8>> = parts.get(&name).map(|p| p.clone().into_bytes()).into_iter().collect();
        site.receive(&name, &part, &text[..sizes.draw(&mut rng)])?;
    }
    let mut built = 0;
    for now in 0..events {
        let event = sample.event(&mut rng);
        let texts = event.iter().map(|name| (name.as_str(), &text[..sizes.draw(&mut rng)]));
        built += site.publish(&texts.collect::<Vec<_>>(), now as u64)?.len() as u64;
    }
    let over = site.expired(events as u64 + LIFETIME)?;
    ensure!(site.expired(0)?.is_empty(), "a page expired before its time");
    for page in over.iter().step_by(97) {
        let part = parts.get(page).map_or(Ok(Vec::new()), |part| site.page(part))?;
        ensure!(site.page(page)?.starts_with(&part), "{page} does not show its fragment");
    }
    let tables = site.graph().tables();
    let file = |of: &dyn Fn(u32) -> bool| -> Result<Files> {
        let (usage, bytes) = tables.usage(of)?;
        Ok(Files { usage, bytes, sizes: tables.sizes(of)? })
    };
    let files = [
        file(&|table| table == 0)?,
        file(&|table| table > 0 && table < LARGE)?,
        file(&|table| table == SOURCE)?,
        file(&|table| table == ASSEMBLED)?,
    ];
    Ok(Held { files, built, expired: over.len() as u64 })
}

fn lives(settings: &Settings<'_>, sample: &Sample, events: usize) -> Result<Vec<Life>> {
    let mut all = Vec::new();
    for turn in 0..settings.repetitions {
        let scratch = settings.scratch()?;
        let open = |dir: &Path, _| Ok(HtodTables::new(files(dir.to_owned())));
        let over_htod = live("HTOD", sample, events, scratch.path(), &open)?;
        let scratch = settings.scratch()?;
        let open = |dir: &Path, fresh| {
            let path = dir.join("odg.holdall");
            Ok(HoldallTables::new(if fresh { Store::create(path)? } else { Store::open(path)? }))
        };
        let over_holdall = live("Holdall", sample, events, scratch.path(), &open)?;
        ensure!(over_htod.pages == over_holdall.pages, "the two graphs find other pages");
        all.extend([over_htod, over_holdall]);
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions) + 1);
    }
    Ok(all)
}

fn median(lives: &[Life], name: &str, of: fn(&Life) -> f64) -> Spread {
    let values: Vec<f64> = lives.iter().filter(|l| l.name == name).map(of).collect();
    Spread::of(&values)
}

fn size_claims(share: f64, [nodes, edges, one, two]: &[Files; 4]) -> Vec<Claim> {
    let sample = |what: &str, ours: f64| claims::measures("I13 sample, {0}", &[&what], ours);
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
    let (n, e) = (&nodes.usage, &edges.usage);
    vec![
        fragmented("I13", e, [473.0, 117.0, 925.0]),
        fragmented("I13 nodes", n, [381.0, 295.0, 366.0]),
        fragmented("I13 cache 1", &one.usage, [1600.0, 1500.0, 276.0]),
        fragmented("I13 cache 2", &two.usage, [729.0, 708.0, 79.0]),
        sample("nodes", site(n.blocks)),
        sample("edges", site(e.blocks)),
        sample("node", per(n, n.requested)),
        sample("edge", per(e, e.requested)),
        sample("node file", site(nodes.bytes) / 1e6),
        sample("edge files", site(edges.bytes) / 1e6),
    ]
}

fn time_claims(lives: &[Life]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for name in ["HTOD", "Holdall"] {
        let mut row = |id: &str, of: fn(&Life) -> f64| {
            claims.push(claims::says(id, &[&name], median(lives, name, of).to_string(), true));
        };
        row("ODG start after a crash, {0}", |l| l.start_after_crash);
        row("ODG shutdown, {0}", |l| l.shutdown);
        row("ODG start, {0}", |l| l.start);
    }
    claims
}

/// Figures 22 to 25.
fn pictures(files: &[Files; 4]) -> Vec<Panel> {
    let names = ["nodes", "edges", "cache-1", "cache-2"];
    let seen = [
        "With the edges of objects that at most 50 depend on; the nodes' sizes are drawn evenly.",
        "The paper has most below 132 bytes and all below 150; a grain has 512.",
        "Fragments and pages as they were received; drawn with α = 1 around table 5's mean.",
        "What the events assembled from them.",
    ];
    let all = files.iter().zip(names).zip(seen).enumerate();
    all.map(|(i, ((file, name), caption))| {
        histogram(name, &format!("Figure {}: {name}", 22 + i), &file.sizes, caption)
    })
    .collect()
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (share, events) = if settings.quick { (0.002, 50) } else { (0.1, 1000) };
    let sample = Sample::share(share, settings.seed);
    let all = lives(settings, &sample, events)?;
    let held = site(settings, &sample, events / 5)?;
    let [nodes, edges, one, two] = &held.files;
    let nodes_paper = ["407 MB", "366 K", "295 MB", "381 MB"];
    let edges_paper = ["504 MB", "925 K", "117 MB", "473 MB"];
    let rows = vec![
        row("ODG nodes", nodes_paper, &nodes.usage, nodes.bytes),
        row("ODG edge files", edges_paper, &edges.usage, edges.bytes),
        row("cache 1", ["1.8 GB", "276 K", "1.5 GB", "1.6 GB"], &one.usage, one.bytes),
        row("cache 2", ["1.3 GB", "79 K", "708 MB", "729 MB"], &two.usage, two.bytes),
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
    let mut claims = size_claims(share, &held.files);
    claims.extend(time_claims(&all));
    let found = all.first().map_or(0, |l| l.pages) as f64 / events as f64;
    let notes = vec![
        format!(
            "{} pages, {} fragments, {} of them with {} edges each in a file of their own; \
             {events} events of one to three changed fragments, which find {found:.1} pages each. \
             Both graphs run the same code over other tables and must find the same pages.",
            sample.pages, sample.fragments, sample.hubs, sample.hub_edges
        ),
        format!(
            "The caches are real: {} events of changed fragments assembled {} pages, of which {} \
             had expired {LIFETIME} seconds after the last. A page shows one fragment, a fragment \
             of fragments another. Table 5 has 708 GB and 729 GB for cache 2, in a file of 1.3 \
             GB: taken as MB.",
            events / 5,
            held.built,
            held.expired
        ),
        "Files lie in the page cache when they are opened again. A crash is the end of the \
         process: a copy of the files is opened that was taken while the graph was open, after an \
         edge that no checkpoint followed. Sizes of nodes, edges and sources are fed in, so that \
         what follows from them alone is a note."
            .to_owned(),
    ];
    let panels = pictures(&held.files);
    Ok(Outcome { panels, tables, claims, notes })
}
