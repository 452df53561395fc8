//! `holdall copy`: between files, between buckets, and from one to the other.

use holdall::Store;
use serde_json::Value;

use crate::server::Server;
use crate::support::{Home, bytes};

/// A store of two collections, a large object, attributes, a name that is no text, and an object without
/// a name.
fn filled(home: &Home) {
    let store = Store::create(home.path("a")).unwrap();
    let attributes = || [("k".to_owned(), b"v".to_vec())].into_iter().collect();
    store
        .write(|tx| {
            for n in 0..300 {
                tx.put(format!("dir/{n:03}"), &bytes(n, n as usize * 90))?;
            }
            tx.put_with("kept", b"1", &holdall::PutOptions::with_attributes(attributes()))?;
            tx.put("large", &bytes(7, 21_000_000))?;
            tx.create(b"nobody knows me")?;
            tx.collection("other")?.put("large", &bytes(8, 9_000_000))?;
            Ok(())
        })
        .unwrap();
    store.close().unwrap();
}

fn same(a: &Store, b: &Store) {
    let (a, b) = (a.read().unwrap(), b.read().unwrap());
    assert_eq!(a.collections().unwrap(), b.collections().unwrap());
    for collection in a.collections().unwrap() {
        let (a, b) = (a.collection(&collection).unwrap(), b.collection(&collection).unwrap());
        let names = |reader: &holdall::Reader| -> Vec<Vec<u8>> {
            reader.names("").map(|entry| entry.unwrap().name).collect()
        };
        assert_eq!(names(&a), names(&b));
        for name in names(&a) {
            assert!(a.get(&name).unwrap() == b.get(&name).unwrap(), "{name:?}");
            let of = |reader: &holdall::Reader| reader.metadata(&name).unwrap().attributes;
            assert_eq!(of(&a), of(&b));
        }
    }
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn between_a_file_and_two_buckets_and_back() {
    let home = Home::new();
    filled(&home);
    let server = Server::start(&home, &[]);
    let (one, two) = ("s3://backups/one", "s3://backups/two");
    for place in [one, two] {
        server.ok(&home, &["bucket", "create", place]);
    }
    let copy = |from: &str, to: &str, more: &[&str]| {
        let args = [&["copy", from, to, "--json"], more].concat();
        json(&server.ok(&home, &args))
    };
    let first = copy("a", one, &[]);
    assert_eq!((&first["objects"], &first["without_name"]), (&303.into(), &1.into()));
    // Nothing is sent twice.
    let again = copy("a", one, &[]);
    assert_eq!((&again["objects"], &again["already_there"]), (&0.into(), &303.into()));
    assert_eq!(copy("a", one, &["--checksum"])["already_there"], 303);
    assert_eq!(copy(one, two, &["--prefix", "dir/"])["objects"], 300);
    assert_eq!(copy(one, two, &[])["objects"], 3);
    assert_eq!(copy(two, "b", &["--collection", "other"])["objects"], 1);
    assert_eq!(copy(two, "b", &[])["objects"], 302);
    same(&Store::open(home.path("a")).unwrap(), &Store::open(home.path("b")).unwrap());
    // What changed is copied again, in either direction.
    home.file("new", "changed");
    server.ok(&home, &["append", one, "kept", "new"]);
    let changed = copy(one, "b", &[]);
    assert_eq!((&changed["objects"], &changed["replaced"]), (&1.into(), &1.into()));
    assert_eq!(server.ok(&home, &["get", "b", "kept"]), "1changed");
    // Bytes that differ behind an equal size and a later time.
    home.file("same", "2changed");
    server.ok(&home, &["truncate", two, "kept", "0"]);
    server.ok(&home, &["append", two, "kept", "same"]);
    assert_eq!(copy("b", two, &["--prefix", "kept"])["already_there"], 1);
    assert_eq!(copy("b", two, &["--prefix", "kept", "--checksum"])["objects"], 1);
    assert_eq!(server.ok(&home, &["get", two, "kept"]), "1changed");
    let fails = |args: &[&str], code: i32, message: &str| {
        server.run(&home, args).failed(code, message);
    };
    fails(&["copy", one, one], 1, "is what is copied from");
    fails(&["copy", "a", one, "--collection", "none"], 3, "collection \"none\"");
    fails(&["copy", "a", "c", "--to-profile", "x"], 1, "bucket to copy to");
    fails(&["copy", "a", "s3://backups/nothing"], 3, "bucket create");
}

#[test]
fn between_files_and_what_cannot_be_copied_is_named() {
    let home = Home::new();
    filled(&home);
    let said = String::from_utf8(home.ok(&["copy", "a", "b"])).unwrap();
    assert!(
        said.starts_with("copied 303 objects, ") && said.ends_with("1 without a name left out\n")
    );
    same(&Store::open(home.path("a")).unwrap(), &Store::open(home.path("b")).unwrap());
    for to in ["a", "./a", "a-log"] {
        home.run(&["copy", "a", to]).failed(1, "give another file");
    }
    home.run(&["copy", "none", "b"]).failed(3, "there is no store none");
    home.run(&["copy", "a", "b", "--endpoint", "http://localhost"]).failed(1, "with a bucket only");
    // A damaged object, and a name that is no text in a bucket.
    let store = Store::open(home.path("a")).unwrap();
    store.write(|tx| tx.put(b"not \xff text", b"x").map(drop)).unwrap();
    store.close().unwrap();
    let server = Server::start(&home, &[]);
    server.ok(&home, &["bucket", "create", "s3://backups/x"]);
    let run = server.run(&home, &["copy", "a", "s3://backups/x"]);
    assert!(run.code == 1 && run.err.contains("not \\xff text: "), "{}", run.err);
    assert!(run.err.contains("names in a bucket are UTF-8"), "{}", run.err);
    assert!(String::from_utf8_lossy(&run.out).starts_with("copied 303 objects"));
}
