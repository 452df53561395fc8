//! Files that are whole or not there: a run may be cut off at any time.
//!
//! Owns nothing.

use std::fs;
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context, Result};

/// Puts `bytes` at `path` so that a reader sees the old file or the new one, never a part.
/// Several threads may do so at once: experiments share parts.
///
/// # Errors
/// The file cannot be written; nothing is left behind then.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let put = || -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        // The rights of any other new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.prefix(".").suffix(".tmp").tempfile_in(folder)?;
        file.write_all(bytes)?;
        file.persist(path)?;
        Ok(())
    };
    put().with_context(|| format!("cannot write {}", path.display()))
}

/// Removes a file, if it is there.
///
/// # Errors
/// It cannot be removed.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot remove {}", path.display()))
        }
        _ => Ok(()),
    }
}
