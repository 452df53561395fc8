//! Labels under the axis to the right: beside each other if they fit, else in two rows, else
//! upright; if even that is too tight, only every second, third, … is written. The points
//! of a tick without a label are drawn all the same.

use super::text;

/// Space between two labels.
const GAP: f64 = 10.0;
/// Most that an upright label may take; a longer one is cut.
const TALLEST: f64 = 170.0;

/// How the labels stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stand {
    /// In this many rows, in turns.
    Rows(usize),
    /// Turned by a quarter.
    Upright,
}

/// Labels ready to draw.
pub(crate) struct Labels {
    /// How they stand.
    pub(crate) stand: Stand,
    /// Places along the axis (fractions) with what is written there.
    pub(crate) items: Vec<(f64, String)>,
    /// Height they take.
    pub(crate) height: f64,
}

/// Sets `ticks` along `width` at a font size of `size`.
pub(crate) fn set(ticks: &[(f64, String)], width: f64, size: f64) -> Labels {
    let items: Vec<(f64, String)> =
        ticks.iter().map(|(at, label)| (*at, text::clean(label))).collect();
    for rows in [1, 2] {
        if fits(&items, rows, width, size) {
            let height = size * 1.35 * rows as f64;
            return Labels { stand: Stand::Rows(rows), items, height };
        }
    }
    let places: Vec<f64> = items.iter().map(|item| item.0 * width).collect();
    let tightest = places.windows(2).map(|w| w[1] - w[0]).fold(width, f64::min);
    let every = ((size * 1.15 / tightest.max(0.01)).ceil().max(1.0)) as usize;
    let items: Vec<(f64, String)> = items
        .into_iter()
        .step_by(every)
        .map(|(at, label)| (at, text::cut(&label, size, false, TALLEST)))
        .collect();
    let height = items.iter().map(|i| text::width(&i.1, size, false)).fold(0.0, f64::max) + 4.0;
    Labels { stand: Stand::Upright, items, height }
}

fn fits(items: &[(f64, String)], rows: usize, width: f64, size: f64) -> bool {
    (0..rows).all(|row| {
        let mut end = f64::NEG_INFINITY;
        items.iter().skip(row).step_by(rows).all(|(at, label)| {
            let half = text::width(label, size, false) / 2.0;
            let free = at * width - half >= end;
            end = at * width + half + GAP;
            free
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(count: usize, label: &str) -> Vec<(f64, String)> {
        (0..count).map(|i| ((i as f64 + 0.5) / count as f64, format!("{label}{i}"))).collect()
    }

    #[test]
    fn tighter_labels_turn() {
        assert_eq!(set(&labelled(5, "a"), 500.0, 12.0).stand, Stand::Rows(1));
        assert_eq!(set(&labelled(8, "abcdefg"), 500.0, 12.0).stand, Stand::Rows(2));
        assert_eq!(set(&labelled(20, "abcdefg"), 500.0, 12.0).stand, Stand::Upright);
        let many = set(&labelled(200, "abcdefg"), 500.0, 12.0);
        assert!(many.items.len() <= 40 && many.items.len() > 10, "{}", many.items.len());
    }
}
