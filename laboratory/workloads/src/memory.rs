//! Memory: what stays resident with a large store and with one very large object.

use crate::{bare, data};
use anyhow::{Result, ensure};
use holdall::{Options, PutOptions, Store};
use holdall_instrument::contest::{Bound, Contest, Ctx, Figure, Goal, Than, Unit};
use holdall_instrument::system;
use std::ffi::OsString;
use std::io::Read;

const ROWS: [&str; 4] = [
    "loading objects of 100 B to 8 MiB",
    "and reading them all",
    "and writing one object as large",
    "and reading it",
];
/// MiB that no row should exceed.
const MOST: f64 = 300.0;

/// Gigabytes of each case: many objects, then one.
pub struct Memory {
    /// Gigabytes.
    pub gb: u64,
}

impl Contest for Memory {
    fn id(&self) -> &'static str {
        "memory"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        format!("memory with {} GB", self.gb)
    }

    fn remark(&self) -> &'static str {
        "The most that the process ever had resident, row by row in one process."
    }

    fn contestants(&self) -> Vec<&'static str> {
        vec![super::HOLDALL]
    }

    fn arguments(&self) -> Vec<OsString> {
        vec!["--gb".into(), self.gb.to_string().into()]
    }

    fn measure(&self, ctx: &Ctx, _contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let path = ctx.dir.join("memory");
        let store = Options::default().create(&path)?;
        many(&store, self.gb * 1_000_000_000)?;
        out.push(peak(ROWS[0])?);
        read_all(&store)?;
        out.push(peak(ROWS[1])?);
        store.close()?;
        std::fs::remove_file(&path)?;
        let store = Options::default().create(&path)?;
        one(&store, self.gb * 1_000_000_000)?;
        out.push(peak(ROWS[2])?);
        read_all(&store)?;
        out.push(peak(ROWS[3])?);
        Ok(store.close()?)
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let goal = |row| Goal::new(super::HOLDALL, row, Than::Nothing, Bound::AtMost(MOST));
        ROWS.map(goal).into()
    }
}

fn peak(row: &str) -> Result<Figure> {
    let bytes = system::peak_memory(std::process::id())?;
    Ok(Figure::new(row, Unit::Mib, bytes as f64 / f64::from(1 << 20)))
}

fn many(store: &Store, bytes: u64) -> Result<()> {
    let content = data::bytes(8 << 20, 20);
    let mut rng = data::rng(21);
    let (mut done, mut i) = (0, 0);
    while done < bytes {
        store.write(|tx| {
            for _ in 0..1000 {
                // Sizes in even steps of their logarithm, with few of the largest.
                let len = data::log_len(&mut rng, 100, content.len());
                tx.put(data::name(i), &content[..len])?;
                done += len as u64;
                i += 1;
            }
            Ok(())
        })?;
    }
    Ok(())
}

fn one(store: &Store, bytes: u64) -> Result<()> {
    let content = data::bytes(bare::CALL, 22);
    store.write(|tx| {
        let mut writer = tx.writer("one", PutOptions::default())?;
        while writer.len() < bytes {
            writer.push(&content)?;
        }
        writer.finish()
    })?;
    Ok(())
}

fn read_all(store: &Store) -> Result<()> {
    let reader = store.read()?;
    let mut buf = vec![0; bare::CALL];
    let mut all = 0;
    for entry in reader.names("") {
        let mut object = reader.open(entry?.oid)?;
        loop {
            match object.read(&mut buf)? {
                0 => break,
                n => all += n as u64,
            }
        }
    }
    let stat = store.stat()?;
    ensure!(all == stat.logical_bytes, "{all} bytes read of {}", stat.logical_bytes);
    Ok(())
}
