//! Colours, dashes and marks of series.
//!
//! Invariants: each of the first twelve series has its own colour and its own mark, so that it
//! is known without the colour too. Every colour has a contrast of at least 3 : 1 against both
//! a white and a near-black ground. No two series share a colour value (later rounds differ in
//! the last bits of blue), because the style sheet finds a series' lines by it.

/// Of the ground, as drawn; the style sheet replaces it on dark screens.
pub(crate) const GROUND: (u8, u8, u8) = (0xFF, 0xFF, 0xFF);
/// Of text.
pub(crate) const INK: (u8, u8, u8) = (0x24, 0x29, 0x2F);
/// Of the grid.
pub(crate) const GRID: (u8, u8, u8) = (0xE4, 0xE7, 0xEB);
/// Of the axes.
pub(crate) const AXIS: (u8, u8, u8) = (0x8C, 0x95, 0x9F);

/// Of marks that stay behind the others.
pub(crate) const FAINT: (u8, u8, u8) = (0x8A, 0x92, 0x9B);

/// After Okabe and Ito's set for colour-blind readers, the light ones darkened, four added.
const COLOURS: [(u8, u8, u8); 12] = [
    (0x00, 0x72, 0xB2), // blue
    (0xD5, 0x5E, 0x00), // vermilion
    (0x00, 0x94, 0x6C), // bluish green
    (0xB8, 0x60, 0x92), // reddish purple
    (0xB0, 0x7A, 0x00), // orange
    (0x32, 0x8C, 0xC1), // sky blue
    (0x7F, 0x7F, 0x7F), // grey
    (0x83, 0x5C, 0xD0), // violet
    (0x7C, 0x84, 0x00), // olive
    (0xD6, 0x45, 0x5D), // red
    (0x9A, 0x63, 0x3A), // brown
    (0x00, 0x8E, 0x9B), // teal
];

/// In points; the first is solid.
const DASHES: [&str; 4] = ["", "7 4", "2 3.5", "11 3.5 2 3.5"];

/// The shape of a mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mark {
    Circle,
    Square,
    Triangle,
    Diamond,
    Down,
    Ring,
    Frame,
    Star,
    Cross,
    OpenTriangle,
    Plus,
    OpenDiamond,
}

const MARKS: [Mark; 12] = [
    Mark::Circle,
    Mark::Square,
    Mark::Triangle,
    Mark::Diamond,
    Mark::Ring,
    Mark::Frame,
    Mark::Cross,
    Mark::Down,
    Mark::Plus,
    Mark::OpenTriangle,
    Mark::Star,
    Mark::OpenDiamond,
];

/// Colour of the series at `index`.
pub(crate) fn colour(index: usize) -> (u8, u8, u8) {
    let (r, g, b) = COLOURS[index % COLOURS.len()];
    let round = index / COLOURS.len();
    // The low six bits of blue can be distinguished by the style sheet, not by the eye.
    (r, g, b ^ u8::try_from(round % 64).unwrap_or(0))
}

/// Dashes of the series at `index`; none if it is solid.
pub(crate) fn dash(index: usize) -> Option<&'static str> {
    let pattern = DASHES[(index / 4 + index / COLOURS.len()) % DASHES.len()];
    (!pattern.is_empty()).then_some(pattern)
}

/// Mark of the series at `index`; later rounds pair marks with other colours.
pub(crate) fn mark(index: usize) -> Mark {
    MARKS[(index + 5 * (index / MARKS.len())) % MARKS.len()]
}

/// As SVG writes it.
pub(crate) fn hex((r, g, b): (u8, u8, u8)) -> String {
    format!("#{r:02X}{g:02X}{b:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn luminance((r, g, b): (u8, u8, u8)) -> f64 {
        let part = |v: u8| {
            let v = f64::from(v) / 255.0;
            if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
        };
        0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b)
    }

    #[test]
    fn colours_are_seen_on_both_grounds() {
        let dark = luminance((0x16, 0x1B, 0x22));
        for index in 0..12 {
            let own = luminance(colour(index));
            assert!(1.05 / (own + 0.05) >= 3.0, "{index} on white: {own}");
            assert!((own + 0.05) / (dark + 0.05) >= 3.0, "{index} on dark: {own}");
        }
    }

    #[test]
    fn looks_differ() {
        for a in 0..48 {
            for b in 0..a {
                assert_ne!(colour(a), colour(b), "{a} {b}");
                if a / 12 == b / 12 {
                    assert_ne!(mark(a), mark(b), "{a} {b}");
                }
            }
        }
    }
}
