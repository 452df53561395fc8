//! Reading a range as a stream.

use crate::error::{self, blocking};
use crate::meta;
use crate::service::HoldallService;
use holdall::Object;
use opendal_core::raw::{RpRead, oio};
use opendal_core::{Buffer, BytesRange, Error, ErrorKind, Result};
use std::ops::Range;

/// Bytes read at a time.
const BYTES_PER_READ: u64 = 1 << 20;

/// An object that is about to be read.
pub struct Source {
    /// Where it lies.
    pub own: HoldallService,
    /// Its name.
    pub name: String,
}

/// The bytes of a range that are still to come, of the state in which the object was opened.
struct Bytes {
    /// None while a piece is read.
    object: Option<Object>,
    name: String,
    left: Range<u64>,
}

impl oio::StreamRead for Source {
    async fn open(&self, range: BytesRange) -> Result<(RpRead, Box<dyn oio::ReadStreamDyn>)> {
        let (own, name) = (self.own.clone(), self.name.clone());
        blocking(move || {
            let failed = |e| error::convert(&name, e);
            let none = || Error::new(ErrorKind::NotFound, "no object has this name");
            let reader = own.reader().map_err(failed)?.ok_or_else(none)?;
            let object = reader.open(name.as_str()).map_err(failed)?;
            let told = meta::file(&reader.metadata(object.oid()).map_err(failed)?);
            let part =
                range.to_content_range(usize::try_from(object.size()).unwrap_or(usize::MAX))?;
            let left = part.start as u64..part.end as u64;
            let stream = Bytes { object: Some(object), name, left };
            Ok((RpRead::new(told), Box::new(stream) as Box<dyn oio::ReadStreamDyn>))
        })
        .await
    }
}

impl oio::ReadStream for Bytes {
    async fn read(&mut self) -> Result<Buffer> {
        let len = BYTES_PER_READ.min(self.left.end - self.left.start);
        if len == 0 {
            return Ok(Buffer::new());
        }
        let broken = || Error::new(ErrorKind::Unexpected, "an earlier piece has failed");
        let object = self.object.take().ok_or_else(broken)?;
        let (at, name) = (self.left.start, self.name.clone());
        let (object, piece) = blocking(move || {
            let mut piece = vec![0; len as usize];
            object.read_at(at, &mut piece).map_err(|e| error::convert(&name, e))?;
            Ok((object, piece))
        })
        .await?;
        self.object = Some(object);
        self.left.start += len;
        Ok(Buffer::from(piece))
    }
}
