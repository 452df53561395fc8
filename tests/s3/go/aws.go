package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// withAWS is a client, and the bucket that it works on.
type withAWS struct {
	*s3.Client
	bucket *string
}

func awsSteps(address string) []step {
	keys := credentials.NewStaticCredentialsProvider(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")
	client := s3.New(s3.Options{
		BaseEndpoint: &address, Credentials: keys, Region: "us-east-1", UsePathStyle: true, RetryMaxAttempts: 1,
	})
	a := withAWS{client, aws.String("aws-sdk-go")}
	return []step{
		{"bucket", a.makesBucket}, {"objects", a.objects}, {"sums", a.sums}, {"conditions", a.conditions},
		{"copies", a.copies}, {"parts", a.parts}, {"transfers", a.transfers}, {"addresses", a.addresses},
		{"odd names", a.oddNames}, {"removes", a.removes},
	}
}

// code is what the server refused the call with.
func code(err error) string {
	var answer smithy.APIError
	if errors.As(err, &answer) {
		return answer.ErrorCode()
	}
	return fmt.Sprint(err)
}

func (a withAWS) put(key string, body []byte, change func(*s3.PutObjectInput)) *s3.PutObjectOutput {
	return must(a.tryPut(key, body, change))
}

func (a withAWS) tryPut(key string, body []byte, change func(*s3.PutObjectInput)) (*s3.PutObjectOutput, error) {
	input := &s3.PutObjectInput{Bucket: a.bucket, Key: &key, Body: bytes.NewReader(body)}
	if change != nil {
		change(input)
	}
	return a.PutObject(ctx, input)
}

// holds asks for the checksum, so that the client compares it.
func (a withAWS) holds(key string, body []byte) *s3.GetObjectOutput {
	got := must(a.GetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: &key, ChecksumMode: types.ChecksumModeEnabled}))
	defer got.Body.Close()
	sameBytes(fmt.Sprintf("%q", key), got.Body, body)
	return got
}

func (a withAWS) makesBucket() {
	must(a.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: a.bucket}))
	must(a.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: a.bucket}))
	same("region", must(manager.GetBucketRegion(ctx, a.Client, *a.bucket)), "us-east-1")
	listed := must(a.ListBuckets(ctx, &s3.ListBucketsInput{})).Buckets
	same("listed", slices.ContainsFunc(listed, func(b types.Bucket) bool { return *b.Name == *a.bucket }), true)
}

func (a withAWS) objects() {
	for _, size := range []int{0, 1, 70_000, 3 * mib} {
		body := fresh(size, size)
		a.put("object", body, func(i *s3.PutObjectInput) {
			i.ContentType, i.Metadata, i.Tagging = aws.String("text/x-odd"), map[string]string{"said": "so"}, aws.String("k=v%20w")
		})
		got := a.holds("object", body)
		same("type", *got.ContentType, "text/x-odd")
		same("metadata", got.Metadata["said"], "so")
		same("tags", aws.ToInt32(got.TagCount), 1)
		head := must(a.HeadObject(ctx, &s3.HeadObjectInput{Bucket: a.bucket, Key: aws.String("object")}))
		same("size", aws.ToInt64(head.ContentLength), int64(size))
	}
	part := must(a.GetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: aws.String("object"), Range: aws.String("bytes=10-19")}))
	sameBytes("range", part.Body, fresh(3*mib, 3*mib)[10:20])
	same("Content-Range", *part.ContentRange, "bytes 10-19/3145728")
	_, err := a.GetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: aws.String("not there")})
	same("what is not there", code(err), "NoSuchKey")
	tags := must(a.GetObjectTagging(ctx, &s3.GetObjectTaggingInput{Bucket: a.bucket, Key: aws.String("object")})).TagSet
	same("tag", *tags[0].Value, "v w")
}

// sums are sent in trailers of bodies that cannot be read twice, and checked by both.
func (a withAWS) sums() {
	for _, sum := range []types.ChecksumAlgorithm{"CRC32", "CRC32C", "CRC64NVME", "SHA1", "SHA256"} {
		key := "sums/" + string(sum)
		a.put(key, fresh(70_000, 3), func(i *s3.PutObjectInput) { i.ChecksumAlgorithm = sum })
		got := a.holds(key, fresh(70_000, 3))
		shown := aws.ToString(got.ChecksumCRC32) + aws.ToString(got.ChecksumCRC32C) + aws.ToString(got.ChecksumCRC64NVME) +
			aws.ToString(got.ChecksumSHA1) + aws.ToString(got.ChecksumSHA256)
		same(key+" has a sum", shown != "", true)
	}
	_, err := a.tryPut("wrong", fresh(9, 3), func(i *s3.PutObjectInput) { i.ChecksumCRC32 = aws.String("AAAAAA==") })
	same("a wrong sum", code(err), "BadDigest")
	_, err = a.HeadObject(ctx, &s3.HeadObjectInput{Bucket: a.bucket, Key: aws.String("wrong")})
	same("what had a wrong sum", code(err), "NotFound")
}

func (a withAWS) conditions() {
	put := a.put("if", fresh(9, 1), nil)
	_, err := a.tryPut("if", nil, func(i *s3.PutObjectInput) { i.IfNoneMatch = aws.String("*") })
	same("put of what is there", code(err), "PreconditionFailed")
	_, err = a.tryPut("if", nil, func(i *s3.PutObjectInput) { i.IfMatch = aws.String("\"0123\"") })
	same("put over another", code(err), "PreconditionFailed")
	a.holds("if", fresh(9, 1))
	_, err = a.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: a.bucket, Key: aws.String("if"), IfMatch: aws.String("\"0123\"")})
	same("delete of another", code(err), "PreconditionFailed")
	_, err = a.GetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: aws.String("if"), IfNoneMatch: put.ETag})
	same("get of what is known", code(err), "NotModified")
	a.put("if", fresh(8, 1), func(i *s3.PutObjectInput) { i.IfMatch = put.ETag })
	a.holds("if", fresh(8, 1))
	source := *a.bucket + "/if"
	copied := func(match, except *string) error {
		_, err := a.CopyObject(ctx, &s3.CopyObjectInput{Bucket: a.bucket, Key: aws.String("if"), CopySource: &source,
			IfMatch: match, IfNoneMatch: except, MetadataDirective: types.MetadataDirectiveReplace})
		return err
	}
	same("copy over what is there", code(copied(nil, aws.String("*"))), "PreconditionFailed")
	same("copy over another", code(copied(aws.String("\"0123\""), nil)), "PreconditionFailed")
	ok(copied(must(a.HeadObject(ctx, &s3.HeadObjectInput{Bucket: a.bucket, Key: aws.String("if")})).ETag, nil))
}

func (a withAWS) copies() {
	for _, key := range []string{"from a\x01 +%é/x", "Icon\r"} {
		a.put(key, fresh(900, 4), nil)
		source := *a.bucket + "/" + escaped(key)
		for _, sum := range []types.ChecksumAlgorithm{"", "SHA256", "CRC64NVME"} {
			to := key + " copied " + string(sum)
			must(a.CopyObject(ctx, &s3.CopyObjectInput{Bucket: a.bucket, Key: &to, CopySource: &source, ChecksumAlgorithm: sum}))
			a.holds(to, fresh(900, 4))
		}
	}
}

// escaped is a key as the header of a copy has it: each byte that is no letter or digit as an escape.
func escaped(key string) string {
	var out strings.Builder
	for _, b := range []byte(key) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '/' {
			out.WriteByte(b)
		} else {
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}

func (a withAWS) oddNames() {
	names := oddNames()
	for at, name := range names {
		if len(name) < 1000 {
			names[at] = "odd/" + name
		}
		a.put(names[at], []byte(name), nil)
	}
	for at, name := range oddNames() {
		a.holds(names[at], []byte(name))
	}
	sort.Strings(names)
	below := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name[0] != 'o' })
	listed := []string{}
	pages := s3.NewListObjectsV2Paginator(a.Client, &s3.ListObjectsV2Input{
		Bucket: a.bucket, Prefix: aws.String("odd/"), MaxKeys: aws.Int32(4), EncodingType: types.EncodingTypeUrl,
	})
	for pages.HasMorePages() {
		for _, object := range must(pages.NextPage(ctx)).Contents {
			listed = append(listed, plain(*object.Key))
		}
	}
	sameNames("odd names, encoded", listed, below)
	// Without an encoding XML cannot hold them: such a listing still has to be XML, and as long.
	raw := must(a.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: a.bucket, Prefix: aws.String("odd/")})).Contents
	same("odd names, as they are", len(raw), len(below))
	seen := 0
	for _, object := range raw {
		if slices.Contains(below, *object.Key) {
			seen++
		}
	}
	same("names that came back whole but for one with a control character", seen, len(below)-1)
	must(a.ListObjects(ctx, &s3.ListObjectsInput{Bucket: a.bucket, Prefix: aws.String("odd/a\x01")}))
	must(a.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: a.bucket, Prefix: aws.String("odd/a\x01")}))
}
