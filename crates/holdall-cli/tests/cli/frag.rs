//! `frag`: its forms, and where they go.

use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::support::{Home, bytes, sound};

/// A store with an object in pieces, whose name has to be escaped.
fn cut() -> Home {
    let home = Home::new();
    home.file("in", bytes(1, 600_000));
    home.file("more", bytes(2, 200_000));
    home.ok(&["put", "s", "<b>&\"\n", "in"]);
    home.ok(&["put", "s", "whole", "in"]);
    home.ok(&["insert", "s", "<b>&\"\n", "--at", "300000", "more"]);
    home
}

#[test]
fn text_and_json_say_the_same() {
    let home = cut();
    let text = String::from_utf8(home.ok(&["frag", "s"])).unwrap();
    let report = home.json(&["frag", "s", "--json"]);
    let score = report["score"]["value"].as_f64().unwrap();
    assert!(text.starts_with(&format!("score             {score:.3} of 1")), "{text}");
    let objects = &report["objects"];
    assert_eq!((objects["large"].as_u64(), objects["pieces"].as_u64()), (Some(2), Some(4)));
    assert!(text.contains("4 for 2 large objects, 2 at best"), "{text}");
    assert_eq!(objects["most_cut"][0]["name"], "<b>&\"\n");
    assert!(text.contains("cut               <b>&\"\\n: 3 pieces"), "{text}");
    assert_eq!(report["remedies"][0]["action"], "join_pieces");
    assert!(text.contains("joins 2 pieces"), "{text}");
    let (map, geometry) = (&report["map"], &report["geometry"]);
    assert_eq!(map["kinds"].as_array().unwrap().len(), 6);
    let cells = map["cells"].as_array().unwrap().iter();
    let pages = cells.flat_map(|c| c.as_array().unwrap()).map(|n| n.as_u64().unwrap());
    assert_eq!(Some(pages.sum()), geometry["volume_pages"].as_u64());
    assert!(!map["cut_cells"].as_array().unwrap().is_empty());
    let blocks = fs::metadata(home.path("s")).unwrap().blocks() * 512;
    assert_eq!(report["contract"]["left_bytes"], blocks);
}

#[test]
fn drawing_and_page_stand_alone() {
    let home = cut();
    home.ok(&["frag", "s", "--svg", "map.svg"]);
    home.ok(&["frag", "s", "--html", "page.html", "--json"]);
    let read = |name: &str| fs::read_to_string(home.path(name)).unwrap();
    let (svg, html) = (read("map.svg"), read("page.html"));
    assert!(
        svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n")
    );
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    assert!(html.contains("&lt;b&gt;&amp;&quot;\\n") && !html.contains("<b>"));
    for text in [&svg, &html] {
        assert!(text.contains("prefers-color-scheme:dark") && text.contains("class=\"cut\""));
        let reached = text.replace("http://www.w3.org/2000/svg", "");
        assert!(!reached.contains("http") && !text.contains("<script"), "nothing from elsewhere");
        assert!(!text.contains("NaN") && !text.contains("inf\""));
    }
    assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
}

#[test]
fn an_empty_store_has_a_page_too() {
    let home = Home::new();
    home.ok(&["create", "s"]);
    home.ok(&["frag", "s", "--html", "page.html"]);
    let html = fs::read_to_string(home.path("page.html")).unwrap();
    assert!(html.contains("None is needed") && html.contains("none</text>"), "{html}");
    assert_eq!(home.json(&["frag", "s", "--json"])["score"]["pieces"], 1.0);
}

#[test]
fn what_is_not_written() {
    let home = cut();
    let before = fs::read(home.path("s")).unwrap();
    home.file("s-log.txt", "mine");
    std::os::unix::fs::symlink("s", home.path("link")).unwrap();
    for target in ["s", "./s", "link"] {
        home.fails(&["frag", "s", "--svg", target], 1, "belongs to the store");
    }
    assert!(fs::read(home.path("s")).unwrap() == before);
    fs::create_dir(home.path("dir")).unwrap();
    home.fails(&["frag", "s", "--html", "dir"], 1, "dir is a directory");
    home.fails(&["frag", "s", "--svg", "none/map.svg"], 1, "none/map.svg");
    assert_eq!(home.run(&["frag", "s", "--svg", "a", "--html", "b"]).code, 2);
    home.ok(&["frag", "s", "--svg", "s-log.txt"]);
    assert!(fs::read_to_string(home.path("s-log.txt")).unwrap().starts_with("<svg"));
    sound(&home, "s");
}
