//! Places of backups in buckets: what the commands of backups share.
//!
//! Owns: [`Reach`], how a bucket is reached.

use std::path::Path;
use std::sync::Arc;

use holdall_bucket::{Access, Bucket, is_bucket};

use crate::failure::{Failure, Outcome};

/// How a bucket is reached.
#[derive(clap::Args, Default)]
pub struct Reach {
    /// Address of the S3 server, if it is not AWS
    #[arg(long, value_name = "URL")]
    endpoint: Option<String>,
    /// Region of the bucket
    #[arg(long, value_name = "NAME")]
    region: Option<String>,
    /// Profile of aws-cli that has the keys
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Remote of rclone that has endpoint and keys
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    remote: Option<String>,
}

impl Reach {
    /// The place that this names, if it names one in a bucket.
    pub fn place(&self, path: &Path) -> Outcome<Option<Arc<Bucket>>> {
        let Some(text) = path.to_str().filter(|text| is_bucket(text)) else { return Ok(None) };
        let access = Access {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            profile: self.profile.clone(),
            remote: self.remote.clone(),
        };
        Ok(Some(Arc::new(Bucket::open(text, &access)?)))
    }

    /// Refuses what says how to reach a bucket if there is none.
    pub fn must_be_unused(&self) -> Outcome {
        let given = [
            ("--endpoint", &self.endpoint),
            ("--region", &self.region),
            ("--profile", &self.profile),
            ("--remote", &self.remote),
        ];
        match given.iter().find(|(_, value)| value.is_some()) {
            None => Ok(()),
            Some((option, _)) => {
                let what = format!("{option} is of use with a bucket only");
                Err(Failure::new(what, "name a place as s3://BUCKET/PREFIX"))
            }
        }
    }
}
