//! Holdall over buckets: objects that many processes use at once, and backups of a store file.
//!
//! [`BucketStore`] keeps named objects in a bucket of any S3-compatible server that passes the
//! [`probe()`]. It has no transactions over several objects, no snapshot of all and no OIDs: each object
//! is linearizable by itself. [`blocking::BucketStore`] has the same calls without `async`. See
//! docs/bucket.md and docs/bucket-format.md.
//!
//! # Backups
//!
//! [`Bucket`] is a place that holds the backups of one store. [`Bucket::back_up`] adds a whole one, or
//! only what changed since the newest; [`follow()`] adds one every few seconds; [`Bucket::parts`] gives
//! what [`holdall::restore`] makes a store of; [`Keep`] says which of them stay. See docs/backup.md.
//!
//! ```
//! use holdall::Store;
//! use holdall_bucket::{Access, Bucket, Settings, Which};
//! use std::{ops::ControlFlow::Continue, sync::Arc};
//! # let dir = std::env::temp_dir().join(format!("holdall-bucket-{}", std::process::id()));
//! # let _ = std::fs::remove_dir_all(&dir);
//! # std::fs::create_dir_all(&dir).unwrap();
//! let mut store = Store::create(dir.join("photos.holdall"))?;
//! store.write(|tx| tx.put("a", b"1"))?;
//! // Or `s3://backups/photos`.
//! let place = format!("file://{}/place", dir.display());
//! let bucket = Arc::new(Bucket::open(&place, &Access::default())?);
//! bucket.back_up(&mut store, Settings::default(), &mut |_| Continue(()))?;
//! holdall::restore(dir.join("again"), bucket.parts(Which::Newest)?, &mut |_| Continue(()))?;
//! assert_eq!(Store::open(dir.join("again"))?.get("a")?.unwrap(), b"1");
//! # drop(store);
//! # std::fs::remove_dir_all(&dir).unwrap();
//! # Ok::<(), holdall::Error>(())
//! ```
//!
//! What lies there, under the prefix of the place:
//!
//! | object | what |
//! |---|---|
//! | `holdall.json` | what the place is for, and of which store |
//! | `parts/BACKUP/PART` | a part of a backup's stream, some MiB |
//! | `unfinished/BACKUP` | the head of a backup that has parts and is not whole yet |
//! | `backups/NAME.json` | the parts of a whole backup; written last, and never over another |

mod access;
mod address;
mod at;
pub mod backend;
mod backups;
pub mod blocking;
mod collect;
pub mod format;
#[doc(hidden)]
pub mod mutation;
mod probe;
mod refusal;
mod role;
pub mod store;

pub use access::{Access, Keys};
pub use backups::{
    BackedUp, Base, Bucket, Event, Follow, Followed, Keep, Listed, Pruned, Settings, Which, follow,
    is_bucket,
};
pub use collect::{BucketProblem, BucketStat, CollectOptions, Collected, Compacted, Verified};
pub use probe::{Check, ProbeReport, Progress, probe, probe_peer, probe_s3};
pub use store::{BucketStore, Splice};
