//! The time of one get of a small object that lies in memory, in nanoseconds.
//!
//! `cargo run --release -p holdall --example timed_gets -- STORE NAME TIMES`
//!
//! The benchmark of the Python package subtracts it from the time of the same call there.

use holdall::Store;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(path), Some(name), Some(times)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: timed_gets STORE NAME TIMES".into());
    };
    let times: u32 = times.parse()?;
    let store = Store::open_read_only(path)?;
    let mut buf = vec![0; 64 << 10];
    let start = Instant::now();
    for _ in 0..times {
        let read = store.read_at(&name, 0, &mut buf)?;
        std::hint::black_box(read.ok_or("there is no such object")?);
    }
    println!("{}", start.elapsed().as_nanos() / u128::from(times.max(1)));
    Ok(())
}
