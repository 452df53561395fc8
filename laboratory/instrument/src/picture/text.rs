//! Text of drawings: its width, its wrapping, what may stand in it.
//!
//! Widths are those of DejaVu Sans, the font that comes along for PNG. It is wider than the
//! usual sans-serif fonts, so a viewer of the SVG without it has room to spare.

use std::sync::LazyLock;

use ttf_parser::Face;

static REGULAR: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(dejavu::sans::regular(), 0).ok());
static BOLD: LazyLock<Option<Face<'static>>> =
    LazyLock::new(|| Face::parse(dejavu::sans::bold(), 0).ok());

/// Width of `text` at a font size of `size`, in the unit of `size`.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let face = if bold { REGULAR.as_ref().and(BOLD.as_ref()) } else { REGULAR.as_ref() };
    let advance = |c: char| {
        let known = face.and_then(|f| {
            let units = f64::from(f.glyph_hor_advance(f.glyph_index(c)?)?);
            Some(units / f64::from(f.units_per_em()))
        });
        // An em for what the font lacks: most such characters are wide.
        known.unwrap_or(1.0)
    };
    text.chars().map(advance).sum::<f64>() * size
}

/// Without what XML forbids or a drawing cannot show: controls become spaces.
pub(crate) fn clean(text: &str) -> String {
    let allowed = |c: char| !c.is_control() && !matches!(c, '\u{FFFE}' | '\u{FFFF}');
    text.chars().map(|c| if allowed(c) { c } else { ' ' }).collect()
}

/// Lines of at most `limit` wide, broken at spaces; a longer word stands alone on its line, cut.
pub(crate) fn wrap(text: &str, size: f64, bold: bool, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in clean(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size, bold) <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(cut(word, size, bold, limit)),
        }
    }
    lines
}

/// `text` as far as it fits into `limit`, with an ellipsis if something is missing.
pub(crate) fn cut(text: &str, size: f64, bold: bool, limit: f64) -> String {
    if width(text, size, bold) <= limit {
        return text.to_string();
    }
    let mut kept = String::new();
    for c in text.chars() {
        if width(&format!("{kept}{c}…"), size, bold) > limit {
            break;
        }
        kept.push(c);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_and_cuts() {
        let lines = wrap("one two three four", 10.0, false, 60.0);
        assert!(lines.len() > 1);
        assert_eq!(lines.join(" "), "one two three four");
        assert!(lines.iter().all(|l| width(l, 10.0, false) <= 60.0), "{lines:?}");
        let long = cut("abcdefghijklmnopqrstuvwxyz", 10.0, false, 60.0);
        assert!(long.ends_with('…') && width(&long, 10.0, false) <= 60.0);
        assert_eq!(clean("a\u{0}b\nc"), "a b c");
    }

    #[test]
    fn font_has_the_signs_of_labels() {
        for sign in "×÷≤≥µ·−…αKMGi⁰¹²³⁴⁵⁶⁷⁸⁹⁻".chars() {
            let face = REGULAR.as_ref().expect("font");
            assert!(face.glyph_index(sign).is_some(), "{sign}");
        }
    }
}
