//! Looking at the archive: by the tar library through the object, by the system's program.

use super::model::Model;
use crate::shared;
use anyhow::{Context, Result, ensure};
use holdall::Object;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

/// Reads the archive through the object and compares each member with the model: order, path,
/// size, place, bytes.
pub fn compare(object: Object, model: &Model) -> Result<()> {
    let size = object.size();
    ensure!(size == model.size(), "{size} bytes, not {}", model.size());
    let mut archive = tar::Archive::new(object);
    let (mut members, mut start) = (model.members.iter(), 0);
    for (number, entry) in archive.entries_with_seek()?.enumerate() {
        let entry = entry.with_context(|| format!("reading the header of member {number}"))?;
        let member = members.next().with_context(|| format!("member {number} is too many"))?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        ensure!(name == member.name, "member {number} is {name}, not {}", member.name);
        ensure!(entry.size() == member.size, "{name} has {} bytes", entry.size());
        let (at, place) = (entry.raw_file_position(), start + member.headers.len() as u64);
        ensure!(at == place, "{name} lies at {at}, not {place}");
        let found = shared::hash_of(entry).with_context(|| format!("reading {name}"))?;
        ensure!(found == blake3::hash(&member.data()), "{name} has other bytes");
        start += member.span();
    }
    ensure!(members.next().is_none(), "members are missing at the end");
    Ok(())
}

/// What the system's tar printed for the exported archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// It lists these many members, those of the model in its order.
    Same(usize),
    /// There is no such program.
    NoProgram,
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Same(n) => write!(f, "tar -tf lists the {n} members of the exported file"),
            Self::NoProgram => write!(f, "there is no program tar to list the exported file"),
        }
    }
}

/// Lists a file by `tar -tf` and compares with the model.
pub fn list_by_system(file: &Path, model: &Model) -> Result<Listed> {
    let output = match Command::new("tar").arg("-tf").arg(file).output() {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Listed::NoProgram),
        other => other.context("running tar -tf")?,
    };
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success() && said.is_empty(), "tar -tf: {}: {said}", output.status);
    let text = String::from_utf8(output.stdout).context("the list of tar -tf")?;
    let names: Vec<&str> = model.members.iter().map(|m| m.name.as_str()).collect();
    ensure!(text.lines().eq(names.iter().copied()), "tar -tf lists other members");
    Ok(Listed::Same(names.len()))
}
