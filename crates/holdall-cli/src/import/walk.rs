//! The files to import, in order of their paths, handed out in numbered chunks.
//!
//! Owns: [`Walk`]. Used by several threads behind a lock; looks at directories only, never
//! into files. Links are not followed.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, IntoIter, WalkDir};

use crate::name;

/// Files in a chunk: enough that handing one out costs little against reading it.
const CHUNK_FILES: usize = 32;

/// What the walk met.
pub enum Found {
    /// A regular file: name of its object, path.
    File(Vec<u8>, PathBuf),
    /// Neither a file nor a directory: name, what it is.
    Skipped(Vec<u8>, &'static str),
    /// A directory that could not be read: path, why.
    Failed(Vec<u8>, String),
}

/// A walk through one directory tree.
pub struct Walk {
    root: PathBuf,
    prefix: Vec<u8>,
    inner: IntoIter,
    next: u64,
}

/// The walk through `root` that both the import and the count take.
pub fn tree(root: &Path) -> WalkDir {
    WalkDir::new(root).min_depth(1).follow_links(false)
}

impl Walk {
    /// A walk through `root`.
    pub fn new(root: &Path, prefix: &[u8]) -> Self {
        let inner = tree(root).sort_by_file_name().into_iter();
        Self { root: root.into(), prefix: prefix.into(), inner, next: 0 }
    }

    /// The next chunk and its number, counted from 0; `None` at the end.
    pub fn next_chunk(&mut self) -> Option<(u64, Vec<Found>)> {
        let mut chunk = Vec::with_capacity(CHUNK_FILES);
        while chunk.len() < CHUNK_FILES {
            match self.inner.next() {
                None => break,
                Some(Ok(entry)) => chunk.extend(self.found(entry)),
                Some(Err(error)) => chunk.push(self.failed(&error)),
            }
        }
        if chunk.is_empty() {
            return None;
        }
        let number = self.next;
        self.next += 1;
        Some((number, chunk))
    }

    fn found(&self, entry: DirEntry) -> Option<Found> {
        let kind = entry.file_type();
        if kind.is_dir() {
            return None;
        }
        let name = self.name(entry.path());
        if kind.is_symlink() {
            return Some(Found::Skipped(name, "link"));
        }
        if !kind.is_file() {
            return Some(Found::Skipped(name, "special file"));
        }
        Some(Found::File(name, entry.into_path()))
    }

    fn failed(&self, error: &walkdir::Error) -> Found {
        let path = error.path().unwrap_or(&self.root);
        let why = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
        Found::Failed(self.name(path), why)
    }

    /// The prefix, then the path below the root with `/` between its parts.
    fn name(&self, path: &Path) -> Vec<u8> {
        let mut name = self.prefix.clone();
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        for (at, part) in below.components().enumerate() {
            if at > 0 {
                name.push(b'/');
            }
            name.extend_from_slice(name::bytes(part.as_os_str()));
        }
        name
    }
}
