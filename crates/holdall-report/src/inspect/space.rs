//! Spaces and shared pages in words.

use super::text_lines::{Text, runs};
use holdall::inspect::{Sharing, Space, SpaceFigures, Spaces};
use holdall::{Lsn, Result};

/// Pages in a line of the map.
const WIDTH: usize = 64;

/// A space: its figures, its map, its stretches, its changes.
pub fn space(s: &Space) -> String {
    let mut text = Text::default();
    let (number, n, first, dir) = (s.number, s.used.len(), s.first, s.directory);
    text.line(0, format_args!("space {number}: {n} pages from {first}, directory in page {dir}"));
    text.line(0, format_args!("{}", figures(&s.figures)));
    if let Some(e) = &s.damage {
        text.line(0, format_args!("{e}"));
    }
    bitmap(&mut text, s);
    for stretch in &s.stretches {
        let (number, from, to) = (stretch.number, stretch.first, stretch.last);
        match &stretch.content {
            Ok((live, info)) => text.line(
                0,
                format_args!(
                    "stretch {number}, pages {from} to {to}: {live} segment pages, checksums in \
                     page {info}"
                ),
            ),
            Err(e) => text.line(0, format_args!("stretch {number}: {e}")),
        }
    }
    for (from, to, lsn) in runs(s.changes.iter()).into_iter().filter(|run| *run.2 > Lsn(0)) {
        text.line(0, format_args!("MiB {from} to {to}: last noted change at LSN {lsn}"));
    }
    text.finish()
}

/// The line of one space in the list of all.
pub fn listed(number: u32, found: &Result<SpaceFigures>) -> String {
    match found {
        Ok(found) => format!("space {number}: {}\n", figures(found)),
        Err(e) => format!("space {number}: {e}\n"),
    }
}

/// The line behind a list of spaces, of which the root page may name more than there are.
pub fn named_too_many(spaces: &Spaces<'_>) -> Option<String> {
    let (named, present) = (spaces.named, spaces.present);
    (named > present)
        .then(|| format!("the root page names {named} spaces, the file has {present}\n"))
}

fn figures(f: &SpaceFigures) -> String {
    let SpaceFigures { used, free, longest_run, beyond, .. } = f;
    let mut line = format!("{used} pages in use, {free} free, largest free run of {longest_run}");
    if *beyond > 0 {
        line += &format!("; {beyond} beyond the end of the file");
    }
    line
}

/// One character per page, # in use; lines that repeat are left out.
fn bitmap(text: &mut Text, s: &Space) {
    for (from, to, used) in runs(s.used.chunks(WIDTH)) {
        let map: String = used.iter().map(|used| if *used { '#' } else { '.' }).collect();
        text.line(1, format_args!("{:>8} {map}", s.first.0 + (from * WIDTH) as u64));
        if to > from {
            text.line(1, format_args!("{:>8} (as many lines like it: {})", "", to - from));
        }
    }
}

/// The shared pages, range by range.
pub fn sharing(s: &Sharing) -> String {
    let mut text = Text::default();
    match s.tree {
        Some(tree) => text.line(0, format_args!("shared pages, tree in page {tree}")),
        None => text.line(0, format_args!("no shared pages")),
    }
    for range in &s.ranges {
        match range {
            Ok(found) => {
                let (len, start, references) = (found.run.len, found.run.start, found.references);
                text.line(1, format_args!("{len} pages from {start}: {references} references"));
            }
            Err(e) => text.line(1, format_args!("{e}")),
        }
    }
    text.finish()
}
