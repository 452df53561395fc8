//! The calls of a task that change nothing.

use super::Worker;
use crate::history::{now, told};
use crate::units::{UNIT, runs};
use bytes::Bytes;
use holdall::Result;
use holdall_bucket::store::ListNames;
use rand::Rng;
use serde_json::json;
use std::time::Duration;

impl Worker {
    /// Reads all names.
    pub(crate) async fn last(mut self) -> Result<()> {
        self.list().await?;
        let folder = self.folder();
        for name in 0..self.names {
            self.get(&format!("{folder}n{name:02}")).await?;
        }
        Ok(())
    }

    /// Reads all of a version.
    pub(super) async fn get(&mut self, name: &str) -> Result<()> {
        self.read(name, None, "get").await
    }

    /// Opens a version, and reads it after a while: longer than the grace, at times.
    pub(super) async fn hold(&mut self, name: &str) -> Result<()> {
        let longest = if self.chance.one_in(3) { self.grace + 4 } else { 2 };
        let wait = self.chance.random.random_range(0..=longest * 1000);
        self.read(name, Some(Duration::from_millis(wait)), "hold").await
    }

    async fn read(&mut self, name: &str, wait: Option<Duration>, op: &str) -> Result<()> {
        let call = self.history.call(self.task, json!({"op": op, "name": name}))?;
        let opened = self.store.open(name).await;
        let at = now();
        let mut object = match opened {
            Ok(Some(object)) => object,
            Ok(None) => return self.history.returned(call, Some(at), json!({"is": "none"})),
            Err(e) => {
                return self.history.returned(call, Some(at), told::<()>(Err(e), |()| json!({})));
            }
        };
        let (version, size) = (object.info().version, object.size());
        self.know(name, size / UNIT, Some(version));
        if let Some(wait) = wait {
            tokio::time::sleep(wait).await;
        }
        let read = object.read(0..u64::MAX).await;
        let mut answer = told(read, |bytes: Bytes| json!({"content": runs(&bytes)}));
        answer["version"] = json!(version.to_string());
        answer["size"] = json!(size);
        // What was opened then is what it is, however late its bytes come.
        self.history.returned(call, Some(at), answer)
    }

    pub(super) async fn get_range(&mut self, name: &str) -> Result<()> {
        let range = self.chance.range(self.of(name).units);
        let what = json!({"op": "range", "name": name, "from": range.start, "to": range.end});
        let call = self.history.call(self.task, what)?;
        let got = self.store.get_range(name, range.start * UNIT..range.end * UNIT).await;
        let answer = match got {
            Ok(None) => json!({"is": "none"}),
            got => told(got, |bytes| json!({"content": runs(&bytes.unwrap_or_default())})),
        };
        self.history.returned(call, None, answer)
    }

    pub(super) async fn info(&mut self, name: &str) -> Result<()> {
        let call = self.history.call(self.task, json!({"op": "info", "name": name}))?;
        let answer = match self.store.info(name).await {
            Ok(None) => json!({"is": "none"}),
            Ok(Some(info)) => {
                self.know(name, info.size / UNIT, Some(info.version));
                json!({"is": "ok", "version": info.version.to_string(), "size": info.size})
            }
            Err(e) => told::<()>(Err(e), |()| json!({})),
        };
        self.history.returned(call, None, answer)
    }

    pub(super) async fn list(&mut self) -> Result<()> {
        let prefix = self.folder();
        let call = self.history.call(self.task, json!({"op": "list", "prefix": prefix}))?;
        let what = ListNames { prefix, ..ListNames::default() };
        let listed = self.store.list(&what).await;
        self.history.returned(call, None, told(listed, |names| json!({"names": names.names})))
    }
}
