//! Documents: how long they may be, and whether their links lead somewhere.
//!
//! Owns: the budgets in words, as `wc -w` counts them outside of tables that `cargo xtask figures`
//! writes. `bench-results` and `testdata` hold what
//! commands make, not documents.

use crate::figures::block::{Piece, pieces};
use crate::source::{File, paths};
use anyhow::{Context, Result};
use std::path::Path;

/// Documents and their budgets; a folder's files have it together.
const BUDGETS: [(&str, usize); 23] = [
    // How to install it, on which systems, and what it does not do; one document more.
    ("README.md", 800),
    ("CONTRIBUTING.md", 600),
    // Objects in buckets, and their doors for object_store and Python; fewer fragments. Holds,
    // sizes of listings.
    ("CHANGELOG.md", 1_461),
    // What moves if holes cannot be punched, and what reports promise then; how waiting works;
    // transactions and readers that need no memory for their size; small collections, drops; scrubs;
    // what was tried at a scale; growth within the contract, and what is kept for appends.
    ("docs/design.md", 4_457),
    ("docs/tour.md", 1500),
    // The gate, and how tables come from runs.
    ("docs/benchmarks.md", 1550),
    // The tree of images; the catalog's three trees.
    // Marks of backups, and their stream. Names entries, which say more than an OID.
    ("docs/format.md", 3_893),
    // Whole, so that another implementation could be written from it: keys, seven kinds of bytes, an
    // example, the rules by which many processes use a bucket; keys that servers keep for themselves.
    // Which retired entries keep their age. The rule of holds: what is confirmed, and by which clock they
    // end. The header's checksum.
    ("docs/bucket-format.md", 2_865),
    // A section on full disks by kind of file system, as seen.
    // Images and scratch: six rules; five of collections, one of spaces; readers beside a writer, and
    // states that it holds.
    // Three rules of backups.
    ("docs/recovery.md", 5280),
    // Kills on full disks, a command of its own; drawn stores against the contract on space.
    // Nine mechanisms in the table of pairs.
    // Fuzzing of what lies in a bucket.
    // A model and a simulation of objects in a bucket; real processes under Porcupine, as seen.
    // Windows in the table of pairs.
    // What collectors and those who compact must have done in such runs; who notices which rule. What readers hold.
    ("docs/testing.md", 4_110),
    // Every command, option, error and pattern, with examples that are run; what import and export
    // promise of modes, times, holes, young files and ends by a signal; closed streams, which names
    // print alike. Inspection as JSON, and of what copies share; times of objects.
    // `--wait` of each command; what readers see beside a writer; commands on a store open elsewhere.
    // Backups and restores. Objects in a bucket: how they differ, and the commands that make and keep a
    // store of them. Copies between stores. The list of holds, probes from two machines.
    ("docs/cli.md", 8_815),
    // What a store in a bucket costs, which servers, rights, collecting; what sizes and folders of a
    // listing cost, how a large store is listed, what memory a full cycle takes; a thousand writers.
    // Long reads: how a version is held, what that costs and promises. Several gateways of one bucket.
    ("docs/bucket.md", 1_735),
    // Whole ones and increments: what they cost and promise.
    ("docs/backup.md", 1_410),
    // A protocol that others can speak.
    ("docs/control.md", 800),
    // What a put keeps, changes without a restart and the line for fail2ban are promises; the lists
    // that S3 requests are dispatched on, with each header by its whole name, and what is refused
    // as readable in two ways. The user and the health check of the container; conditions of a
    // begun upload. The page for browsers, and that there is one copy; scrubs, the socket.
    ("docs/serve.md", 3290),
    // The forms of names that no address can carry, and conditions; the properties of Windows that
    // are kept.
    ("docs/webdav.md", 1220),
    ("docs/web.md", 520),
    // A store in a bucket: how it differs, and an example that is run.
    ("docs/object-store.md", 650),
    // Modes of a store, as files have them; processes. Stores in buckets: how they differ, with an
    // example that is run.
    ("docs/python.md", 1_890),
    ("docs/recipes.md", 950),
    ("docs/decisions", 3000),
    // Four doors side by side; walks, counts and waits.
    ("docs/api.md", 785),
    ("docs/lab", 4600),
];
/// All documents together. The table of four doors, JSON of inspection, times of objects and the check of API came; waiting;
/// images and scratch; small collections; readers in other processes; the control socket;
/// backups; salvage; objects in a bucket: their format, the command, object_store and Python, and their
/// linearizability. What a names entry says, what was measured of copies checked in one pass; growth by
/// what may be free, windows behind objects that grow. How the lab's claims are kept and shown.
const ALL: usize = 53_325;

/// All documents.
pub fn files(root: &Path) -> Result<Vec<File>> {
    let mut out = Vec::new();
    for path in paths(root, "md")? {
        let shown = path.to_string_lossy().into_owned();
        if shown.starts_with("bench-results") || shown.starts_with("testdata") {
            continue;
        }
        let text = std::fs::read_to_string(root.join(&path))
            .with_context(|| format!("reading {shown}"))?;
        out.push(File { path: shown, text });
    }
    Ok(out)
}

/// Words of a text, without the tables that its markers ask for.
pub fn words(text: &str) -> usize {
    let count = |text: &str| text.split_whitespace().count();
    // Markers that are wrong are reported with the figures.
    let Ok(pieces) = pieces(text) else { return count(text) };
    let written = |piece: &Piece<'_>| match piece {
        Piece::Text(text) => count(text),
        Piece::Block { .. } => 0,
    };
    pieces.iter().map(written).sum()
}

/// Documents that are too long, and links that lead nowhere.
pub fn problems(root: &Path, documents: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    for (name, most) in BUDGETS {
        let inside = |f: &&File| f.path == name || f.path.starts_with(&format!("{name}/"));
        let found: usize = documents.iter().filter(inside).map(|f| words(&f.text)).sum();
        if found > most {
            out.push(format!("{name} has {found} words, its budget is {most}"));
        }
    }
    let all: usize = documents.iter().map(|f| words(&f.text)).sum();
    if all > ALL {
        out.push(format!("the documents have {all} words, their budget is {ALL}"));
    }
    for document in documents {
        let folder = root.join(&document.path);
        let folder = folder.parent().unwrap_or(root);
        for link in links(&document.text) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !folder.join(file).exists() {
                out.push(format!("{}: the link {link} leads nowhere", document.path));
            }
        }
    }
    out
}

/// Targets of links to files.
fn links(text: &str) -> Vec<&str> {
    let mut out = Vec::new();
    let mut fenced = false;
    for line in text.lines() {
        fenced ^= line.trim_start().starts_with("```");
        let parts = line.split("](").skip(1).filter_map(|part| part.split(')').next());
        out.extend(parts.filter(|link| !fenced && !link.contains("://") && !link.is_empty()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_lengths() {
        let text = "a [b](docs/none.md#x) [c](https://example.org) [d](#here)\n```\n[e](f)\n```\n";
        assert_eq!(links(text), ["docs/none.md#x", "#here"]);
        let long = File { path: "README.md".into(), text: "word ".repeat(BUDGETS[0].1 + 1) + text };
        let found = problems(&crate::root().unwrap(), &[long]);
        assert_eq!(found.len(), 2, "{found:?}");
    }
}
