//! Groups: what is synced with them, and that all who wait for one wake.

use super::*;
use holdall_io::MemoryDisk;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Notes which syncs are asked and waited for.
#[derive(Default)]
struct Asked(Mutex<(u64, Vec<u64>)>);

impl DataFile for Asked {
    fn ask_for_sync(&self) -> u64 {
        let mut s = self.0.lock();
        s.0 += 1;
        s.0
    }

    fn wait_synced(&self, ticket: u64) -> Result<()> {
        self.0.lock().1.push(ticket);
        Ok(())
    }
}

fn attached() -> Log {
    let capacity = 64 << 10;
    let (store_id, start) = ([7; 16], Lsn(0));
    let log = Log::new(LogStart { store_id, epoch: 1, start, capacity, checkpoint: 1 });
    let disk = Arc::new(MemoryDisk::from_bytes(vec![0; capacity as usize]));
    log.attach(disk, capacity).unwrap();
    log
}

#[test]
fn a_group_syncs_the_data_that_its_commits_list_once() {
    let log = attached();
    let data = Asked::default();
    let group = |commits: &[u64]| {
        for listed in commits {
            log.begin(0).unwrap().unwrap().finish(Vec::new(), *listed);
        }
        log.flush(&data, |_| ()).unwrap();
    };
    group(&[0]);
    assert_eq!(*data.0.lock(), (0, vec![]), "nothing is listed");
    group(&[9, 0, 9]);
    assert_eq!(*data.0.lock(), (1, vec![1]));
    assert!(log.ends_in_place());
    group(&[0]);
    assert_eq!(*data.0.lock(), (1, vec![1]), "nothing is left for the next");
    assert!(!log.ends_in_place());
}

/// A sync that lasts until the test lets it end.
struct Held(Mutex<Receiver<()>>);

impl DataFile for Held {
    fn ask_for_sync(&self) -> u64 {
        0
    }

    fn wait_synced(&self, _ticket: u64) -> Result<()> {
        self.0.lock().recv().map_err(|e| Error::Invalid(e.to_string()))
    }
}

/// One group is in flight: its leader waits for it, and a flush that finds nothing behind it.
/// Two commits are in the next one, which nobody else would lead. Returns how many calls failed
/// when all four have returned.
fn land(poison: bool) -> usize {
    let log = attached();
    let (end_sync, sync) = channel();
    let all = Arc::new((log, Held(Mutex::new(sync))));
    let (ended, ends) = channel();
    let append = |listed| {
        let commit = all.0.begin(0).unwrap().unwrap();
        let lsn = commit.lsn();
        commit.finish(Vec::new(), listed);
        lsn
    };
    let wait = |lsn: Option<Lsn>| {
        let (all, ended) = (all.clone(), ended.clone());
        std::thread::spawn(move || {
            let shown = |durable| assert!(lsn.is_none_or(|lsn| durable >= lsn));
            let result = match lsn {
                Some(lsn) => all.0.wait_durable(lsn, &all.1, shown),
                None => all.0.flush(&all.1, shown),
            };
            ended.send(result).unwrap();
        });
        // It sleeps then.
        std::thread::sleep(Duration::from_millis(50));
    };
    wait(Some(append(9)));
    wait(None);
    let next = [append(0), append(0)];
    for lsn in next {
        wait(Some(lsn));
    }
    assert!(ends.try_recv().is_err(), "nothing is durable yet");
    if poison {
        all.0.set_poison("a write elsewhere failed");
    }
    end_sync.send(()).unwrap();
    let result = || ends.recv_timeout(Duration::from_secs(30)).expect("who waits is woken");
    (0..4).filter(|_| result().is_err()).count()
}

#[test]
fn all_who_wait_for_a_group_wake() {
    assert_eq!(land(false), 0);
}

/// Its leader finds the poison; the flush, whose group has landed, succeeds.
#[test]
fn all_who_wait_wake_when_others_poison_the_log() {
    assert_eq!(land(true), 3);
}
