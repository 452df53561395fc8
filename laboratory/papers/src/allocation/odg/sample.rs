//! A graph like that of the 2000 Olympic Games' site, by the numbers of table 5, to any share.
//!
//! Owns the sizes. Table 5 has 366,000 objects of 806 bytes with the nodes and 925,000 edges of
//! 126 bytes in about 500 files of their own, all below 150 bytes. What it leaves open: six
//! pages to a fragment, edges of small fragments by a Pareto distribution. Threads: none.

use super::{Kind, Odg};
use crate::allocation::workload::Pareto;
use anyhow::Result;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// How large a graph is.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    /// Pages.
    pub pages: u32,
    /// Fragments, of which each has its edges in one object, or a table.
    pub fragments: u32,
    /// Fragments that many pages depend on.
    pub hubs: u32,
    /// Edges of each of these.
    pub hub_edges: u32,
    /// Of every draw.
    pub seed: u64,
}

impl Sample {
    /// A share of the site's graph: 0.1 for a tenth.
    #[must_use]
    pub fn share(share: f64, seed: u64) -> Self {
        let of = |n: f64| (n * share).round().max(2.0) as u32;
        let (pages, hubs) = (of(240_000.0), of(500.0));
        Self { pages, fragments: of(63_000.0), hubs, hub_edges: 1850.min(pages), seed }
    }

    /// Name of a page; as long as names of such sites are.
    #[must_use]
    pub fn page(i: u32) -> String {
        format!("/pages/sport{:02}/event{:05}/en/results{:06}.html", i % 37, i % 9973, i)
    }

    /// Name of a fragment.
    #[must_use]
    pub fn fragment(i: u32) -> String {
        format!("/fragments/sport{:02}/event{:05}/part{:06}.frg", i % 37, i % 9973, i)
    }

    /// Builds the graph: nodes, then edges from fragments to fragments and pages. The first
    /// fragments are the hubs.
    ///
    /// # Errors
    /// Those of the graph.
    pub fn build(&self, graph: &mut Odg) -> Result<()> {
        let mut rng = SmallRng::seed_from_u64(self.seed);
        let text: Vec<u8> = (0..2048u32).map(|i| b' ' + (i * i % 90) as u8).collect();
        for i in 0..self.fragments + self.pages {
            // Names and the item's own 32 bytes make 100; edge objects are a sixth of all.
            let len = rng.random_range(410..=1210);
            let (name, kind) = match i.checked_sub(self.fragments) {
                Some(page) => (Self::page(page), Kind::Page),
                None => (Self::fragment(i), Kind::Fragment),
            };
            graph.add_node(&name, kind, &text[..len])?;
        }
        let about = &text[..44];
        // A Pareto distribution of 1 to 50 edges; two thirds of the fragments have below three.
        let degrees = Pareto { alpha: 0.6, scale: 1.0, cutoff: 50.0 };
        for i in 0..self.fragments {
            let from = Self::fragment(i);
            let hub = i < self.hubs;
            let edges = if hub { self.hub_edges } else { degrees.draw(&mut rng) as u32 };
            let first = rng.random_range(0..self.pages);
            // A part of a site: pages that follow each other, spread by a step.
            let step = if hub { (self.pages / self.hub_edges).max(1) } else { 1 };
            for edge in 0..edges {
                let page = (first + edge * step) % self.pages;
                graph.add_edge(&from, &Self::page(page), about)?;
            }
            // Every eighth small fragment is part of a larger one, always of a later number.
            if !hub && i % 8 == 0 && i + 100 < self.fragments {
                graph.add_edge(&from, &Self::fragment(i + 100), about)?;
            }
        }
        Ok(())
    }

    /// Fragments changed by an event: one to three, now and then a hub.
    #[must_use]
    pub fn event(&self, rng: &mut SmallRng) -> Vec<String> {
        let n = rng.random_range(1..=3);
        let one = |rng: &mut SmallRng| {
            let among = if rng.random_range(0..20) == 0 { self.hubs } else { self.fragments };
            Self::fragment(rng.random_range(0..among))
        };
        (0..n).map(|_| one(rng)).collect()
    }
}
