//! Every technique against bytes in memory, on the memory disk, the counted disk, the sparse
//! disk and a real file.

use std::sync::Arc;

use holdall_io::{Disk, FileStorage, MemoryDisk, Storage};
use holdall_testkit::{CostModel, CountedDisk, SparseDisk};
use proptest::prelude::*;

use crate::large::store::Config;
use crate::large::technique::{LargeObject, Technique};

const ALL: [Technique; 15] = [
    Technique::Esm(1),
    Technique::Esm(4),
    Technique::Esm(16),
    Technique::Esm(64),
    Technique::EsmBasic(1),
    Technique::EsmBasic(4),
    Technique::EsmBasic(16),
    Technique::EsmBoth(4),
    Technique::Starburst,
    Technique::Eos(1),
    Technique::Eos(4),
    Technique::Eos(16),
    Technique::Eos(64),
    Technique::EosEngine(1),
    Technique::EosEngine(16),
];

fn memory() -> Arc<dyn Disk> {
    Arc::new(MemoryDisk::new())
}

fn config(page_size: u32, pool_pages: usize) -> Config {
    let model = CostModel { page_size, ..CostModel::default() };
    Config { model, pool_pages, copy_buffer: 8 * page_size as usize, ..Config::default() }
}

fn bytes(len: usize, from: u64) -> Vec<u8> {
    (0..len as u64).map(|i| ((from + i).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[derive(Debug, Clone)]
enum Op {
    Append(usize),
    Insert(f64, usize),
    Delete(f64, usize),
    Replace(f64, usize),
    Read(f64, usize),
}

fn place(share: f64, size: usize) -> usize {
    ((share * (size + 1) as f64) as usize).min(size)
}

fn apply(object: &mut dyn LargeObject, model: &mut Vec<u8>, op: &Op, turn: u64) {
    match *op {
        Op::Append(n) => {
            let new = bytes(n, turn);
            object.append(&new).unwrap();
            model.extend(new);
        }
        Op::Insert(share, n) => {
            let (at, new) = (place(share, model.len()), bytes(n, turn));
            object.insert(at as u64, &new).unwrap();
            model.splice(at..at, new);
        }
        Op::Delete(share, n) => {
            let at = place(share, model.len());
            let n = n.min(model.len() - at);
            object.delete(at as u64, n as u64).unwrap();
            model.drain(at..at + n);
        }
        Op::Replace(share, n) => {
            let at = place(share, model.len());
            let new = bytes(n.min(model.len() - at), turn);
            object.replace(at as u64, &new).unwrap();
            model[at..at + new.len()].copy_from_slice(&new);
        }
        Op::Read(share, n) => {
            let at = place(share, model.len());
            let mut got = vec![0; n.min(model.len() - at)];
            object.read(at as u64, &mut got).unwrap();
            assert!(got == model[at..at + got.len()], "{n} bytes at {at}");
        }
    }
}

fn whole(object: &mut dyn LargeObject) -> Vec<u8> {
    let mut all = vec![0; object.size() as usize];
    object.read(0, &mut all).unwrap();
    all
}

fn run(technique: Technique, config: Config, disks: [Arc<dyn Disk>; 2], ops: &[Op]) {
    let [leaf, index] = disks;
    let mut object = technique.create(config, leaf, index).unwrap();
    let mut model = Vec::new();
    for (turn, op) in ops.iter().enumerate() {
        apply(object.as_mut(), &mut model, op, turn as u64);
        assert_eq!(object.size(), model.len() as u64);
        object.check().unwrap_or_else(|e| panic!("{} after {op:?}: {e}", technique.name()));
        assert!(whole(object.as_mut()) == model, "{} after {op:?}", technique.name());
    }
    object.finish().unwrap();
    object.check().unwrap();
    let size = object.size();
    object.delete(0, size).unwrap();
    object.check().unwrap();
    assert_eq!(object.shape().unwrap().leaf_pages, 0);
}

fn op() -> impl Strategy<Value = Op> {
    let size = prop_oneof![0usize..300, 1000usize..9000, Just(512usize)];
    let at = prop_oneof![0.0f64..=1.0, Just(0.0), Just(1.0)];
    (0..6, at, size).prop_map(|(kind, at, n)| match kind {
        0 => Op::Append(n),
        1 | 2 => Op::Insert(at, n),
        3 => Op::Delete(at, n),
        4 => Op::Replace(at, n),
        _ => Op::Read(at, n),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    /// Small pages and a small pool make trees of several levels of a few hundred bytes.
    #[test]
    fn any_operations_in_memory(ops in proptest::collection::vec(op(), 1..40), pool in 3usize..14) {
        for technique in ALL {
            run(technique, config(128, pool), [memory(), memory()], &ops);
        }
    }
}

fn some_ops() -> Vec<Op> {
    let mut ops = vec![Op::Append(3000), Op::Append(20_000), Op::Append(4096)];
    for i in 0..12 {
        let at = f64::from(i) * 0.618 % 1.0;
        ops.push(Op::Insert(at, 100 + 797 * i as usize % 30_000));
        ops.push(Op::Read(1.0 - at, 9000));
        ops.push(Op::Delete(at * at, 50 + 1511 * i as usize % 20_000));
        ops.push(Op::Replace(at, 6000));
    }
    ops
}

#[test]
fn every_disk_gives_the_same_bytes() {
    let dir = tempfile::tempdir().unwrap();
    for (turn, technique) in ALL.into_iter().enumerate() {
        let counted =
            || -> Arc<dyn Disk> { Arc::new(CountedDisk::new(memory(), CostModel::default())) };
        let file = |name: &str| {
            let path = dir.path().join(format!("{turn}-{name}"));
            FileStorage::create(path).unwrap().volume()
        };
        let sparse = || -> Arc<dyn Disk> { Arc::new(SparseDisk::new()) };
        run(technique, Config::default(), [memory(), memory()], &some_ops());
        run(technique, Config::default(), [counted(), counted()], &some_ops());
        run(technique, Config::default(), [sparse(), sparse()], &some_ops());
        run(technique, Config::default(), [file("leaf"), file("index")], &some_ops());
    }
}

#[test]
fn what_the_paper_leaves_open_changes_no_byte() {
    let wide = Config { wide: true, ..Config::default() };
    let kept = Config { keep_written: true, pool_pages: 3, ..Config::default() };
    let steps = Config { steps_in_updates: true, ..Config::default() };
    let in_place = Config { shadow: false, ..Config::default() };
    let whole = Config { unit: 4, ..in_place };
    for technique in [Technique::Esm(4), Technique::EsmBasic(4), Technique::EsmBoth(4)] {
        run(technique, whole, [memory(), memory()], &some_ops());
        run(technique, Config { shadow: true, ..whole }, [memory(), memory()], &some_ops());
    }
    for technique in ALL {
        for config in [wide, kept, steps, in_place] {
            run(technique, config, [memory(), memory()], &some_ops());
        }
    }
}

#[test]
fn zeros_unwritten_read_as_zeros() {
    for technique in ALL {
        let mut object = technique.create(Config::default(), memory(), memory()).unwrap();
        object.create_zeros(1_000_000).unwrap();
        object.check().unwrap();
        object.insert(500_000, b"here").unwrap();
        let mut got = [1; 10];
        object.read(499_997, &mut got).unwrap();
        assert_eq!(&got, b"\0\0\0here\0\0\0");
        object.check().unwrap();
        assert!(object.create_zeros(5).is_err());
        assert!(object.read(1_000_000, &mut got).is_err());
    }
}
