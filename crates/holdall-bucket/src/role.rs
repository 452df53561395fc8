//! Keys that come of a role of the machine, a container or a pod, if nothing else names any.
//!
//! Owns: [`Role`], which asks for them for seconds only: without a role often nobody answers.

use async_trait::async_trait;
use object_store::aws::{AwsCredential, AwsCredentialProvider};
use object_store::{CredentialProvider, Error, Result};
use std::sync::Arc;
use std::time::Duration;

/// How long a role is looked for.
const PATIENCE: Duration = Duration::from_secs(10);
/// What the error of no keys begins with.
pub(crate) const NO_KEYS: &str = "no credentials for the bucket";

/// Asks another provider, for a while.
#[derive(Debug)]
pub(crate) struct Role(pub(crate) AwsCredentialProvider);

#[async_trait]
impl CredentialProvider for Role {
    type Credential = AwsCredential;

    async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
        let why = match tokio::time::timeout(PATIENCE, self.0.get_credential()).await {
            Ok(Ok(found)) => return Ok(found),
            Ok(Err(e)) => e.to_string(),
            Err(_) => format!("nothing answers within {} seconds", PATIENCE.as_secs()),
        };
        let text = format!(
            "{NO_KEYS}: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or name a profile of aws-cli or \
             a remote of rclone that has them; nor has this machine a role ({why})"
        );
        Err(Error::Generic { store: "S3", source: text.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine's metadata service: it refuses, or never answers.
    #[derive(Debug)]
    struct Metadata {
        answers: bool,
    }

    #[async_trait]
    impl CredentialProvider for Metadata {
        type Credential = AwsCredential;

        async fn get_credential(&self) -> Result<Arc<AwsCredential>> {
            if !self.answers {
                std::future::pending::<()>().await;
            }
            Err(Error::Generic { store: "S3", source: "404 Not Found".into() })
        }
    }

    #[tokio::test(start_paused = true)]
    async fn missing_keys_are_reported_within_seconds() {
        for (answers, why) in [(true, "404 Not Found"), (false, "nothing answers within")] {
            let role = Role(Arc::new(Metadata { answers }));
            let asked = tokio::time::timeout(2 * PATIENCE, role.get_credential()).await.unwrap();
            let refused = asked.unwrap_err();
            assert!(crate::refusal::for_good(&refused));
            let error = crate::refusal::refused("s3://a/b", "reading holdall", refused);
            assert!(matches!(error, holdall::Error::Invalid(_)), "{error}");
            let text = error.to_string();
            assert!(text.contains("AWS_ACCESS_KEY_ID") && text.contains(why), "{text}");
        }
    }
}
