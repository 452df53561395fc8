//! The mode and time of an exported file.
//!
//! Owns: how they are set, and that they are there afterwards. Some file systems take a time and
//! forget it, as exFAT if not both times are set, or store the nearest that they have; so it is
//! read back from the finished file.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;

use holdall::Attributes;
use rustix::fs::{AtFlags, Stat, Timespec, Timestamps};

use super::unset::Part;
use crate::replacement::{set_bits, set_rights};
use crate::{files, time};

/// The coarsest clock of a file system, in nanoseconds: that of FAT.
const COARSEST: i128 = 2_000_000_000;

/// Gives `file` the permission bits among `attributes`, as a new file has them if there are none.
///
/// Only the nine permission bits are restored: a store from elsewhere must not be able to
/// make a program that runs as another user.
pub fn mode(file: &File, attributes: &Attributes) -> io::Result<()> {
    match files::stored_mode(attributes) {
        Some(mode) => set_bits(file, mode & 0o777, 0),
        None => set_rights(file, None, None),
    }
}

/// Gives the file the time among `attributes`, before it is finished; why not, if not.
pub fn time(file: &File, attributes: &Attributes) -> io::Result<()> {
    let Some(nanos) = stored_time(attributes) else { return Ok(()) };
    match time::from_nanos(nanos) {
        None => Err(io::Error::other("the system has no such time")),
        Some(time) => file.set_modified(time),
    }
}

/// Looks whether the finished file `name` has its time, and sets it again if not.
pub fn check_time(dir: &OwnedFd, name: &OsStr, attributes: &Attributes) -> io::Result<()> {
    let Some(wanted) = stored_time(attributes) else { return Ok(()) };
    let before = stat(dir, name)?;
    if mtime(&before) == wanted {
        return Ok(());
    }
    let no_such = || io::Error::other("the system has no such time");
    let seconds = i64::try_from(wanted.div_euclid(1_000_000_000)).map_err(|_| no_such())?;
    let nanos = i64::try_from(wanted.rem_euclid(1_000_000_000)).map_err(|_| no_such())?;
    // Not left as it is: some file systems then leave both.
    let last_access = Timespec { tv_sec: before.st_atime as _, tv_nsec: before.st_atime_nsec as _ };
    let last_modification = Timespec { tv_sec: seconds, tv_nsec: nanos as _ };
    let times = Timestamps { last_access, last_modification };
    rustix::fs::utimensat(dir, name, &times, AtFlags::SYMLINK_NOFOLLOW)?;
    let found = mtime(&stat(dir, name)?);
    if (found - wanted).abs() < COARSEST {
        return Ok(());
    }
    let (found, wanted) = (time::date(found), time::date(wanted));
    Err(io::Error::other(format!("the file system makes {found} of {wanted}")))
}

fn stored_time(attributes: &Attributes) -> Option<i128> {
    attributes.get(files::MTIME).and_then(|text| time::parse(text))
}

fn stat(dir: &OwnedFd, name: &OsStr) -> io::Result<Stat> {
    Ok(rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?)
}

fn mtime(found: &Stat) -> i128 {
    i128::from(found.st_mtime) * 1_000_000_000 + i128::from(found.st_mtime_nsec)
}

/// What is not set of mode and time, with the reason.
pub type Missing = Vec<(Part, io::Error)>;
