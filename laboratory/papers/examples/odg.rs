//! An object dependence graph in files: which pages are to be built again when fragments change.
//!
//! `cargo run --release -p holdall-lab --example odg -- DIR [SHARE]` builds a share of the 2000
//! Olympic Games' graph (0.01 if none is given) in an empty directory, over hash tables on
//! disk; run again, it opens them. `docs/lab/allocation.md` explains it.

use anyhow::{Context, Result};
use holdall_lab::allocation::odg::Odg;
use holdall_lab::allocation::odg::sample::Sample;
use holdall_lab::allocation::odg::tables::{Tables, files};
use std::path::Path;
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let dir = args.next().context("usage: odg DIR [SHARE]")?;
    let share = args.next().map_or(Ok(0.01), |text| text.parse::<f64>());
    let sample = Sample::share(share.context("SHARE is a number, as 0.01")?.min(1.0), 1);
    let dir = Path::new(&dir);
    let tables = dir.join("tables");
    let fresh = !tables.exists();
    std::fs::create_dir_all(&tables)?;
    let start = Instant::now();
    let tables = Tables::new(files(tables));
    let mut graph = if fresh {
        let mut graph = Odg::create(tables)?;
        sample.build(&mut graph)?;
        graph
    } else {
        Odg::open(tables)?
    };
    let did = if fresh { "built" } else { "opened" };
    println!("{did} in {:.3} s", start.elapsed().as_secs_f64());
    // One fragment of few pages, and one of many.
    for changed in [Sample::fragment(sample.hubs), Sample::fragment(0)] {
        let start = Instant::now();
        let pages = graph.publish(&[&changed])?;
        let ms = start.elapsed().as_secs_f64() * 1e3;
        let of = if pages.len() == 1 { "page" } else { "pages" };
        println!("  {changed} changed: {} {of} to build, found in {ms:.2} ms", pages.len());
        for page in pages.iter().take(3) {
            println!("    {page}");
        }
    }
    let start = Instant::now();
    graph.close()?;
    println!("  shut down in {:.3} s", start.elapsed().as_secs_f64());
    Ok(())
}
