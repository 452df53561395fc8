//! Backups of a store that is being written, and stores made from them.
//!
//! Owns: [`Backup`], [`restore`](restore()). A backup has the pages of one state, in the places in
//! which they lie there: whole, as the file of a store or as a stream; or as an increment, those that
//! changed since an earlier one. See docs/backup.md.

mod blank;
mod info;
mod mark;
mod pieces;
mod restore;
mod state;
mod store_file;
mod stream;
mod take;

pub use info::{BackupId, BackupInfo, BackupProgress};
pub use pieces::{BackupHead, BackupPieces, Reached};
pub use restore::{BackupPart, RestoreReport, restore, restore_on};
pub use take::{Backup, BackupReport, BackupSource};
