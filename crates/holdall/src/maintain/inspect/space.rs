//! A space directory: bitmap, stretches, granules.

use super::text::{Text, runs};
use crate::store::Store;
use holdall_core::page::PageKind;
use holdall_core::space_dir::SpaceDir;
use holdall_core::{Error, PageRead, Result, root_page};

/// Pages in a line of the map.
const WIDTH: u32 = 64;

pub(super) fn dump(store: &Store, space: u32) -> Result<String> {
    let (inner, snapshot) = (&store.inner, store.inner.pager.snapshot());
    let spaces = root_page::spaces(&snapshot.page(inner.root, PageKind::Root)?);
    if space >= spaces {
        return Err(Error::NotFound(format!("space {space}; the store has {spaces}, from 0")));
    }
    let layout = inner.layout;
    let no = layout.dir_page(space);
    let bytes = snapshot.page(no, PageKind::SpaceDir)?;
    let dir = SpaceDir::open(layout, space, &*bytes)?;
    let mut text = Text::default();
    let (first, n) = (layout.page_at(space, 0), layout.space_pages());
    text.line(0, format_args!("space {space}: {n} pages from {first}, directory in page {no}"));
    text.line(0, format_args!("{}", figures(store, &dir)?));
    if let Err(e) = dir.check() {
        text.line(0, format_args!("{e}"));
    }
    bitmap(&mut text, &dir, first.0);
    stretches(&mut text, &dir, first.0);
    let granules = runs((0..layout.granules()).map(|g| dir.last_change(g).map_or(0, |l| l.0)));
    for (from, to, lsn) in granules.into_iter().filter(|(.., lsn)| *lsn > 0) {
        text.line(0, format_args!("MiB {from} to {to}: last noted change at LSN {lsn}"));
    }
    Ok(text.finish())
}

/// A line for each space.
pub(super) fn list(store: &Store) -> Result<String> {
    let (inner, snapshot) = (&store.inner, store.inner.pager.snapshot());
    let spaces = root_page::spaces(&snapshot.page(inner.root, PageKind::Root)?);
    // The root page may be false: what the file has is the limit.
    let most = inner.layout.spaces(inner.alloc.volume_pages())?;
    let mut text = Text::default();
    for space in 0..spaces.min(most) {
        let page = snapshot.page(inner.layout.dir_page(space), PageKind::SpaceDir);
        let line = page.and_then(|bytes| {
            let dir = SpaceDir::open(inner.layout, space, &*bytes)?;
            figures(store, &dir)
        });
        match line {
            Ok(figures) => text.line(0, format_args!("space {space}: {figures}")),
            Err(e) => text.line(0, format_args!("space {space}: {e}")),
        }
    }
    if spaces > most {
        text.line(0, format_args!("the root page names {spaces} spaces, the file has {most}"));
    }
    Ok(text.finish())
}

/// What is used and free of a space as far as it lies in the file.
fn figures(store: &Store, dir: &SpaceDir<&[u8]>) -> Result<String> {
    let layout = dir.layout();
    let inside = layout.pages_inside(dir.space(), store.inner.alloc.volume_pages());
    let used = dir.count_allocated_in(0, inside)?;
    let (free, run) = (inside - used, dir.tree(inside)?.longest_run());
    let mut line = format!("{used} pages in use, {free} free, largest free run of {run}");
    let beyond = layout.space_pages() - inside;
    if beyond > 0 {
        line += &format!("; {beyond} beyond the end of the file");
    }
    Ok(line)
}

/// One character per page, # in use; lines that repeat are left out.
fn bitmap(text: &mut Text, dir: &SpaceDir<&[u8]>, first: u64) {
    let n = dir.layout().space_pages();
    let line = |from: u32| -> String {
        let mark = |i| if dir.is_allocated(i) { '#' } else { '.' };
        (from..(from + WIDTH).min(n)).map(mark).collect()
    };
    let lines = runs((0..n).step_by(WIDTH as usize).map(line));
    for (from, to, map) in lines {
        text.line(1, format_args!("{:>8} {map}", first + from as u64 * u64::from(WIDTH)));
        if to > from {
            text.line(1, format_args!("{:>8} (as many lines like it: {})", "", to - from));
        }
    }
}

fn stretches(text: &mut Text, dir: &SpaceDir<&[u8]>, first: u64) {
    let layout = dir.layout();
    for stretch in 0..layout.stretches() {
        let Some(run) = layout.stretch_run(stretch) else { continue };
        let (from, to) = (first + u64::from(run.start), first + u64::from(run.end()) - 1);
        match (dir.info_page(stretch), dir.segment_pages(stretch)) {
            (Ok(info), Ok(0)) if info.is_none() => {}
            (Ok(info), Ok(live)) => text.line(
                0,
                format_args!(
                    "stretch {stretch}, pages {from} to {to}: {live} segment pages, checksums in \
                     page {info}"
                ),
            ),
            (Err(e), _) | (_, Err(e)) => text.line(0, format_args!("stretch {stretch}: {e}")),
        }
    }
}
