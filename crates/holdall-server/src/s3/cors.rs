//! A bucket's rules for other origins, as clients set and see them. `cors.rs` follows them.

use crate::objects::{records, records::Rule};
use crate::s3::cross::check;
use crate::s3::error::{blocking, from_store};
use crate::s3::{Answer, Server};
use s3s::dto::{
    CORSRule, DeleteBucketCorsInput, DeleteBucketCorsOutput, GetBucketCorsInput,
    GetBucketCorsOutput, PutBucketCorsInput, PutBucketCorsOutput,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

fn taken(rule: CORSRule) -> Rule {
    Rule {
        id: rule.id,
        origins: rule.allowed_origins,
        methods: rule.allowed_methods,
        headers: rule.allowed_headers.unwrap_or_default(),
        expose: rule.expose_headers.unwrap_or_default(),
        max_age: rule.max_age_seconds,
    }
}

fn told(rule: Rule) -> CORSRule {
    CORSRule {
        id: rule.id,
        allowed_origins: rule.origins,
        allowed_methods: rule.methods,
        allowed_headers: Some(rule.headers).filter(|names| !names.is_empty()),
        expose_headers: Some(rule.expose).filter(|names| !names.is_empty()),
        max_age_seconds: rule.max_age,
    }
}

impl Server {
    pub(super) async fn bucket_cors(
        &self,
        req: S3Request<GetBucketCorsInput>,
    ) -> Answer<GetBucketCorsOutput> {
        let bucket = self.objects.catalog.bucket(&req.input.bucket)?;
        let rules = blocking(move || {
            let reader = bucket.served.read()?;
            records::bucket_cors(&reader, &bucket.name).map_err(from_store)
        })
        .await?;
        let rules = rules.ok_or_else(|| s3_error!(NoSuchCORSConfiguration))?;
        let cors_rules = Some(rules.into_iter().map(told).collect());
        Ok(S3Response::new(GetBucketCorsOutput { cors_rules }))
    }

    pub(super) async fn put_bucket_cors(
        &self,
        req: S3Request<PutBucketCorsInput>,
    ) -> Answer<PutBucketCorsOutput> {
        let rules = req.input.cors_configuration.cors_rules;
        let rules: Vec<Rule> = rules.into_iter().map(taken).collect();
        check(&rules)?;
        self.set_bucket_cors(&req.input.bucket, Some(rules)).await?;
        Ok(S3Response::new(PutBucketCorsOutput::default()))
    }

    pub(super) async fn delete_bucket_cors(
        &self,
        req: S3Request<DeleteBucketCorsInput>,
    ) -> Answer<DeleteBucketCorsOutput> {
        self.set_bucket_cors(&req.input.bucket, None).await?;
        Ok(S3Response::new(DeleteBucketCorsOutput::default()))
    }

    async fn set_bucket_cors(&self, bucket: &str, rules: Option<Vec<Rule>>) -> S3Result<()> {
        let bucket = self.objects.catalog.bucket(bucket)?;
        blocking(move || {
            Ok(bucket.change(|tx| records::set_bucket_cors(tx, &bucket.name, rules.as_ref()))?)
        })
        .await
    }
}
