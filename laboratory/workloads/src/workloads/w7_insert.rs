//! W7: bytes inserted into and deleted from the middle of large objects.

use super::{Objects, Session, Sizes, Workload, hashed, key};
use crate::bare;
use crate::peer::{Load, Maker, Peer};
use anyhow::{Result, ensure};
use holdall_instrument::contest::{Bound, Ctx, Figure, Goal, Recorder, Than, Unit};
use holdall_instrument::system;
use rustix::fs::{FallocateFlags, fallocate};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Bytes of an edit.
const EDITS: [(usize, &str); 2] = [(100, "100 B"), (10 << 10, "10 KiB")];
/// A block of the file system, the least that it can insert.
const BLOCK: u64 = 4096;
/// Edits are within this many bytes of the middle.
const AROUND: u64 = 256 << 10;

pub(super) struct Insert;

fn sizes(ctx: &Ctx) -> [usize; 3] {
    const MIB: usize = 1 << 20;
    ctx.pick([10 * MIB, 100 * MIB, 1024 * MIB], [2 * MIB, 8 * MIB, 32 * MIB])
}

fn row(edit: &str, size: usize) -> String {
    let mib = size >> 20;
    let size = if mib >= 1024 { format!("{} GiB", mib >> 10) } else { format!("{mib} MiB") };
    format!("{edit} in {size}")
}

fn most(ctx: &Ctx) -> u64 {
    ctx.pick(1000, 40)
}

/// Where edit `n` is.
fn place(ctx: &Ctx, size: usize, n: u64) -> u64 {
    size as u64 / 2 + hashed(ctx.seed ^ 7 ^ n) % AROUND
}

/// Pairs of an insertion and a deletion of the same bytes, each timed, for some seconds.
fn pairs(
    ctx: &Ctx,
    row: String,
    mut edit: impl FnMut(u64, bool) -> Result<()>,
) -> Result<(Figure, u64)> {
    let (start, mut latency) = (Instant::now(), Recorder::new()?);
    let (mut time, mut edits) = (Duration::ZERO, 0);
    while edits == 0 || (edits < 2 * most(ctx) && start.elapsed() < ctx.seconds(4)) {
        for insert in [true, false] {
            time += latency.time(|| edit(edits / 2, insert))?;
            edits += 1;
        }
    }
    let rate = edits as f64 / time.as_secs_f64();
    Ok((Figure::new(row, Unit::PerSecond, rate).latency(&latency), edits))
}

/// After an insertion at `at`: what is before it, in it and after it.
fn check(peer: &dyn Peer, whole: &[u8], at: usize, inserted: &[u8]) -> Result<()> {
    let mut got = vec![0; inserted.len() + 200];
    peer.get_range(&key(0), at as u64 - 100, &mut got)?;
    let due = [&whole[at - 100..at], inserted, &whole[at..at + 100]].concat();
    ensure!(got == due, "other bytes than were put and inserted");
    Ok(())
}

impl Insert {
    fn size(ctx: &Ctx, maker: &dyn Maker, size: usize, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Exactly(size));
        let whole = objects.bytes(0, 0);
        system::touch_memory(size * 2 + (64 << 20));
        let session = Session::new(ctx, maker, super::setup(Load::Large), "insert")?;
        let peer = session.peer()?;
        peer.put(&[(&key(0), whole)])?;
        peer.settle()?;
        for (len, name) in EDITS {
            let inserted = &objects.bytes(1, 0)[..len];
            let meter = session.meter()?;
            let (mut figure, edits) = pairs(ctx, row(name, size), |n, insert| {
                let (delete, bytes) = if insert { (0, inserted) } else { (len as u64, &[][..]) };
                peer.splice(&key(0), place(ctx, size, n), delete, bytes)
            })?;
            session.settle(&meter, &mut figure, edits * len as u64)?;
            figure.disk = Some(meter.disk_share(size as u64)?);
            out.push(figure);
            let at = place(ctx, size, 0);
            check(peer, whole, at as usize, &[])?;
            peer.splice(&key(0), at, 0, inserted)?;
            check(peer, whole, at as usize, inserted)?;
            peer.splice(&key(0), at, len as u64, &[])?;
        }
        Ok(())
    }

    fn bare_size(ctx: &Ctx, path: &Path, size: usize, out: &mut Vec<Figure>) -> Result<()> {
        let objects = Objects::new(ctx.seed, Sizes::Exactly(size));
        bare::write_once(path, objects.bytes(0, 0))?;
        let file: File = File::options().write(true).open(path)?;
        let inserted = &objects.bytes(1, 0)[..EDITS[1].0];
        for (len, name) in EDITS {
            let bytes = (len as u64).next_multiple_of(BLOCK);
            let done = pairs(ctx, row(name, size), |n, insert| {
                let at = place(ctx, size, n) / BLOCK * BLOCK;
                if insert {
                    fallocate(&file, FallocateFlags::INSERT_RANGE, at, bytes)?;
                    file.write_all_at(&inserted[..len], at)?;
                } else {
                    fallocate(&file, FallocateFlags::COLLAPSE_RANGE, at, bytes)?;
                }
                Ok(file.sync_data()?)
            });
            match done {
                Ok((figure, _)) => out.push(figure),
                // A file system without the call has no such limit.
                Err(e) if e.downcast_ref() == Some(&rustix::io::Errno::OPNOTSUPP) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(std::fs::remove_file(path)?)
    }
}

impl Workload for Insert {
    fn id(&self) -> &'static str {
        "w7"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        "inserting into and deleting from the middle of large objects".into()
    }

    fn remark(&self) -> &'static str {
        "Turns of inserting bytes within 256 KiB after the middle and deleting them again, each \
         edit a durable commit; stores without edits read and write the whole or what their \
         interface allows. Device ÷ logical counts the inserted and deleted bytes as logical. \
         Bare: FALLOC_FL_INSERT_RANGE of whole blocks of 4 KiB at a block's boundary and pwrite \
         of the bytes, or FALLOC_FL_COLLAPSE_RANGE, and fdatasync; no line where the file \
         system has no such calls."
    }

    fn load(&self) -> Load {
        Load::Large
    }

    fn measure(&self, ctx: &Ctx, maker: &dyn Maker, out: &mut Vec<Figure>) -> Result<()> {
        let mut failed = None;
        for size in sizes(ctx) {
            if let Err(e) = Self::size(ctx, maker, size, out) {
                failed = Some(e.context(format!("{} MiB failed", size >> 20)));
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn bare(&self, ctx: &Ctx, out: &mut Vec<Figure>) -> Result<()> {
        let path = ctx.dir.join("bare");
        sizes(ctx).into_iter().try_for_each(|size| Self::bare_size(ctx, &path, size, out))
    }

    fn goals(&self, ctx: &Ctx) -> Vec<Goal> {
        let mut goals = Vec::new();
        for size in &sizes(ctx)[1..] {
            for (_, edit) in EDITS {
                let row = row(edit, *size);
                goals.extend(super::both(&row, &Than::Best(&[]), Bound::AtLeast(400.0)));
                goals.extend(super::both(&row, &Than::Bare, Bound::AtLeast(0.8)));
            }
        }
        goals
    }
}
