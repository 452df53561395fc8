package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/tags"
)

var ctx = context.Background()

// withMinio is a client, and the bucket that it works on.
type withMinio struct {
	*minio.Client
	bucket   string
	trailing bool
}

func minioClient(address string, trailing bool) withMinio {
	at := must(url.Parse(address))
	keys := credentials.NewStaticV4(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), "")
	options := minio.Options{Creds: keys, Region: "us-east-1", TrailingHeaders: trailing, MaxRetries: 1}
	bucket := "minio-go"
	if trailing {
		bucket = "minio-go-trailing"
	}
	return withMinio{must(minio.New(at.Host, &options)), bucket, trailing}
}

func minioSteps(address string) []step {
	var steps []step
	for _, trailing := range []bool{false, true} {
		m := minioClient(address, trailing)
		with, sums := "without trailers", func() {}
		if trailing {
			with, sums = "with trailers", m.checksums
		}
		for _, s := range []step{
			{"bucket", m.makesBucket}, {"small", m.small}, {"parts", m.parts}, {"stream", m.stream},
			{"checksums", sums}, {"ranges", m.ranges}, {"conditions of get", m.conditionsOfGet}, {"copy", m.copies},
			{"compose", m.composes}, {"tags", m.tagged}, {"conditions of put", m.conditionsOfPut},
			{"addresses", m.addresses}, {"form", m.form}, {"refusals", m.refusals}, {"append", m.appends}, {"uploads", m.uploads},
			{"odd names", m.oddNames}, {"list", m.lists}, {"remove", m.removes},
		} {
			steps = append(steps, step{s.name + ", " + with, s.try})
		}
	}
	return steps
}

// refused panics unless the call failed with one of these codes.
func refused(err error, codes ...string) {
	var answer minio.ErrorResponse
	if !errors.As(err, &answer) || !slices.Contains(codes, answer.Code) {
		panic(fmt.Sprintf("%v was answered, not one of %v", err, codes))
	}
}

func (m withMinio) put(key string, body []byte, options minio.PutObjectOptions) minio.UploadInfo {
	return must(m.PutObject(ctx, m.bucket, key, bytes.NewReader(body), int64(len(body)), options))
}

func (m withMinio) holds(key string, body []byte) {
	object := must(m.GetObject(ctx, m.bucket, key, minio.GetObjectOptions{Checksum: true}))
	defer object.Close()
	sameBytes(fmt.Sprintf("%q", key), object, body)
	info := must(m.StatObject(ctx, m.bucket, key, minio.StatObjectOptions{}))
	same("size", info.Size, int64(len(body)))
}

func (m withMinio) makesBucket() {
	ok(m.MakeBucket(ctx, m.bucket, minio.MakeBucketOptions{}))
	same("the bucket is there", must(m.BucketExists(ctx, m.bucket)), true)
	same("a bucket that is not", must(m.BucketExists(ctx, "nobody-made-this")), false)
	same("location", must(m.GetBucketLocation(ctx, m.bucket)), "us-east-1")
	names := []string{}
	for _, bucket := range must(m.ListBuckets(ctx)) {
		names = append(names, bucket.Name)
	}
	same("the bucket is listed", slices.Contains(names, m.bucket), true)
}

func (m withMinio) small() {
	for _, size := range []int{0, 1, 64 << 10, 1 << 20} {
		body := fresh(size, size)
		options := minio.PutObjectOptions{
			ContentType: "text/x-odd", CacheControl: "max-age=3", ContentLanguage: "de", ContentEncoding: "x-none",
			ContentDisposition: "attachment", UserMetadata: map[string]string{"Said": "so"}, UserTags: map[string]string{"k": "v"},
		}
		info := m.put("small", body, options)
		m.holds("small", body)
		got := must(m.StatObject(ctx, m.bucket, "small", minio.StatObjectOptions{}))
		same("ETag", got.ETag, info.ETag)
		same("type", got.ContentType, "text/x-odd")
		same("metadata", got.UserMetadata["Said"], "so")
		same("Cache-Control", got.Metadata.Get("Cache-Control"), "max-age=3")
		same("Content-Encoding", got.Metadata.Get("Content-Encoding"), "x-none")
		same("tags", got.UserTagCount, 1)
	}
	m.put("plain", fresh(3000, 1), minio.PutObjectOptions{SendContentMd5: true})
	m.put("unsigned", fresh(3000, 2), minio.PutObjectOptions{DisableContentSha256: true})
	m.holds("plain", fresh(3000, 1))
	m.holds("unsigned", fresh(3000, 2))
}

func (m withMinio) parts() {
	body := fresh(17*mib+3, 4)
	for name, options := range map[string]minio.PutObjectOptions{
		"usual":      {PartSize: 5 * mib},
		"md5":        {PartSize: 5 * mib, SendContentMd5: true},
		"no sums":    {PartSize: 5 * mib, DisableContentSha256: true},
		"concurrent": {PartSize: 5 * mib, ConcurrentStreamParts: true, NumThreads: 3},
		"at once":    {DisableMultipart: true},
	} {
		info := m.put("parts/"+name, body, options)
		same("ETag of parts, "+name, strings.HasSuffix(info.ETag, "-4"), name != "at once")
		m.holds("parts/"+name, body)
	}
}

// stream has no size that is known, so that it is sent as parts, the last of them short.
func (m withMinio) stream() {
	body := fresh(11*mib, 5)
	from := io.MultiReader(bytes.NewReader(body[:mib]), bytes.NewReader(body[mib:]))
	must(m.PutObject(ctx, m.bucket, "stream", from, -1, minio.PutObjectOptions{PartSize: 5 * mib}))
	m.holds("stream", body)
	must(m.PutObject(ctx, m.bucket, "stream", strings.NewReader(""), -1, minio.PutObjectOptions{PartSize: 5 * mib}))
	m.holds("stream", nil)
}

// checksums tries each algorithm, over the whole body and over its parts.
func (m withMinio) checksums() {
	for _, sum := range []minio.ChecksumType{
		minio.ChecksumSHA256, minio.ChecksumSHA1, minio.ChecksumCRC32, minio.ChecksumCRC32C, minio.ChecksumCRC64NVME,
		minio.ChecksumFullObjectCRC32, minio.ChecksumFullObjectCRC32C,
	} {
		for _, size := range []int{0, 700, 12 * mib} {
			key, body := fmt.Sprintf("sums/%v/%d", sum, size), make([]byte, size)
			must(rand.Read(body))
			m.put(key, body, minio.PutObjectOptions{PartSize: 5 * mib, Checksum: sum})
			m.holds(key, body)
			must(m.GetObjectAttributes(ctx, m.bucket, key, minio.ObjectAttributesOptions{}))
			got := must(m.StatObject(ctx, m.bucket, key, minio.StatObjectOptions{Checksum: true}))
			shown := got.ChecksumSHA256 + got.ChecksumSHA1 + got.ChecksumCRC32 + got.ChecksumCRC32C + got.ChecksumCRC64NVME
			if shown == "" {
				panic(key + " has no checksum")
			}
			if size == 700 {
				same("checksum of "+key, shown, sum.ChecksumBytes(body).Encoded())
			}
			from := io.MultiReader(bytes.NewReader(body))
			must(m.PutObject(ctx, m.bucket, key, from, -1, minio.PutObjectOptions{PartSize: 5 * mib, Checksum: sum}))
			m.holds(key, body)
			to := minio.CopyDestOptions{Bucket: m.bucket, Object: key + "/copied", ChecksumType: sum}
			must(m.CopyObject(ctx, to, minio.CopySrcOptions{Bucket: m.bucket, Object: key}))
			m.holds(key+"/copied", body)
		}
	}
}

func (m withMinio) tagged() {
	m.put("tags", fresh(9, 1), minio.PutObjectOptions{})
	set := must(tags.MapToObjectTags(map[string]string{"a": "1", "b c": "v+w/="}))
	ok(m.PutObjectTagging(ctx, m.bucket, "tags", set, minio.PutObjectTaggingOptions{}))
	got := must(m.GetObjectTagging(ctx, m.bucket, "tags", minio.GetObjectTaggingOptions{})).ToMap()
	same("tag", got["b c"], "v+w/=")
	ok(m.RemoveObjectTagging(ctx, m.bucket, "tags", minio.RemoveObjectTaggingOptions{}))
	same("tags", len(must(m.GetObjectTagging(ctx, m.bucket, "tags", minio.GetObjectTaggingOptions{})).ToMap()), 0)
	ok(m.SetBucketTagging(ctx, m.bucket, must(tags.MapToBucketTags(map[string]string{"of": "bucket"}))))
	same("tag of the bucket", must(m.GetBucketTagging(ctx, m.bucket)).ToMap()["of"], "bucket")
	ok(m.RemoveBucketTagging(ctx, m.bucket))
}

func (m withMinio) addresses() {
	put := must(m.PresignedPutObject(ctx, m.bucket, "signed a\x01+%.txt", time.Minute))
	same("put by address", by("PUT", put.String(), []byte("by address")).StatusCode, 200)
	asked := url.Values{"response-content-type": {"text/x-asked"}}
	get := must(m.PresignedGetObject(ctx, m.bucket, "signed a\x01+%.txt", time.Minute, asked))
	answer := by("GET", get.String(), nil)
	same("type", answer.Header.Get("Content-Type"), "text/x-asked")
	sameBytes("by address", answer.Body, []byte("by address"))
	head := must(m.PresignedHeadObject(ctx, m.bucket, "signed a\x01+%.txt", time.Minute, nil))
	same("head by address", by("HEAD", head.String(), nil).ContentLength, 10)
	remove := must(m.Presign(ctx, "DELETE", m.bucket, "signed a\x01+%.txt", time.Minute, nil))
	same("delete by address", by("DELETE", remove.String(), nil).StatusCode, 204)
	same("get of what is gone", by("GET", get.String(), nil).StatusCode, 404)
}
