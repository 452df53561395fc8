//! The natural order of names: numbers by their value, sizes by their bytes.
//!
//! Owns nothing. B2 stands before B10, 4 KB before 16 KB before 1 MB.

use std::cmp::Ordering;

/// What sizes are counted in; `K` and `M` alone are binary, as the papers use them.
const UNITS: [(&str, f64); 12] = [
    ("bytes", 1.0),
    ("K", 1024.0),
    ("M", 1_048_576.0),
    ("G", 1_073_741_824.0),
    ("KB", 1024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Compares two names: numbers by their value, in bytes if a unit of size follows.
#[must_use]
pub fn natural(a: &str, b: &str) -> Ordering {
    let (mut x, mut y) = (a, b);
    loop {
        let (Some(p), Some(q)) = (x.chars().next(), y.chars().next()) else {
            return x.len().cmp(&y.len()).then_with(|| a.cmp(b));
        };
        let order = if p.is_ascii_digit() && q.is_ascii_digit() {
            let (m, n) = (size(&mut x), size(&mut y));
            m.total_cmp(&n)
        } else {
            (x, y) = (&x[p.len_utf8()..], &y[q.len_utf8()..]);
            p.cmp(&q)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// The number that `text` begins with, and what is left of it in `text`.
fn size(text: &mut &str) -> f64 {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let fraction = text[digits..].strip_prefix('.').map_or(0, |rest| {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        if end == 0 { 0 } else { end + 1 }
    });
    let (number, rest) = text.split_at(digits + fraction);
    let behind = rest.strip_prefix(' ').unwrap_or(rest);
    let word = behind.find(|c: char| !c.is_alphanumeric()).unwrap_or(behind.len());
    let (word, after) = behind.split_at(word);
    let unit = UNITS.iter().find(|(name, _)| *name == word);
    *text = unit.map_or(rest, |_| after);
    number.parse().unwrap_or(f64::INFINITY) * unit.map_or(1.0, |(_, bytes)| *bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_natural_order() {
        let want = ["B1", "B2", "B2 4 pages", "B10", "B13 100 bytes", "B13 10 K", "B13 1 M", "M1"];
        let mut names = want;
        names.sort_unstable();
        assert_ne!(names, want);
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, want);
    }

    #[test]
    fn sizes_are_in_the_order_of_their_bytes() {
        let want = ["512 bytes", "4 KB", "4 KB read", "16KB", "0.5 MB", "1 MB", "1.5 MB", "64 MiB"];
        let mut names = want;
        names.sort_unstable();
        assert_ne!(names, want);
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, want);
    }

    #[test]
    fn different_names_are_never_equal() {
        for (a, b) in [("1 KB", "1024"), ("a", "a "), ("01", "1"), ("", "x"), ("1.", "1")] {
            assert_ne!(natural(a, b), Ordering::Equal, "{a} {b}");
            assert_eq!(natural(a, b), natural(b, a).reverse(), "{a} {b}");
        }
    }
}
