//! The structures of [`holdall::inspect`] in words and as JSON.
//!
//! Owns: the text of `holdall inspect`, and the names of its JSON fields. The text is for people
//! and may change with any version (golden files keep a change from going unseen).

pub mod json;
mod json_page;
mod json_parts;
mod log;
mod object;
mod page_text;
mod space;
mod text_lines;
mod volume;

pub use log::{log, log_part, record};
pub use object::{names, names_stop, object};
pub use page_text::page;
pub use space::{listed, named_too_many, sharing, space};
pub use volume::{superblocks, volume};
