//! The report as one HTML page: no scripts, nothing from elsewhere; light, dark, and on paper.
//!
//! Owns: the page's order and looks.

use std::fmt::Write as _;

use holdall::frag::FragReport;

use crate::draw::{self, STYLE, escape};
use crate::name;
use crate::words::{self, bytes, counted, percent};

const LOOKS: &str = "\
:root{color-scheme:light dark}\
body{font:15px/1.45 system-ui,sans-serif;color:#24292f;background:#fff;max-width:760px;\
margin:24px auto;padding:0 16px}\
h1{font-size:22px;overflow-wrap:anywhere}h2{font-size:17px;margin:28px 0 8px}\
.score{font-size:40px;font-weight:600;margin:0}.note{color:#57606a}\
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}\
th,td{text-align:left;padding:4px 10px 4px 0;border-bottom:1px solid #d8dee4;vertical-align:top;\
overflow-wrap:anywhere}th{overflow-wrap:normal}.wide{overflow-x:auto}.number{text-align:right;white-space:nowrap}svg{width:100%;height:auto}
@media screen and (prefers-color-scheme:dark){body{color:#e6edf3;background:#161b22}\
.note{color:#9aa4af}th,td{border-color:#30363d}}
@media print{body{margin:0;max-width:none}h2{break-after:avoid}tr,svg{break-inside:avoid}svg{max-height:140mm}}
";

/// The page of a store.
pub fn document(r: &FragReport, store: &str) -> String {
    let title = escape(&format!("Fragmentation of {store}"));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>\n{LOOKS}{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
    );
    let s = &r.score;
    // Writing to a String does not fail, here and below.
    let _ = writeln!(
        out,
        "<p class=\"score\">{:.3}</p>\n<p class=\"note\">of 1: pieces {:.3} × space {:.3}</p>",
        s.value, s.pieces, s.space
    );
    remedies(&mut out, r);
    for part in draw::parts(r) {
        let _ = writeln!(out, "<h2>{}</h2>\n{}", part.title(), draw::inline(&part));
    }
    cut(&mut out, r);
    heap(&mut out, r);
    contract(&mut out, r);
    geometry(&mut out, r);
    out + "</body>\n</html>\n"
}

/// Cells of a table; those from `numbers` on are numbers.
fn table(out: &mut String, head: &[&str], rows: &[Vec<String>], numbers: usize) {
    let class = |at: usize| if at >= numbers { " class=\"number\"" } else { "" };
    out.push_str("<div class=\"wide\"><table>\n<thead><tr>");
    for (at, cell) in head.iter().enumerate() {
        let _ = write!(out, "<th{}>{cell}</th>", class(at));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    for row in rows {
        out.push_str("<tr>");
        for (at, cell) in row.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(at), escape(cell));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
}

fn remedies(out: &mut String, r: &FragReport) {
    out.push_str("<h2>Remedies</h2>\n");
    if r.remedies.is_empty() {
        out.push_str(
            "<p>None is needed: no figure costs more than a hundredth of the score.</p>\n",
        );
        return;
    }
    let row = |remedy| {
        let (what, brings) = words::remedy(remedy);
        vec![what.to_owned(), brings]
    };
    let rows: Vec<_> = r.remedies.iter().map(row).collect();
    table(out, &["what", "gain and cost, estimated"], &rows, 2);
}

fn cut(out: &mut String, r: &FragReport) {
    out.push_str("<h2>Most cut objects</h2>\n");
    let o = &r.objects;
    let _ = writeln!(
        out,
        "<p>{} in {}; {} at best.</p>",
        counted(o.large, "large object"),
        counted(o.pieces, "piece"),
        o.fewest
    );
    if o.shared_bytes > 0 {
        let (shared, saved) = (bytes(o.shared_bytes), bytes(o.saved_bytes));
        let _ = writeln!(out, "<p>Copies share {shared}, which saves {saved}.</p>");
    }
    if o.most_cut.is_empty() {
        return;
    }
    let rows: Vec<_> = o
        .most_cut
        .iter()
        .map(|c| {
            let collection = name::escape(c.collection.as_bytes());
            let numbers = [bytes(c.bytes), c.pieces.to_string(), c.fewest.to_string()];
            [words::name_of(c), collection].into_iter().chain(numbers).collect()
        })
        .collect();
    table(out, &["object", "collection", "bytes", "pieces", "fewest"], &rows, 2);
}

fn heap(out: &mut String, r: &FragReport) {
    out.push_str("<h2>Heap</h2>\n");
    let rows: Vec<_> = r
        .heap
        .collections
        .iter()
        .map(|c| {
            vec![
                name::escape(c.name.as_bytes()),
                c.records.to_string(),
                c.pages.to_string(),
                c.fresh_pages.to_string(),
                percent(c.utilization),
                bytes(c.slack_bytes),
            ]
        })
        .collect();
    let head = ["collection", "records", "pages", "unused", "used share", "to be freed"];
    table(out, &head, &rows, 1);
}

fn contract(out: &mut String, r: &FragReport) {
    let c = &r.contract;
    let says = if c.holds { "holds" } else { "does not hold" };
    let _ = writeln!(out, "<h2>Contract on space: {says}</h2>");
    let row = |what: String, n: u64| vec![what, bytes(n)];
    let rows = [
        row("blocks that the file takes".into(), c.left_bytes),
        row("at most, in all".into(), c.right_bytes),
        row(
            format!("pages of {}, counted {} times", counted(c.objects, "object"), c.factor),
            c.data_bytes,
        ),
        row(format!("all other pages at most, counted {} times", c.factor), c.metadata_bytes),
        row("what waits for a checkpoint or a snapshot".into(), c.waiting_bytes),
        row("free runs too short to be given back beside writers".into(), c.kept_bytes),
        row(
            "1 MiB, what is kept for the next writes, and a 64th of the volume".into(),
            c.constant_bytes,
        ),
    ];
    table(out, &["what", "bytes"], &rows, 1);
}

fn geometry(out: &mut String, r: &FragReport) {
    let g = &r.geometry;
    out.push_str("<h2>Pages</h2>\n");
    let row =
        |what: &str, pages: u64| vec![what.to_owned(), pages.to_string(), bytes(g.bytes(pages))];
    let rows = [
        row("volume", g.volume_pages),
        row("large objects", g.segment_pages),
        row("heap", g.heap_pages),
        row("metadata", g.metadata_pages),
        row("waiting", g.waiting_pages),
        row("of them for snapshots", g.pinned_pages),
        row("reserved", g.reserved_pages),
        row("free", g.free_pages),
        row("of them without blocks", g.hole_pages),
    ];
    table(out, &["what", "pages", "bytes"], &rows, 1);
    if g.holes_assumed {
        out.push_str(
            "<p class=\"note\">How much has no blocks follows from the blocks that the file \
             takes; the longest free runs are taken for it.</p>\n",
        );
    }
}
