//! Memory of Holdall: the bytes of pages, which many share, and huge pages of the system.
//!
//! Owns [`PageRef`], a version of a page; [`PageMemory`], from which the pages of a store are
//! cut; [`Piece`], memory in one piece.

mod page_ref;
mod piece;

pub use page_ref::{PageMemory, PageRef};
pub use piece::{HUGE, Piece};
