//! Tags, user metadata, keys: what clients say of objects, checked.

use crate::http::spelling::sound_pairs;
use crate::objects::{meta::Meta, side};
use crate::refusal::Why;
use crate::s3::Server;
use crate::s3::error::{blocking, from_store};
use s3s::dto::{
    DeleteObjectTaggingInput, DeleteObjectTaggingOutput, GetObjectTaggingInput,
    GetObjectTaggingOutput, Metadata, PutObjectTaggingInput, PutObjectTaggingOutput, Tag, Tagging,
};
use s3s::xml::{Deserialize as _, Deserializer};
use s3s::{S3Request, S3Response, S3Result, s3_error};
use std::collections::BTreeMap;

/// Most tags of an object, as S3 has it.
const MOST_TAGS: usize = 10;
/// Most tags of a bucket, as S3 has it.
const MOST_BUCKET_TAGS: usize = 50;
/// Most bytes of user metadata, keys and values together, as S3 has it.
const MOST_USER: usize = 2048;

/// User metadata, checked.
///
/// # Errors
/// MetadataTooLarge.
pub fn user_metadata(given: Option<Metadata>) -> S3Result<BTreeMap<String, String>> {
    let user: BTreeMap<_, _> = given.into_iter().flatten().collect();
    let len: usize = user.iter().map(|(key, value)| key.len() + value.len()).sum();
    if len > MOST_USER {
        return Err(s3_error!(MetadataTooLarge, "user metadata has at most {MOST_USER} bytes"));
    }
    Ok(user)
}

/// Tags of a bucket, checked.
///
/// # Errors
/// InvalidTag.
pub fn check_bucket_tags(tags: Vec<Tag>) -> S3Result<BTreeMap<String, String>> {
    check_tags(tags.into_iter().map(pair).collect(), MOST_BUCKET_TAGS)
}

fn pair(tag: Tag) -> (String, String) {
    (tag.key.unwrap_or_default(), tag.value.unwrap_or_default())
}

fn check_tags(tags: Vec<(String, String)>, most: usize) -> S3Result<BTreeMap<String, String>> {
    if tags.len() > most {
        return Err(s3_error!(InvalidTag, "there are at most {most} tags"));
    }
    let mut set = BTreeMap::new();
    for (key, value) in tags {
        if key.is_empty() || key.chars().count() > 128 || value.chars().count() > 256 {
            let text = "a tag's key has 1 to 128 characters, its value at most 256";
            return Err(s3_error!(InvalidTag, "{text}"));
        }
        if set.insert(key.clone(), value).is_some() {
            return Err(s3_error!(InvalidTag, "the tag {key} is there twice"));
        }
    }
    Ok(set)
}

/// Tags of a form, which are XML there, as the header x-amz-tagging has them.
///
/// # Errors
/// MalformedXML.
pub fn header_of(xml: &str) -> S3Result<String> {
    let xml = crate::s3::message::read(xml.as_bytes())?;
    let tags = Tagging::deserialize(&mut Deserializer::new(xml.as_bytes()));
    let tags = tags.map_err(|e| s3_error!(MalformedXML, "the field tagging: {e}"))?;
    let pairs = tags.tag_set.into_iter().map(pair);
    Ok(form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish())
}

/// Tags of the header x-amz-tagging, which has the form of a query.
///
/// # Errors
/// InvalidTag, InvalidArgument.
pub fn parse_header(header: Option<&str>) -> S3Result<BTreeMap<String, String>> {
    let bad = || s3_error!(InvalidArgument, "a % of x-amz-tagging is no escape, or not of UTF-8");
    let tags = sound_pairs(header.unwrap_or_default()).ok_or_else(bad)?;
    check_tags(tags, MOST_TAGS)
}

impl Server {
    /// Changes what is kept of an object, not its bytes.
    pub(super) async fn change_meta(
        &self,
        bucket: &str,
        key: String,
        change: impl FnOnce(&mut Meta) + Send + 'static,
    ) -> S3Result<()> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || {
            bucket
                .served
                .write(|tx| {
                    let found = tx.collection(&bucket.name)?.lookup(&key)?;
                    let missing = || Why::NoObject.says(format!("there is no object {key}"));
                    let oid = found.ok_or_else(missing)?;
                    let mut meta = side::meta_in(tx, oid)?;
                    change(&mut meta);
                    side::set_meta(tx, oid, &meta, bucket.served.attribute_bytes)
                })
                .map_err(from_store)
        })
        .await
    }

    pub(super) async fn put_tags(
        &self,
        req: S3Request<PutObjectTaggingInput>,
    ) -> S3Result<S3Response<PutObjectTaggingOutput>> {
        let input = req.input;
        let given = input.tagging.tag_set.into_iter();
        let tags = check_tags(given.map(pair).collect(), MOST_TAGS)?;
        self.change_meta(&input.bucket, input.key, |meta| meta.about.tags = tags).await?;
        Ok(S3Response::new(PutObjectTaggingOutput::default()))
    }

    pub(super) async fn delete_tags(
        &self,
        req: S3Request<DeleteObjectTaggingInput>,
    ) -> S3Result<S3Response<DeleteObjectTaggingOutput>> {
        let input = req.input;
        self.change_meta(&input.bucket, input.key, |meta| meta.about.tags.clear()).await?;
        Ok(S3Response::new(DeleteObjectTaggingOutput::default()))
    }

    pub(super) async fn tags(
        &self,
        req: S3Request<GetObjectTaggingInput>,
    ) -> S3Result<S3Response<GetObjectTaggingOutput>> {
        let found = self.find(&req.input.bucket, req.input.key).await?;
        let tag = |(key, value): (String, String)| Tag { key: Some(key), value: Some(value) };
        let tag_set = found.meta.about.tags.into_iter().map(tag).collect();
        Ok(S3Response::new(GetObjectTaggingOutput { tag_set, ..Default::default() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_of_a_header_are_decoded_and_checked() {
        let tags = parse_header(Some("a=1&b%20c=d+e&f")).unwrap();
        let expected = [("a", "1"), ("b c", "d e"), ("f", "")];
        assert!(tags.iter().map(|(k, v)| (k.as_str(), v.as_str())).eq(expected));
        assert!(parse_header(Some("a=1&a=2")).is_err());
        assert!(parse_header(Some("=1")).is_err());
        let many: Vec<_> = (0..11).map(|n| format!("k{n}=v")).collect();
        assert!(parse_header(Some(&many.join("&"))).is_err());
    }
}
