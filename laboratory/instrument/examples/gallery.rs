//! Draws panels of every kind, for the eye: `cargo run -p holdall-instrument --example gallery DIR`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use holdall_instrument::picture::{Axis, Kind, Panel, Scale, Series};

fn main() -> Result<()> {
    let dir = PathBuf::from(std::env::args().nth(1).context("which directory?")?);
    std::fs::create_dir_all(&dir)?;
    for panel in [twelve(), powers(), small_span(), bars(), upright(), dense(), odd(), empty()] {
        let (width, height) = panel.size();
        std::fs::write(dir.join(format!("{}.svg", panel.id)), panel.svg())?;
        std::fs::write(dir.join(format!("{}.png", panel.id)), panel.png(width * 2, height * 2)?)?;
    }
    std::fs::write(dir.join("wide.png"), twelve().png(1600, 500)?)?;
    Ok(())
}

fn axis(label: &str, scale: Scale) -> Axis {
    Axis { label: label.into(), scale, range: None, ticks: Vec::new() }
}

fn panel(id: &str, title: &str, kind: Kind, x: Axis, y: Axis) -> Panel {
    Panel {
        id: id.into(),
        title: title.into(),
        caption: String::new(),
        kind,
        x,
        y,
        series: Vec::new(),
    }
}

fn add(panel: &mut Panel, name: &str, points: impl IntoIterator<Item = (f64, f64)>) {
    panel.series.push(Series {
        name: name.into(),
        reference: false,
        points: points.into_iter().collect(),
    });
}

fn twelve() -> Panel {
    let (x, y) = (axis("operations", Scale::Linear), axis("utilization (%)", Scale::Linear));
    let mut p =
        panel("twelve", "Twelve lines with marks and dashes of their own", Kind::Lines, x, y);
    for s in 0..12 {
        let level = 70.0 + 2.3 * f64::from(s);
        let points = (1..=10).map(|i| {
            let x = f64::from(i) * 2000.0;
            (x, level + 9.0 / f64::from(i) * if s % 2 == 0 { 1.0 } else { -1.0 })
        });
        add(&mut p, &format!("technique {}", s + 1), points);
    }
    p
}

fn powers() -> Panel {
    let x = axis("append size (bytes)", Scale::Log2);
    let y = axis("build time (s)", Scale::Log10);
    let mut p = panel("powers", "Building 10 MiB by appends", Kind::Lines, x, y);
    for (s, name) in
        ["ESM 1 page", "ESM 4 pages", "ESM 16 pages", "Starburst = EOS"].iter().enumerate()
    {
        let points = (10..=20).map(|i| {
            let size = 2f64.powi(i);
            (size, 10.0 + 600.0 * (s as f64 + 1.0) * 4096.0 / size)
        });
        add(&mut p, name, points);
    }
    p
}

fn small_span() -> Panel {
    let (x, y) = (axis("pages", Scale::Log10), axis("faults per request", Scale::Log10));
    let mut p = panel("small-span", "Less than a decade upwards", Kind::Lines, x, y);
    add(&mut p, "one", (1..=6).map(|i| (10f64.powi(i), 0.12 + 0.02 * f64::from(i))));
    p
}

fn bars() -> Panel {
    let mut x = axis("", Scale::Ordinal);
    x.ticks = ["AO(1)", "AO(8)", "FF", "NF", "NF(H)", "NF(WH)", "BF", "HY(8,87 %)"]
        .iter()
        .enumerate()
        .map(|(i, name)| (i as f64, (*name).to_string()))
        .collect();
    let y = axis("pages", Scale::Linear);
    let mut p = panel("bars", "Disk pages read and written, per algorithm", Kind::Bars, x, y);
    for (s, name) in ["read", "written", "looked at"].iter().enumerate() {
        add(
            &mut p,
            name,
            (0..8).map(|i| (f64::from(i), f64::from((i * 37 + 11 * s as i32) % 100) * 1000.0)),
        );
    }
    p
}

fn upright() -> Panel {
    let mut x = axis("technique", Scale::Ordinal);
    x.ticks = (0..14).map(|i| (f64::from(i), format!("technique number {i}"))).collect();
    let mut p = panel("upright", "Many names below", Kind::Bars, x, axis("ms", Scale::Log10));
    add(&mut p, "", (0..14).map(|i| (f64::from(i), 1.7f64.powi(i))));
    p
}

fn dense() -> Panel {
    let (x, y) = (
        axis("operations", Scale::Linear),
        axis(
            "delete-miss rate (%) of a file that grows, with a name long enough to need two lines",
            Scale::Linear,
        ),
    );
    let mut p = panel(
        "dense",
        "A thousand points in each of three lines, with a title that is so long that it has to go on in a second line below the first",
        Kind::Lines,
        x,
        y,
    );
    for s in 0..3 {
        let wave = |i: i32| {
            (f64::from(i) / 60.0 + f64::from(s)).sin() * 4.0 + f64::from((i * 7919) % 13) / 4.0
        };
        add(
            &mut p,
            &format!("HY({s},87) & <some>"),
            (0..1000).map(move |i| (f64::from(i) * 100.0, 50.0 + 10.0 * f64::from(s) + wave(i))),
        );
    }
    p
}

fn odd() -> Panel {
    let mut p = panel(
        "odd",
        "Points that cannot be drawn",
        Kind::Lines,
        axis("x", Scale::Linear),
        axis("y", Scale::Log10),
    );
    add(
        &mut p,
        "broken",
        [
            (1.0, 1.0),
            (2.0, f64::NAN),
            (3.0, 4.0),
            (4.0, 0.0),
            (5.0, 20.0),
            (6.0, 40.0),
            (90.0, 7.0),
        ],
    );
    p.x.range = Some((0.0, 8.0));
    p
}

fn empty() -> Panel {
    let mut p =
        panel("empty", "Nothing", Kind::Lines, axis("x", Scale::Linear), axis("y", Scale::Log10));
    add(&mut p, "none", [(1.0, f64::NAN)]);
    p
}
