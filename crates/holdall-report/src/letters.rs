//! What Unicode says of characters that look like others.
//!
//! Owns no state; the tables are those of the crates `icu_normalizer` and `icu_properties`.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;

/// Whether a text is in its composed form (NFC): of several that mean the same and look alike,
/// one is. Cost: one pass.
pub fn is_composed(text: &str) -> bool {
    ComposingNormalizerBorrowed::new_nfc().is_normalized(text)
}

/// Whether the character goes onto the one before it.
pub fn is_mark(c: char) -> bool {
    use GeneralCategory::{EnclosingMark, NonspacingMark, SpacingMark};
    matches!(category(c), EnclosingMark | NonspacingMark | SpacingMark)
}

/// Whether no character has this number, or never will: what is shown for it says nothing.
pub fn is_unassigned(c: char) -> bool {
    !c.is_ascii() && category(c) == GeneralCategory::Unassigned
}

fn category(c: char) -> GeneralCategory {
    CodePointMapData::<GeneralCategory>::new().get(c)
}
