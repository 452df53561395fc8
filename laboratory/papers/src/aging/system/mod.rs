//! The stores that are aged, behind one face (Sears §4).
//!
//! Owns: the list of kinds and how one is opened on a volume.

mod face;
mod files;
mod holdall;
pub mod postgres;
mod redb;
mod sqlite;

use std::path::Path;

use crate::kit::postgres::Server;
use ::postgres::error::SqlState;
use anyhow::{Context, Result};

pub use self::face::{Ask, System};
use super::volume::FileSystem;

/// Which system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// This project's engine.
    Holdall,
    /// One file for each object.
    Files(FileSystem),
    /// SQLite with its defaults.
    Sqlite,
    /// A column of bytes.
    Bytea,
    /// `PostgreSQL`'s large objects.
    LargeObjects,
    /// A copy-on-write B+-tree.
    Redb,
}

impl Kind {
    /// All of them, in the order of tables and legends.
    pub const ALL: [Self; 8] = [
        Self::Holdall,
        Self::Files(FileSystem::Ext4),
        Self::Files(FileSystem::Xfs),
        Self::Files(FileSystem::Btrfs),
        Self::Sqlite,
        Self::Bytea,
        Self::LargeObjects,
        Self::Redb,
    ];

    /// What tables call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Holdall => "Holdall",
            Self::Files(FileSystem::Ext4) => "files, ext4",
            Self::Files(FileSystem::Xfs) => "files, XFS",
            Self::Files(FileSystem::Btrfs) => "files, Btrfs",
            Self::Sqlite => "SQLite",
            Self::Bytea => "PostgreSQL bytea",
            Self::LargeObjects => "PostgreSQL large objects",
            Self::Redb => "redb",
        }
    }

    /// The file system that it is measured on.
    pub fn file_system(self) -> FileSystem {
        if let Self::Files(system) = self { system } else { FileSystem::Ext4 }
    }

    /// Whether it is a database.
    pub fn is_database(self) -> bool {
        matches!(self, Self::Sqlite | Self::Bytea | Self::LargeObjects | Self::Redb)
    }

    /// Whether it is reached by the server.
    pub fn is_postgres(self) -> bool {
        matches!(self, Self::Bytea | Self::LargeObjects)
    }

    /// Share of the case's bytes that it is filled with. redb keeps a value with its header in a
    /// power of two of pages, which takes twice the bytes of sizes that are powers themselves,
    /// and beside them the new version.
    pub fn share(self) -> f64 {
        if self == Self::Redb { 0.4 } else { 1.0 }
    }

    /// Opens the store in `dir`, or makes it there; it may use `bytes` bytes.
    pub fn open(self, dir: &Path, bytes: u64, server: Option<&Server>) -> Result<Box<dyn System>> {
        Ok(match self {
            Self::Holdall => Box::new(holdall::Opened::open(dir, bytes)?),
            Self::Files(_) => Box::new(files::Opened::open(dir)?),
            Self::Sqlite => Box::new(sqlite::Opened::open(dir)?),
            Self::Redb => Box::new(redb::Opened::open(dir)?),
            Self::Bytea | Self::LargeObjects => {
                let server = server.context("no server")?;
                Box::new(postgres::Opened::open(server, dir, self == Self::LargeObjects)?)
            }
        })
    }
}

/// Whether `error` says that the volume has no room.
pub fn is_full(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        let full = |io: &std::io::Error| io.kind() == std::io::ErrorKind::StorageFull;
        let server = |e: &::postgres::Error| e.code() == Some(&SqlState::DISK_FULL);
        cause.downcast_ref::<std::io::Error>().is_some_and(full)
            || cause.downcast_ref::<::postgres::Error>().is_some_and(server)
            || matches!(cause.downcast_ref(), Some(::holdall::Error::Full(_)))
            || ["checkpoint request failed", "disk is full", "No space left"]
                .iter()
                .any(|words| cause.to_string().contains(words))
    })
}
