//! What an open store counts and times, always.
//!
//! Owns: [`Recorder`], to which any part of the engine adds the values that it measures; [`Looks`],
//! which counts lookups; [`Event`], which is reported as it happens. Each part of the engine has its
//! own; [`Store::metrics`](crate::Store::metrics) gathers them. Nothing here takes a lock.

mod distribution;
mod event;
mod looks;
mod scrubbed;

pub use distribution::Distribution;
pub(crate) use distribution::Recorder;
pub(crate) use event::Event;
pub(crate) use looks::Looks;
pub(crate) use scrubbed::Scrubbed;
