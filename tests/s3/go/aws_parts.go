package main

import (
	"bytes"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/s3/manager"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
)

// plain undoes the encoding of a listing.
func plain(key string) string {
	return must(url.QueryUnescape(key))
}

// parts are sent by hand, one of them copied, with each kind of checksum.
func (a withAWS) parts() {
	first, second := fresh(5*mib, 1), fresh(6*mib, 2)
	a.put("second", second, nil)
	for _, kind := range []struct {
		sum  types.ChecksumAlgorithm
		over types.ChecksumType
	}{{"", ""}, {"SHA256", "COMPOSITE"}, {"SHA1", "COMPOSITE"}, {"CRC32", "COMPOSITE"}, {"CRC32", "FULL_OBJECT"}, {"CRC32C", "COMPOSITE"}, {"CRC32C", "FULL_OBJECT"}, {"CRC64NVME", "FULL_OBJECT"}} {
		key := aws.String("parts/" + string(kind.sum) + string(kind.over))
		begun := must(a.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{
			Bucket: a.bucket, Key: key, ChecksumAlgorithm: kind.sum, ChecksumType: kind.over,
		}))
		one := must(a.UploadPart(ctx, &s3.UploadPartInput{
			Bucket: a.bucket, Key: key, UploadId: begun.UploadId, PartNumber: aws.Int32(1), Body: bytes.NewReader(first), ChecksumAlgorithm: kind.sum,
		}))
		two := must(a.UploadPartCopy(ctx, &s3.UploadPartCopyInput{
			Bucket: a.bucket, Key: key, UploadId: begun.UploadId, PartNumber: aws.Int32(2), CopySource: aws.String(*a.bucket + "/second"),
		})).CopyPartResult
		listed := must(a.ListParts(ctx, &s3.ListPartsInput{Bucket: a.bucket, Key: key, UploadId: begun.UploadId}))
		same("parts that are listed", len(listed.Parts), 2)
		parts := []types.CompletedPart{{
			ETag: one.ETag, PartNumber: aws.Int32(1), ChecksumSHA256: one.ChecksumSHA256, ChecksumSHA1: one.ChecksumSHA1,
			ChecksumCRC32: one.ChecksumCRC32, ChecksumCRC32C: one.ChecksumCRC32C, ChecksumCRC64NVME: one.ChecksumCRC64NVME,
		}, {
			ETag: two.ETag, PartNumber: aws.Int32(2), ChecksumSHA256: two.ChecksumSHA256, ChecksumSHA1: two.ChecksumSHA1,
			ChecksumCRC32: two.ChecksumCRC32, ChecksumCRC32C: two.ChecksumCRC32C, ChecksumCRC64NVME: two.ChecksumCRC64NVME,
		}}
		must(a.CompleteMultipartUpload(ctx, &s3.CompleteMultipartUploadInput{
			Bucket: a.bucket, Key: key, UploadId: begun.UploadId, ChecksumType: kind.over,
			MultipartUpload: &types.CompletedMultipartUpload{Parts: parts},
		}))
		a.holds(*key, append(bytes.Clone(first), second...))
		part := must(a.GetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: key, PartNumber: aws.Int32(2)}))
		sameBytes("part 2", part.Body, second)
		shown := must(a.GetObjectAttributes(ctx, &s3.GetObjectAttributesInput{
			Bucket: a.bucket, Key: key, ObjectAttributes: []types.ObjectAttributes{"ObjectParts", "Checksum", "ObjectSize", "ETag"},
		}))
		same("size", aws.ToInt64(shown.ObjectSize), 11*mib)
	}
}

// transfers are the SDK's own way for large bodies, of which it does not know the length.
func (a withAWS) transfers() {
	body := fresh(23*mib+1, 7)
	up := manager.NewUploader(a.Client, func(u *manager.Uploader) { u.PartSize, u.Concurrency = 5*mib, 3 })
	for _, sum := range []types.ChecksumAlgorithm{"", "CRC32C", "SHA256", "CRC64NVME"} {
		key := aws.String("transfer" + string(sum))
		from := io.MultiReader(bytes.NewReader(body))
		must(up.Upload(ctx, &s3.PutObjectInput{Bucket: a.bucket, Key: key, Body: from, ChecksumAlgorithm: sum}))
		to := manager.NewWriteAtBuffer(nil)
		down := manager.NewDownloader(a.Client, func(d *manager.Downloader) { d.PartSize = 4 * mib })
		must(down.Download(ctx, to, &s3.GetObjectInput{Bucket: a.bucket, Key: key}))
		sameBytes(*key, bytes.NewReader(to.Bytes()), body)
	}
	_, err := up.Upload(ctx, &s3.PutObjectInput{Bucket: a.bucket, Key: aws.String("transfer"), Body: bytes.NewReader(body), IfNoneMatch: aws.String("*")})
	same("transfer over what is there", code(err), "PreconditionFailed")
}

func (a withAWS) addresses() {
	sign := s3.NewPresignClient(a.Client)
	key := aws.String("signed a\x01+%.txt")
	put := must(sign.PresignPutObject(ctx, &s3.PutObjectInput{Bucket: a.bucket, Key: key}, s3.WithPresignExpires(time.Minute)))
	same("put by address", by("PUT", put.URL, []byte("by address")).StatusCode, 200)
	get := must(sign.PresignGetObject(ctx, &s3.GetObjectInput{Bucket: a.bucket, Key: key}))
	sameBytes("by address", by("GET", get.URL, nil).Body, []byte("by address"))
	remove := must(sign.PresignDeleteObject(ctx, &s3.DeleteObjectInput{Bucket: a.bucket, Key: key}))
	same("delete by address", by("DELETE", remove.URL, nil).StatusCode, 204)
	same("get of what is gone", by("GET", get.URL, nil).StatusCode, 404)
}

func (a withAWS) removes() {
	_, err := a.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: a.bucket})
	same("a bucket that is not empty", code(err), "BucketNotEmpty")
	for round := 0; ; round++ {
		same("deletes that delete nothing", round < 10, true)
		listed := must(a.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: a.bucket, EncodingType: types.EncodingTypeUrl}))
		if len(listed.Contents) == 0 {
			break
		}
		var keys []types.ObjectIdentifier
		for _, object := range listed.Contents {
			key := aws.String(plain(*object.Key))
			if strings.ContainsRune(*key, 1) {
				// The SDK writes U+FFFD for what XML cannot hold: such keys go one by one.
				must(a.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: a.bucket, Key: key}))
				continue
			}
			keys = append(keys, types.ObjectIdentifier{Key: key})
		}
		done := must(a.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: a.bucket, Delete: &types.Delete{Objects: keys}}))
		same("errors", len(done.Errors), 0)
		same("deleted", len(done.Deleted), len(keys))
	}
	must(a.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: a.bucket}))
}
