//! The modes of the directories that a file lay in, as the attribute `dirs` has them.
//!
//! Owns: [`Dirs`] and the form of the attribute: octal modes from the imported directory down to the
//! file's, with `/` between them; `755*3` for three in a row, `-` for one that is not known. An
//! imported file without the attribute lay in directories of [`COMMON`] only.

use holdall::Attributes;

use crate::files::{self, MODE};

/// Attribute: the modes of the directories above a file.
pub const DIRS: &str = "dirs";
/// The bits that directories mostly have.
pub const COMMON: u32 = 0o755;

/// What an object says of the directories above it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dirs {
    /// Nothing: it was not imported.
    Silent,
    /// All of them have [`COMMON`].
    Common,
    /// Those of the last directories on its way.
    Last(Vec<Option<u32>>),
}

impl Dirs {
    /// What `attributes` say. What cannot be read says that nothing is known.
    pub fn from_attributes(attributes: &Attributes) -> Self {
        match attributes.get(DIRS) {
            None if attributes.contains_key(MODE) => Self::Common,
            None => Self::Silent,
            Some(text) => parse(text).map_or(Self::Silent, Self::Last),
        }
    }

    /// The bits of the directory `above` levels above the file's own; `None` if they are not known.
    pub fn bits(&self, above: usize) -> Option<u32> {
        match self {
            Self::Silent => None,
            Self::Common => Some(COMMON),
            Self::Last(modes) => modes.iter().rev().nth(above).copied().flatten(),
        }
    }

    /// The modes of the last `count` directories, or of more, if more are stored.
    pub fn last(&self, count: usize) -> Vec<Option<u32>> {
        let stored: &[Option<u32>] = if let Self::Last(modes) = self { modes } else { &[] };
        let missing = (stored.len()..count).rev().map(|above| self.bits(above));
        missing.chain(stored.iter().copied()).collect()
    }

    /// Whether a directory of which nothing is known is to be its owner's only: it had a mode.
    pub fn hides(&self, above: usize) -> bool {
        matches!(self, Self::Last(modes) if modes.len() > above && self.bits(above).is_none())
    }
}

/// More levels than any name has.
const MOST_LEVELS: usize = 4096;

fn parse(text: &[u8]) -> Option<Vec<Option<u32>>> {
    let mut modes = Vec::new();
    for part in std::str::from_utf8(text).ok()?.split('/') {
        let (mode, count) = match part.split_once('*') {
            Some((mode, count)) => (mode, count.parse().ok()?),
            None => (part, 1),
        };
        let mode = match mode {
            "-" => None,
            mode => Some(files::parse_mode(mode.as_bytes())? & 0o777),
        };
        if count > MOST_LEVELS - modes.len() {
            return None;
        }
        modes.extend(std::iter::repeat_n(mode, count));
    }
    Some(modes)
}

/// The value of the attribute for these modes.
pub fn text(modes: &[Option<u32>]) -> Vec<u8> {
    let runs = modes.chunk_by(|one, other| one == other).map(|run| {
        let mode = run.first().copied().flatten();
        let mode = mode.map_or_else(|| "-".to_owned(), |mode| format!("{mode:o}"));
        if run.len() == 1 { mode } else { format!("{mode}*{}", run.len()) }
    });
    runs.collect::<Vec<_>>().join("/").into_bytes()
}

/// As [`text`], of at most `most` bytes: of the directories farthest from the file nothing is known
/// then. `None` if that is not enough.
pub fn short(modes: &[Option<u32>], most: usize) -> Option<Vec<u8>> {
    let mut modes = modes.to_vec();
    for level in 0..modes.len() {
        let text = text(&modes);
        if text.len() <= most {
            return Some(text);
        }
        if let Some(mode) = modes.get_mut(level) {
            *mode = None;
        }
    }
    Some(text(&modes)).filter(|text| text.len() <= most)
}

/// Whether something was left out of the attribute because it was too long.
pub fn is_short(attributes: &Attributes) -> bool {
    attributes.get(DIRS).is_some_and(|text| text.starts_with(b"-"))
}

/// Shortens the attribute until all of `attributes` take at most `most` bytes, if that is enough.
pub fn fit(attributes: &mut Attributes, most: usize) {
    let all: usize = attributes.iter().map(encoded_len).sum();
    let Some(value) = attributes.get(DIRS).filter(|_| all > most) else { return };
    let room = (most + value.len()).saturating_sub(all);
    // Whether the others fit is for the store to say.
    if let Some(text) = parse(value).and_then(|modes| short(&modes, room)) {
        attributes.insert(DIRS.into(), text);
    }
}

/// Bytes of an attribute in a record: its key and value, each with its length.
fn encoded_len((key, value): (&String, &Vec<u8>)) -> usize {
    let length = |len: usize| if len < 128 { 1 } else { 2 };
    length(key.len()) + key.len() + length(value.len()) + value.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(value: &str) -> Attributes {
        Attributes::from([
            (MODE.to_owned(), b"644".to_vec()),
            (DIRS.to_owned(), value.as_bytes().to_vec()),
        ])
    }

    #[test]
    fn modes_in_a_row_are_named_once_and_the_old_form_is_read() {
        let modes = [Some(0o755), Some(0o755), Some(0o700), None, None, Some(0)];
        assert_eq!(text(&modes), b"755*2/700/-*2/0");
        assert_eq!(Dirs::from_attributes(&with("755*2/700/-*2/0")), Dirs::Last(modes.to_vec()));
        let old = Dirs::from_attributes(&with("750/711/700"));
        assert_eq!(
            [0, 1, 2, 3].map(|at| old.bits(at)),
            [Some(0o700), Some(0o711), Some(0o750), None]
        );
        assert_eq!(old.last(4), [None, Some(0o750), Some(0o711), Some(0o700)]);
        assert_eq!(old.last(1).len(), 3);
        for bad in ["", "x", "755*", "755*99999999", "755//755", "-1", "755*-1"] {
            assert_eq!(Dirs::from_attributes(&with(bad)), Dirs::Silent, "{bad}");
        }
        let imported = Attributes::from([(MODE.to_owned(), b"644".to_vec())]);
        assert_eq!(Dirs::from_attributes(&imported).bits(7), Some(COMMON));
        assert_eq!(Dirs::from_attributes(&Attributes::new()).bits(0), None);
    }

    #[test]
    fn what_is_too_long_loses_the_directories_farthest_away() {
        let modes: Vec<_> =
            (0..300).map(|at| Some(if at % 2 == 0 { 0o755 } else { 0o700 })).collect();
        let mut attributes = with(std::str::from_utf8(&text(&modes)).unwrap());
        let whole = attributes.clone();
        fit(&mut attributes, 4096);
        assert!(attributes == whole && !is_short(&attributes));
        fit(&mut attributes, 1024);
        let total: usize = attributes.iter().map(encoded_len).sum();
        assert!((1000..=1024).contains(&total) && is_short(&attributes), "{total}");
        let left = Dirs::from_attributes(&attributes);
        assert_eq!((left.bits(0), left.bits(1)), (Some(0o700), Some(0o755)));
        assert!(left.bits(299).is_none() && left.hides(299) && !left.hides(0) && !left.hides(300));
        assert_eq!(left.last(0).len(), 300);
    }
}
