//! The service: what OpenDAL asks, as calls of the engine.
//!
//! Owns: [`HoldallService`]. A folder is there where a name begins with its own; an empty one is
//! kept by an object whose name ends with a slash, as S3's clients make them.

use crate::delete::Remover;
use crate::error::{self, blocking};
use crate::list::Pages;
use crate::meta;
use crate::read::Source;
use crate::write::Writer;
use holdall::{DEFAULT_COLLECTION, ListOptions, PutMode, PutOptions, Reader, Store};
use opendal_core::raw::{
    OpCopy, OpCreateDir, OpList, OpPresign, OpRead, OpRename, OpStat, OpWrite, RpCreateDir,
    RpPresign, RpRename, RpStat, Service, ServiceInfo, build_abs_path, oio,
};
use opendal_core::{Capability, Error, ErrorKind, OperationContext, Result};
use std::sync::Arc;

/// The scheme of the service.
pub const SCHEME: &str = "holdall";
/// Names removed in one transaction.
pub(crate) const NAMES_PER_TRANSACTION: usize = 1000;

/// Objects of one collection below one root. Clones share the store.
#[derive(Debug, Clone)]
pub struct HoldallService {
    pub(crate) store: Store,
    pub(crate) collection: Arc<str>,
    pub(crate) root: Arc<str>,
}

impl HoldallService {
    pub(crate) fn new(store: Store, collection: &str, root: String) -> Self {
        Self { store, collection: collection.into(), root: root.into() }
    }

    /// The name of an object.
    pub(crate) fn name(&self, path: &str) -> String {
        build_abs_path(&self.root, path)
    }

    /// The newest durable state of the collection; `None` if nothing was put there yet.
    pub(crate) fn reader(&self) -> holdall::Result<Option<Reader>> {
        match self.store.read()?.collection(&self.collection) {
            Ok(reader) => Ok(Some(reader)),
            Err(holdall::Error::NotFound(_)) => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// What is known of an object or a folder. Blocks.
    fn stat_name(&self, name: &str) -> Result<RpStat> {
        let none = || Error::new(ErrorKind::NotFound, "no object has this name");
        let failed = |e| error::convert(name, e);
        let Some(reader) = self.reader().map_err(failed)? else {
            return if name.is_empty() { Ok(RpStat::new(meta::folder())) } else { Err(none()) };
        };
        if name.is_empty() || name.ends_with('/') {
            let first = ListOptions { prefix: name.as_bytes(), limit: 1, ..Default::default() };
            let found = reader.list(&first).map_err(failed)?;
            let there = name.is_empty() || !found.entries.is_empty();
            return if there { Ok(RpStat::new(meta::folder())) } else { Err(none()) };
        }
        match reader.metadata(name) {
            Ok(found) => Ok(RpStat::new(meta::file(&found))),
            Err(e) => Err(failed(e)),
        }
    }

    /// Changes names in one durable transaction. Blocks.
    pub(crate) fn change<T>(
        &self,
        name: &str,
        f: impl FnOnce(&mut holdall::ObjectsMut) -> holdall::Result<T>,
    ) -> Result<T> {
        let done = self.store.write(|tx| f(&mut *tx.collection(&self.collection)?));
        done.map_err(|e| error::convert(name, e))
    }
}

fn unsupported() -> Error {
    Error::new(ErrorKind::Unsupported, "the store has no such operation")
}

impl Service for HoldallService {
    type Reader = oio::StreamReader<Source>;
    type Writer = Writer;
    type Lister = oio::PageLister<Pages>;
    type Deleter = oio::BatchDeleter<Remover>;
    type Copier = oio::OneShotCopier;
    type Composer = ();

    fn info(&self) -> ServiceInfo {
        let of = if *self.collection == *DEFAULT_COLLECTION { "" } else { &self.collection };
        ServiceInfo::new(SCHEME, &*self.root, of)
    }

    fn capability(&self) -> Capability {
        Capability {
            stat: true,
            read: true,
            read_with_suffix: true,
            write: true,
            write_can_multi: true,
            write_can_empty: true,
            write_with_content_type: true,
            write_with_if_not_exists: true,
            create_dir: true,
            delete: true,
            delete_max_size: Some(NAMES_PER_TRANSACTION),
            copy: true,
            rename: true,
            list: true,
            list_with_limit: true,
            list_with_start_after: true,
            list_with_recursive: true,
            ..Capability::default()
        }
    }

    async fn create_dir(
        &self,
        _: &OperationContext,
        path: &str,
        _: OpCreateDir,
    ) -> Result<RpCreateDir> {
        let (own, name) = (self.clone(), self.name(path));
        blocking(move || {
            if name.is_empty() {
                return Ok(RpCreateDir::default());
            }
            let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
            match own.change(&name, |tx| tx.put_with(name.as_str(), b"", &options).map(drop)) {
                // It is there already.
                Err(e) if e.kind() == ErrorKind::ConditionNotMatch => {}
                done => done?,
            }
            Ok(RpCreateDir::default())
        })
        .await
    }

    async fn stat(&self, _: &OperationContext, path: &str, _: OpStat) -> Result<RpStat> {
        let (own, name) = (self.clone(), self.name(path));
        blocking(move || own.stat_name(&name)).await
    }

    fn read(&self, _: &OperationContext, path: &str, _: OpRead) -> Result<Self::Reader> {
        Ok(oio::StreamReader::new(Source { own: self.clone(), name: self.name(path) }))
    }

    fn write(&self, _: &OperationContext, path: &str, args: OpWrite) -> Result<Writer> {
        Ok(Writer::new(self.clone(), self.name(path), &args))
    }

    fn delete(&self, _: &OperationContext) -> Result<Self::Deleter> {
        Ok(oio::BatchDeleter::new(Remover(self.clone()), Some(NAMES_PER_TRANSACTION)))
    }

    fn list(&self, _: &OperationContext, path: &str, args: OpList) -> Result<Self::Lister> {
        Ok(oio::PageLister::new(Pages::new(self.clone(), path, &args)))
    }

    fn copy(&self, _: &OperationContext, from: &str, to: &str, _: OpCopy) -> Result<Self::Copier> {
        let (own, from, to) = (self.clone(), self.name(from), self.name(to));
        Ok(oio::OneShotCopier::new(async move {
            blocking(move || {
                own.change(&from, |tx| {
                    tx.copy(from.as_str(), to.as_str())?;
                    tx.metadata(to.as_str())
                })
                .map(|found| meta::file(&found))
            })
            .await
        }))
    }

    async fn rename(
        &self,
        _: &OperationContext,
        from: &str,
        to: &str,
        _: OpRename,
    ) -> Result<RpRename> {
        let (own, from, to) = (self.clone(), self.name(from), self.name(to));
        blocking(move || {
            own.change(&from, |tx| {
                // Whatever has the name makes room, once it is known that something takes it.
                tx.metadata(from.as_str())?;
                tx.remove(to.as_str())?;
                tx.rename(&from, &to)
            })
        })
        .await?;
        Ok(RpRename::new())
    }

    async fn presign(&self, _: &OperationContext, _: &str, _: OpPresign) -> Result<RpPresign> {
        Err(unsupported())
    }
}
