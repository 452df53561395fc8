//! What tests of damage share: small stores with a bit of everything, and a disk of which
//! single bytes differ.

#![expect(dead_code, reason = "each test uses its part")]

use holdall::{Attributes, Error, Options, Store};
use holdall_io::{Disk as _, MemoryStorage, Storage};
use rand::{Rng, rngs::SmallRng};
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn quiet() -> Options {
    Options { background: false, page_size: 4096, store_id: Some([7; 16]), ..Options::default() }
}

/// Bytes that differ at every place.
pub fn bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes[..]);
    bytes
}

const COLLECTIONS: [&str; 3] = ["default", "photos", "z"];

/// One random transaction: puts of all sizes, deletes, renames, attributes; sometimes it is
/// given up.
pub fn random_step(store: &Store, rng: &mut SmallRng) {
    let result = store.write(|tx| {
        for _ in 0..rng.random_range(1..6) {
            let tx = tx.collection(COLLECTIONS[rng.random_range(0..3)])?;
            let name = format!("name {}", rng.random_range(0..40));
            let len = match rng.random_range(0..10) {
                0..5 => rng.random_range(0..300),
                5..8 => rng.random_range(0..9000),
                _ => rng.random_range(0..300_000),
            };
            let there = tx.lookup(&name)?.is_some();
            match rng.random_range(0..8) {
                0..4 => drop(tx.put(&name, &bytes(rng, len))?),
                4 => drop(tx.create(&bytes(rng, len))?),
                5 if there => tx.delete(&name)?,
                6 if there => match tx.rename(&name, &format!("{name} again")) {
                    Ok(()) | Err(Error::Exists(_)) => {}
                    Err(e) => return Err(e),
                },
                7 if there => {
                    let attributes = Attributes::from([("k".into(), bytes(rng, len % 300))]);
                    tx.set_attributes(&name, &attributes)?;
                }
                _ => {}
            }
        }
        if rng.random_range(0..6) == 0 { Err(Error::Invalid("given up".into())) } else { Ok(()) }
    });
    assert!(matches!(result, Ok(()) | Err(Error::Invalid(_))), "{result:?}");
}
