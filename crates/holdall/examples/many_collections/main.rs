//! What many collections cost: bytes, and times to open and close.
//!
//! `cargo run --release --example many_collections -- PATH COUNT`

use holdall::{Durability, Error, Options, Result};
use std::time::Instant;

/// Collections of one transaction.
const EACH: usize = 1000;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let usage = || Error::Invalid("many_collections PATH COUNT".into());
    let path = args.next().ok_or_else(usage)?;
    let count: usize = args.next().and_then(|n| n.parse().ok()).ok_or_else(usage)?;
    let options = Options::default();
    let began = Instant::now();
    let store = options.create(&path)?;
    let name = |n: usize| format!("collection-{n:07}");
    for first in (0..count).step_by(EACH) {
        let mut tx = store.begin_write()?;
        tx.set_durability(Durability::Deferred);
        for n in first..count.min(first + EACH) {
            tx.collection(&name(n))?.put("object", b"0123456789")?;
        }
        tx.commit()?;
    }
    store.write(|tx| tx.put_many((0..10_000).map(|n| (format!("name-{n:06}"), [7; 100]))))?;
    let filled = began.elapsed();
    store.checkpoint()?;
    store.close()?;
    let bytes = std::fs::metadata(&path).map_err(|e| Error::io("looking at the file", e))?.len();
    println!("made in {filled:?}: {bytes} bytes, {} for each", bytes / count as u64);

    let began = Instant::now();
    let store = options.open(&path)?;
    println!("open {:?}", began.elapsed());
    let began = Instant::now();
    store.write(|tx| tx.collection(&name(count / 2))?.put("object", b"9876543210"))?;
    println!("put into one {:?}", began.elapsed());
    let reader = store.read()?;
    let began = Instant::now();
    let found = reader.collection(&name(count / 3))?.get("object")?;
    println!("read of one {:?}: {}", began.elapsed(), found.is_some());
    let mut bytes = Vec::new();
    let names: Vec<String> = (0..10_000).map(|n| format!("name-{n:06}")).collect();
    for _ in 0..3 {
        let began = Instant::now();
        for n in 0..1_000_000 {
            reader.get_into(&names[n * 7919 % names.len()], &mut bytes)?;
        }
        println!("read by name of the default collection {:?} each", began.elapsed() / 1_000_000);
    }
    drop(reader);
    let began = Instant::now();
    store.close()?;
    println!("close {:?}", began.elapsed());
    Ok(())
}
