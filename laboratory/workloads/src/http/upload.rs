//! Requests of more than one step: multipart uploads, and inserts.

use super::client::{Answer, Client};
use super::content::Content;
use super::xml;
use anyhow::{Context as _, Result, ensure};
use http::Method;
use std::fmt::Write as _;

/// Begins an upload and returns its id.
///
/// # Errors
/// Those of the request.
pub async fn create(client: &mut Client, key: &str) -> Result<String> {
    let line = client.signer.object(rusty_s3::Method::Post, key, &[("uploads", "")])?;
    let (_, text) = client.done(Method::POST, line, Content::none()).await?;
    Ok(xml::first(&text, "UploadId").context("an answer without an upload's id")?.to_owned())
}

/// Uploads part `number`, from 1 on.
///
/// # Errors
/// Those of the request.
pub async fn part(
    client: &mut Client,
    key: &str,
    id: &str,
    number: u64,
    content: Content,
) -> Result<Answer> {
    let number = number.to_string();
    let query = [("partNumber", &*number), ("uploadId", id)];
    let line = client.signer.object(rusty_s3::Method::Put, key, &query)?;
    Ok(client.done(Method::PUT, line, content).await?.0)
}

/// Makes an object of parts 1, 2, …, which have these ETags. Returns its ETag.
///
/// # Errors
/// Those of the request, also one that comes in the body of an answer that began as a success.
pub async fn complete(
    client: &mut Client,
    key: &str,
    id: &str,
    etags: &[String],
) -> Result<(Answer, String)> {
    let mut body = "<CompleteMultipartUpload>".to_owned();
    for (i, etag) in etags.iter().enumerate() {
        let number = i + 1;
        // Writing to a string cannot fail.
        let _ =
            write!(body, "<Part><PartNumber>{number}</PartNumber><ETag>\"{etag}\"</ETag></Part>");
    }
    body.push_str("</CompleteMultipartUpload>");
    let line = client.signer.object(rusty_s3::Method::Post, key, &[("uploadId", id)])?;
    let (answer, text) = client.done(Method::POST, line, Content::all(body.into())).await?;
    ensure!(!text.contains("<Error>"), "completing {key}: {text}");
    let etag = xml::first(&text, "ETag").context("a completion without an ETag")?;
    Ok((answer, xml::etag(etag)))
}

/// Numbers and ETags of an upload's parts.
///
/// # Errors
/// Those of the request.
pub async fn parts(client: &mut Client, key: &str, id: &str) -> Result<Vec<(u64, String)>> {
    let line = client.signer.object(rusty_s3::Method::Get, key, &[("uploadId", id)])?;
    let (_, text) = client.done(Method::GET, line, Content::none()).await?;
    let part = |part| {
        let number = xml::first(part, "PartNumber").context("a part without a number")?;
        let etag = xml::first(part, "ETag").context("a part without an ETag")?;
        Ok((number.parse()?, xml::etag(etag)))
    };
    xml::all(&text, "Part").map(part).collect()
}

/// Inserts into an object of Holdall's. Returns the object's new size; the answer has the new
/// ETag.
///
/// # Errors
/// Those of the request.
pub async fn insert(
    client: &mut Client,
    key: &str,
    at: u64,
    content: Content,
) -> Result<(Answer, u64)> {
    let at = at.to_string();
    let query = [("at", &*at), ("holdall", "insert")];
    let line = client.signer.object(rusty_s3::Method::Post, key, &query)?;
    let (answer, text) = client.done(Method::POST, line, content).await?;
    let told: serde_json::Value = serde_json::from_str(&text)?;
    let size = told["size"].as_u64().with_context(|| format!("no size in {text}"))?;
    Ok((answer, size))
}
