//! The stores' settings, for the report. Owns nothing.

use crate::peer::{Load, Maker, Setup};
use crate::workloads::CACHE;
use std::fmt::Write;

/// Each store's settings, by the objects it is opened for where they differ.
pub fn markdown(makers: &[&dyn Maker]) -> String {
    let mut out = String::from("## Settings\n\n");
    for maker in makers {
        for line in of_maker(*maker) {
            // Writing to a string cannot fail.
            let _ = writeln!(out, "- {line}");
        }
    }
    out
}

fn of_maker(maker: &dyn Maker) -> Vec<String> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (load, name) in [(Load::Small, "small"), (Load::Web, "web"), (Load::Large, "large")] {
        if !maker.takes(load) {
            continue;
        }
        let text = maker.settings(&Setup { cache_bytes: CACHE, load });
        match all.iter_mut().find(|(t, _)| *t == text) {
            Some((_, names)) => names.push(name),
            None => all.push((text, vec![name])),
        }
    }
    let one = all.len() == 1;
    let line = |(text, names): (String, Vec<&str>)| {
        let loads = if one { String::new() } else { format!(" ({} objects)", names.join(", ")) };
        format!("**{}**{loads}: {text}", maker.name())
    };
    all.into_iter().map(line).collect()
}
