//! The socket's file: `STORE-control`, beside the store.
//!
//! Owns: [`Place`], the file that a process listens at, which goes with it. A name is used with what
//! it leads to: nothing but a socket is removed or connected to, and no link is followed.

use holdall::{Error, FileId, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{AtFlags, FileType, Mode};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// Where the socket of a store lies.
#[derive(Debug)]
struct Spot {
    directory: File,
    /// The directory, where the system has no names of open files.
    path: PathBuf,
    name: OsString,
}

impl Spot {
    /// Beside the file that `store` really leads to, as the log.
    fn beside(store: &Path) -> io::Result<Self> {
        let real = fs::canonicalize(store)?;
        let path = real.parent().unwrap_or(Path::new("/")).to_owned();
        let mut name = real.file_name().unwrap_or_default().to_owned();
        name.push("-control");
        Ok(Self { directory: File::open(&path)?, path, name })
    }

    fn shown(&self) -> String {
        self.path.join(&self.name).display().to_string()
    }

    /// A path to `name` in the directory that is short enough for a socket's address.
    fn reach(&self, name: &OsStr) -> PathBuf {
        open_path(self.directory.as_raw_fd()).unwrap_or_else(|| self.path.clone()).join(name)
    }

    fn stat(&self, name: &OsStr) -> Result<Option<rustix::fs::Stat>, Errno> {
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(None),
            found => found.map(Some),
        }
    }

    fn no_socket(&self) -> Error {
        let text = "lies where the process that has the store open would listen, and is no socket; \
                    move it away";
        Error::Invalid(format!("{} {text}", self.shown()))
    }

    fn failed(&self, action: &str, e: impl Into<io::Error>) -> Error {
        Error::io(format!("{action} {}", self.shown()), e.into())
    }
}

/// The name that the system has for an open file.
fn open_path(fd: i32) -> Option<PathBuf> {
    let path = PathBuf::from(format!("/proc/self/fd/{fd}"));
    fs::symlink_metadata(&path).is_ok().then_some(path)
}

fn is_socket(stat: &rustix::fs::Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Socket
}

#[expect(clippy::unnecessary_cast, reason = "the types differ between systems")]
fn id(stat: &rustix::fs::Stat) -> (u64, u64) {
    (stat.st_dev as u64, stat.st_ino as u64)
}

/// A socket's file, removed with this value if it is still the same.
#[derive(Debug)]
pub struct Place {
    spot: Spot,
    id: (u64, u64),
    process: u32,
}

impl Place {
    /// Listens beside the store at `path`, which is open for writing as `is_own` says of a file.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the path leads to another file, or what lies there is no socket;
    /// [`Error::Exists`] if somebody listens there; [`Error::Io`].
    pub fn listen(
        path: &Path,
        is_own: impl Fn(FileId) -> Result<bool>,
    ) -> Result<(UnixListener, Self)> {
        let failed = |e| Error::io(format!("looking for {}", path.display()), e);
        let spot = Spot::beside(path).map_err(failed)?;
        if !is_own(FileId::from_metadata(&fs::metadata(path).map_err(failed)?))? {
            let text = format!("{} does not lead to the open store", path.display());
            return Err(Error::Invalid(text));
        }
        remove_stale(&spot)?;
        let (listener, id) = bind(&spot)?;
        Ok((listener, Self { spot, id, process: std::process::id() }))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // A child of a fork leaves it to its parent.
        let own = std::process::id() == self.process;
        if own
            && self.spot.stat(&self.spot.name).is_ok_and(|s| s.is_some_and(|s| id(&s) == self.id))
        {
            // The next process that listens here removes what stays.
            let _ = rustix::fs::unlinkat(&self.spot.directory, &self.spot.name, AtFlags::empty());
        }
    }
}

/// Removes the socket that a process left behind which had the store open before.
fn remove_stale(spot: &Spot) -> Result<()> {
    let stat = spot.stat(&spot.name).map_err(|e| spot.failed("looking for", e))?;
    let Some(stat) = stat else { return Ok(()) };
    if !is_socket(&stat) {
        return Err(spot.no_socket());
    }
    if let Ok(Some(_)) = reached(spot) {
        return Err(Error::Exists(format!("a process that listens at {}", spot.shown())));
    }
    match rustix::fs::unlinkat(&spot.directory, &spot.name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(e) => Err(spot.failed("removing", e)),
    }
}

/// Makes the socket under another name, so that it never stands there with other rights.
fn bind(spot: &Spot) -> Result<(UnixListener, (u64, u64))> {
    let failed = |e: io::Error| spot.failed("listening at", e);
    let drawn = RandomState::new().build_hasher().finish();
    let name: OsString = format!(".holdall-{drawn:016x}").into();
    let listener = UnixListener::bind(spot.reach(&name)).map_err(failed)?;
    let put = || {
        let dir = &spot.directory;
        rustix::fs::chmodat(dir, &name, Mode::RUSR | Mode::WUSR, AtFlags::empty())?;
        let stat = rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW)?;
        match rename_anew(dir, &name, &spot.name) {
            // A file system that cannot promise not to replace.
            Err(Errno::INVAL | Errno::NOSYS) => {
                rustix::fs::renameat(dir, &name, dir, &spot.name)?;
            }
            renamed => renamed?,
        }
        Ok::<_, Errno>(id(&stat))
    };
    match put() {
        Ok(id) => Ok((listener, id)),
        Err(e) => {
            // A name that nobody else knows.
            let _ = rustix::fs::unlinkat(&spot.directory, &name, AtFlags::empty());
            Err(failed(e.into()))
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_anew(dir: &File, from: &OsStr, to: &OsStr) -> Result<(), Errno> {
    rustix::fs::renameat_with(dir, from, dir, to, rustix::fs::RenameFlags::NOREPLACE)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_anew(_: &File, _: &OsStr, _: &OsStr) -> Result<(), Errno> {
    Err(Errno::NOSYS)
}

/// Connects to the process that has the store at `path` open; `None` if nobody listens.
///
/// # Errors
/// [`Error::Invalid`] if what lies there is no socket; [`Error::Io`], with `PermissionDenied` too if
/// the process that listens is of a user whom this one has no reason to trust.
pub fn connect(path: &Path) -> Result<Option<UnixStream>> {
    let failed = |e| Error::io(format!("looking for {}", path.display()), e);
    let spot = Spot::beside(path).map_err(failed)?;
    let Some(stream) = reached(&spot)? else { return Ok(None) };
    let owner = std::os::unix::fs::MetadataExt::uid(&fs::metadata(path).map_err(failed)?);
    match peer(&stream) {
        Some(uid) if uid != owner && !is_trusted(uid) => {
            let text = format!("user {uid} listens there, who does not own the store");
            let e = io::Error::new(io::ErrorKind::PermissionDenied, text);
            Err(spot.failed("connecting to", e))
        }
        _ => Ok(Some(stream)),
    }
}

/// A stream to the socket that lies there, which is looked at before.
fn reached(spot: &Spot) -> Result<Option<UnixStream>> {
    let stat = spot.stat(&spot.name).map_err(|e| spot.failed("looking for", e))?;
    let Some(stat) = stat else { return Ok(None) };
    if !is_socket(&stat) {
        return Err(spot.no_socket());
    }
    let connected = match pinned(spot) {
        Ok(Some((_file, path))) => UnixStream::connect(path),
        Ok(None) => UnixStream::connect(spot.path.join(&spot.name)),
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::LOOP) => return Err(spot.no_socket()),
        Err(e) => return Err(spot.failed("opening", e)),
    };
    match connected {
        Ok(stream) => Ok(Some(stream)),
        Err(e) if e.kind() == io::ErrorKind::ConnectionRefused => Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(spot.failed("connecting to", e)),
    }
}

/// The file itself, kept, and a name that leads to nothing else; `None` where the system has none.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn pinned(spot: &Spot) -> Result<Option<(OwnedFd, PathBuf)>, Errno> {
    use rustix::fs::OFlags;
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&spot.directory, &spot.name, flags, Mode::empty())?;
    if !is_socket(&rustix::fs::fstat(&file)?) {
        return Err(Errno::LOOP);
    }
    let path = open_path(file.as_raw_fd());
    Ok(path.map(|path| (file, path)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn pinned(_: &Spot) -> Result<Option<(OwnedFd, PathBuf)>, Errno> {
    Ok(None)
}

/// The user at the other end, where the system says so.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn peer(stream: &UnixStream) -> Option<u32> {
    rustix::net::sockopt::socket_peercred(stream).ok().map(|found| found.uid.as_raw())
}

/// The user at the other end: elsewhere the rights of the file alone keep others out.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn peer(_: &UnixStream) -> Option<u32> {
    None
}

/// Whether a user may do here what this process may: the own one, and the system's.
pub fn is_trusted(uid: u32) -> bool {
    uid == 0 || uid == rustix::process::geteuid().as_raw()
}

/// The other end sends no more.
#[cfg(any(target_os = "linux", target_os = "android"))]
const ENDED: PollFlags = PollFlags::RDHUP;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const ENDED: PollFlags = PollFlags::HUP;

/// Whether the other end has gone. Asks the system.
pub fn is_gone(stream: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stream, ENDED)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    let gone = ENDED | PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL;
    poll(&mut fds, Some(&now)).is_ok_and(|n| n > 0) && fds[0].revents().intersects(gone)
}
