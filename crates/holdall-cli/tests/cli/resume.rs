//! An import killed half way: nothing acknowledged is lost, the next run completes it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Home, bytes, sound};

const FILES: usize = 5000;

/// Two full batches of small files, then one file that keeps the import busy.
fn make_tree(home: &Home) {
    fs::create_dir(home.path("tree")).unwrap();
    for at in 0..FILES {
        let content = bytes(at as u64, at % 700);
        fs::write(home.path(&format!("tree/f{at:05}")), content).unwrap();
    }
    let last = File::create(home.path("tree/z")).unwrap();
    last.set_len(300 << 20).unwrap();
}

#[test]
fn an_import_killed_half_way_is_resumed() {
    let home = Home::new();
    make_tree(&home);
    let mut child = home
        .command(&["import", "s", "tree", "--report-acks"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    let second = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), None, "the import ended before it was killed");
    let late: Vec<_> = lines.map_while(Result::ok).collect();
    let last = late.last().unwrap_or(&second).strip_prefix("ack ").unwrap();
    assert!(first.starts_with("ack f") && first.as_str() < second.as_str());

    sound(&home, "s");
    let listed = String::from_utf8(home.ok(&["ls", "s"])).unwrap();
    let there: BTreeSet<&str> = listed.lines().collect();
    for at in 0..FILES {
        let name = format!("f{at:05}");
        assert!(name.as_str() > last || there.contains(name.as_str()), "{name} was lost");
    }
    assert!(!there.contains("z"));

    let rerun = home.json(&["import", "s", "tree", "--json"]);
    assert_eq!(rerun["already_there"], there.len());
    assert_eq!(rerun["files"], FILES + 1 - there.len());
    assert_eq!(rerun["replaced"], 0);
    sound(&home, "s");
    let store = holdall::Store::open_read_only(home.path("s")).unwrap();
    let reader = store.read().unwrap();
    for at in 0..FILES {
        let content = reader.get(format!("f{at:05}")).unwrap().unwrap();
        assert!(content == bytes(at as u64, at % 700), "content of {at}");
    }
    assert_eq!(reader.metadata("z").unwrap().size, 300 << 20);
}

#[test]
fn acknowledgements_come_in_order_of_the_walk() {
    let home = Home::new();
    fs::create_dir(home.path("tree")).unwrap();
    for at in 0..4100 {
        fs::write(home.path(&format!("tree/f{at:05}")), "x").unwrap();
    }
    let run = home.run(&["import", "s", "tree", "--report-acks", "--verbose"]);
    assert_eq!(run.code, 0, "{}", run.err);
    let acks: Vec<_> = run.text().lines().filter(|l| l.starts_with("ack ")).collect();
    assert!(acks.len() >= 3 && acks.is_sorted() && acks.last() == Some(&"ack f04099"), "{acks:?}");
    assert!(run.text().contains(&format!("{} batches acknowledged", acks.len())));
    let counts = run.err.lines().filter_map(|l| l.strip_prefix("holdall: acknowledged "));
    let sum: u64 = counts.map(|l| l.strip_suffix(" files").unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 4100);
    assert_eq!(home.run(&["import", "s", "tree", "--report-acks", "--json"]).code, 2);
}
