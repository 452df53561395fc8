//! The service as OpenDAL's users see it.

#![expect(clippy::unwrap_used, reason = "a test stops at the first thing that goes wrong")]

use futures::TryStreamExt as _;
use holdall::Store;
use holdall_opendal::{Holdall, HoldallConfig};
use opendal_core::{Configurator as _, ErrorKind, Operator};

fn operator() -> (Store, Operator) {
    let store = Store::in_memory().unwrap();
    (store.clone(), Operator::new(Holdall::new(store)).unwrap())
}

async fn names(op: &Operator, path: &str, recursive: bool) -> Vec<String> {
    let entries = op.list_with(path).recursive(recursive).await.unwrap();
    entries.iter().map(|entry| entry.path().to_owned()).collect()
}

#[tokio::test]
async fn objects_are_written_read_and_deleted() {
    let (store, op) = operator();
    assert_eq!(op.read("a").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert!(!op.exists("a").await.unwrap());
    let told = op.write_with("d/a.txt", "hello").content_type("text/plain").await.unwrap();
    assert_eq!(told.content_length(), 5);
    let stat = op.stat("d/a.txt").await.unwrap();
    assert_eq!((stat.content_length(), stat.content_type()), (5, Some("text/plain")));
    assert!(stat.last_modified().is_some() && stat.etag() == told.etag());
    op.write("empty", "").await.unwrap();
    assert_eq!(op.read("empty").await.unwrap().len(), 0);
    for (range, bytes) in [(0..5, "hello"), (1..4, "ell"), (4..5, "o")] {
        assert_eq!(op.read_with("d/a.txt").range(range).await.unwrap().to_vec(), bytes.as_bytes());
    }
    op.write("d/a.txt", "replaced").await.unwrap();
    assert_eq!(store.read().unwrap().get("d/a.txt").unwrap().unwrap(), b"replaced");
    op.delete("d/a.txt").await.unwrap();
    op.delete("d/a.txt").await.unwrap();
    assert!(!op.exists("d/a.txt").await.unwrap());
}

#[tokio::test]
async fn a_long_object_is_written_in_pieces_and_appears_whole() {
    let (_, op) = operator();
    let piece = |n: u8| (0..700_000_u32).map(|i| (i * 31) as u8 ^ n).collect::<Vec<u8>>();
    let mut writer = op.writer("long").await.unwrap();
    for n in 0..8 {
        writer.write(piece(n)).await.unwrap();
    }
    assert!(!op.exists("long").await.unwrap(), "not before it is closed");
    writer.close().await.unwrap();
    let all: Vec<u8> = (0..8).flat_map(piece).collect();
    assert_eq!(op.read("long").await.unwrap().to_vec(), all);
    let part = op.reader("long").await.unwrap().read(1_999_999..4_500_001).await.unwrap();
    assert_eq!(part.to_vec(), all[1_999_999..4_500_001]);
    let suffix = op.read_with("long").range(5_599_990..).await.unwrap();
    assert_eq!(suffix.to_vec(), all[5_599_990..]);
    let beyond = op.reader("long").await.unwrap().read(6_000_000..6_000_001).await;
    assert_eq!(beyond.unwrap_err().kind(), ErrorKind::RangeNotSatisfied);
    let mut given_up = op.writer("given up").await.unwrap();
    given_up.write(piece(1)).await.unwrap();
    given_up.abort().await.unwrap();
    assert!(!op.exists("given up").await.unwrap());
}

#[tokio::test]
async fn what_is_there_is_not_made_again() {
    let (_, op) = operator();
    op.write_with("a", "first").if_not_exists(true).await.unwrap();
    let again = op.write_with("a", "second").if_not_exists(true).await.unwrap_err();
    assert_eq!(again.kind(), ErrorKind::ConditionNotMatch);
    assert_eq!(op.read("a").await.unwrap().to_vec(), b"first");
}

#[tokio::test]
async fn folders_and_listings() {
    let (store, op) = operator();
    for name in ["a", "d/x", "d/y", "d/e/z", "f"] {
        op.write(name, "1").await.unwrap();
    }
    op.create_dir("d/empty/").await.unwrap();
    op.create_dir("d/empty/").await.unwrap();
    store.write(|tx| tx.put(b"d/\xff", b"").map(drop)).unwrap();
    assert_eq!(names(&op, "", false).await, ["a", "d/", "f"]);
    assert_eq!(names(&op, "d/", false).await, ["d/e/", "d/empty/", "d/x", "d/y"]);
    assert_eq!(names(&op, "d/", true).await, ["d/e/z", "d/empty/", "d/x", "d/y"]);
    assert_eq!(names(&op, "d/x", true).await, ["d/x"]);
    assert_eq!(names(&op, "none/", true).await, Vec::<String>::new());
    assert!(op.stat("d/").await.unwrap().is_dir() && op.stat("d/empty/").await.unwrap().is_dir());
    assert!(op.stat("/").await.unwrap().is_dir());
    assert_eq!(op.stat("none/").await.unwrap_err().kind(), ErrorKind::NotFound);
    let after = op.list_with("d/").start_after("d/empty/").recursive(true).await.unwrap();
    assert_eq!(after.iter().map(|e| e.path()).collect::<Vec<_>>(), ["d/x", "d/y"]);
    // Pages of two.
    let paged: Vec<_> = op
        .lister_with("")
        .limit(2)
        .recursive(true)
        .await
        .unwrap()
        .try_collect::<Vec<_>>()
        .await
        .unwrap();
    assert_eq!(paged.len(), 6);
    assert_eq!(paged[0].metadata().content_length(), 1);
}

#[tokio::test]
async fn copies_renames_and_deletes_of_many() {
    let (store, op) = operator();
    op.write_with("a", "bytes").content_type("x/y").await.unwrap();
    op.write("b", "old").await.unwrap();
    op.copy("a", "c").await.unwrap();
    op.rename("a", "b").await.unwrap();
    for name in ["b", "c"] {
        assert_eq!(op.read(name).await.unwrap().to_vec(), b"bytes");
        assert_eq!(op.stat(name).await.unwrap().content_type(), Some("x/y"));
    }
    assert_eq!(op.rename("none", "b").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(op.copy("none", "b").await.unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(op.read("b").await.unwrap().to_vec(), b"bytes", "a rename of nothing takes nothing");
    for n in 0..2500 {
        store.write(|tx| tx.put(format!("many/{n}"), b"x").map(drop)).unwrap();
    }
    let lsn = store.read().unwrap().lsn();
    op.delete_iter((0..2500).map(|n| format!("many/{n}"))).await.unwrap();
    assert_eq!(names(&op, "many/", true).await, Vec::<String>::new());
    assert!(store.read().unwrap().lsn() > lsn);
}

#[tokio::test]
async fn roots_collections_and_paths() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.holdall").to_string_lossy().into_owned();
    let builder = Holdall::open(&path).collection("c").root("/r/s");
    let op = Operator::new(builder).unwrap();
    op.write("x", "1").await.unwrap();
    assert_eq!(names(&op, "", true).await, ["x"]);
    drop(op);
    let config =
        HoldallConfig::from_iter([("path".to_owned(), path), ("collection".into(), "c".into())]);
    let op = Operator::from_config(config.unwrap()).unwrap();
    assert_eq!(names(&op, "", true).await, ["r/s/x"]);
    assert_eq!(op.info().scheme(), "holdall");
    assert_eq!(Operator::new(Holdall::default()).unwrap_err().kind(), ErrorKind::ConfigInvalid);
    let missing = Operator::new(Holdall::open(dir.path().join("no/such").to_string_lossy()));
    assert!(missing.is_err());
}
