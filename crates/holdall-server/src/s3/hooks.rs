//! What `s3s` asks of the server before it takes a request apart: keys, hosts, names.

use crate::http::host::Domain;
use crate::objects::catalog::is_bucket_name;
use crate::users::{User, Users};
use s3s::auth::{Credentials, S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::validation::NameValidation;
use s3s::{S3Result, s3_error};
use std::sync::Arc;

/// Which names buckets may have.
#[derive(Debug, Clone, Copy)]
pub struct BucketNames;

impl NameValidation for BucketNames {
    fn validate_bucket_name(&self, name: &str) -> bool {
        is_bucket_name(name)
    }
}

impl Users {
    /// The user who signed a request.
    ///
    /// # Errors
    /// AccessDenied for a request without a signature if those are not allowed.
    pub fn signed(&self, by: Option<&Credentials>) -> S3Result<Arc<User>> {
        Ok(self.find(by.map(|credentials| credentials.access_key.as_str()))?)
    }
}

#[async_trait::async_trait]
impl S3Auth for Users {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        let unknown = || s3_error!(InvalidAccessKeyId, "no user has this access key");
        self.secret(access_key).ok_or_else(unknown)
    }
}

impl S3Host for Domain {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let found = VirtualHost::new(self.name());
        Ok(match self.bucket(host) {
            Some(bucket) => found.with_bucket(bucket),
            None => found,
        })
    }
}
