//! A store does not survive a fork: the child gets an error, whatever it does, and disturbs
//! nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use holdall::{Error, Options, Reader, Store};

/// Runs `f` in a forked child and returns whether it was true there.
fn in_child(f: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child runs `f`, which waits for no thread of the parent, and ends at once.
    #[expect(unsafe_code, reason = "no safe wrapper; see the argument above")]
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = i32::from(!f());
        // SAFETY: ends the process without running what the parent's threads left to be run.
        #[expect(unsafe_code, reason = "as above")]
        unsafe {
            libc::_exit(code)
        }
    }
    assert!(child > 0);
    let mut status = 0;
    // SAFETY: `status` is an integer that lives through the call.
    #[expect(unsafe_code, reason = "as above")]
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    assert_eq!(waited, child);
    libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
}

fn forked<T>(result: Result<T, Error>) -> bool {
    match result {
        Err(e @ Error::Forked) => e.to_string().contains("open it again in the child"),
        _ => false,
    }
}

/// Whether everything that reads says so.
fn reading_is_refused(store: &Store, reader: &Reader) -> bool {
    let mut part = [0; 8];
    forked(store.read())
        && forked(store.read_newest())
        && forked(store.stat())
        && forked(reader.get("small"))
        && forked(reader.get("large"))
        && forked(reader.get("missing"))
        && forked(reader.names("").next().unwrap())
        && forked(store.write(|tx| tx.put("x", b"x")))
        && forked(store.checkpoint())
        && forked(store.flush())
        && forked(reader.read_at("large", 70_000, &mut part))
}

#[test]
fn a_forked_child_is_told_to_open_the_store_itself() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s");
    for background in [false, true] {
        let options = Options::default().background(background);
        let store = options.create(&path).unwrap();
        let large: Vec<u8> = (0..300_000u32).map(|i| (i / 7) as u8).collect();
        store.write(|tx| tx.put("small", b"1")).unwrap();
        store.write(|tx| tx.put("large", &large)).unwrap();
        let reader = store.read().unwrap();
        assert!(in_child(|| reading_is_refused(&store, &reader)));
        // The child that drops all of it takes nothing from the parent.
        assert!(in_child(|| {
            let (again, snapshot) = (store.clone(), store.clone());
            drop((again, snapshot));
            true
        }));
        store.write(|tx| tx.put("small", b"2")).unwrap();
        assert_eq!(reader.get("small").unwrap().unwrap(), b"1");
        assert!(reader.get("large").unwrap().unwrap() == large);
        drop(reader);
        store.close().unwrap();
        // Opened in the child it serves there.
        assert!(in_child(|| {
            let store = Store::open_read_only(&path).unwrap();
            store.read().unwrap().get("small").unwrap().unwrap() == b"2"
        }));
        std::fs::remove_file(&path).unwrap();
    }
}
