//! What is kept of each experiment, and the report made of it.
//!
//! Owns: the files under the output directory. `DIR/<id>/outcome.json` is the record of one
//! experiment and is written after everything else of it, so that its presence means the figure
//! is finished; `DIR/report.html` and `DIR/claims.csv` are made from the records alone and can be
//! made again at any time. [`publish`] keeps the claims of a run elsewhere. Every file is written under a temporary name and renamed.

pub mod claims;
mod counts;
mod figure;
mod html;
mod kept;
mod order;
mod overview;
pub mod record;
mod style;
pub mod terminal;

pub use html::{FILE, write};
pub use kept::publish;
pub use record::{Origin, Parameters, Record};
