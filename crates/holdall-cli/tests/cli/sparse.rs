//! Files with holes, and files without an end.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

use crate::support::{Home, bytes, sound};

/// Larger files would fill a disk if they were stored with their holes.
const MIB: u64 = 1 << 20;

/// A file of `size` bytes with data at some places; `None` if the system makes no holes.
fn sparse(path: &Path, size: u64, data: &[(u64, Vec<u8>)]) -> Option<File> {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path);
    let file = file.unwrap();
    if file.set_len(size).is_err() {
        println!("skipped: a file system with files of {size} bytes");
        return None;
    }
    for (at, bytes) in data {
        file.write_all_at(bytes, *at).unwrap();
    }
    if file.metadata().unwrap().blocks() > 64 << 10 {
        println!("skipped: a file system with holes");
        return None;
    }
    Some(file)
}

fn blocks(path: impl AsRef<Path>) -> u64 {
    fs::metadata(path).unwrap().blocks()
}

#[test]
fn holes_stay_holes_on_the_way_in_and_out() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    let end = |len| vec![(0, bytes(1, 70_000)), (400 * MIB + 12_345, bytes(2, len))];
    // In memory, and streamed; with a hole at the end, and nothing but a hole.
    let files = [
        ("few", 500 * MIB, end(100)),
        ("many", 500 * MIB, end(6 << 20)),
        ("hole", 700 * MIB, Vec::new()),
        ("last", 300 * MIB, vec![(300 * MIB - 5000, bytes(3, 5000))]),
    ];
    for (name, size, data) in &files {
        if sparse(&home.path("tree").join(name), *size, data).is_none() {
            return;
        }
    }
    home.file("tree/z behind them", "z");
    home.ok(&["import", "s", "tree"]);
    assert!(blocks(home.path("s")) * 512 < 20 << 20, "{} blocks", blocks(home.path("s")));
    sound(&home, "s");
    let again = home.json(&["import", "s", "tree", "--checksum", "--json"]);
    assert_eq!((&again["files"], &again["already_there"]), (&0.into(), &5.into()), "{again}");
    home.ok(&["export", "s", "out"]);
    for (name, size, data) in &files {
        let out = File::open(home.path("out").join(name)).unwrap();
        assert_eq!(out.metadata().unwrap().len(), *size, "{name}");
        assert!(out.metadata().unwrap().blocks() * 512 < 10 << 20, "{name}");
        for (at, bytes) in data {
            let mut found = vec![1; bytes.len()];
            out.read_exact_at(&mut found, *at).unwrap();
            assert!(found == *bytes, "{name} at {at}");
        }
        let mut found = [1; 100];
        out.read_exact_at(&mut found, size / 3).unwrap();
        assert_eq!(found, [0; 100], "{name}");
    }
    // A byte in a hole is a change.
    let hole = File::options().write(true).open(home.path("tree/hole")).unwrap();
    let time = hole.metadata().unwrap().modified().unwrap();
    hole.write_all_at(b"x", 300 * MIB).unwrap();
    hole.set_modified(time).unwrap();
    assert_eq!(home.json(&["import", "s", "tree", "--json"])["replaced"], 1);
    let range = format!("{}:{}", 300 * MIB - 1, 300 * MIB + 2);
    assert_eq!(home.ok(&["get", "s", "hole", "--range", &range]), b"\0x\0");
}

#[test]
fn short_holes_take_little_room_in_the_store_and_none_in_files() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    // Pieces of a block with holes of some blocks: a few, and enough of them to be streamed.
    let mut wholes = Vec::new();
    for (name, every, count) in [("a", 32 << 10, 256), ("b", 64 << 10, 256), ("c", 32 << 10, 2048)]
    {
        let pieces: Vec<_> = (0..count).map(|at| (at * every, bytes(at + 1, 4096))).collect();
        let Some(file) = sparse(&home.path("tree").join(name), count * every, &pieces) else {
            return;
        };
        let mut whole = vec![0; (count * every) as usize];
        file.read_exact_at(&mut whole, 0).unwrap();
        wholes.push((name, blocks(home.path("tree").join(name)), whole));
    }
    home.ok(&["import", "s", "tree"]);
    sound(&home, "s");
    let all: u64 = wholes.iter().map(|(_, blocks, _)| blocks).sum();
    let stored = blocks(home.path("s"));
    // A page of 8 KiB for each piece, and the tree.
    assert!(stored < all * 3 + 4096, "{stored} blocks for {all}");
    home.ok(&["export", "s", "out"]);
    home.ok(&["get", "s", "a", "-o", "out/got"]);
    for (name, blocks_before, whole) in &wholes {
        let out = home.path("out").join(name);
        assert!(fs::read(&out).unwrap() == *whole, "{name}");
        assert!(blocks(&out) <= blocks_before + 64, "{name}: {} of {blocks_before}", blocks(&out));
    }
    assert!(fs::read(home.path("out/got")).unwrap() == wholes[0].2);
    assert!(blocks(home.path("out/got")) <= wholes[0].1 + 64);
    let again = home.json(&["import", "s", "tree", "--checksum", "--json"]);
    assert_eq!((&again["files"], &again["already_there"]), (&0.into(), &3.into()), "{again}");
}

#[test]
fn a_file_without_an_end_is_named_and_the_rest_is_stored() {
    let home = Home::new();
    if File::open("/proc/self/pagemap").and_then(|f| f.read_at(&mut [0; 8], 0)).is_err() {
        println!("skipped: /proc/self/pagemap");
        return;
    }
    let run =
        home.run(&["import", "s", "/proc/self", "--exclude", "[!cp]*", "--exclude", "c[!o]*"]);
    assert_eq!(run.code, 1);
    let says = "not imported: pagemap: it has no size, but more than 4194304 bytes";
    assert!(run.err.contains(says), "{}", run.err);
    assert_eq!(home.ok(&["get", "s", "comm"]), b"holdall\n");
    sound(&home, "s");
}

#[test]
fn a_file_that_is_too_large_for_the_store_is_named_and_the_rest_is_stored() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    let most = i64::MAX as u64 - 4096;
    if sparse(&home.path("tree/giant"), most, &[]).is_none() {
        return;
    }
    home.file("tree/z", "behind it");
    let run = home.run(&["import", "s", "tree"]);
    assert!(run.code == 0 || run.err.contains("not imported: giant: "), "{}", run.err);
    assert_eq!(home.ok(&["get", "s", "z"]), b"behind it");
    sound(&home, "s");
}
