//! Several stores, full ones, stopping.

use crate::harness::{Running, bytes, engine};
use holdall_server::{Config, Grant, Options};

fn everybody() -> Config {
    Config { anonymous: vec![Grant::everything()], ..Config::default() }
}

#[test]
fn buckets_of_several_stores_are_served_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let (first, second) = (dir.path().join("a.holdall"), dir.path().join("b.holdall"));
    for (path, bucket) in [(&first, "one"), (&second, "two")] {
        let store = holdall::Store::create(path).unwrap();
        store.write(|tx| tx.collection(bucket)?.put("k", bucket.as_bytes())).unwrap();
        store.close().unwrap();
    }
    let config = Config { new_buckets: Some(second.clone()), ..everybody() };
    let s = Running::within(dir, config, &["a.holdall", "b.holdall"]);
    assert_eq!((s.get("/one/k").body, s.get("/two/k").body), (b"one".to_vec(), b"two".to_vec()));
    s.put("/three", b"").expect(200);
    // Between stores bytes are copied.
    s.call("PUT", "/three/copy", b"", &[("x-amz-copy-source", "one/k")]).expect(200);
    assert_eq!(s.get("/three/copy").body, b"one");
    let _dir = s.stop();
    let names = engine(&second).read().unwrap().collections().unwrap();
    assert!(names.contains(&"three".to_owned()), "{names:?}");
}

#[test]
fn the_same_bucket_in_two_stores_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let stores = ["a.holdall", "b.holdall"].map(|name| dir.path().join(name));
    for path in &stores {
        let store = holdall::Store::create(path).unwrap();
        store.write(|tx| tx.collection("same")?.put("k", b"")).unwrap();
        store.close().unwrap();
    }
    let options = Options {
        stores: stores.to_vec(),
        listen: "127.0.0.1:0".into(),
        config: everybody(),
        ..Default::default()
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(holdall_server::start(options)).unwrap_err();
    assert!(refused.to_string().contains("\"same\""), "{refused}");
}

#[test]
fn a_full_store_refuses_puts_and_goes_on() {
    let s = Running::bounded(8 << 20);
    s.put("/box", b"").expect(200);
    let (mut kept, mut refused) = (Vec::new(), 0);
    for n in 0..40 {
        let path = format!("/box/{n}");
        match s.put(&path, &bytes(if n % 2 == 0 { 1_500_000 } else { 400_000 }, n)).status {
            200 => kept.push(n),
            507 => refused += 1,
            other => assert_eq!(other, 200),
        }
    }
    assert!(!kept.is_empty() && refused > 0);
    for n in kept {
        let size = if n % 2 == 0 { 1_500_000 } else { 400_000 };
        assert!(s.get(&format!("/box/{n}")).expect(200).body == bytes(size, n));
        s.delete(&format!("/box/{n}")).expect(204);
    }
    s.put("/box/after", &bytes(1_500_000, 0)).expect(200);
}

#[test]
fn a_full_store_refuses_webdav_and_still_takes_deletes() {
    let s = Running::bounded(8 << 20);
    for folder in ["box", "box/t"] {
        s.call("MKCOL", &format!("/-/dav/{folder}"), b"", &[]).expect(201);
    }
    let put = |n: usize| s.put(&format!("/-/dav/box/t/{n}"), &bytes(700_000, n)).status;
    let (kept, refused): (Vec<_>, Vec<_>) = (0..40).partition(|n| match put(*n) {
        201 => true,
        other => {
            assert_eq!(other, 507);
            false
        }
    });
    assert!(!kept.is_empty() && !refused.is_empty());
    let intact = || {
        for n in &kept {
            let got = s.get(&format!("/-/dav/box/t/{n}")).expect(200);
            assert!(got.body == bytes(700_000, *n), "{n}");
        }
    };
    // What has no room leaves everything as it was.
    let append =
        [("Content-Type", "application/x-sabredav-partialupdate"), ("X-Update-Range", "append")];
    let path = format!("/-/dav/box/t/{}", kept[0]);
    s.call("PATCH", &path, &bytes(3_000_000, 0), &append).expect(507);
    intact();
    // The page's delete only moves names.
    let token = [("X-Holdall-CSRF", "anonymous")];
    let told = s.call("POST", "/-/web/trash?path=/-/dav/box/t", b"", &token).expect(200).text();
    s.get(&path).expect(404);
    let id = serde_json::from_str::<serde_json::Value>(&told).unwrap()["id"].clone();
    let restore = format!("/-/web/restore?id={}", id.as_str().unwrap());
    s.call("POST", &restore, b"", &token).expect(200);
    intact();
    s.delete("/-/dav/box/t").expect(204);
    s.put("/-/dav/box/after", &bytes(3_000_000, 0)).expect(201);
}

#[test]
fn running_requests_end_before_it_stops() {
    use std::io::{Read as _, Write as _};
    let s = Running::open();
    s.put("/box", b"").expect(200);
    let mut stream = std::net::TcpStream::connect(&s.address).unwrap();
    stream.write_all(b"PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nhello").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    let store = s.store();
    let stopping = std::thread::spawn(move || s.stop());
    std::thread::sleep(std::time::Duration::from_millis(200));
    stream.write_all(b"world").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let _dir = stopping.join().unwrap();
    let bucket = engine(&store).read().unwrap().collection("box").unwrap();
    assert_eq!(bucket.get("k").unwrap().unwrap(), b"helloworld");
}

#[test]
fn a_put_whose_bucket_is_deleted_meanwhile_is_refused() {
    use std::io::{Read as _, Write as _};
    for len in [10, 3_000_000] {
        let s = Running::open();
        s.put("/box", b"").expect(200);
        let body = bytes(len, 1);
        let mut stream = std::net::TcpStream::connect(&s.address).unwrap();
        let head = format!(
            "PUT /box/k HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&body[..len / 2]).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(200));
        s.delete("/box").expect(204);
        stream.write_all(&body[len / 2..]).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("NoSuchBucket"), "{answer}");
        let store = s.store();
        let _dir = s.stop();
        let names = engine(&store).read().unwrap().collections().unwrap();
        assert!(!names.contains(&"box".to_owned()), "{names:?}");
    }
}
