"""Python's clients: boto3 with the edits of the extension; s3fs, pyarrow, duckdb if installed."""

import hashlib
import importlib.util
import json
import sys
import urllib.request
from pathlib import Path

import boto3
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError

URL, LARGE = sys.argv[1], sys.argv[2]


def edit(path, data=b"", **headers):
    request = AWSRequest("POST", f"{URL}{path}", data=data, headers=headers)
    S3SigV4Auth(boto3.Session().get_credentials(), "s3", "us-east-1").add_auth(request)
    url, headers = request.url, dict(request.headers)
    signed = urllib.request.Request(url, data, headers, method="POST")
    return json.load(urllib.request.urlopen(signed))


def with_boto3(s3):
    s3.create_bucket(Bucket="boto3-box")
    body = open(LARGE, "rb").read()
    s3.upload_file(LARGE, "boto3-box", "large")
    assert s3.get_object(Bucket="boto3-box", Key="large")["Body"].read() == body
    put = s3.put_object(Bucket="boto3-box", Key="k", Body=b"hello world", Metadata={"a": "b"})
    assert put["ETag"] == '"%s"' % hashlib.md5(b"hello world").hexdigest()
    done = edit("/boto3-box/k?holdall=insert&at=5", b", small", **{"If-Match": put["ETag"]})
    assert done["size"] == 18, done
    got = s3.get_object(Bucket="boto3-box", Key="k")
    assert got["Body"].read() == b"hello, small world" and got["ETag"] == done["etag"]
    assert got["Metadata"] == {"a": "b"}
    parts = {"parts": [{"key": "k", "range": "0-4"}, {"key": "large"}]}
    edit("/boto3-box/joined?holdall=concat", json.dumps(parts).encode())
    assert s3.get_object(Bucket="boto3-box", Key="joined")["Body"].read() == b"hello" + body
    try:
        s3.put_object(Bucket="boto3-box", Key="k", Body=b"x", IfNoneMatch="*")
        raise SystemExit("a put over an object that must not be there succeeded")
    except ClientError as e:
        assert e.response["Error"]["Code"] == "PreconditionFailed", e
    names = [f"many/{n:04}" for n in range(1200)]
    for name in names:
        s3.put_object(Bucket="boto3-box", Key=name, Body=name.encode())
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="boto3-box", Prefix="many/")
    assert [o["Key"] for page in pages for o in page["Contents"]] == names


def with_s3fs():
    import s3fs

    fs = s3fs.S3FileSystem(client_kwargs={"endpoint_url": URL})
    fs.mkdir("s3fs-box")
    with fs.open("s3fs-box/a/b.bin", "wb") as file:
        for n in range(30):
            file.write(bytes([n]) * 1_000_000)
    with fs.open("s3fs-box/a/b.bin", "rb") as file:
        file.seek(17_000_000)
        assert file.read(5) == bytes([17]) * 5
    assert fs.ls("s3fs-box") == ["s3fs-box/a"]
    fs.copy("s3fs-box/a/b.bin", "s3fs-box/c.bin")
    assert fs.size("s3fs-box/c.bin") == 30_000_000
    fs.rm("s3fs-box", recursive=True)


def with_pyarrow(s3):
    import pyarrow as pa
    import pyarrow.parquet as parquet
    from pyarrow import fs

    s3.create_bucket(Bucket="arrow-box")
    host = URL.split("//")[1]
    store = fs.S3FileSystem(endpoint_override=host, scheme="http", region="us-east-1")
    table = pa.table({"n": list(range(200_000)), "s": [str(n) for n in range(200_000)]})
    parquet.write_table(table, "arrow-box/t.parquet", filesystem=store, row_group_size=20_000)
    some = parquet.read_table("arrow-box/t.parquet", filesystem=store, columns=["n"],
                              filters=[("n", ">=", 150_000)])
    assert some.num_rows == 50_000


def with_duckdb():
    import duckdb

    db = duckdb.connect()
    # Of the package duckdb-extension-httpfs, or installed by duckdb itself.
    package = importlib.util.find_spec("duckdb_extension_httpfs")
    files = sorted(Path(package.origin).parent.rglob("*.duckdb_extension")) if package else []
    try:
        db.execute(f"LOAD '{files[-1]}'" if files else "LOAD httpfs")
    except duckdb.Error:
        print("duckdb: skipped, its extension httpfs is not installed")
        return False
    db.execute(f"SET s3_endpoint='{URL.split('//')[1]}'; SET s3_use_ssl=false")
    db.execute("SET s3_url_style='path'; SET s3_region='us-east-1'")
    rows = db.execute("SELECT count(*) FROM 's3://arrow-box/t.parquet' WHERE n < 10").fetchone()
    assert rows == (10,), rows
    db.execute("COPY (SELECT range n FROM range(500000)) TO 's3://arrow-box/u.parquet'")
    rows = db.execute("SELECT sum(n) FROM 's3://arrow-box/u.parquet'").fetchone()
    assert rows == (124999750000,), rows
    return True


def main():
    s3 = boto3.client("s3")
    with_boto3(s3)
    for name, work in (
        ("s3fs", with_s3fs),
        ("pyarrow", lambda: with_pyarrow(s3)),
        ("duckdb", with_duckdb),
    ):
        if importlib.util.find_spec(name) is None:
            print(f"{name}: skipped, not installed")
        else:
            skipped = work() is False
            if not skipped:
                print(f"{name}: passed")


main()
