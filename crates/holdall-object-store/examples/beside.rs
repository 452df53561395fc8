//! Holdall beside `LocalFileSystem` that syncs and `InMemory`: puts, gets, listing and conditional
//! updates of 4 KB by eight tasks.
//!
//! `cargo run --release -p holdall-object-store --example beside -- DIR`

use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use holdall::Store;
use holdall_object_store::HoldallObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _, PutMode, PutPayload, Result};
use std::sync::Arc;
use std::time::Instant;

const COUNT: u32 = 10_000;
const TASKS: usize = 8;
const ROUNDS: usize = 3;

fn path(n: u32) -> Path {
    Path::from(format!("d{}/o{n}", n % 10))
}

fn body() -> PutPayload {
    vec![7; 4096].into()
}

/// Bytes that no disk makes smaller.
fn mixed(len: usize) -> Vec<u8> {
    let mut state = 7_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()[3]
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Calls a second.
fn rate(begun: Instant, calls: u32) -> f64 {
    f64::from(calls) / begun.elapsed().as_secs_f64()
}

async fn update(store: &dyn ObjectStore, n: u32) -> Result<()> {
    let known = store.head(&path(n)).await?;
    let version = object_store::UpdateVersion { e_tag: known.e_tag, version: known.version };
    store.put_opts(&path(n), body(), PutMode::Update(version).into()).await.map(drop)
}

async fn rows(store: Arc<dyn ObjectStore>) -> Result<Vec<(&'static str, f64)>> {
    let mut found = Vec::new();
    let all = |n| (n, store.clone());
    let begun = Instant::now();
    let puts = stream::iter((0..COUNT).map(all))
        .map(|(n, store)| async move { store.put(&path(n), body()).await });
    puts.buffer_unordered(TASKS).try_for_each(|_| async { Ok(()) }).await?;
    found.push(("put 4 KB, per s", rate(begun, COUNT)));
    let begun = Instant::now();
    let gets = stream::iter((0..COUNT * 5).map(|n| all(n * 7919 % COUNT)))
        .map(|(n, store)| async move { store.get(&path(n)).await?.bytes().await });
    gets.buffer_unordered(TASKS).try_for_each(|_| async { Ok(()) }).await?;
    found.push(("get 4 KB hot, per s", rate(begun, COUNT * 5)));
    let begun = Instant::now();
    let listed = store.list(None).try_fold(0, |n, _| async move { Ok(n + 1) }).await?;
    found.push(("list, names per s", rate(begun, listed)));
    let begun = Instant::now();
    let updates =
        stream::iter((0..2000).map(all)).map(|(n, store)| async move { update(&*store, n).await });
    match updates.buffer_unordered(TASKS).try_for_each(|()| async { Ok(()) }).await {
        Ok(()) => found.push(("update on condition, per s", rate(begun, 2000))),
        Err(e) => println!("update on condition: {e}"),
    }
    let large = PutPayload::from(mixed(64 << 20));
    let begun = Instant::now();
    for n in 0..8 {
        store.put(&Path::from(format!("large{n}")), large.clone()).await?;
    }
    found.push(("put 64 MiB, MiB/s", rate(begun, 512)));
    let begun = Instant::now();
    for n in 0..8 {
        let mut bytes = store.get(&Path::from(format!("large{n}"))).await?.into_stream();
        while bytes.try_next().await?.is_some() {}
    }
    found.push(("get 64 MiB hot, MiB/s", rate(begun, 512)));
    Ok(found)
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::args().nth(1).ok_or("name a folder that is not there yet")?;
    let dir = std::path::PathBuf::from(dir);
    for round in 0..ROUNDS {
        let mut order = [0, 1, 2];
        if round % 2 == 1 {
            order.reverse();
        }
        for which in order {
            std::fs::create_dir(&dir)?;
            let store: Arc<dyn ObjectStore> = match which {
                0 => Arc::new(HoldallObjectStore::new(Store::create(dir.join("a.holdall"))?)),
                1 => Arc::new(LocalFileSystem::new_with_prefix(&dir)?.with_fsync(true)),
                _ => Arc::new(InMemory::new()),
            };
            let name = ["Holdall", "LocalFileSystem", "InMemory"][which];
            for (row, value) in rows(store).await? {
                println!("{round} {name}: {row}: {value:.0}");
            }
            std::fs::remove_dir_all(&dir)?;
        }
    }
    Ok(())
}
