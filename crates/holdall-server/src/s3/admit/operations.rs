//! The operations of S3: each by its method, its level and the parameters that select it.
//!
//! Owns: [`OPERATIONS`], the one list of what is offered and what is refused. docs/serve.md shows
//! it, and a test compares the two.

use Level::{Bucket, Object, Service};

/// What a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// The server.
    Service,
    /// A bucket.
    Bucket,
    /// An object.
    Object,
}

/// An operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its name, as S3 and `s3s` have it.
    pub name: &'static str,
    /// The method.
    pub method: &'static str,
    /// What its path names.
    pub level: Level,
    /// The parameters that select it, `KEY` or `KEY=VALUE`.
    pub query: &'static [&'static str],
    /// Further parameters that it takes; a star stands for all.
    pub parameters: &'static [&'static str],
    /// Whether the header x-amz-copy-source selects it.
    pub copies: bool,
    /// Whether it is offered. Others are answered 501.
    pub offered: bool,
}

const fn done(
    method: &'static str,
    level: Level,
    name: &'static str,
    query: &'static [&'static str],
    parameters: &'static [&'static str],
) -> Operation {
    Operation { name, method, level, query, parameters, copies: false, offered: true }
}

const fn copies(name: &'static str, query: &'static [&'static str]) -> Operation {
    let (method, level) = ("PUT", Object);
    Operation { name, method, level, query, parameters: &[], copies: true, offered: true }
}

const fn not(
    method: &'static str,
    level: Level,
    name: &'static str,
    query: &'static [&'static str],
) -> Operation {
    Operation { name, method, level, query, parameters: &["*"], copies: false, offered: false }
}

/// Parameters that set headers of the answer.
const READS: &[&str] = &[
    "partNumber",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "versionId",
];
const LISTS: &[&str] = &["delimiter", "encoding-type", "max-keys", "prefix", "marker"];
const LISTS_2: &[&str] = &[
    "continuation-token",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "max-keys",
    "prefix",
    "start-after",
];
const LISTS_VERSIONS: &[&str] =
    &["delimiter", "encoding-type", "key-marker", "max-keys", "prefix", "version-id-marker"];
const LISTS_UPLOADS: &[&str] =
    &["delimiter", "encoding-type", "key-marker", "max-uploads", "prefix", "upload-id-marker"];
const LISTS_BUCKETS: &[&str] = &["bucket-region", "continuation-token", "max-buckets", "prefix"];
const LISTS_PARTS: &[&str] = &["max-parts", "part-number-marker"];
/// minio-go asks for the time of the rules, too; there are none.
const LIFECYCLE: &[&str] = &["withUpdatedAt"];
const VERSION: &[&str] = &["versionId"];

/// All of them. A request that fits none is answered 501, too.
pub const OPERATIONS: &[Operation] = &[
    done("GET", Service, "ListBuckets", &[], LISTS_BUCKETS),
    done("PUT", Bucket, "CreateBucket", &[], &[]),
    done("HEAD", Bucket, "HeadBucket", &[], &[]),
    done("DELETE", Bucket, "DeleteBucket", &[], &[]),
    done("GET", Bucket, "ListObjects", &[], LISTS),
    done("GET", Bucket, "ListObjectsV2", &["list-type=2"], LISTS_2),
    done("GET", Bucket, "ListObjectVersions", &["versions"], LISTS_VERSIONS),
    done("GET", Bucket, "ListMultipartUploads", &["uploads"], LISTS_UPLOADS),
    done("GET", Bucket, "GetBucketLocation", &["location"], &[]),
    done("GET", Bucket, "GetBucketVersioning", &["versioning"], &[]),
    done("GET", Bucket, "GetBucketAcl", &["acl"], &[]),
    done("PUT", Bucket, "PutBucketAcl", &["acl"], &[]),
    done("GET", Bucket, "GetBucketCors", &["cors"], &[]),
    done("PUT", Bucket, "PutBucketCors", &["cors"], &[]),
    done("DELETE", Bucket, "DeleteBucketCors", &["cors"], &[]),
    done("GET", Bucket, "GetBucketTagging", &["tagging"], &[]),
    done("PUT", Bucket, "PutBucketTagging", &["tagging"], &[]),
    done("DELETE", Bucket, "DeleteBucketTagging", &["tagging"], &[]),
    done("GET", Bucket, "GetBucketEncryption", &["encryption"], &[]),
    done("GET", Bucket, "GetBucketLifecycleConfiguration", &["lifecycle"], LIFECYCLE),
    done("GET", Bucket, "GetBucketOwnershipControls", &["ownershipControls"], &[]),
    done("GET", Bucket, "GetBucketPolicy", &["policy"], &[]),
    done("GET", Bucket, "GetBucketReplication", &["replication"], &[]),
    done("GET", Bucket, "GetBucketWebsite", &["website"], &[]),
    done("GET", Bucket, "GetPublicAccessBlock", &["publicAccessBlock"], &[]),
    done("POST", Bucket, "DeleteObjects", &["delete"], &[]),
    done("POST", Bucket, "PostObject", &[], &[]),
    done("PUT", Object, "PutObject", &[], &[]),
    copies("CopyObject", &[]),
    done("GET", Object, "GetObject", &[], READS),
    done("HEAD", Object, "HeadObject", &[], READS),
    done("DELETE", Object, "DeleteObject", &[], VERSION),
    done("GET", Object, "GetObjectAttributes", &["attributes"], VERSION),
    done("GET", Object, "GetObjectAcl", &["acl"], VERSION),
    done("PUT", Object, "PutObjectAcl", &["acl"], VERSION),
    done("GET", Object, "GetObjectTagging", &["tagging"], VERSION),
    done("PUT", Object, "PutObjectTagging", &["tagging"], VERSION),
    done("DELETE", Object, "DeleteObjectTagging", &["tagging"], VERSION),
    done("POST", Object, "CreateMultipartUpload", &["uploads"], &[]),
    done("PUT", Object, "UploadPart", &["partNumber", "uploadId"], &[]),
    copies("UploadPartCopy", &["partNumber", "uploadId"]),
    done("POST", Object, "CompleteMultipartUpload", &["uploadId"], &[]),
    done("DELETE", Object, "AbortMultipartUpload", &["uploadId"], &[]),
    done("GET", Object, "ListParts", &["uploadId"], LISTS_PARTS),
    done("POST", Object, EDIT, &["holdall"], &["at", "range"]),
    not("GET", Service, "ListDirectoryBuckets", &["x-id=ListDirectoryBuckets"]),
    not("GET", Bucket, "CreateSession", &["session"]),
    not("GET", Bucket, "GetBucketAbac", &["abac"]),
    not("PUT", Bucket, "PutBucketAbac", &["abac"]),
    not("GET", Bucket, "GetBucketAccelerateConfiguration", &["accelerate"]),
    not("PUT", Bucket, "PutBucketAccelerateConfiguration", &["accelerate"]),
    not("GET", Bucket, "GetBucketAnalyticsConfiguration", &["analytics", "id"]),
    not("GET", Bucket, "ListBucketAnalyticsConfigurations", &["analytics"]),
    not("PUT", Bucket, "PutBucketAnalyticsConfiguration", &["analytics", "id"]),
    not("DELETE", Bucket, "DeleteBucketAnalyticsConfiguration", &["analytics", "id"]),
    not("PUT", Bucket, "PutBucketEncryption", &["encryption"]),
    not("DELETE", Bucket, "DeleteBucketEncryption", &["encryption"]),
    not("GET", Bucket, "GetBucketIntelligentTieringConfiguration", &["id", TIERING]),
    not("GET", Bucket, "ListBucketIntelligentTieringConfigurations", &[TIERING]),
    not("PUT", Bucket, "PutBucketIntelligentTieringConfiguration", &["id", TIERING]),
    not("DELETE", Bucket, "DeleteBucketIntelligentTieringConfiguration", &["id", TIERING]),
    not("GET", Bucket, "GetBucketInventoryConfiguration", &["id", "inventory"]),
    not("GET", Bucket, "ListBucketInventoryConfigurations", &["inventory"]),
    not("PUT", Bucket, "PutBucketInventoryConfiguration", &["id", "inventory"]),
    not("DELETE", Bucket, "DeleteBucketInventoryConfiguration", &["id", "inventory"]),
    not("PUT", Bucket, "PutBucketLifecycleConfiguration", &["lifecycle"]),
    not("DELETE", Bucket, "DeleteBucketLifecycle", &["lifecycle"]),
    not("GET", Bucket, "GetBucketLogging", &["logging"]),
    not("PUT", Bucket, "PutBucketLogging", &["logging"]),
    not("POST", Bucket, "CreateBucketMetadataConfiguration", &["metadataConfiguration"]),
    not("GET", Bucket, "GetBucketMetadataConfiguration", &["metadataConfiguration"]),
    not("DELETE", Bucket, "DeleteBucketMetadataConfiguration", &["metadataConfiguration"]),
    not("POST", Bucket, "CreateBucketMetadataTableConfiguration", &["metadataTable"]),
    not("GET", Bucket, "GetBucketMetadataTableConfiguration", &["metadataTable"]),
    not("DELETE", Bucket, "DeleteBucketMetadataTableConfiguration", &["metadataTable"]),
    not("PUT", Bucket, "UpdateBucketMetadataAnnotationTableConfiguration", &[ANNOTATIONS]),
    not("PUT", Bucket, "UpdateBucketMetadataInventoryTableConfiguration", &[INVENTORIES]),
    not("PUT", Bucket, "UpdateBucketMetadataJournalTableConfiguration", &[JOURNALS]),
    not("GET", Bucket, "GetBucketMetricsConfiguration", &["id", "metrics"]),
    not("GET", Bucket, "ListBucketMetricsConfigurations", &["metrics"]),
    not("PUT", Bucket, "PutBucketMetricsConfiguration", &["id", "metrics"]),
    not("DELETE", Bucket, "DeleteBucketMetricsConfiguration", &["id", "metrics"]),
    not("GET", Bucket, "GetBucketNotificationConfiguration", &["notification"]),
    not("PUT", Bucket, "PutBucketNotificationConfiguration", &["notification"]),
    not("PUT", Bucket, "PutBucketOwnershipControls", &["ownershipControls"]),
    not("DELETE", Bucket, "DeleteBucketOwnershipControls", &["ownershipControls"]),
    not("PUT", Bucket, "PutBucketPolicy", &["policy"]),
    not("DELETE", Bucket, "DeleteBucketPolicy", &["policy"]),
    not("GET", Bucket, "GetBucketPolicyStatus", &["policyStatus"]),
    not("PUT", Bucket, "PutBucketReplication", &["replication"]),
    not("DELETE", Bucket, "DeleteBucketReplication", &["replication"]),
    not("GET", Bucket, "GetBucketRequestPayment", &["requestPayment"]),
    not("PUT", Bucket, "PutBucketRequestPayment", &["requestPayment"]),
    not("PUT", Bucket, "PutBucketVersioning", &["versioning"]),
    not("PUT", Bucket, "PutBucketWebsite", &["website"]),
    not("DELETE", Bucket, "DeleteBucketWebsite", &["website"]),
    not("GET", Bucket, "GetObjectLockConfiguration", &["object-lock"]),
    not("PUT", Bucket, "PutObjectLockConfiguration", &["object-lock"]),
    not("PUT", Bucket, "PutPublicAccessBlock", &["publicAccessBlock"]),
    not("DELETE", Bucket, "DeletePublicAccessBlock", &["publicAccessBlock"]),
    not("POST", Bucket, "WriteGetObjectResponse", &["x-id=WriteGetObjectResponse"]),
    not("GET", Object, "GetObjectAnnotation", &["annotation"]),
    not("PUT", Object, "PutObjectAnnotation", &["annotation"]),
    not("DELETE", Object, "DeleteObjectAnnotation", &["annotation"]),
    not("GET", Object, "ListObjectAnnotations", &["annotations"]),
    not("PUT", Object, "UpdateObjectEncryption", &["encryption"]),
    not("GET", Object, "GetObjectLegalHold", &["legal-hold"]),
    not("PUT", Object, "PutObjectLegalHold", &["legal-hold"]),
    not("PUT", Object, "RenameObject", &["renameObject"]),
    not("POST", Object, "RestoreObject", &["restore"]),
    not("GET", Object, "GetObjectRetention", &["retention"]),
    not("PUT", Object, "PutObjectRetention", &["retention"]),
    not("POST", Object, "SelectObjectContent", &["select", "select-type"]),
    not("GET", Object, "GetObjectTorrent", &["torrent"]),
];

const TIERING: &str = "intelligent-tiering";
const ANNOTATIONS: &str = "metadataAnnotationTable";
const INVENTORIES: &str = "metadataInventoryTable";
const JOURNALS: &str = "metadataJournalTable";

/// The edits of the extension (`verbs.rs`), which S3 has no name for.
pub const EDIT: &str = "Edit";

/// The parameter and its value, if it must have one.
fn pair(selector: &'static str) -> (&'static str, Option<&'static str>) {
    selector.split_once('=').map_or((selector, None), |(key, value)| (key, Some(value)))
}

impl Operation {
    /// Whether the parameters that select it are all there.
    pub fn is_selected(&self, query: &[(String, String)]) -> bool {
        self.query.iter().all(|selector| {
            let (key, wanted) = pair(selector);
            let is = |(name, value): &(String, String)| {
                name == key && wanted.is_none_or(|wanted| value == wanted)
            };
            query.iter().any(is)
        })
    }

    /// Whether it takes a parameter of this name.
    pub fn takes(&self, name: &str) -> bool {
        let selects = self.query.iter().any(|selector| pair(selector).0 == name);
        selects || self.parameters.iter().any(|taken| *taken == "*" || *taken == name)
    }

    /// Whether its body is XML.
    pub fn takes_xml(&self) -> bool {
        matches!(
            self.name,
            "CompleteMultipartUpload"
                | "CreateBucket"
                | "DeleteObjects"
                | "PutBucketAcl"
                | "PutBucketCors"
                | "PutBucketTagging"
                | "PutObjectAcl"
                | "PutObjectTagging"
        )
    }
}
