//! A reader that holds what it reads, and expects it to the end of its hold.

use crate::tasks::{NAMES, Outcome};
use crate::world::{STEP, Shared, lock};
use bytes::Bytes;
use holdall::{Error, Result};
use holdall_bucket::BucketStore;
use holdall_bucket::store::{Hold, Object};
use std::time::{Duration, UNIX_EPOCH};

/// Reads an object until its hold ends, all of it each time. What it gives at last was there first.
pub async fn read(
    store: BucketStore,
    world: &Shared,
    name: usize,
    steps: u64,
    extends: bool,
) -> Result<Outcome> {
    let Some(mut object) = store.open(NAMES[name]).await? else {
        return Ok(Outcome::Read(name, None));
    };
    let time = Duration::from_millis(steps * STEP);
    let mut hold = object.hold(time).await?;
    note(world, &hold);
    if hold.id().is_none() {
        // Nothing is asked for, so no time passes.
        return Ok(Outcome::Read(name, Some(object.read(0..u64::MAX).await?)));
    }
    let mut first = None;
    let mut is_extended = !extends;
    loop {
        match read_all(&object, world, &hold).await? {
            Some(read) if first.get_or_insert(read.clone()) != &read => {
                return Err(Error::corrupt("a held version", "it changed"));
            }
            None if is_extended => break,
            _ => {}
        }
        let left = ends(&hold).saturating_sub(lock(world).millis());
        // Some in time, some when it ends just now.
        let late = if steps.is_multiple_of(2) { steps * STEP / 4 } else { 2 * STEP };
        if !is_extended && left < late {
            is_extended = true;
            match hold.extend(time).await {
                Ok(()) => note(world, &hold),
                Err(Error::NotFound(_)) if lock(world).millis() >= ends(&hold) => break,
                Err(Error::NotFound(what)) => return Err(Error::corrupt("a hold", what)),
                Err(e) => return Err(e),
            }
        }
        // Some end before their end.
        if steps.is_multiple_of(3) && left < steps * STEP / 2 {
            if let Some(id) = hold.id() {
                lock(world).checker.held.remove(&id);
            }
            hold.release().await?;
            break;
        }
    }
    Ok(first.map_or(Outcome::Nothing, |read| Outcome::Read(name, Some(read))))
}

/// All bytes; `None` if the hold ended before.
async fn read_all(object: &Object, world: &Shared, hold: &Hold) -> Result<Option<Bytes>> {
    let mut pieces = object.clone().pieces(0..u64::MAX);
    let mut all = Vec::new();
    loop {
        let next = pieces.next().await;
        if lock(world).millis() >= ends(hold) {
            return Ok(None);
        }
        match next {
            Ok(Some(piece)) => all.extend(piece),
            Ok(None) => return Ok(Some(all.into())),
            Err(e) => return Err(Error::corrupt("a held version", e.to_string())),
        }
    }
}

/// When it ends, in milliseconds since 1970 UTC.
fn ends(hold: &Hold) -> u64 {
    let since = hold.ends().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn note(world: &Shared, hold: &Hold) {
    let Some(id) = hold.id() else { return };
    let world = &mut *lock(world);
    if world.millis() < ends(hold) {
        let held = world.checker.holds(&world.keys, id, ends(hold));
        world.failed(held);
    }
}
