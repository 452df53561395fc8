//! The adapters answer as the trait says: each store against a model of what it should hold.

use holdall_bench::peer::{Load, Setup};
use holdall_bench::stores;
use std::collections::BTreeMap;

#[test]
fn stores_hold_what_was_put() {
    for maker in stores::own() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("s");
        std::fs::create_dir(&home).unwrap();
        let setup = Setup { cache_bytes: 8 << 20, load: Load::Web };
        let mut peer = maker.open(&home, &setup).unwrap();
        let key = |i: u64| i.to_be_bytes();
        let mut model = BTreeMap::new();
        let put = |peer: &dyn holdall_bench::peer::Peer, i: u64, bytes: Vec<u8>| {
            peer.put(&[(&key(i), &bytes), (&key(i + 100), &bytes)]).unwrap();
            [(i, bytes.clone()), (i + 100, bytes)]
        };
        model.extend(put(&*peer, 1, vec![1; 100]));
        model.extend(put(&*peer, 1, vec![2; 250]));
        model.extend(put(&*peer, 2, vec![3; 30_000]));
        model.extend(put(&*peer, 2, vec![4; 20]));
        model.extend(put(&*peer, 3, vec![5; 300_000]));
        for fill in [6, 7] {
            peer.put_stream(&key(4), 700_001, &mut |b| b.fill(fill)).unwrap();
            model.insert(4, vec![fill; 700_001]);
        }
        peer.splice(&key(4), 1000, 500, b"inserted").unwrap();
        model.get_mut(&4).unwrap().splice(1000..1500, *b"inserted");
        peer.delete(&[&key(101), &key(2)]).unwrap();
        model.remove(&101);
        model.remove(&2);
        for _ in 0..2 {
            let mut out = vec![9; 5];
            for i in 0..200 {
                let found = peer.get(&key(i), &mut out).unwrap();
                assert_eq!(found.then_some(&out), model.get(&i), "{}: {i}", maker.name());
                let mut viewed = Vec::new();
                assert_eq!(
                    peer.view(&key(i), &mut |b| viewed.extend_from_slice(b)).unwrap(),
                    found
                );
                assert!(!found || viewed == out);
            }
            let mut range = [0; 20];
            peer.get_range(&key(4), 990, &mut range).unwrap();
            assert_eq!(range, model[&4][990..1010]);
            let mut many = Vec::new();
            peer.get_many(&[&key(3), &key(1)], &mut |b| many.push(b.to_vec())).unwrap();
            assert_eq!(many, [model[&3].clone(), model[&1].clone()]);
            assert!(peer.get_many(&[&key(150)], &mut |_| ()).is_err());
            peer.settle().unwrap();
            peer.close().unwrap();
            peer = maker.open(&home, &setup).unwrap();
        }
    }
}
