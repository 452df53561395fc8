//! Tables 5 and 6, figures 22 to 25: the object dependence graph, the fragment caches and the
//! page expiry table (Iyengar §4). Owns no state.

use super::site::{Files, site};
use super::sizes::histogram;
use super::timed::{Board, write_out};
use crate::allocation::odg::Odg;
use crate::allocation::odg::sample::Sample;
use crate::allocation::odg::site::LIFETIME;
use crate::allocation::odg::tables::{Tables, files};
use crate::allocation::peers::disk_used;
use crate::allocation::pmflf::Usage;
use crate::kit::{claims, notes, plot::heads};
use anyhow::{Result, ensure};
use holdall_instrument::draw::table;
use holdall_instrument::experiment::{Claim, Outcome, Settings};
use holdall_instrument::picture::Panel;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Steps of a graph's life, and what the paper says of the whole site's.
const STEPS: [(&str, &str); 7] = [
    ("build (s)", "3 to 4 hours"),
    ("checkpoint (s)", "up to 30 minutes"),
    ("events (s)", "–"),
    ("shutdown (s)", "seconds"),
    ("start after a shutdown (s)", "2 to 3 minutes"),
    ("start after a crash (s)", "2 to 3 minutes"),
    ("MB on disk", "about 800 MB"),
];
const GRAPH: &str = "graph";

fn step<T>(board: &mut Board, step: usize, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let made = work()?;
    board.add(GRAPH, STEPS[step].0, start.elapsed().as_secs_f64());
    Ok(made)
}

/// A graph from its building to its start after a crash; gives the pages that events found.
fn live(sample: &Sample, events: usize, dir: &Path, board: &mut Board) -> Result<u64> {
    let open = |dir: &Path| Tables::new(files(dir.to_owned()));
    let mut graph = Odg::create(open(dir))?;
    step(board, 0, || sample.build(&mut graph))?;
    step(board, 1, || graph.checkpoint())?;
    board.add(GRAPH, STEPS[6].0, disk_used(dir)? as f64 / 1e6);
    let mut rng = SmallRng::seed_from_u64(sample.seed);
    let pages = step(board, 2, || {
        let mut pages = 0;
        for _ in 0..events {
            let event = sample.event(&mut rng);
            let event: Vec<&str> = event.iter().map(String::as_str).collect();
            pages += graph.publish(&event)?.len() as u64;
        }
        Ok(pages)
    })?;
    write_out(dir);
    step(board, 3, || graph.close())?;
    let mut graph = step(board, 4, || Odg::open(open(dir)))?;
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
    let mut graph = step(board, 5, || Odg::open(open(&left)))?;
    let name = Sample::fragment(sample.hubs);
    ensure!(graph.publish(&[&name])?.contains(&Sample::page(0)), "an edge is gone");
    graph.close()?;
    Ok(pages)
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

/// Figures 22 to 25.
fn pictures(files: &[Files; 4]) -> Vec<Panel> {
    let names = ["nodes", "edges", "cache-1", "cache-2"];
    let all = files.iter().zip(names).zip(22..);
    all.map(|((file, name), at)| histogram(name, &format!("Figure {at}: {name}"), &file.sizes))
        .collect()
}

/// The experiment.
pub(super) fn run(settings: &Settings<'_>) -> Result<Outcome> {
    let (share, events) = if settings.quick { (0.002, 50) } else { (0.1, 1000) };
    let sample = Sample::share(share, settings.seed);
    let (mut board, mut pages) = (Board::default(), 0);
    for turn in 0..settings.repetitions {
        pages = live(&sample, events, settings.scratch()?.path(), &mut board)?;
        (settings.progress)(u64::from(turn) + 1, u64::from(settings.repetitions) + 1);
    }
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
    let head = heads(
        "file | size | objects | requested | allocated | free blocks | free | internal \
         fragmentation",
    );
    let title = format!("Tables 5 and 6: {share} of the site (the whole site's figures)");
    let spread = |step: &str| board.spread(GRAPH, step).map_or_else(String::new, |s| s.to_string());
    let steps = STEPS.map(|(step, paper)| vec![step.to_owned(), spread(step), paper.to_owned()]);
    let life = format!("The graph's life, {share} of the site, median (least–most)");
    let tables = vec![
        table("files", &title, &head, rows),
        table("life", &life, &["step", "ours", "the whole site, by the paper"], steps.to_vec()),
    ];
    let mut claims = size_claims(share, &held.files);
    for (id, step) in [("ODG shutdown", 3), ("ODG start after a crash", 5)] {
        claims.push(claims::says(id, &[], spread(STEPS[step].0), true));
    }
    let found = pages as f64 / events as f64;
    let notes = notes::of(
        "iyengar-odg",
        &[
            &sample.pages,
            &sample.fragments,
            &sample.hubs,
            &sample.hub_edges,
            &events,
            &format!("{found:.1}"),
            &(events / 5),
            &held.built,
            &held.expired,
            &LIFETIME,
        ],
    );
    let panels = pictures(&held.files);
    Ok(Outcome { panels, tables, claims, notes })
}
