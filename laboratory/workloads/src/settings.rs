//! The stores' settings, for the report. Owns nothing.

use crate::peer::{Load, Maker, Setup};

/// Each store's settings, by the objects it is opened for if they differ.
pub fn of(makers: &[&dyn Maker], cache_bytes: u64) -> Vec<(&'static str, String)> {
    makers.iter().flat_map(|maker| of_maker(*maker, cache_bytes)).collect()
}

fn of_maker(maker: &dyn Maker, cache_bytes: u64) -> Vec<(&'static str, String)> {
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (load, name) in [(Load::Small, "small"), (Load::Web, "web"), (Load::Large, "large")] {
        if !maker.takes(load) {
            continue;
        }
        let text = maker.settings(&Setup { cache_bytes, load });
        match all.iter_mut().find(|(t, _)| *t == text) {
            Some((_, names)) => names.push(name),
            None => all.push((text, vec![name])),
        }
    }
    let one = all.len() == 1;
    let line = |(text, names): (String, Vec<&str>)| {
        let loads = if one { String::new() } else { format!("({} objects) ", names.join(", ")) };
        (maker.name(), format!("{loads}{text}"))
    };
    all.into_iter().map(line).collect()
}
