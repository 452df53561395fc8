package main

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"time"

	"github.com/minio/minio-go/v7"
)

func (m withMinio) ranges() {
	body := fresh(3*mib, 6)
	m.put("ranges", body, minio.PutObjectOptions{})
	for _, r := range [][4]int64{{0, 0, 0, 1}, {5, 9, 5, 10}, {mib, 0, mib, 3 * mib}, {0, -7, 3*mib - 7, 3 * mib}, {2 * mib, 9 * mib, 2 * mib, 3 * mib}} {
		options := minio.GetObjectOptions{}
		if r[0] == 0 && r[1] == 0 {
			options.Set("Range", "bytes=0-0")
		} else {
			ok(options.SetRange(r[0], r[1]))
		}
		object := must(m.GetObject(ctx, m.bucket, "ranges", options))
		sameBytes(fmt.Sprint("range ", r), object, body[r[2]:r[3]])
	}
	object := must(m.GetObject(ctx, m.bucket, "ranges", minio.GetObjectOptions{}))
	piece := make([]byte, 1000)
	must(object.ReadAt(piece, 2*mib-500))
	same("read at", bytes.Equal(piece, body[2*mib-500:2*mib+500]), true)
	must(object.Seek(-10, io.SeekEnd))
	sameBytes("after a seek", object, body[3*mib-10:])
	beyond := minio.GetObjectOptions{}
	beyond.Set("Range", "bytes=9999999-")
	object = must(m.GetObject(ctx, m.bucket, "ranges", beyond))
	_, err := io.ReadAll(object)
	refused(err, "InvalidRange")
	wide := must(m.GetObject(ctx, m.bucket, "ranges", minio.GetObjectOptions{ParallelWorkers: 3, ParallelChunkSize: 16 * mib}))
	sameBytes("by several workers", wide, body)
}

func (m withMinio) conditionsOfGet() {
	info := m.put("asked", fresh(100, 7), minio.PutObjectOptions{})
	stat := func(set func(*minio.GetObjectOptions)) error {
		options := minio.StatObjectOptions{}
		set(&options)
		_, err := m.StatObject(ctx, m.bucket, "asked", options)
		return err
	}
	ok(stat(func(o *minio.GetObjectOptions) { ok(o.SetMatchETag(info.ETag)) }))
	ok(stat(func(o *minio.GetObjectOptions) { ok(o.SetMatchETagExcept("0123")) }))
	ok(stat(func(o *minio.GetObjectOptions) { ok(o.SetUnmodified(time.Now().Add(time.Hour))) }))
	same("If-Match of another", stat(func(o *minio.GetObjectOptions) { ok(o.SetMatchETag("0123")) }) != nil, true)
	same("If-None-Match of it", stat(func(o *minio.GetObjectOptions) { ok(o.SetMatchETagExcept(info.ETag)) }) != nil, true)
	same("modified", stat(func(o *minio.GetObjectOptions) { ok(o.SetModified(time.Now().Add(time.Hour))) }) != nil, true)
}

func (m withMinio) from(key string) minio.CopySrcOptions {
	return minio.CopySrcOptions{Bucket: m.bucket, Object: key}
}

func (m withMinio) to(key string) minio.CopyDestOptions {
	return minio.CopyDestOptions{Bucket: m.bucket, Object: key}
}

func (m withMinio) copies() {
	said := map[string]string{"Said": "so"}
	info := m.put("from a\x01 +%é", fresh(2000, 8), minio.PutObjectOptions{UserMetadata: said, ContentType: "text/x-odd"})
	must(m.CopyObject(ctx, m.to("to a\x01 +%é"), m.from("from a\x01 +%é")))
	m.holds("to a\x01 +%é", fresh(2000, 8))
	got := must(m.StatObject(ctx, m.bucket, "to a\x01 +%é", minio.StatObjectOptions{}))
	same("metadata that is copied", got.UserMetadata["Said"]+got.ContentType, "so"+"text/x-odd")
	anew := m.to("anew")
	anew.ReplaceMetadata, anew.UserMetadata = true, map[string]string{"Other": "one"}
	anew.ReplaceTags, anew.UserTags = true, map[string]string{"t": "v w"}
	must(m.CopyObject(ctx, anew, m.from("from a\x01 +%é")))
	got = must(m.StatObject(ctx, m.bucket, "anew", minio.StatObjectOptions{}))
	same("metadata that is replaced", got.UserMetadata["Said"]+got.UserMetadata["Other"], "one")
	same("tags that are replaced", got.UserTagCount, 1)
	source := m.from("from a\x01 +%é")
	source.MatchETag = info.ETag
	must(m.CopyObject(ctx, m.to("if"), source))
	source.MatchETag = "0123"
	_, err := m.CopyObject(ctx, m.to("if"), source)
	refused(err, "PreconditionFailed")
	source.MatchETag, source.NoMatchETag = "", info.ETag
	_, err = m.CopyObject(ctx, m.to("if"), source)
	refused(err, "PreconditionFailed")
	_, err = m.CopyObject(ctx, m.to("if"), m.from("not there"))
	refused(err, "NoSuchKey")
	m.holds("if", fresh(2000, 8))
}

func (m withMinio) composes() {
	first, second := fresh(6*mib, 9), fresh(10*mib, 10)
	m.put("first", first, minio.PutObjectOptions{})
	m.put("second", second, minio.PutObjectOptions{})
	must(m.ComposeObject(ctx, m.to("composed"), m.from("first"), m.from("second")))
	m.holds("composed", slices.Concat(first, second))
	cut := m.from("second")
	cut.MatchRange, cut.Start, cut.End = true, 100, 1099
	to := m.to("composed")
	to.ReplaceMetadata, to.UserMetadata = true, map[string]string{"By": "parts"}
	must(m.ComposeObject(ctx, to, m.from("first"), cut))
	m.holds("composed", slices.Concat(first, second[100:1100]))
	same("metadata", must(m.StatObject(ctx, m.bucket, "composed", minio.StatObjectOptions{})).UserMetadata["By"], "parts")
	to = m.to("composed")
	to.PartSize, to.NumThreads = 5*mib, 2
	must(m.ComposeObject(ctx, to, m.from("second")))
	m.holds("composed", second)
	for _, sum := range []minio.ChecksumType{minio.ChecksumSHA256, minio.ChecksumCRC32C, minio.ChecksumCRC64NVME} {
		to := m.to("composed")
		to.ChecksumType = sum
		must(m.ComposeObject(ctx, to, m.from("first"), m.from("second")))
		m.holds("composed", slices.Concat(first, second))
	}
}

func (m withMinio) conditionsOfPut() {
	body := fresh(50, 11)
	if_ := func(key, match, except string, size int) error {
		options := minio.PutObjectOptions{PartSize: 5 * mib}
		if match != "" {
			options.SetMatchETag(match)
		}
		if except != "" {
			options.SetMatchETagExcept(except)
		}
		long := fresh(size, 12)
		_, err := m.PutObject(ctx, m.bucket, key, bytes.NewReader(long), int64(size), options)
		return err
	}
	info := m.put("put-if", body, minio.PutObjectOptions{})
	for _, size := range []int{60, 11 * mib} {
		refused(if_("put-if", "0123456789abcdef0123456789abcdef", "", size), "PreconditionFailed")
		refused(if_("put-if", "", "*", size), "PreconditionFailed")
		refused(if_("not there", "0123456789abcdef0123456789abcdef", "", size), "NoSuchKey")
		m.holds("put-if", body)
		fresh := fmt.Sprint("put-if/new", size)
		ok(if_(fresh, "", "*", size))
	}
	ok(if_("put-if", info.ETag, "", 60))
	m.holds("put-if", fresh(60, 12))
}

// form is what a browser sends.
func (m withMinio) form() {
	policy := minio.NewPostPolicy()
	ok(policy.SetBucket(m.bucket))
	ok(policy.SetKey("form a+%é.txt"))
	ok(policy.SetExpires(time.Now().Add(time.Minute)))
	ok(policy.SetContentLengthRange(1, 100))
	ok(policy.SetContentType("text/x-form"))
	ok(policy.SetUserMetadata("said", "so"))
	address, fields, err := m.PresignedPostPolicy(ctx, policy)
	ok(err)
	send := func(body string) int {
		var text bytes.Buffer
		writer := multipart.NewWriter(&text)
		for name, value := range fields {
			ok(writer.WriteField(name, value))
		}
		must(must(writer.CreateFormFile("file", "f")).Write([]byte(body)))
		ok(writer.Close())
		return must(http.Post(address.String(), writer.FormDataContentType(), &text)).StatusCode
	}
	same("form", send("of a form"), 204)
	m.holds("form a+%é.txt", []byte("of a form"))
	same("form that is too long", send(string(fresh(101, 1))), 400)
}

// refusals are answers to what is not offered: each says so, and changes nothing.
func (m withMinio) refusals() {
	_, err := m.GetBucketPolicy(ctx, m.bucket)
	if err != nil {
		refused(err, "NoSuchBucketPolicy")
	}
	policy := `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"s3:GetObject","Resource":"arn:aws:s3:::` + m.bucket + `/*"}]}`
	refused(m.SetBucketPolicy(ctx, m.bucket, policy), "NotImplemented")
	refused(m.EnableVersioning(ctx, m.bucket), "NotImplemented")
	same("versioning", must(m.GetBucketVersioning(ctx, m.bucket)).Enabled(), false)
	_, err = m.GetBucketLifecycle(ctx, m.bucket)
	refused(err, "NoSuchLifecycleConfiguration")
	_, err = m.GetObject(ctx, m.bucket, "", minio.GetObjectOptions{})
	same("an empty key is refused", err != nil, true)
	_, err = m.StatObject(ctx, m.bucket, "not there", minio.StatObjectOptions{})
	refused(err, "NoSuchKey")
	_, err = m.StatObject(ctx, "nobody-made-this", "x", minio.StatObjectOptions{})
	refused(err, "NoSuchBucket", "NoSuchKey")
	options := minio.PutObjectOptions{StorageClass: "GLACIER"}
	_, err = m.PutObject(ctx, m.bucket, "cold", bytes.NewReader(nil), 0, options)
	refused(err, "NotImplemented")
	_, err = m.StatObject(ctx, m.bucket, "cold", minio.StatObjectOptions{})
	refused(err, "NoSuchKey")
}

// appends puts at an offset, as directory buckets of S3 have it; the client sends it with trailers.
func (m withMinio) appends() {
	m.put("log", []byte("one "), minio.PutObjectOptions{})
	if !m.trailing {
		return
	}
	must(m.AppendObject(ctx, m.bucket, "log", bytes.NewReader([]byte("two")), 3, minio.AppendObjectOptions{}))
	m.holds("log", []byte("one two"))
}
