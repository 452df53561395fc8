//! Properties of drawings, whatever they look like.

use holdall_instrument::draw::paper_points;
use holdall_instrument::picture::{Axis, Kind, Panel, Scale, Series, Table};

fn axis(scale: Scale) -> Axis {
    Axis { label: "amount <&> \"x\"".into(), scale, range: None, ticks: Vec::new() }
}

fn panel(kind: Kind, series: Vec<Series>) -> Panel {
    let (x, y) = (axis(Scale::Linear), axis(Scale::Linear));
    Panel {
        id: "p".into(),
        title: "a < b & 'c'".into(),
        caption: String::new(),
        kind,
        x,
        y,
        series,
    }
}

fn series(name: &str, points: &[(f64, f64)]) -> Series {
    Series { name: name.into(), reference: false, points: points.to_vec() }
}

/// Corners of all curves, in the drawing's units, by colour.
fn curves(svg: &str) -> Vec<(String, Vec<(f64, f64)>)> {
    let part = |line: &str, name: &str| {
        let (_, rest) = line.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_string())
    };
    let curve = |line: &str| {
        let wide = part(line, "stroke-width")? == "2";
        let points = part(line, " points")?;
        let spots = points.split_whitespace().filter_map(|p| {
            let (x, y) = p.split_once(',')?;
            Some((x.parse().ok()?, y.parse().ok()?))
        });
        wide.then(|| (part(line, "stroke").unwrap_or_default(), spots.collect()))
    };
    svg.lines().filter(|l| l.starts_with("<polyline")).filter_map(curve).collect()
}

#[test]
fn every_point_is_on_its_line() {
    let a: Vec<(f64, f64)> = (0..500).map(|i| (f64::from(i), f64::from(i % 7))).collect();
    let b: Vec<(f64, f64)> = (0..9).map(|i| (f64::from(i) * 50.0, 3.0)).collect();
    let svg = panel(Kind::Lines, vec![series("a", &a), series("b", &b)]).svg();
    // The last two are the legend's samples.
    let found = curves(&svg);
    assert_eq!(found.len(), 4);
    assert_eq!(found[0].1.len(), 500);
    assert_eq!(found[1].1.len(), 9);
    assert_ne!(found[0].0, found[1].0);
    for pair in found[0].1.windows(2) {
        assert!(pair[1].0 > pair[0].0, "x grows");
    }
    assert!(found[0].1[6].1 < found[0].1[5].1, "greater is higher");
}

#[test]
fn every_bar_is_drawn() {
    let points: Vec<(f64, f64)> = (0..6).map(|i| (f64::from(i), f64::from(i + 1))).collect();
    let p = panel(Kind::Bars, vec![series("a", &points), series("b", &points)]);
    // The ground, two samples of the legend, and twelve bars.
    assert_eq!(p.svg().matches("<rect").count(), 1 + 2 + 12);
}

/// The paper's marks are hollow with a dot: three shapes each, in ink, the ground and ink.
#[test]
fn numbers_of_the_paper_are_marks_of_their_own() {
    let points = [(1.0, 10.0), (2.0, 20.0)];
    let ours = || vec![series("LH", &points), series("BT", &points)];
    let marks = |svg: &str| svg.matches("r=\"1.6\" fill=\"#24292F\"").count();
    for (kind, curves_of_ours) in [(Kind::Lines, 4), (Kind::Bars, 0)] {
        let plain = panel(kind, ours()).svg();
        let mut p = panel(kind, ours());
        p.series.push(paper_points("BT", vec![(1.0, 12.0), (2.0, 18.0)]));
        let svg = p.svg();
        assert!(svg.contains(">paper: BT</text>"), "{kind:?}");
        assert_eq!((marks(&plain), marks(&svg)), (0, 3), "two points and the legend's, {kind:?}");
        assert_eq!(curves(&svg).len(), curves_of_ours, "{kind:?}");
        let bars = |svg: &str| svg.lines().filter(|l| l.starts_with("<rect")).count();
        assert_eq!(bars(&svg), bars(&plain), "the paper has no bars");
    }
    let name = |of: &str| paper_points(of, Vec::new()).name;
    assert_eq!([name(""), name("BT"), name("paper: BT")], ["paper", "paper: BT", "paper: BT"]);
}

#[test]
fn text_is_escaped_and_well_formed() {
    let mut p = panel(Kind::Lines, vec![series("<script>&\u{1}", &[(1.0, 1.0), (2.0, 3.0)])]);
    p.x.ticks = vec![(1.0, "<one>".into())];
    let svg = p.svg();
    assert!(!svg.contains("<script>") && !svg.contains("<one>"));
    assert!(svg.contains("&lt;script&gt;&amp;"));
    // Reading it back as XML is part of drawing the PNG.
    assert!(p.png(400, 300).is_ok());
}

#[test]
fn odd_points_are_left_out_and_counted() {
    let odd = [(1.0, 1.0), (2.0, f64::NAN), (f64::INFINITY, 3.0), (4.0, -1.0), (5.0, 8.0)];
    for kind in [Kind::Lines, Kind::Bars] {
        for scale in [Scale::Linear, Scale::Log10, Scale::Log2, Scale::Ordinal] {
            let mut p = panel(kind, vec![series("odd", &odd)]);
            (p.x.scale, p.y.scale) = (scale, scale);
            let svg = p.svg();
            assert!(svg.contains("2 points without a finite value"), "{kind:?} {scale:?}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{kind:?} {scale:?}");
            let log = matches!(scale, Scale::Log10 | Scale::Log2);
            assert_eq!(svg.contains("1 point of zero or less"), log, "{kind:?} {scale:?}");
        }
    }
}

#[test]
fn points_outside_of_the_axes_are_counted() {
    let mut p = panel(Kind::Lines, vec![series("far", &[(1.0, 1.0), (2.0, 500.0), (3.0, 2.0)])]);
    p.y.range = Some((0.0, 10.0));
    let svg = p.svg();
    assert!(svg.contains("1 point outside of the axes"));
    let heights = curves(&svg).into_iter().flat_map(|c| c.1).map(|s| s.1);
    assert!(
        heights.clone().count() > 2 && heights.clone().all(|y| y > 0.0),
        "lines end at the edge"
    );
}

/// A linear axis without zero has two strokes across it and a remark; a logarithmic one is named.
#[test]
fn axes_without_zero_are_marked() {
    let of = |points: &[(f64, f64)], scale| {
        let mut p = panel(Kind::Lines, vec![series("a", points)]);
        p.y.scale = scale;
        p.svg()
    };
    let strokes = |svg: &str| svg.matches("stroke-width=\"1.5\"").count();
    let from_zero = of(&[(0.0, 0.0), (9.0, 50.0)], Scale::Linear);
    assert_eq!((strokes(&from_zero), from_zero.contains("Axes:")), (0, false));
    let upwards = of(&[(0.0, 96.1), (9.0, 98.9)], Scale::Linear);
    assert_eq!(strokes(&upwards), 2);
    assert!(upwards.contains("Axes: upwards from 96, not from 0."));
    let both = of(&[(900.0, 96.1), (950.0, 98.9)], Scale::Linear);
    assert_eq!(strokes(&both), 4);
    assert!(both.contains("Axes: across from 899, not from 0; upwards from 96, not from 0."));
    let log = of(&[(0.0, 1.0), (9.0, 1e6)], Scale::Log10);
    assert_eq!(strokes(&log), 0);
    assert!(log.contains("Axes: upwards logarithmic."));
}

#[test]
fn nothing_to_draw_says_so() {
    for kind in [Kind::Lines, Kind::Bars] {
        for list in [vec![], vec![series("a", &[])], vec![series("a", &[(1.0, f64::NAN)])]] {
            for scale in [Scale::Linear, Scale::Log10, Scale::Ordinal] {
                let mut p = panel(kind, list.clone());
                (p.x.scale, p.y.scale) = (scale, scale);
                assert!(p.svg().contains("Nothing to draw"), "{kind:?} {scale:?}");
                assert!(p.png(200, 200).is_ok());
            }
        }
    }
}

#[test]
fn pictures_have_the_size_asked_for() {
    let p = panel(Kind::Lines, vec![series("a", &[(1.0, 1.0), (2.0, 3.0)])]);
    for (w, h) in [(1520, 900), (300, 2000), (2000, 100), (1, 1)] {
        let png = p.png(w, h).unwrap();
        assert_eq!(&png[..8], b"\x89PNG\r\n\x1a\n");
        let side = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
        assert_eq!((side(16), side(20)), (w, h));
    }
    assert!(p.png(0, 10).is_err() && p.png(10, 20_000).is_err());
}

#[test]
fn text_reaches_the_picture() {
    let mut p = panel(Kind::Lines, vec![series("a", &[(1.0, 1.0), (2.0, 3.0)])]);
    let with = p.png(760, 400).unwrap();
    p.title = "another".into();
    assert_ne!(with, p.png(760, 400).unwrap());
}

#[test]
fn numbers_survive_json() {
    let p = panel(Kind::Lines, vec![series("a", &[(1.5, f64::NAN), (2.0, 0.1 + 0.2)])]);
    let back: Panel = serde_json::from_str(&serde_json::to_string(&p).unwrap()).unwrap();
    assert!(back.series[0].points[0].1.is_nan());
    assert_eq!(back.series[0].points[1], (2.0, 0.1 + 0.2));
    assert_eq!(back.svg(), p.svg());
}

#[test]
fn csv_keeps_every_digit_and_quotes() {
    let p = panel(Kind::Lines, vec![series("a, \"b\"", &[(1.5, 0.1 + 0.2)])]);
    let csv = p.csv();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("series,\"amount <&> \"\"x\"\"\",\"amount <&> \"\"x\"\"\""));
    assert_eq!(lines.next(), Some("\"a, \"\"b\"\"\",1.5,0.30000000000000004"));
    assert_eq!(lines.next(), None);
}

#[test]
fn tables_are_text() {
    let cells = vec![vec!["a|b".into(), "1,234".into()], vec!["<i>".into(), "−5 %".into()]];
    let table = Table {
        id: "t".into(),
        title: "t".into(),
        head: vec!["name".into(), "count".into()],
        rows: cells,
    };
    assert_eq!(table.csv(), "name,count\na|b,\"1,234\"\n<i>,−5 %\n");
    assert_eq!(
        table.markdown(),
        "| name | count |\n| --- | ---: |\n| a\\|b | 1,234 |\n| &lt;i> | −5 % |\n"
    );
    let html = table.html();
    assert!(html.contains("<td>&lt;i&gt;</td><td class=\"n\">−5 %</td>"), "{html}");
}

#[test]
fn a_panel_as_a_table() {
    let a = series("a", &[(1.0, 10.0), (2.0, 20.0)]);
    let b = series("b", &[(2.0, 5.5), (3.0, 6.0)]);
    let wide = panel(Kind::Lines, vec![a.clone(), b]).table();
    assert_eq!(wide.head[1..], ["a", "b"]);
    assert_eq!(wide.rows, [["1", "10", ""], ["2", "20", "5.5"], ["3", "", "6"]]);
    let twice = series("twice", &[(1.0, 1.0), (1.0, 2.0)]);
    assert_eq!(panel(Kind::Lines, vec![a, twice]).table().rows.len(), 4);
}
