//! Writing an object of any length.

use crate::error::{self, blocking};
use crate::meta;
use crate::service::HoldallService;
use holdall::{PutMode, PutOptions, StagedObject, Target};
use opendal_core::raw::{OpWrite, oio};
use opendal_core::{Buffer, Error, ErrorKind, Metadata, Result};

/// Bytes on their way to an object. They go to their place as they come; closing makes them the
/// object, in one transaction, and what is given up leaves nothing.
pub struct Writer {
    own: HoldallService,
    name: String,
    options: PutOptions,
    /// None before the first bytes, and while some are written.
    staged: Option<StagedObject>,
    begun: bool,
}

impl Writer {
    /// An object that is written from its start.
    pub fn new(own: HoldallService, name: String, args: &OpWrite) -> Self {
        let mode = if args.if_not_exists() { PutMode::Create } else { PutMode::Overwrite };
        let attributes = meta::to_attributes(args.content_type());
        let options = PutOptions { mode, attributes, ..PutOptions::default() };
        Self { own, name, options, staged: None, begun: false }
    }

    /// Writes `bytes` behind those that came; blocks.
    fn take(&mut self) -> Result<impl FnOnce(Buffer) -> Result<StagedObject> + Send + 'static> {
        let (own, name, options) = (self.own.clone(), self.name.clone(), self.options.clone());
        let staged = self.staged.take();
        if self.begun && staged.is_none() {
            return Err(Error::new(ErrorKind::Unexpected, "an earlier write has failed"));
        }
        self.begun = true;
        Ok(move |bytes: Buffer| {
            let write = || {
                let mut staged = match staged {
                    Some(staged) => staged,
                    None => own.store.stage(Target::from(name.as_str()), options)?,
                };
                for chunk in bytes {
                    staged.push(&chunk)?;
                }
                Ok(staged)
            };
            write().map_err(|e| error::convert(&name, e))
        })
    }
}

impl oio::Write for Writer {
    async fn write(&mut self, bytes: Buffer) -> Result<()> {
        let push = self.take()?;
        self.staged = Some(blocking(move || push(bytes)).await?);
        Ok(())
    }

    async fn close(&mut self) -> Result<Metadata> {
        let push = self.take()?;
        let (own, name) = (self.own.clone(), self.name.clone());
        blocking(move || {
            let staged = push(Buffer::new())?;
            own.change(&name, |tx| {
                let oid = staged.finish(tx)?;
                tx.metadata(oid)
            })
            .map(|found| meta::file(&found))
        })
        .await
    }

    async fn abort(&mut self) -> Result<()> {
        let staged = self.staged.take();
        // Its space is given back.
        blocking(move || {
            drop(staged);
            Ok(())
        })
        .await
    }
}
