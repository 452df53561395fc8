//! Space: buddy spaces, their directories, checksums of segment data, transactions that
//! allocate.
//!
//! Owns: pages of kind SpaceDir and SpaceInfo; which pages are free. Layers above allocate
//! through [`SpaceTx`] and stage large data through [`Stager`].

mod allocator;
mod apply;
mod changes;
mod checksums;
mod compose;
mod freed;
mod lowering;
mod segment_io;
mod spaces;
mod spill;
mod stage;
mod tx;

pub use allocator::{
    Allocator, Class, Growing, LEAST_HOLE, Limits, Near, SpacePicture, SpaceStats, Spare,
};
pub use lowering::{Lowering, move_blank, move_page};

pub use segment_io::{LEAST_NEW, ReadHow, UNIT, check_segment, read_segment};
pub use spaces::{fresh_directory, holds_pages};
pub use spill::IMAGES_OWNER;
pub use stage::{Staged, Stager};
pub use tx::SpaceTx;
