//! The site's files as events change them (Iyengar §4.2, §4.4). Owns no state.

use crate::allocation::odg::sample::Sample;
use crate::allocation::odg::site::{ASSEMBLED, LIFETIME, SOURCE, Site};
use crate::allocation::odg::tables::{LARGE, Tables, files};
use crate::allocation::pmflf::Usage;
use crate::allocation::workload::Pareto;
use anyhow::{Result, ensure};
use holdall_instrument::experiment::Settings;
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::collections::BTreeMap;

/// What a file holds, its bytes and the sizes of its objects.
#[derive(Debug, Default)]
pub(super) struct Files {
    pub usage: Usage,
    pub bytes: u64,
    pub sizes: Vec<usize>,
}

/// The site's files after some events: nodes, edges, the two caches.
pub(super) struct Held {
    pub files: [Files; 4],
    /// Pages that the events built, and those that had expired once their time was over.
    pub built: u64,
    pub expired: u64,
}

/// Sizes of sources: the mean of cache 1 in table 5, α = 1.
fn source_sizes() -> Pareto {
    let mut sizes = Pareto::olympic();
    let scale = 1.5e9 / 276e3 / sizes.mean();
    sizes.scale *= scale;
    sizes.cutoff *= scale;
    sizes
}

/// A site over hash tables on disk: its graph, every source, then events.
pub(super) fn site(settings: &Settings<'_>, sample: &Sample, events: usize) -> Result<Held> {
    let scratch = settings.scratch()?;
    let mut site = Site::create(Tables::new(files(scratch.path().to_owned())))?;
    sample.build(site.graph())?;
    // A page shows the first fragment that leads to it alone.
    let mut parts: BTreeMap<String, String> = BTreeMap::new();
    for i in sample.hubs..sample.fragments {
        let name = Sample::fragment(i);
        for page in site.graph().publish(&[&name])? {
            parts.entry(page).or_insert_with(|| name.clone());
        }
    }
    for i in (sample.hubs..sample.fragments).filter(|i| i % 8 == 0) {
        parts.insert(Sample::fragment(i + 100), Sample::fragment(i));
    }
    let sizes = source_sizes();
    let mut rng = SmallRng::seed_from_u64(sample.seed);
    let text = vec![b'x'; sizes.cutoff as usize + 1];
    let pages = (0..sample.pages).map(Sample::page);
    for name in (0..sample.fragments).map(Sample::fragment).chain(pages) {
        let part: Vec<Vec<u8>> =
            parts.get(&name).map(|p| p.clone().into_bytes()).into_iter().collect();
        site.receive(&name, &part, &text[..sizes.draw(&mut rng)])?;
    }
    let mut built = 0;
    for now in 0..events {
        let event = sample.event(&mut rng);
        let texts = event.iter().map(|name| (name.as_str(), &text[..sizes.draw(&mut rng)]));
        built += site.publish(&texts.collect::<Vec<_>>(), now as u64)?.len() as u64;
    }
    let over = site.expired(events as u64 + LIFETIME)?;
    ensure!(site.expired(0)?.is_empty(), "a page expired before its time");
    for page in over.iter().step_by(97) {
        let part = parts.get(page).map_or(Ok(Vec::new()), |part| site.page(part))?;
        ensure!(site.page(page)?.starts_with(&part), "{page} does not show its fragment");
    }
    let tables = site.graph().tables();
    let file = |of: &dyn Fn(u32) -> bool| -> Result<Files> {
        let (usage, bytes) = tables.usage(of)?;
        Ok(Files { usage, bytes, sizes: tables.sizes(of)? })
    };
    let files = [
        file(&|table| table == 0)?,
        file(&|table| table > 0 && table < LARGE)?,
        file(&|table| table == SOURCE)?,
        file(&|table| table == ASSEMBLED)?,
    ];
    Ok(Held { files, built, expired: over.len() as u64 })
}
