//! Tests of each behaviour of the faulty storage; the comparison with a model of sectors is in
//! `tests/power_cut.rs`.

use holdall_io::WriteOut;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use super::*;

const LOSE: CrashKind = CrashKind::PowerCut(LossPolicy::LoseAll);
const KEEP: CrashKind = CrashKind::PowerCut(LossPolicy::KeepAll);
const RANDOM: CrashKind = CrashKind::PowerCut(LossPolicy::Random);

/// A volume of two pages of 1s, durable.
fn ones() -> FaultyStorage {
    FaultyStorage::from_bytes(&[1; 8192], None, 1).unwrap()
}

fn planned(plan: FaultPlan) -> FaultyStorage {
    let storage = ones();
    storage.set_plan(plan);
    storage
}

fn volume(storage: &FaultyStorage) -> Vec<u8> {
    storage.snapshot().0
}

fn read(disk: &dyn Disk, offset: u64, len: usize) -> io::Result<Vec<u8>> {
    let mut buf = vec![0; len];
    disk.read_at(offset, &mut buf).map(|()| buf)
}

fn is_crash(error: &io::Error) -> bool {
    error.kind() == ErrorKind::Other && error.to_string() == "simulated crash"
}

#[test]
fn only_synced_writes_are_durable() {
    let storage = ones();
    let disk = storage.volume();
    disk.write_at(100, &[2; 10]).unwrap();
    assert_eq!(read(&*disk, 99, 3).unwrap(), [1, 2, 2]);
    assert_eq!(storage.durable().0, [1; 8192]);
    assert_eq!(volume(&storage.crash(LOSE, 0).unwrap()), [1; 8192]);
    assert_eq!(volume(&storage.crash(KEEP, 0).unwrap()), volume(&storage));
    assert_eq!(storage.unsynced(), 1);
    disk.sync().unwrap();
    assert_eq!(storage.unsynced(), 0);
    assert_eq!(volume(&storage.crash(LOSE, 0).unwrap()), volume(&storage));
}

/// One write of two sectors: over the seeds all four outcomes come up, and no other.
#[test]
fn writes_are_torn_at_sectors() {
    let storage = ones();
    storage.volume().write_at(512, &[2; 1024]).unwrap();
    let mut seen = [0; 4];
    for seed in 0..800 {
        let found = volume(&storage.crash(RANDOM, seed).unwrap());
        let sector = |n: usize| {
            let sector = &found[n * 512..][..512];
            assert!(sector.iter().all(|&b| b == sector[0]), "a sector is never torn");
            usize::from(sector[0] - 1)
        };
        assert_eq!((sector(0), sector(3)), (0, 0));
        seen[sector(1) * 2 + sector(2)] += 1;
    }
    assert!(seen.iter().all(|&n| n > 20), "{seen:?}");
}

/// Later writes survive without earlier ones, and the other way round.
#[test]
fn writes_are_reordered() {
    let storage = ones();
    for sector in 0..3 {
        storage.volume().write_at(sector * 4096 % 8192 + sector * 512, &[2; 512]).unwrap();
    }
    let at = [0, 4608, 1024];
    let mut seen = [false; 8];
    for seed in 0..400 {
        let found = volume(&storage.crash(RANDOM, seed).unwrap());
        let kept = |i: usize| usize::from(found[at[i]] - 1) << i;
        seen[kept(0) + kept(1) + kept(2)] = true;
    }
    assert_eq!(seen, [true; 8]);
    for mask in 0..8 {
        let kind = CrashKind::PowerCut(LossPolicy::Chosen(mask));
        let found = volume(&storage.crash(kind, 0).unwrap());
        let kept: Vec<_> = at.iter().map(|&at| found[at] == 2).collect();
        assert_eq!(kept, [mask & 1 != 0, mask & 2 != 0, mask & 4 != 0]);
    }
}

#[test]
fn lengths_are_at_risk_too_and_change_in_order() {
    let storage = ones();
    let disk = storage.volume();
    disk.truncate(100).unwrap();
    disk.grow(300).unwrap();
    disk.write_at(299, &[3; 2]).unwrap();
    assert_eq!(volume(&storage), [&[1; 100][..], &[0; 199], &[3; 2]].concat());
    assert_eq!(volume(&storage.crash(LOSE, 0).unwrap()), [1; 8192]);
    assert_eq!(volume(&storage.crash(KEEP, 0).unwrap()), volume(&storage));
    let mut lengths: Vec<_> =
        (0..200).map(|seed| volume(&storage.crash(RANDOM, seed).unwrap()).len()).collect();
    lengths.sort_unstable();
    lengths.dedup();
    assert_eq!(lengths, [100, 300, 301, 8192]);
    // The cut lost, all later changes of the length are; what was cut off is still there.
    let late = CrashKind::PowerCut(LossPolicy::Chosen(0b1110));
    let found = volume(&storage.crash(late, 0).unwrap());
    assert_eq!((found.len(), found[298..301].to_vec()), (8192, vec![0, 3, 3]));
    disk.sync().unwrap();
    assert_eq!(volume(&storage.crash(LOSE, 0).unwrap()), volume(&storage));
}

#[test]
fn a_write_past_the_end_may_leave_zeros_or_no_length() {
    let storage = FaultyStorage::new(1);
    storage.volume().write_at(0, &[5; 700]).unwrap();
    assert_eq!(storage.unsynced(), 2);
    let after = |mask| {
        let kind = CrashKind::PowerCut(LossPolicy::Chosen(mask));
        volume(&storage.crash(kind, 0).unwrap())
    };
    assert_eq!([after(0), after(0b10)], [vec![], vec![]]);
    assert_eq!([after(0b01), after(0b11)], [vec![0; 700], vec![5; 700]]);
}

#[test]
fn the_logs_name_needs_sync_dir() {
    let storage = ones();
    let log = storage.create_log().unwrap();
    log.write_at(0, b"log").unwrap();
    log.sync().unwrap();
    let found = |storage: &FaultyStorage, kind| storage.crash(kind, 0).unwrap().snapshot().1;
    assert_eq!(found(&storage, LOSE), None);
    assert_eq!(found(&storage, CrashKind::ProcessKilled), Some(b"log".to_vec()));
    // The name kept: what was synced is there, what was not may be missing.
    log.write_at(3, b"+").unwrap();
    let only_name = CrashKind::PowerCut(LossPolicy::Chosen(1));
    assert_eq!(found(&storage, only_name), Some(b"log".to_vec()));
    storage.sync_dir().unwrap();
    assert_eq!(found(&storage, LOSE), Some(b"log".to_vec()));

    storage.remove_log(&*log).unwrap();
    assert!(storage.open_log().unwrap().is_none());
    storage.remove_log(&*log).unwrap();
    assert_eq!(log.len().unwrap(), 4);
    assert_eq!(found(&storage, LOSE), Some(b"log".to_vec()));
    assert_eq!(found(&storage, KEEP), None);
    let killed = storage.crash(CrashKind::ProcessKilled, 0).unwrap();
    assert_eq!((killed.snapshot().1, found(&killed, LOSE)), (None, Some(b"log".to_vec())));
    storage.sync_dir().unwrap();
    assert_eq!(found(&storage, LOSE), None);
    assert_eq!(log.len().unwrap(), 4, "who has it open keeps it");
}

#[test]
fn a_log_created_again_is_another_one() {
    let storage = FaultyStorage::from_bytes(&[], Some(b"old"), 1).unwrap();
    let old = storage.open_log().unwrap().unwrap();
    storage.remove_log(&*old).unwrap();
    let log = storage.create_log().unwrap();
    log.write_at(0, b"newer").unwrap();
    log.sync().unwrap();
    let mut found: Vec<_> =
        (0..100).map(|seed| storage.crash(RANDOM, seed).unwrap().snapshot().1).collect();
    found.sort();
    found.dedup();
    assert_eq!(found, [None, Some(b"newer".to_vec()), Some(b"old".to_vec())]);
    storage.sync_dir().unwrap();
    assert_eq!(storage.create_log().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(storage.crash(LOSE, 0).unwrap().snapshot().1, Some(b"newer".to_vec()));
}

#[test]
fn a_killed_process_leaves_everything_readable_and_at_risk() {
    let storage = ones();
    storage.volume().write_at(0, &[2; 512]).unwrap();
    let killed = storage.crash(CrashKind::ProcessKilled, 0).unwrap();
    assert_eq!(volume(&killed), volume(&storage));
    assert_eq!(volume(&killed.crash(LOSE, 0).unwrap()), [1; 8192]);
    killed.volume().sync().unwrap();
    assert_eq!(volume(&killed.crash(LOSE, 0).unwrap()), volume(&storage));
    assert_eq!(storage.durable().0, [1; 8192], "the old storage is another one");
}

/// Recovery rule 7.
#[test]
fn after_a_failed_sync_data_is_readable_clean_and_lost() {
    let storage = planned(FaultPlan { fail_sync_at: Some(1), ..FaultPlan::default() });
    let disk = storage.volume();
    disk.write_at(0, &[2; 1024]).unwrap();
    disk.grow(9000).unwrap();
    assert_eq!(disk.sync().unwrap_err().to_string(), "injected error: Sync");
    assert_eq!(read(&*disk, 0, 2).unwrap(), [2, 2]);
    disk.sync().unwrap();
    let mut found = volume(&storage.crash(LOSE, 0).unwrap());
    assert_eq!(found.len(), 9000, "the next sync writes the length");
    found.truncate(8192);
    assert_eq!(found, [1; 8192]);
    assert_eq!(volume(&storage.crash(KEEP, 0).unwrap()), volume(&storage));

    let killed = storage.crash(CrashKind::ProcessKilled, 0).unwrap();
    assert_eq!(read(&*killed.volume(), 0, 2).unwrap(), [2, 2]);
    killed.volume().sync().unwrap();
    assert_eq!(volume(&killed.crash(LOSE, 0).unwrap())[..1024], [1; 1024]);
    // Only writing it again helps, and then nothing old comes back over it.
    killed.volume().write_at(0, &[4; 512]).unwrap();
    killed.volume().sync().unwrap();
    for (kind, second) in [(LOSE, 1), (KEEP, 2)] {
        let found = volume(&killed.crash(kind, 0).unwrap());
        assert_eq!(found[..1024], [[4; 512], [second; 512]].concat());
    }
    // A durable cut of the length takes away what was clean, too.
    killed.volume().truncate(600).unwrap();
    killed.volume().grow(1024).unwrap();
    killed.volume().sync().unwrap();
    let found = volume(&killed.crash(KEEP, 0).unwrap());
    assert_eq!(found[512..], [&[2; 88][..], &[0; 424]].concat());
}

/// The crash point itself: a prefix of sectors of the write is there, and nothing works after it.
#[test]
fn a_planned_crash_ends_everything() {
    let mut prefixes = [false; 5];
    for seed in 0..100 {
        let storage = FaultyStorage::from_bytes(&[1; 4096], Some(b"log"), seed).unwrap();
        let log = storage.open_log().unwrap().unwrap();
        let disk = storage.volume();
        storage.set_plan(FaultPlan { crash_at: Some(3), ..FaultPlan::default() });
        disk.len().unwrap();
        read(&*disk, 0, 10).unwrap();
        assert!(!storage.crashed());
        assert!(is_crash(&disk.write_at(1024, &[2; 2048]).unwrap_err()));
        assert!(storage.crashed());
        assert!(is_crash(&read(&*log, 0, 1).unwrap_err()));
        assert!(is_crash(&disk.sync().unwrap_err()));
        assert!(is_crash(&disk.write_out(0, 1, WriteOut::Wait).unwrap_err()));
        assert!(is_crash(&storage.open_log().unwrap_err()));
        assert!(is_crash(&storage.sync_dir().unwrap_err()));
        assert_eq!(storage.calls(), 4, "opening the log and the three before the crash");
        let found = volume(&storage.crash(CrashKind::ProcessKilled, 0).unwrap());
        let done = found.iter().filter(|&&b| b == 2).count();
        assert!(found[1024..1024 + done].iter().all(|&b| b == 2));
        prefixes[done / 512] |= done % 512 == 0;
        assert_eq!(volume(&storage.crash(LOSE, 0).unwrap()), [1; 4096]);
        storage.heal();
        disk.write_at(0, b"x").unwrap();
    }
    assert_eq!(prefixes, [true; 5]);
}

#[test]
fn crash_points_count_calls_or_changes() {
    let plan = FaultPlan { crash_at_change: Some(2), ..FaultPlan::default() };
    let storage = planned(plan);
    let disk = storage.volume();
    disk.write_at(0, b"a").unwrap();
    for _ in 0..5 {
        read(&*disk, 0, 1).unwrap();
    }
    assert!(is_crash(&disk.sync().unwrap_err()));
    assert_eq!((storage.calls(), storage.changes()), (7, 2));
    assert_eq!(storage.durable().0, [1; 8192], "the sync has not promised anything");
}

/// Calls without a part are done or not done when the crash strikes in them.
#[test]
fn a_crash_in_a_call_about_names_or_lengths() {
    let outcomes = |call: fn(&FaultyStorage) -> bool, see: fn(&FaultyStorage) -> bool| {
        let mut seen = [false; 2];
        for seed in 0..50 {
            let storage = FaultyStorage::from_bytes(&[1; 512], None, seed).unwrap();
            storage.set_plan(FaultPlan { crash_at: Some(1), ..FaultPlan::default() });
            assert!(call(&storage), "it must fail");
            let killed = storage.crash(CrashKind::ProcessKilled, 0).unwrap();
            seen[usize::from(see(&killed))] = true;
        }
        seen
    };
    // Also if the call would have failed anyway.
    let storage = planned(FaultPlan { crash_at: Some(1), ..FaultPlan::default() });
    assert!(is_crash(&storage.volume().grow(u64::MAX).unwrap_err()));
    let has_log = |s: &FaultyStorage| s.snapshot().1.is_some();
    assert_eq!(outcomes(|s| s.create_log().is_err(), has_log), [true; 2]);
    let long = |s: &FaultyStorage| s.snapshot().0.len() == 900;
    assert_eq!(outcomes(|s| s.volume().grow(900).is_err(), long), [true; 2]);
    let short = |s: &FaultyStorage| s.snapshot().0.len() == 9;
    assert_eq!(outcomes(|s| s.volume().truncate(9).is_err(), short), [true; 2]);
}

#[test]
fn planned_errors_strike_once() {
    let plan = FaultPlan {
        fail_read_at: Some(2),
        short_read_at: Some(3),
        fail_write_at: Some(2),
        fail_other_at: Some(2),
        ..FaultPlan::default()
    };
    let storage = planned(plan);
    let disk = storage.volume();
    let reads: Vec<_> = (0..4).map(|_| read(&*disk, 0, 8).map_err(|e| e.kind())).collect();
    let (ok, eof) = (Ok(vec![1; 8]), Err(ErrorKind::UnexpectedEof));
    assert_eq!(reads, [ok.clone(), Err(ErrorKind::Other), eof, ok]);
    disk.write_at(0, &[2; 512]).unwrap();
    disk.write_at(0, &[3; 512]).unwrap_err();
    assert!([2, 3].contains(&volume(&storage)[0]));
    disk.write_at(0, &[4; 512]).unwrap();
    disk.grow(9000).unwrap();
    disk.grow(10_000).unwrap_err();
    assert_eq!(disk.len().unwrap(), 9000);
    storage.create_log().unwrap();
    assert!(!storage.crashed());
}

#[test]
fn a_failed_sync_dir_leaves_the_name_at_risk() {
    let storage = planned(FaultPlan { fail_sync_at: Some(1), ..FaultPlan::default() });
    storage.create_log().unwrap();
    storage.sync_dir().unwrap_err();
    assert_eq!(storage.crash(LOSE, 0).unwrap().snapshot().1, None);
    storage.sync_dir().unwrap();
    assert_eq!(storage.crash(LOSE, 0).unwrap().snapshot().1, Some(vec![]));
}

#[test]
fn the_disk_is_full_for_both_files_together() {
    let storage = planned(FaultPlan { full_at_bytes: Some(10_000), ..FaultPlan::default() });
    let (disk, log) = (storage.volume(), storage.create_log().unwrap());
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(log.grow(1809)), ErrorKind::StorageFull);
    assert_eq!(log.len().unwrap(), 0);
    log.grow(1800).unwrap();
    assert_eq!(kind(disk.write_at(8190, &[3; 20])), ErrorKind::StorageFull);
    assert_eq!(volume(&storage)[8189..], [&[1][..], &[3; 10]].concat(), "what there was room for");
    disk.write_at(0, &[4; 8200]).unwrap();
    assert_eq!(kind(disk.grow(8201)), ErrorKind::StorageFull);
    storage.remove_log(&*log).unwrap();
    disk.grow(10_000).unwrap();
    storage.heal();
    disk.grow(20_000).unwrap();
}

#[test]
fn a_full_disk_refuses_what_real_ones_refuse() {
    let plan = FaultPlan {
        full_at_bytes: Some(20_000),
        room_of_log_name: 8192,
        refuse_fill: true,
        ..FaultPlan::default()
    };
    let storage = planned(plan);
    let disk = storage.volume();
    let kind = |result: io::Result<()>| result.unwrap_err().kind();
    assert_eq!(kind(disk.fill_holes(0, 4096)), ErrorKind::StorageFull);
    disk.write_at(0, &[7; 4096]).unwrap();
    assert_eq!(storage.room_of_log_name(), 8192);
    disk.grow(16_000).unwrap();
    assert_eq!(kind(storage.create_log().map(drop)), ErrorKind::StorageFull);
    assert_eq!(storage.snapshot().1, None);
    disk.truncate(8192).unwrap();
    storage.create_log().unwrap();
    assert_eq!(storage.taken(), 8192, "the room is asked for and not taken");
}

#[test]
fn flips_on_the_way_and_on_the_medium() {
    let flip = Flip { file: FaultyFile::Volume, byte: 4097, bit: 3 };
    let storage = planned(FaultPlan { flip: Some(flip), ..FaultPlan::default() });
    let disk = storage.volume();
    assert_eq!(read(&*disk, 4096, 3).unwrap(), [1, 9, 1]);
    assert_eq!(read(&*disk, 4098, 3).unwrap(), [1; 3]);
    storage.heal();
    assert_eq!(read(&*disk, 4096, 3).unwrap(), [1; 3]);

    disk.write_at(4096, &[2; 512]).unwrap();
    storage.flip_byte(FaultyFile::Volume, 4097, 0x80).unwrap();
    assert_eq!(read(&*disk, 4096, 3).unwrap(), [2, 0x82, 2]);
    assert_eq!(volume(&storage.crash(LOSE, 0).unwrap())[4097], 0x81);
    assert_eq!(volume(&storage.crash(KEEP, 0).unwrap())[4097], 0x82);
    disk.sync().unwrap();
    assert_eq!(storage.durable(), storage.snapshot());
    let error = storage.flip_byte(FaultyFile::Volume, 8192, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    storage.flip_byte(FaultyFile::Log, 0, 1).unwrap_err();
    let log = FaultyStorage::from_bytes(&[], Some(&[0]), 0).unwrap();
    log.flip_byte(FaultyFile::Log, 0, 1).unwrap();
    assert_eq!(log.snapshot().1, Some(vec![1]));
}

#[test]
fn ignored_syncs_make_nothing_durable() {
    for which in 0..3 {
        let plan = FaultPlan {
            ignore_volume_sync: which == 0,
            ignore_log_sync: which == 1,
            ignore_dir_sync: which == 2,
            ..FaultPlan::default()
        };
        let storage = planned(plan);
        let log = storage.create_log().unwrap();
        log.write_at(0, b"log").unwrap();
        storage.volume().write_at(0, b"new").unwrap();
        log.sync().unwrap();
        storage.volume().sync().unwrap();
        storage.sync_dir().unwrap();
        let (volume, log) = storage.crash(LOSE, 0).unwrap().snapshot();
        assert_eq!(volume.starts_with(b"new"), which != 0);
        let expected = [Some(&b"log"[..]), Some(b""), None][which];
        assert_eq!(log.as_deref(), expected);
    }
}

#[test]
fn a_fork_goes_its_own_way() {
    let storage = planned(FaultPlan { fail_write_at: Some(2), ..FaultPlan::default() });
    let log = storage.create_log().unwrap();
    storage.volume().write_at(0, &[2; 600]).unwrap();
    storage.set_now(Duration::from_secs(3));
    let fork = storage.fork();
    assert_eq!((fork.calls(), fork.unsynced()), (storage.calls(), storage.unsynced()));
    assert_eq!((fork.trace(), fork.now()), (storage.trace(), Duration::from_secs(3)));
    fork.volume().write_at(0, &[3; 600]).unwrap_err();
    fork.volume().sync().unwrap();
    fork.open_log().unwrap().unwrap().write_at(0, b"fork").unwrap();
    assert_eq!(log.len().unwrap(), 0);
    assert_eq!(storage.durable().0, [1; 8192]);
    for seed in 0..20 {
        let again = [&storage, &storage].map(|s| s.crash(RANDOM, seed).unwrap().snapshot());
        assert_eq!(again[0], again[1], "same seed, same crash");
    }
}

#[test]
fn sums_outlive_crashes_and_meet_no_fault() {
    let plan = FaultPlan {
        crash_at: Some(1),
        fail_write_at: Some(1),
        full_at_bytes: Some(0),
        ..FaultPlan::default()
    };
    let storage = planned(plan);
    assert!(storage.open_sums(false).unwrap().is_none());
    let sums = storage.open_sums(true).unwrap().unwrap();
    sums.write_at(0, b"one").unwrap();
    assert_eq!((storage.calls(), storage.changes(), storage.unsynced()), (0, 0, 0));
    assert!(is_crash(&storage.volume().len().unwrap_err()));
    for copy in [storage.crash(LOSE, 0).unwrap(), storage.fork()] {
        let found = copy.open_sums(false).unwrap().unwrap();
        assert_eq!(read(&*found, 0, 3).unwrap(), b"one");
        found.write_at(0, b"two").unwrap();
        assert_eq!(read(&*sums, 0, 3).unwrap(), b"one", "the copy is another one");
    }
}

#[test]
fn logs_that_nobody_can_reach_are_dropped() {
    let storage = ones();
    for _ in 0..50 {
        let log = storage.create_log().unwrap();
        log.grow(1000).unwrap();
        storage.remove_log(&*log).unwrap();
        storage.sync_dir().unwrap();
        assert_eq!(log.len().unwrap(), 1000);
    }
    storage.sync_dir().unwrap();
    assert!(storage.state.lock().log_token(49).is_none());
}

#[test]
fn the_trace_tells_the_last_calls() {
    let storage = Arc::new(ones());
    let disk = storage.volume();
    disk.write_at(7, b"abc").unwrap();
    read(&*disk, 9000, 1).unwrap_err();
    storage.create_log().unwrap().grow(5).unwrap();
    let text = storage.trace();
    let lines: Vec<_> = text.lines().map(str::trim).collect();
    let expected = [
        "1 Write volume 7+3",
        "2 Read volume 9000+1 -> UnexpectedEof",
        "3 CreateLog",
        "4 Grow log#0 to 5",
    ];
    assert_eq!(lines, expected);
    for _ in 0..1000 {
        disk.sync().unwrap();
    }
    assert_eq!(storage.trace().lines().count(), 256);
}
