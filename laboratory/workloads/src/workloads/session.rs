//! An open store under measurement.

use crate::measure::Meter;
use crate::peer::{Maker, Peer, Setup};
use anyhow::{Context as _, Result};
use holdall_instrument::contest::{Ctx, Figure};
use holdall_instrument::system;
use std::path::PathBuf;

/// A store in a directory of its own, and what the process had of memory before it.
pub struct Session<'a> {
    maker: &'a dyn Maker,
    setup: Setup,
    volume: Option<u64>,
    dir: PathBuf,
    base: u64,
    /// None only between closing and opening again.
    peer: Option<Box<dyn Peer>>,
}

impl<'a> Session<'a> {
    /// Makes an empty store `name`. Data of the workload should exist and be touched before:
    /// what the process grows by from here on counts as the store's memory.
    ///
    /// # Errors
    /// The store's.
    pub fn new(ctx: &Ctx, maker: &'a dyn Maker, setup: Setup, name: &str) -> Result<Self> {
        Self::within(ctx, maker, setup, name, None)
    }

    /// As [`Session::new`], for a store of at most `volume` bytes.
    ///
    /// # Errors
    /// The store's.
    pub fn within(
        ctx: &Ctx,
        maker: &'a dyn Maker,
        setup: Setup,
        name: &str,
        volume: Option<u64>,
    ) -> Result<Self> {
        let dir = ctx.dir.join(name);
        std::fs::create_dir_all(&dir)?;
        let base = system::resident()?;
        let mut session = Self { maker, setup, volume, dir, base, peer: None };
        session.open(setup)?;
        Ok(session)
    }

    fn open(&mut self, setup: Setup) -> Result<()> {
        self.setup = setup;
        let peer = match self.volume {
            Some(volume) => self.maker.open_within(&self.dir, &setup, volume),
            None => self.maker.open(&self.dir, &setup),
        };
        self.peer = Some(peer.with_context(|| format!("opening {}", self.maker.name()))?);
        Ok(())
    }

    /// Counts its memory from what the process had before an earlier store, `first`, which
    /// worked on as much data: the allocator may keep memory that the earlier one freed, and
    /// this one then uses it.
    pub fn count_from(&mut self, first: &mut Option<u64>) {
        self.base = *first.get_or_insert(self.base);
    }

    /// The open store.
    ///
    /// # Errors
    /// It was closed.
    pub fn peer(&self) -> Result<&dyn Peer> {
        self.peer.as_deref().context("the store is closed")
    }

    /// Closes it in order.
    ///
    /// # Errors
    /// The store's.
    pub fn close(&mut self) -> Result<()> {
        self.peer.take().map_or(Ok(()), Peer::close)
    }

    /// Opens it again after [`Session::close`].
    ///
    /// # Errors
    /// The store's.
    pub fn reopen(&mut self) -> Result<()> {
        self.open(self.setup)
    }

    /// Closes it in order, opens it again and drops the page cache. Returns how.
    ///
    /// # Errors
    /// The store's.
    pub fn chill(&mut self, setup: Setup) -> Result<&'static str> {
        self.close()?;
        self.open(setup)?;
        system::drop_caches_below(&self.dir)
    }

    /// Drops the page cache of its files; what the store itself keeps stays.
    ///
    /// # Errors
    /// The system's.
    pub fn drop_caches(&self) -> Result<()> {
        system::drop_caches_below(&self.dir).map(|_| ())
    }

    /// Starts counting what it uses.
    ///
    /// # Errors
    /// The system's.
    pub fn meter(&self) -> Result<Meter> {
        Meter::start(&self.dir, self.base)
    }

    /// Lets the store do what it put off, then ends the count.
    ///
    /// # Errors
    /// The store's.
    pub fn settle(&self, meter: &Meter, figure: &mut Figure, written: u64) -> Result<()> {
        self.peer()?.settle()?;
        meter.stop(figure, written)
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        // The workload failed or is done; the directory goes next.
        drop(self.peer.take());
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
