"""What boto3 asks of a server beyond the usual: forms, addresses, parts, sums, settings."""

import base64
import hashlib
import sys
import time
import urllib.error
import urllib.request
import uuid

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

URL = sys.argv[1]
BUCKET = "boto3-more"
MIB = 1 << 20


def refused(code, call, **arguments):
    """The call fails, and with this code."""
    try:
        call(**arguments)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, e
        return
    raise AssertionError(f"{code} was expected")


def form(address, fields, body):
    """Sends a form as a browser does; its status."""
    edge = uuid.uuid4().hex
    lines = []
    for name, value in fields.items():
        lines.append(f'--{edge}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n')
    lines.append(f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n')
    data = "".join(lines).encode() + body + f"\r\n--{edge}--\r\n".encode()
    request = urllib.request.Request(address, data, method="POST")
    request.add_header("Content-Type", f"multipart/form-data; boundary={edge}")
    try:
        return urllib.request.urlopen(request).status
    except urllib.error.HTTPError as e:
        return e.code


def forms(s3):
    conditions = [["content-length-range", 1, 10], {"success_action_status": "201"}]
    signed = s3.generate_presigned_post(
        BUCKET, "form", Fields={"success_action_status": "201"}, Conditions=conditions
    )
    assert form(signed["url"], signed["fields"], b"of a form") == 201
    assert s3.get_object(Bucket=BUCKET, Key="form")["Body"].read() == b"of a form"
    assert form(signed["url"], signed["fields"], b"more than ten bytes") == 400
    changed = {**signed["fields"], "x-amz-signature": "0" * 64}
    assert form(signed["url"], changed, b"x") == 403


def addresses(s3):
    put = s3.generate_presigned_url("put_object", {"Bucket": BUCKET, "Key": "signed"})
    urllib.request.urlopen(urllib.request.Request(put, b"by address", method="PUT"))
    get = {"Bucket": BUCKET, "Key": "signed", "ResponseContentType": "text/x-other"}
    with urllib.request.urlopen(s3.generate_presigned_url("get_object", get)) as got:
        assert got.read() == b"by address" and got.headers["Content-Type"] == "text/x-other"
    for seconds, status in ((1, 403), (8 * 24 * 3600, 400)):
        address = s3.generate_presigned_url("get_object", get, ExpiresIn=seconds)
        if seconds == 1:
            time.sleep(2.5)
        try:
            urllib.request.urlopen(address)
            raise AssertionError(f"an address of {seconds} seconds was taken")
        except urllib.error.HTTPError as e:
            assert e.code == status, (seconds, e.code)


def parts(s3):
    begun = s3.create_multipart_upload(Bucket=BUCKET, Key="parts", ChecksumAlgorithm="SHA256")
    upload = {"Bucket": BUCKET, "Key": "parts", "UploadId": begun["UploadId"]}
    bodies, done = [b"a" * (5 * MIB), b"b" * (6 * MIB), b"c"], []
    for number, body in enumerate(bodies, 1):
        part = s3.upload_part(
            **upload, PartNumber=number, Body=body, ChecksumAlgorithm="SHA256"
        )
        named = {"PartNumber": number, "ETag": part["ETag"]}
        done.append({**named, "ChecksumSHA256": part["ChecksumSHA256"]})
    pages = s3.get_paginator("list_parts").paginate(**upload, PaginationConfig={"PageSize": 2})
    assert [p["Size"] for page in pages for p in page["Parts"]] == [len(b) for b in bodies]
    found = s3.list_multipart_uploads(Bucket=BUCKET)["Uploads"]
    assert [u["Key"] for u in found] == ["parts"] and found[0]["Owner"]["ID"] == "holdall"
    wrong = {"Parts": [{**done[0], "ETag": '"00"'}, *done[1:]]}
    refused("InvalidPart", s3.complete_multipart_upload, **upload, MultipartUpload=wrong)
    back = {"Parts": done[::-1]}
    refused("InvalidPartOrder", s3.complete_multipart_upload, **upload, MultipartUpload=back)
    s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": done})
    second = s3.get_object(Bucket=BUCKET, Key="parts", PartNumber=2)
    assert second["Body"].read() == bodies[1] and second["PartsCount"] == 3
    about = s3.get_object_attributes(
        Bucket=BUCKET, Key="parts", ObjectAttributes=["ETag", "ObjectParts", "ObjectSize", "Checksum"]
    )
    assert about["ObjectSize"] == sum(map(len, bodies)) and '"' not in about["ETag"]
    assert [p["Size"] for p in about["ObjectParts"]["Parts"]] == [len(b) for b in bodies]
    assert about["Checksum"]["ChecksumType"] == "COMPOSITE"


def sums(s3):
    for name in ("CRC32", "SHA1", "SHA256"):
        key, body = f"sum-{name}", name.encode()
        s3.put_object(Bucket=BUCKET, Key=key, Body=body, ChecksumAlgorithm=name)
        head = s3.head_object(Bucket=BUCKET, Key=key, ChecksumMode="ENABLED")
        assert head[f"Checksum{name}"], head
    wrong = base64.b64encode(hashlib.sha256(b"other").digest()).decode()
    refused("BadDigest", s3.put_object, Bucket=BUCKET, Key="w", Body=b"x", ChecksumSHA256=wrong)
    refused("BadDigest", s3.put_object, Bucket=BUCKET, Key="w", Body=b"x",
            ContentMD5=base64.b64encode(hashlib.md5(b"other").digest()).decode())
    refused("404", s3.head_object, Bucket=BUCKET, Key="w")


def settings(s3):
    tags = [{"Key": "a", "Value": "b c"}]
    s3.put_object(Bucket=BUCKET, Key="t", Body=b"", Tagging="x=y")
    assert s3.get_object_tagging(Bucket=BUCKET, Key="t")["TagSet"] == [{"Key": "x", "Value": "y"}]
    s3.put_bucket_tagging(Bucket=BUCKET, Tagging={"TagSet": tags})
    assert s3.get_bucket_tagging(Bucket=BUCKET)["TagSet"] == tags
    s3.put_object_acl(Bucket=BUCKET, Key="t", ACL="private")
    refused("AccessControlListNotSupported", s3.put_object_acl, Bucket=BUCKET, Key="t",
            ACL="public-read")
    refused("AccessDenied", s3.list_objects_v2, Bucket=BUCKET,
            ExpectedBucketOwner="123456789012")
    refused("NoSuchBucketPolicy", s3.get_bucket_policy, Bucket=BUCKET)
    try:
        s3.get_object(Bucket=BUCKET, Key="nothing")
    except s3.exceptions.NoSuchKey as e:
        assert e.response["ResponseMetadata"]["RequestId"]


def conditions(s3):
    put = s3.put_object(Bucket=BUCKET, Key="c", Body=b"1", CacheControl="no-cache",
                        Metadata={"k": "v"}, ContentEncoding="gzip")
    refused("PreconditionFailed", s3.put_object, Bucket=BUCKET, Key="c", IfMatch='"0"')
    s3.put_object(Bucket=BUCKET, Key="c", Body=b"12", IfMatch=put["ETag"])
    refused("PreconditionFailed", s3.delete_object, Bucket=BUCKET, Key="c", IfMatch=put["ETag"])
    refused("InvalidRange", s3.get_object, Bucket=BUCKET, Key="c", Range="bytes=5-9")
    last = s3.get_object(Bucket=BUCKET, Key="c", Range="bytes=-1")
    assert last["Body"].read() == b"2" and last["ContentRange"] == "bytes 1-1/2"
    source = {"Bucket": BUCKET, "Key": "c"}
    s3.copy_object(Bucket=BUCKET, Key="d", CopySource=source, Metadata={"n": "m"},
                   MetadataDirective="REPLACE")
    assert s3.head_object(Bucket=BUCKET, Key="d")["Metadata"] == {"n": "m"}
    keys = [{"Key": "c"}, {"Key": "d"}, {"Key": "never there"}]
    assert len(s3.delete_objects(Bucket=BUCKET, Delete={"Objects": keys})["Deleted"]) == 3


def main():
    s3 = boto3.client("s3", config=Config(signature_version="s3v4"))
    s3.create_bucket(Bucket=BUCKET)
    for work in (forms, addresses, parts, sums, settings, conditions):
        work(s3)
        print(f"boto3, {work.__name__}: passed")
    refused("BucketNotEmpty", s3.delete_bucket, Bucket=BUCKET)


main()
