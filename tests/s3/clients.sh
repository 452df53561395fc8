#!/usr/bin/env bash
# Tries S3 clients that are installed on `holdall serve`, one line for each.
#
#   tests/s3/clients.sh [HOLDALL]
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../serving.sh"
export AWS_ACCESS_KEY_ID=$HOLDALL_ACCESS_KEY AWS_SECRET_ACCESS_KEY=$HOLDALL_SECRET_KEY
export AWS_DEFAULT_REGION=us-east-1 AWS_ENDPOINT_URL=$url

with_rclone() {
    export RCLONE_CONFIG=$work/rclone.conf
    rclone config create h s3 provider=Other endpoint="$url" \
        access_key_id="$AWS_ACCESS_KEY_ID" secret_access_key="$AWS_SECRET_ACCESS_KEY" > /dev/null
    rclone sync "$work/tree" h:rclone
    rclone check --download "$work/tree" h:rclone
    echo more >> "$work/tree/large"
    rm "$work/tree/folder/7.txt"
    rclone sync "$work/tree" h:rclone
    rclone check "$work/tree" h:rclone
    rclone copy h:rclone "$work/rclone-back"
    diff -r "$work/tree" "$work/rclone-back"
    rclone purge h:rclone
}

with_rclone_mount() {
    export RCLONE_CONFIG=$work/rclone.conf
    rclone copy "$work/tree" h:mounted
    mkdir -p "$work/mount-rclone"
    timeout 60 rclone mount h:mounted "$work/mount-rclone" --daemon
    sleep 2
    diff -r "$work/tree" "$work/mount-rclone"
    fusermount3 -u "$work/mount-rclone"
}

with_restic() {
    export RESTIC_PASSWORD=x RESTIC_REPOSITORY=s3:$url/restic
    restic -q init
    restic -q backup "$work/tree"
    restic -q check --read-data
    restic -q restore latest --target "$work/restic-back"
    diff -r "$work/tree" "$work/restic-back$work/tree"
    echo again >> "$work/tree/folder/1.txt"
    restic -q backup "$work/tree"
    restic -q forget --keep-last 1 --prune
    restic -q check
}

with_aws() {
    # Its first version signs addresses in the old way unless told.
    export AWS_CONFIG_FILE=$work/aws.conf
    aws configure set default.s3.signature_version s3v4
    aws s3 mb s3://aws-cli
    aws s3 sync "$work/tree" s3://aws-cli --only-show-errors
    aws s3 sync s3://aws-cli "$work/aws-back" --only-show-errors
    diff -r "$work/tree" "$work/aws-back"
    aws s3 mv s3://aws-cli/large s3://aws-cli/moved --only-show-errors
    aws s3 cp s3://aws-cli/moved - | cmp - "$work/tree/large"
    curl -sf "$(aws s3 presign s3://aws-cli/folder/2.txt)" | cmp - "$work/tree/folder/2.txt"
    aws s3api head-object --bucket aws-cli --key moved > /dev/null
    aws s3 rb --force s3://aws-cli > /dev/null
}

with_s3fs() {
    echo "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" > "$work/passwd"
    chmod 600 "$work/passwd"
    mkdir -p "$work/mount-s3fs"
    curl -sf -X PUT --aws-sigv4 aws:amz:us-east-1:s3 -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' \
        --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" "$url/s3fs-fuse"
    s3fs s3fs-fuse "$work/mount-s3fs" -o passwd_file="$work/passwd" -o url="$url" \
        -o use_path_request_style
    cp -r "$work/tree/." "$work/mount-s3fs/"
    diff -r "$work/tree" "$work/mount-s3fs"
    mv "$work/mount-s3fs/folder/2.txt" "$work/mount-s3fs/folder/two.txt"
    echo more >> "$work/mount-s3fs/folder/two.txt"
    tail -1 "$work/mount-s3fs/folder/two.txt" | grep -q more
    rm -r "$work/mount-s3fs/folder"
    fusermount3 -u "$work/mount-s3fs"
}

with_curl() {
    local sign=(--aws-sigv4 aws:amz:us-east-1:s3 --user "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY"
        -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD')
    curl -sf -X PUT "${sign[@]}" "$url/curl-box"
    curl -sf -X PUT "${sign[@]}" -d 'hello world' "$url/curl-box/k"
    curl -sf "${sign[@]}" -d ', small' "$url/curl-box/k?at=5&holdall=insert" > /dev/null
    curl -sf "${sign[@]}" -d '' "$url/curl-box/k?holdall=delete-range&range=0-6" > /dev/null
    test "$(curl -sf "${sign[@]}" "$url/curl-box/k")" = "small world"
}

with_s3cmd() {
    cat > "$work/s3cfg" <<-END
	[default]
	access_key = $AWS_ACCESS_KEY_ID
	secret_key = $AWS_SECRET_ACCESS_KEY
	host_base = ${url#*//}
	host_bucket = ${url#*//}
	use_https = False
	END
    local s3cmd=(s3cmd -q -c "$work/s3cfg")
    "${s3cmd[@]}" mb s3://s3cmd-box
    "${s3cmd[@]}" sync "$work/tree/" s3://s3cmd-box/
    mkdir -p "$work/s3cmd-back"
    "${s3cmd[@]}" sync s3://s3cmd-box/ "$work/s3cmd-back/"
    diff -r "$work/tree" "$work/s3cmd-back"
    "${s3cmd[@]}" setacl --acl-private s3://s3cmd-box/folder/2.txt
    "${s3cmd[@]}" mv s3://s3cmd-box/folder/2.txt s3://s3cmd-box/two.txt
    "${s3cmd[@]}" get s3://s3cmd-box/two.txt - | cmp - "$work/tree/folder/2.txt"
    s3cmd -c "$work/s3cfg" info s3://s3cmd-box/two.txt | grep MD5 > /dev/null
    "${s3cmd[@]}" rb --recursive --force s3://s3cmd-box
}

# The suite that s3s has for servers: cargo install s3s-e2e --version 0.14.1
# Its one test of STS, which is not offered, fails.
with_s3s_e2e() {
    s3s-e2e > "$work/e2e" 2>&1 || true
    test "$(grep -c '^PASSED.*/test_' "$work/e2e")" -ge 17
    if grep '^FAILED.*/test_' "$work/e2e" | grep -v 'Advanced/STS/'; then exit 1; fi
}

with_s5cmd() {
    export S3_ENDPOINT_URL=$url
    s5cmd mb s3://s5cmd-box
    s5cmd sync "$work/tree/" s3://s5cmd-box/tree/
    [ "$(s5cmd ls 's3://s5cmd-box/tree/folder/*' | wc -l)" = "$(find "$work/tree/folder" -type f | wc -l)" ]
    [ "$(s5cmd ls 's3://s5cmd-box/tree/folder/1*0.txt' | wc -l)" = 11 ]
    s5cmd du 's3://s5cmd-box/tree/*' | grep -q " $(find "$work/tree" -type f | wc -l) objects"
    s5cmd cat s3://s5cmd-box/tree/large | cmp - "$work/tree/large"
    s5cmd sync 's3://s5cmd-box/tree/*' "$work/s5cmd-back/"
    diff -r "$work/tree" "$work/s5cmd-back"
    s5cmd cp 's3://s5cmd-box/tree/folder/1*' s3://s5cmd-box/copied/
    s5cmd mv s3://s5cmd-box/copied/1.txt s3://s5cmd-box/moved.txt
    s5cmd cat s3://s5cmd-box/moved.txt | cmp - "$work/tree/folder/1.txt"
    printf 'x' | s5cmd pipe s3://s5cmd-box/piped
    [ "$(s5cmd cat s3://s5cmd-box/piped)" = x ]
    s5cmd rm 's3://s5cmd-box/tree/folder/*'
    [ "$(s5cmd ls 's3://s5cmd-box/tree/*' | wc -l)" = 2 ]
    rm -r "$work/s5cmd-back/folder"
    s5cmd sync --delete "$work/s5cmd-back/" s3://s5cmd-box/copied/
    [ "$(s5cmd ls 's3://s5cmd-box/copied/*' | wc -l)" = 2 ]
    s5cmd rm 's3://s5cmd-box/*'
    s5cmd rb s3://s5cmd-box
}

with_minio_go() { "$work/go-clients" minio "$url"; }
with_aws_go() { "$work/go-clients" aws "$url"; }

with_python() {
    python3 "$here/clients.py" "$url" "$work/tree/large"
}

with_boto3() {
    python3 "$here/clients_more.py" "$url"
}

try "curl, with edits" curl with_curl
try "aws" aws with_aws
try "rclone" rclone with_rclone
if [ -e /dev/fuse ] && command -v fusermount3 > /dev/null; then
    try "rclone mount" rclone with_rclone_mount
    try "s3fs, mounted" s3fs with_s3fs
else
    echo "rclone mount, s3fs: skipped, no FUSE here"
fi
try "restic" restic with_restic
try "s3cmd" s3cmd with_s3cmd
try "s3s-e2e" s3s-e2e with_s3s_e2e
try "s5cmd" s5cmd with_s5cmd
if ! command -v go > /dev/null; then
    echo "minio-go, aws-sdk-go-v2: skipped, go is not installed"
elif ! (cd "$here/go" && go mod download) > "$work/go.log" 2>&1; then
    echo "minio-go, aws-sdk-go-v2: skipped, their modules cannot be had: $(tail -1 "$work/go.log")"
elif ! (cd "$here/go" && go build -o "$work/go-clients" .) > "$work/go.log" 2>&1; then
    echo "minio-go, aws-sdk-go-v2: failed, they do not compile"
    sed 's/^/    /' "$work/go.log"
    failed=1
else
    try "minio-go" go with_minio_go
    try "aws-sdk-go-v2" go with_aws_go
fi
if python3 -c 'import boto3' 2> /dev/null; then
    try "boto3: forms, addresses, parts, sums, settings, conditions" python3 with_boto3
    try "Python" python3 with_python
    grep -hE "^[a-z0-9]+: (passed|skipped)" "$work/with_python.log" 2> /dev/null | sed 's/^/    /'
else
    echo "Python: skipped, boto3 is not installed"
fi
exit $failed
