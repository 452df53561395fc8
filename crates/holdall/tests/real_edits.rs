//! The example programs at small size, and that their checks can fail.
//!
//! Figures of written bytes count the whole process, so that the tests take turns.

#[path = "../examples/media_header/edit/mod.rs"]
mod media_header;
#[path = "../examples/shared/plain.rs"]
mod plain;
#[path = "../examples/shared/mod.rs"]
mod shared;
#[path = "../examples/tar_members/cut/mod.rs"]
mod tar_members;
#[path = "../examples/version_history/replay/mod.rs"]
mod version_history;

use holdall::Store;
use parking_lot::Mutex;
use version_history::{Author, apply};

static TURN: Mutex<()> = Mutex::new(());

fn media(mb: u64, edits: u32) -> media_header::Params {
    media_header::Params { mb, edits, tag_bytes: 3000, rewrites: 1 }
}

#[test]
fn a_media_header_grows_in_place() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let report = media_header::run(&media(24, 12), folder.path()).unwrap();
    println!("{report}");
    let [video, sound] = &report.media.samples;
    assert!(video.len() > 300 && sound.len() > 1000);
    // Four of file and movie, 15 of each track, four around the tags; one per tag.
    assert_eq!(report.boxes, 4 + 2 * 15 + 4 + 12);
    let grown = report.after.size - report.before.size;
    assert!((12 * 3000..12 * 3100).contains(&grown), "grown by {grown}");
    assert!(report.after.taken < report.after.size + (1 << 20), "{}", report.after);
    let (edit, rewrite) = (report.edits.median_written(), report.rewrites.median_written());
    if let (Some(edit), Some(rewrite)) = (edit, rewrite) {
        assert!(rewrite > 24 << 20, "a rewrite writes the file: {rewrite}");
        assert!(edit * 8 < rewrite, "an edit wrote {edit}, a rewrite {rewrite}");
    }
}

#[test]
fn what_an_edit_writes_does_not_depend_on_the_files_size() {
    let _turn = TURN.lock();
    let written = |mb| {
        let folder = tempfile::tempdir().unwrap();
        media_header::run(&media(mb, 5), folder.path()).unwrap().edits.median_written()
    };
    if let (Some(small), Some(large)) = (written(8), written(64)) {
        assert!(large < 2 * small, "8 MiB: {small} bytes, 64 MiB: {large}");
    }
}

#[test]
fn a_header_grown_without_its_offsets_is_found_out() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("plain.mp4");
    let media = media_header::make(&plain, 1 << 20).unwrap();
    let store = Store::create(folder.path().join("store")).unwrap();
    media_header::import(&store, &plain).unwrap();
    let name = media_header::NAME;
    let check = || media_header::check(store.read().unwrap().open(name).unwrap(), &media);
    check().unwrap();
    // Whether the patches are left out but for the first `kept`.
    let grow = |kept: usize| {
        store.write(|tx| {
            let growth = media_header::Growth::of_object(tx, name, b"tag").unwrap();
            for (at, bytes) in growth.patches.iter().take(kept) {
                tx.replace(name, *at, bytes)?;
            }
            tx.insert(name, growth.at, &growth.bytes)
        })
    };
    grow(1).unwrap();
    let error = format!("{:#}", check().unwrap_err());
    assert!(error.contains("sample 0 of track 0"), "{error}");
    media_header::import(&store, &plain).unwrap();
    check().unwrap();
    grow(0).unwrap();
    check().unwrap_err();
}

#[test]
fn a_history_of_a_text_is_replayed() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let params = version_history::Params { versions: 400, kb: 200, readers: 8, seed: 7 };
    let report = version_history::run(&params, folder.path()).unwrap();
    println!("{report}");
    assert!(report.splices > 800, "{} splices", report.splices);
    assert_eq!(report.kept, 8);
    let size = report.after.size;
    assert!((150 << 10..300 << 10).contains(&size), "the text stays about its size: {size}");
    // The unused rest of a page per segment, and each segment with T = 16 pages.
    assert!(report.after.taken * 8 < size * 10, "{}", report.after);
}

#[test]
fn the_author_is_the_same_for_a_seed_and_splices_are_in_order() {
    let (mut one, mut two) = (Author::new(3, 20_000), Author::new(3, 20_000));
    let (mut text, other) = (one.first(), two.first());
    assert_eq!(text, other);
    let (mut moved, mut lens) = (0, Vec::new());
    for _ in 0..500 {
        let splices = one.next(&text);
        assert_eq!(splices, two.next(&text));
        for pair in splices.windows(2) {
            assert!(pair[0].at + pair[0].cut < pair[1].at);
        }
        // From the end, one by one, as the object is changed.
        let mut by_hand = text.clone();
        for s in splices.iter().rev() {
            by_hand.splice(s.at..s.at + s.cut, s.insert.iter().copied());
            let at = text.windows(s.insert.len().max(1)).position(|w| w == s.insert);
            moved += usize::from(s.cut == 0 && s.insert.len() > 20 && at.is_some());
        }
        text = apply(&text, &splices);
        assert_eq!(text, by_hand);
        lens.push(text.len());
    }
    assert!(moved > 20, "{moved} moves");
    assert!(lens.iter().all(|n| (15_000..30_000).contains(n)), "{lens:?}");
}

#[test]
fn members_of_an_archive_are_cut_and_inserted() {
    let _turn = TURN.lock();
    let folder = tempfile::tempdir().unwrap();
    let params = tar_members::Params { members: 120, most_kb: 512, edits: 60, seed: 5 };
    let report = tar_members::run(&params, folder.path()).unwrap();
    println!("{report}");
    let [cut, inserted] = report.changed;
    assert!(cut >= 60 && inserted >= 60, "{cut} cut, {inserted} inserted");
    assert_eq!(report.given_up, 3);
    assert!(report.after.taken < report.after.size * 11 / 10, "{}", report.after);
    if let Some(rewrite) = report.rewrite.median_written() {
        assert!(report.edits.median_written().unwrap() * 4 < rewrite, "{report}");
    }
    let had = std::process::Command::new("tar").arg("--version").output().is_ok();
    let none = report.listed == tar_members::Listed::NoProgram;
    assert_ne!(had, none, "the system's tar is used if there is one");
}

#[test]
fn a_wrong_archive_is_found_out() {
    let _turn = TURN.lock();
    use rand::SeedableRng;
    let folder = tempfile::tempdir().unwrap();
    let store = Store::create(folder.path().join("store")).unwrap();
    let mut rng = rand::rngs::SmallRng::seed_from_u64(1);
    let mut model = tar_members::Model::new(20_000);
    for _ in 0..20 {
        let member = model.draw(&mut rng).unwrap();
        model.members.push(member);
    }
    tar_members::build(&store, &model).unwrap();
    let name = tar_members::NAME;
    let compare =
        |model: &_| tar_members::compare(store.read().unwrap().open(name).unwrap(), model);
    compare(&model).unwrap();
    let mut swapped = model.clone();
    swapped.members.swap(4, 5);
    compare(&swapped).unwrap_err();
    let mut shorter = model.clone();
    shorter.apply(&[7], Vec::new());
    compare(&shorter).unwrap_err();
    // One byte of data of the last member that has some.
    let at = model.members.iter().rposition(|m| m.size > 0).unwrap();
    let start: u64 = model.members[..at].iter().map(|m| m.span()).sum();
    let at = start + model.members[at].headers.len() as u64;
    let old = store.read().unwrap().get_range(name, at..at + 1).unwrap().unwrap();
    store.write(|tx| tx.replace(name, at, &[old[0] ^ 1])).unwrap();
    let error = format!("{:#}", compare(&model).unwrap_err());
    assert!(error.contains("has other bytes"), "{error}");
}
