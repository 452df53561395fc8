//! Endpoint and credentials, from where users of aws-cli and rclone have them.
//!
//! Owns: [`Access`], and in which order the environment, AWS's files and rclone's are looked at. What
//! such a file says and this does not understand is refused.

use crate::role::Role;
use holdall::{Error, Result};
use ini::{Ini, Properties};
use object_store::aws::AmazonS3Builder;
use object_store::{ClientOptions, RetryConfig};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What there is to reach a bucket beside its name. Empty: all comes from the environment, and from
/// the default profile of aws-cli.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The server's address; one that is not AWS has one.
    pub endpoint: Option<String>,
    /// The region.
    pub region: Option<String>,
    /// A profile in the files of aws-cli.
    pub profile: Option<String>,
    /// A remote in the configuration of rclone, instead.
    pub remote: Option<String>,
    /// Keys that the program has itself; they come before all others.
    pub keys: Option<Keys>,
}

/// Keys of a program's own. The secret does not show in debug output.
#[derive(Clone)]
pub struct Keys {
    /// The access key's id.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// The token of keys that end.
    pub token: Option<String>,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").field("id", &self.id).finish_non_exhaustive()
    }
}

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    endpoint: Option<String>,
    region: Option<String>,
    /// Key, secret, and token.
    keys: Option<(String, String, Option<String>)>,
}

/// Where environment variables come from.
type Environment<'e> = &'e dyn Fn(&str) -> Option<String>;

impl Access {
    /// What makes a client of `bucket`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a file cannot be read, lacks the profile or remote, or says what is not
    /// understood.
    pub(crate) fn builder(&self, bucket: &str) -> Result<AmazonS3Builder> {
        let environment = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let found = self.find(&environment)?;
        // What is left to it: tokens of containers, pods and machines.
        let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
        let region = found.region.unwrap_or_else(|| "us-east-1".into());
        builder = builder.with_region(region);
        if let Some(endpoint) = found.endpoint {
            let plain = endpoint.starts_with("http://");
            let options = ClientOptions::new().with_allow_http(plain);
            builder = builder.with_endpoint(endpoint).with_client_options(options);
        }
        let Some((key, secret, token)) = found.keys else { return of_role(builder) };
        builder = builder.with_access_key_id(key).with_secret_access_key(secret);
        if let Some(token) = token {
            builder = builder.with_token(token);
        }
        Ok(builder)
    }

    fn find(&self, environment: Environment<'_>) -> Result<Found> {
        let mut found = match &self.remote {
            Some(_) if self.profile.is_some() => {
                let text = "a profile of aws-cli and a remote of rclone exclude each other";
                return Err(Error::Invalid(text.into()));
            }
            Some(remote) => of_rclone(remote, environment)?,
            None => of_aws(self.profile.as_deref(), environment)?,
        };
        for (own, found) in
            [(&self.endpoint, &mut found.endpoint), (&self.region, &mut found.region)]
        {
            if own.is_some() {
                found.clone_from(own);
            }
        }
        if let Some(Keys { id, secret, token }) = self.keys.clone() {
            found.keys = Some((id, secret, token));
        }
        if let Some(endpoint) = &mut found.endpoint
            && !endpoint.contains("://")
        {
            *endpoint = format!("https://{endpoint}");
        }
        Ok(found)
    }
}

/// Leaves the keys to the role that the environment names.
fn of_role(builder: AmazonS3Builder) -> Result<AmazonS3Builder> {
    let retry = RetryConfig { max_retries: 1, ..RetryConfig::default() };
    let client = builder.clone().with_retry(retry).build();
    let client = client.map_err(|e| Error::Invalid(format!("reaching the bucket: {e}")))?;
    Ok(builder.with_credentials(Arc::new(Role(client.credentials().clone()))))
}

fn of_aws(profile: Option<&str>, environment: Environment<'_>) -> Result<Found> {
    let keys = match (environment("AWS_ACCESS_KEY_ID"), environment("AWS_SECRET_ACCESS_KEY")) {
        // A profile that was asked for comes before the environment's keys, as in aws-cli.
        (Some(key), Some(secret)) if profile.is_none() => {
            Some((key, secret, environment("AWS_SESSION_TOKEN")))
        }
        _ => None,
    };
    let mut found = Found {
        endpoint: environment("AWS_ENDPOINT_URL_S3").or_else(|| environment("AWS_ENDPOINT_URL")),
        region: environment("AWS_REGION").or_else(|| environment("AWS_DEFAULT_REGION")),
        keys,
    };
    let asked = profile.map(str::to_owned).or_else(|| environment("AWS_PROFILE"));
    let name = asked.as_deref().unwrap_or("default");
    let section = if name == "default" { name.to_owned() } else { format!("profile {name}") };
    let files = [
        (file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials", environment), name.to_owned()),
        (file("AWS_CONFIG_FILE", ".aws/config", environment), section),
    ];
    let mut there = false;
    for (path, section) in files.iter().filter_map(|(path, name)| Some((path.as_deref()?, name))) {
        let Some(ini) = read(path)? else { continue };
        let Some(properties) = ini.section(Some(section.as_str())) else { continue };
        there = true;
        let place = format!("[{section}] of {}", path.display());
        take_aws(&mut found, properties, &place)?;
    }
    if !there && let Some(name) = asked {
        let text = format!("there is no profile {name} in the files of aws-cli");
        return Err(Error::Invalid(text));
    }
    Ok(found)
}

/// Takes from a section what is not known yet.
fn take_aws(found: &mut Found, section: &Properties, place: &str) -> Result<()> {
    let get = |name: &str| section.get(name).map(str::to_owned);
    let other = |name: &&str| name.starts_with("sso_") || OTHER_WAYS.contains(name);
    if found.keys.is_none() {
        if let (Some(key), Some(secret)) = (get("aws_access_key_id"), get("aws_secret_access_key"))
        {
            found.keys = Some((key, secret, get("aws_session_token")));
        } else if let Some(way) = section.iter().map(|(name, _)| name).find(other) {
            return Err(Error::Invalid(format!(
                "{place} gets its keys by {way}, which holdall does not do; put them into the \
                 environment: `eval \"$(aws configure export-credentials --format env)\"`"
            )));
        }
    }
    if found.endpoint.is_none() {
        found.endpoint = get("endpoint_url");
        if found.endpoint.is_none() && get("services").is_some() {
            return Err(Error::Invalid(format!(
                "{place} names its endpoint under services, where holdall does not look; name it \
                 as endpoint_url there, or in AWS_ENDPOINT_URL_S3"
            )));
        }
    }
    if found.region.is_none() {
        found.region = get("region");
    }
    Ok(())
}

/// Ways to keys that aws-cli has and this has not.
const OTHER_WAYS: [&str; 5] =
    ["credential_process", "role_arn", "source_profile", "credential_source", "login_session"];

fn of_rclone(remote: &str, environment: Environment<'_>) -> Result<Found> {
    let path = file("RCLONE_CONFIG", ".config/rclone/rclone.conf", environment);
    let ini = path.as_deref().map(read).transpose()?.flatten();
    let section = ini.as_ref().and_then(|ini| ini.section(Some(remote)));
    let upper = remote.to_uppercase().replace('-', "_");
    let get = |name: &str| {
        let own = environment(&format!("RCLONE_CONFIG_{upper}_{}", name.to_uppercase()));
        own.or_else(|| section?.get(name).map(str::to_owned)).filter(|value| !value.is_empty())
    };
    let invalid = |text: String| Err(Error::Invalid(text));
    match get("type").as_deref() {
        Some("s3") => {}
        Some(other) => {
            return invalid(format!("rclone's remote {remote} is of type {other}, not s3"));
        }
        None => {
            let place = path.map_or_else(String::new, |path| format!(" in {}", path.display()));
            return invalid(format!("there is no remote {remote}{place}; see `rclone config`"));
        }
    }
    let of_environment = get("env_auth").as_deref() == Some("true");
    let keys = match (get("access_key_id"), get("secret_access_key")) {
        (Some(key), Some(secret)) => Some((key, secret, get("session_token"))),
        _ if of_environment => of_aws(get("profile").as_deref(), environment)?.keys,
        _ => return invalid(format!("rclone's remote {remote} has no access_key_id and secret")),
    };
    Ok(Found { endpoint: get("endpoint"), region: get("region"), keys })
}

/// The file that a variable names, or the one in the home directory.
fn file(variable: &str, otherwise: &str, environment: Environment<'_>) -> Option<PathBuf> {
    let own = environment(variable).map(PathBuf::from);
    own.or_else(|| environment("HOME").map(|home| Path::new(&home).join(otherwise)))
}

/// `None` if there is no such file.
fn read(path: &Path) -> Result<Option<Ini>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(e) => {
            return Err(Error::Io { action: format!("reading {}", path.display()), source: e });
        }
    };
    if text.lines().any(|line| line.starts_with("RCLONE_ENCRYPT_")) {
        let text = format!("{} is encrypted, which holdall does not read", path.display());
        return Err(Error::Invalid(text));
    }
    let parsed = Ini::load_from_str_noescape(&text);
    parsed.map(Some).map_err(|e| Error::Invalid(format!("{}: {e}", path.display())))
}

#[cfg(test)]
#[path = "tests/access.rs"]
mod tests;
