//! Measurements that defaults are chosen by: page size, and how much new data of a commit
//! goes through the log.

use crate::bare::SmallSync;
use crate::report::{Row, Section};
use crate::run::{Run, Side, interleave, rate, seconds};
use crate::system::Written;
use crate::{bare, data, million};
use anyhow::Result;
use holdall::{Options, Store};
use rand::Rng;
use std::cell::RefCell;

const PAGE_SIZES: [usize; 4] = [4096, 8192, 16_384, 32_768];

/// A workload over one store: does its part of a round and returns its figure.
type Work<'a> = &'a dyn Fn(&Run, &Options) -> Result<f64>;

/// Compares page sizes over workloads of small and mixed objects. Every figure stands
/// against that of 8 KiB pages in the same round.
pub fn page_size(run: &mut Run) -> Result<()> {
    let mut section = Section::new("Page size");
    let workloads: [(&str, &str, Work<'_>); 6] = [
        ("put 200 B, one commit each", "per s", &puts),
        ("load small, 10,000 per commit", "objects/s", &small_load),
        ("replace web objects, 100 per commit", "objects/s", &web_replace),
        ("hot random get of web objects", "per s", &web_get),
        ("web objects, file ÷ logical", "", &web_size),
        ("web replacement, written in calls ÷ logical", "", &web_written),
    ];
    for (what, unit, work) in workloads {
        run.say(&format!("page sizes: {what}"));
        let this = &*run;
        let mut closures: Vec<_> = PAGE_SIZES
            .iter()
            .map(|&page_size| move || work(this, &Options::default().page_size(page_size)))
            .collect();
        let mut sides: Vec<Side<'_>> = Vec::new();
        for closure in &mut closures {
            sides.push(closure);
        }
        let figures = interleave(run.rounds.min(3), &mut sides)?;
        for (size, ours) in PAGE_SIZES.iter().zip(&figures) {
            let what = format!("{what}, pages of {} KiB", size >> 10);
            section.push(Row::against(what, unit, ours, &figures[1]));
        }
    }
    section.remark("Against: pages of 8 KiB. Web objects: Pareto, 500 bytes to 256 KiB.");
    run.finish(section);
    run.remove("pages")
}

fn puts(run: &Run, options: &Options) -> Result<f64> {
    let store = run.store("pages", options)?;
    let bytes = data::bytes(200, 13);
    let mut i = 0;
    let mut put = || {
        i += 1;
        store.write(|tx| tx.put(data::name(i), &bytes))?;
        Ok(())
    };
    rate(run.slice(), &mut put)?;
    let figure = rate(run.slice(), &mut put)?;
    store.close()?;
    Ok(figure)
}

fn small_load(run: &Run, options: &Options) -> Result<f64> {
    let count = run.pick(300_000, 50_000);
    let store = run.store("pages", options)?;
    let time = seconds(|| million::load(&store, count, true))?;
    store.close()?;
    Ok(count as f64 / time)
}

/// Objects of the web workloads.
fn web_count(run: &Run) -> u64 {
    run.pick(50_000, 10_000)
}

fn web_load(run: &Run, options: &Options) -> Result<Store> {
    let store = run.store("pages", options)?;
    let bytes = data::bytes(256 << 10, 14);
    let mut rng = data::rng(15);
    for first in (0..web_count(run)).step_by(1000) {
        store.write(|tx| {
            for i in first..first + 1000 {
                tx.put(data::name(i), &bytes[..data::web_len(&mut rng)])?;
            }
            Ok(())
        })?;
    }
    store.checkpoint()?;
    Ok(store)
}

/// Replaces random web objects, 100 to a commit; seconds and logical bytes.
fn replace(run: &Run, store: &Store, commits: u64) -> Result<(f64, f64)> {
    let bytes = data::bytes(256 << 10, 16);
    let mut rng = data::rng(17);
    let count = web_count(run);
    let mut logical = 0;
    let time = seconds(|| {
        for _ in 0..commits {
            store.write(|tx| {
                for _ in 0..100 {
                    let len = data::web_len(&mut rng);
                    logical += len;
                    tx.put(data::name(rng.random_range(0..count)), &bytes[..len])?;
                }
                Ok(())
            })?;
        }
        Ok(())
    })?;
    Ok((time, logical as f64))
}

fn web_replace(run: &Run, options: &Options) -> Result<f64> {
    let store = web_load(run, options)?;
    let commits = run.pick(300, 50);
    let (time, _) = replace(run, &store, commits)?;
    store.close()?;
    Ok(commits as f64 * 100.0 / time)
}

fn web_written(run: &Run, options: &Options) -> Result<f64> {
    let store = web_load(run, options)?;
    let before = Written::now(run.dir())?;
    let (_, logical) = replace(run, &store, run.pick(300, 50))?;
    store.checkpoint()?;
    let (calls, _) = Written::now(run.dir())?.shares_since(before, logical);
    store.close()?;
    Ok(calls)
}

fn web_get(run: &Run, options: &Options) -> Result<f64> {
    let store = web_load(run, &options.clone().cache_bytes(256 << 20))?;
    let reader = store.read()?;
    let mut rng = data::rng(18);
    let count = web_count(run);
    let mut get = || {
        std::hint::black_box(reader.get(data::name(rng.random_range(0..count)))?);
        Ok(())
    };
    rate(run.slice(), &mut get)?;
    let figure = rate(run.slice(), &mut get)?;
    drop(reader);
    store.close()?;
    Ok(figure)
}

fn web_size(run: &Run, options: &Options) -> Result<f64> {
    web_load(run, options)?.close()?;
    let store = options.open(run.path("pages"))?;
    let stat = store.stat()?;
    store.close()?;
    Ok(stat.file_bytes as f64 / stat.logical_bytes as f64)
}

/// Compares, for objects of 4 to 256 KiB with a commit each, writing new data through the log
/// (one sync) and straight to its place (written once, two syncs).
pub fn log_data(run: &mut Run) -> Result<()> {
    let mut section = Section::new("New data through the log or straight to its place");
    let time = run.slice();
    for kib in [4_usize, 8, 16, 32, 48, 64, 96, 128, 192, 256] {
        run.say(&format!("objects of {kib} KiB through the log or not"));
        let bytes = data::bytes(kib << 10, 19);
        let store = |name: &str, log_data_bytes| {
            run.store(name, &Options::default().log_data_bytes(log_data_bytes))
        };
        let (logged, direct) = (store("logged", 1 << 20)?, store("direct", 0)?);
        // The same names over and over, so that the files stay small.
        let i = RefCell::new(0);
        let put = |store: &Store| {
            let mut i = i.borrow_mut();
            *i = (*i + 1) % 500;
            store.write(|tx| tx.put(data::name(*i), &bytes))?;
            Ok(())
        };
        let mut small = SmallSync::new(&run.path("small"))?;
        let path = run.path("bare");
        let count = 200_u32;
        rate(time, || put(&logged))?;
        rate(time, || put(&direct))?;
        let figures = interleave(
            run.rounds,
            &mut [
                &mut || {
                    Ok(f64::from(count) / seconds(|| bare::append(&path, &bytes, count.into()))?)
                },
                &mut || rate(time / 2, || put(&logged)),
                &mut || rate(time / 2, || put(&direct)),
                &mut || rate(time / 4, || small.put()),
            ],
        )?;
        let row = |what: &str, i: usize, j: usize| {
            Row::against(format!("{kib} KiB {what}"), "per s", &figures[i], &figures[j])
        };
        section.push(row("through the log, against append + fdatasync", 1, 0));
        section.push(row("straight, against append + fdatasync", 2, 0));
        section.push(row("straight, against through the log", 2, 1));
        logged.close()?;
        direct.close()?;
        for name in ["logged", "direct", "bare", "small"] {
            run.remove(name)?;
        }
    }
    run.finish(section);
    Ok(())
}
