//! Tests of the graph: what an event finds, reopening, the caches, and the sample's sizes.

use super::*;
use holdall_io::{Disk, MemoryDisk};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use sample::Sample;
use site::{LIFETIME, Site};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::sync::Arc;

type Kept = Rc<RefCell<BTreeMap<u32, Arc<dyn Disk>>>>;

fn tables(kept: &Kept) -> Tables {
    let kept = kept.clone();
    Tables::new(Box::new(move |table, fresh| {
        if fresh {
            kept.borrow_mut().insert(table, Arc::new(MemoryDisk::new()));
        }
        Ok(kept.borrow()[&table].clone())
    }))
}

fn sorted(pages: Vec<String>) -> BTreeSet<String> {
    let n = pages.len();
    let set: BTreeSet<String> = pages.into_iter().collect();
    assert_eq!(set.len(), n, "a page twice");
    set
}

#[test]
fn an_event_finds_every_page_that_depends_on_it() {
    let kept = Kept::default();
    let mut graph = Odg::create(tables(&kept)).unwrap();
    for name in ["a", "b", "c"] {
        graph.add_node(name, Kind::Fragment, b"").unwrap();
    }
    for i in 0..200 {
        graph.add_node(&format!("p{i}"), Kind::Page, &[0; 100]).unwrap();
    }
    graph.add_edge("a", "b", b"").unwrap();
    for i in 0..200 {
        graph.add_edge(if i < 120 { "b" } else { "c" }, &format!("p{i}"), b"x").unwrap();
        graph.add_edge("b", "p0", b"again").unwrap();
    }
    assert_eq!(graph.edge_tables(), 2, "more than 50 edges have a table");
    assert_eq!(graph.publish(&["a"]).unwrap().len(), 120);
    assert_eq!(sorted(graph.publish(&["a", "b", "c"]).unwrap()).len(), 200);
    assert_eq!(graph.publish(&["p7"]).unwrap(), ["p7"]);
    graph.add_edge("b", "a", b"").unwrap_err();
    graph.add_edge("a", "a", b"").unwrap_err();
    graph.add_edge("a", "nowhere", b"").unwrap_err();
    graph.close().unwrap();
    let mut graph = Odg::open(tables(&kept)).unwrap();
    assert!(graph.tables().recovery().clean);
    assert_eq!(graph.publish(&["a"]).unwrap().len(), 120);
    // The process ends without a shutdown.
    graph.add_edge("a", "p199", b"").unwrap();
    drop(graph);
    let mut graph = Odg::open(tables(&kept)).unwrap();
    assert!(!graph.tables().recovery().clean);
    assert_eq!(graph.publish(&["a"]).unwrap().len(), 121);
}

/// What is served has the newest text of all it is made of, also of fragments of fragments.
#[test]
fn rules_of_the_caches() {
    let kept = Kept::default();
    let mut site = Site::create(tables(&kept)).unwrap();
    for (name, kind) in [("a", Kind::Fragment), ("b", Kind::Fragment), ("c", Kind::Fragment)] {
        site.graph().add_node(name, kind, b"").unwrap();
    }
    for (name, part) in [("p", "b"), ("q", "c")] {
        site.graph().add_node(name, Kind::Page, b"").unwrap();
        site.graph().add_edge(part, name, b"").unwrap();
        site.receive(name, &[part.into()], name.as_bytes()).unwrap();
    }
    site.graph().add_edge("a", "b", b"").unwrap();
    site.receive("a", &[], b"old ").unwrap();
    site.receive("b", &[b"a".to_vec()], b"of b ").unwrap();
    site.receive("c", &[], b"of c ").unwrap();
    assert_eq!(site.page("p").unwrap(), b"old of b p");
    assert_eq!(site.page("q").unwrap(), b"of c q");
    assert_eq!(site.publish(&[("a", b"new ")], 7).unwrap(), ["p"]);
    assert_eq!(site.page("p").unwrap(), b"new of b p");
    assert!(site.expired(7 + LIFETIME - 1).unwrap().is_empty());
    assert_eq!(site.expired(7 + LIFETIME).unwrap(), ["p"], "nobody built the other page");
    drop(site);
    let mut site = Site::open(tables(&kept)).unwrap();
    assert_eq!(site.page("p").unwrap(), b"new of b p");
    site.publish(&[("c", b"new ")], 9).unwrap();
    assert_eq!(site.page("q").unwrap(), b"new q");
    assert!(site.publish(&[("nowhere", b"")], 9).is_err());
}

#[test]
fn events_of_a_sample_find_pages_of_hubs() {
    let sample = Sample::share(0.002, 3);
    let mut graph = Odg::create(tables(&Kept::default())).unwrap();
    sample.build(&mut graph).unwrap();
    let mut rng = SmallRng::seed_from_u64(1);
    let mut most = 0;
    for _ in 0..100 {
        let event = sample.event(&mut rng);
        let event: Vec<&str> = event.iter().map(String::as_str).collect();
        most = most.max(sorted(graph.publish(&event).unwrap()).len());
    }
    assert!(most > 100, "no event of a hub");
    graph.checkpoint().unwrap();
    let (edges, _) = graph.tables().usage(|table| table > 0).unwrap();
    assert!((3.7..4.6).contains(&edges.internal()), "{}", edges.internal());
    assert!(graph.tables().sizes(|table| table > 0).unwrap().iter().all(|&size| size < 150));
}
