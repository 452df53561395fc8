//! Contestants that speak to the server themselves: Holdall, and the S3 client alone.
//!
//! Owns: [`Peer`], what all contestants do.

use super::Place;
use crate::http::{ACCESS_KEY, BUCKET, REGION, SECRET_KEY};
use anyhow::{Context as _, Result, ensure};
use bytes::Bytes;
use futures::{StreamExt as _, TryStreamExt as _};
use holdall_bucket::backend::S3;
use holdall_bucket::blocking::BucketStore;
use holdall_bucket::store::PutOptions;
use holdall_bucket::{Access, Keys};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path as Key;
use object_store::{ObjectStore as _, ObjectStoreExt as _, PutPayload};
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

/// Bytes of a part of an upload, and of a range.
const PART: usize = 8 << 20;
/// Requests under way together.
const TOGETHER: usize = 8;
/// How long an object may take to come.
const PATIENCE: Duration = Duration::from_secs(300);

/// What a contestant does. Objects are durable when a call returns.
pub trait Peer: Sync {
    /// Stores an object under a new name.
    ///
    /// # Errors
    /// Those of the contestant, as everywhere here.
    fn put(&self, name: &str, bytes: &Bytes) -> Result<()>;

    /// Reads an object in order, and gives each piece.
    ///
    /// # Errors
    /// As above.
    fn get(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<()>;

    /// Puts bytes into the middle of an object.
    ///
    /// # Errors
    /// As above.
    fn insert(&self, name: &str, at: u64, bytes: &Bytes) -> Result<()>;

    /// Forgets what it has in memory of objects' bytes.
    ///
    /// # Errors
    /// As above.
    fn forget(&self) -> Result<()> {
        Ok(())
    }

    /// Whether an insert costs as much as a put of the rest, so that few are made.
    fn rewrites(&self) -> bool {
        false
    }

    /// The command that stores all files of a directory, if there is one.
    fn import(&self, _dir: &Path) -> Option<Command> {
        None
    }
}

/// A store in the bucket.
#[derive(Debug)]
pub struct Holdall {
    store: BucketStore,
    place: Place,
}

const STORE: &str = "store";

fn keys() -> [(&'static str, &'static str); 3] {
    [
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
        ("AWS_REGION", REGION),
    ]
}

fn access(place: &Place) -> Access {
    Access {
        endpoint: Some(place.endpoint.clone()),
        region: Some(REGION.into()),
        keys: Some(Keys { id: ACCESS_KEY.into(), secret: SECRET_KEY.into(), token: None }),
        ..Access::default()
    }
}

/// Has the command probe the server.
pub fn probe(program: &Path, place: &Place) -> Result<()> {
    let at = format!("s3://{BUCKET}/probed");
    let mut command = Command::new(program);
    command.args(["bucket", "probe", &at, "--endpoint", &place.endpoint]).envs(keys());
    ensure!(command.stdout(Stdio::null()).status()?.success(), "the server fails the probe");
    Ok(())
}

/// What `rclone` learns of the server.
pub fn rclone(command: &mut Command, endpoint: &str) {
    command.envs(keys()).env("RCLONE_S3_PROVIDER", "Other").env("RCLONE_S3_ENV_AUTH", "true");
    command.env("RCLONE_S3_ENDPOINT", endpoint).env_remove("AWS_CA_BUNDLE");
}

impl Holdall {
    /// Made by the command.
    pub fn create(place: &Place) -> Result<Self> {
        let at = format!("s3://{BUCKET}/{STORE}");
        let mut command = Command::new(&place.program);
        command.args(["bucket", "create", &at, "--endpoint", &place.endpoint]).envs(keys());
        let made = command.stdout(Stdio::null()).status()?;
        ensure!(made.success(), "the command makes no store in the bucket");
        Ok(Self { store: BucketStore::open_at(&at, &access(place))?, place: place.clone() })
    }
}

impl Peer for Holdall {
    fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        if bytes.len() <= PART {
            self.store.put(name, bytes.clone())?;
            return Ok(());
        }
        let mut writer = self.store.writer(name, PutOptions::default())?;
        writer.write_all(bytes)?;
        writer.finish()?;
        Ok(())
    }

    fn get(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let object = self.store.open(name)?.context("no such object")?;
        for piece in object.pieces(0..u64::MAX)? {
            take(&piece?);
        }
        Ok(())
    }

    fn insert(&self, name: &str, at: u64, bytes: &Bytes) -> Result<()> {
        self.store.insert(name, at, bytes.clone())?;
        Ok(())
    }

    fn import(&self, dir: &Path) -> Option<Command> {
        let mut command = Command::new(&self.place.program);
        command.arg("import").arg(format!("s3://{BUCKET}/{STORE}")).arg(dir);
        command.args(["--prefix", "imported/", "--endpoint", &self.place.endpoint]).envs(keys());
        Some(command)
    }
}

/// The client alone.
#[derive(Debug)]
pub struct Raw {
    client: Arc<AmazonS3>,
    runtime: Runtime,
    place: Place,
}

impl Raw {
    /// Reached at `place`.
    pub fn new(place: &Place) -> Result<Self> {
        // Sets up the encryption of connections, of which the process has one.
        S3::open(&format!("s3://{BUCKET}/{STORE}"), &access(place))?;
        let builder = AmazonS3Builder::new().with_endpoint(&place.endpoint).with_allow_http(true);
        let builder = builder.with_access_key_id(ACCESS_KEY).with_secret_access_key(SECRET_KEY);
        let client = builder.with_region(REGION).with_bucket_name(BUCKET).build()?;
        let threads =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        Ok(Self { client: Arc::new(client), runtime: threads?, place: place.clone() })
    }

    /// Waits until an object is there with this size.
    pub fn wait_for(&self, name: &str, len: u64) -> Result<()> {
        let key = Key::from(name);
        let begun = Instant::now();
        loop {
            match self.runtime.block_on(self.client.head(&key)) {
                Ok(found) if found.size == len => return Ok(()),
                Ok(_) | Err(object_store::Error::NotFound { .. }) => {}
                Err(e) => return Err(e.into()),
            }
            ensure!(begun.elapsed() < PATIENCE, "{name} does not come into the bucket");
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    async fn upload(&self, key: &Key, bytes: &Bytes) -> object_store::Result<()> {
        let mut upload = self.client.put_multipart(key).await?;
        let parts: Vec<_> = (0..bytes.len())
            .step_by(PART)
            .map(|at| upload.put_part(bytes.slice(at..bytes.len().min(at + PART)).into()))
            .collect();
        let parts = futures::stream::iter(parts).buffer_unordered(TOGETHER);
        parts.try_collect::<Vec<()>>().await?;
        upload.complete().await.map(drop)
    }
}

impl Peer for Raw {
    fn put(&self, name: &str, bytes: &Bytes) -> Result<()> {
        let key = Key::from(name);
        self.runtime.block_on(async {
            match bytes.len() {
                0..=PART => self.client.put(&key, PutPayload::from(bytes.clone())).await.map(drop),
                _ => self.upload(&key, bytes).await,
            }
        })?;
        Ok(())
    }

    fn get(&self, name: &str, take: &mut dyn FnMut(&[u8])) -> Result<()> {
        let key = Key::from(name);
        self.runtime.block_on(async {
            let first = self.client.get_opts(
                &key,
                object_store::GetOptions {
                    range: Some((0..PART as u64).into()),
                    ..object_store::GetOptions::default()
                },
            );
            // The first answer has the size.
            let first = first.await?;
            let len = first.meta.size;
            take(&first.bytes().await?);
            let ranges = (PART as u64..len).step_by(PART).map(|at| at..len.min(at + PART as u64));
            let reads = ranges.map(|range| self.client.get_range(&key, range));
            let mut reads = futures::stream::iter(reads).buffered(TOGETHER);
            while let Some(bytes) = reads.try_next().await? {
                take(&bytes);
            }
            Ok::<(), object_store::Error>(())
        })?;
        Ok(())
    }

    /// A put of 64 KiB, with which inserts are compared.
    fn insert(&self, _name: &str, at: u64, _bytes: &Bytes) -> Result<()> {
        self.put(&format!("inserted/{at}"), &Bytes::from(vec![1; 64 << 10]))
    }

    fn import(&self, dir: &Path) -> Option<Command> {
        let mut command = Command::new(&self.place.program);
        let remote = format!(":s3:{BUCKET}/imported");
        command.args(["copy", "--transfers", "16", "--quiet"]).arg(dir).arg(remote);
        rclone(&mut command, &self.place.endpoint);
        Some(command)
    }
}
