//! The rights of new files: [`PRIVATE`] until they are known, then those of another file.
//!
//! Owns no state. A new file stands beside or in place of another one and holds the same bytes:
//! nobody may read it who could not read that one, and all who work with that one must not be
//! locked out.

use std::fs::{File, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;

use rustix::fs::{Gid, Mode, Uid, fchmod, fchown};

/// The mode that every file is made with: for its owner only.
pub const PRIVATE: Mode = Mode::from_raw_mode(0o600);

/// Gives `file` the owner, the group and the nine permission bits of `like`, as far as the
/// system lets us. In a group that it cannot leave, a group may do what all others may.
/// Cost: one to four system calls.
///
/// # Errors
/// Those of the operating system for the bits; an owner that cannot be given is no error.
pub fn give_as(file: &File, like: &Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let (uid, gid) = (Uid::from_raw(like.uid()), Gid::from_raw(like.gid()));
    let mut has_group = own.gid() == like.gid();
    if own.uid() != like.uid() && fchown(file, Some(uid), Some(gid)).is_ok() {
        has_group = true;
    }
    if !has_group {
        has_group = fchown(file, None, Some(gid)).is_ok();
    }
    let bits = like.mode() & 0o777;
    let bits = if has_group { bits } else { bits & (0o707 | ((bits & 7) << 3)) };
    if own.mode() & 0o777 != bits {
        fchmod(file, Mode::from_raw_mode(bits as rustix::fs::RawMode))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{PermissionsExt, fchown};

    fn with(mode: u32, uid: u32, gid: u32) -> Option<Metadata> {
        let file = tempfile::tempfile().unwrap();
        file.set_permissions(Permissions::from_mode(mode)).unwrap();
        fchown(&file, Some(uid), Some(gid)).ok()?;
        Some(file.metadata().unwrap())
    }

    #[test]
    fn a_file_gets_the_owner_and_bits_of_another() {
        let Some(like) = with(0o640, 12, 34) else {
            println!("skipped: the right to give files away");
            return;
        };
        let file = tempfile::tempfile().unwrap();
        give_as(&file, &like).unwrap();
        let got = file.metadata().unwrap();
        assert_eq!((got.mode() & 0o7777, got.uid(), got.gid()), (0o640, 12, 34));
    }

    #[test]
    fn bits_that_run_as_another_user_are_left_out() {
        let own = tempfile::tempfile().unwrap().metadata().unwrap();
        let like = with(0o6755, own.uid(), own.gid()).unwrap();
        let file = tempfile::tempfile().unwrap();
        give_as(&file, &like).unwrap();
        assert_eq!(file.metadata().unwrap().mode() & 0o7777, 0o755);
    }
}
