package main

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"github.com/minio/minio-go/v7"
)

func (m withMinio) names(options minio.ListObjectsOptions) []string {
	names := []string{}
	for object := range m.ListObjects(ctx, m.bucket, options) {
		ok(object.Err)
		names = append(names, object.Key)
	}
	return names
}

func sameNames(what string, got, want []string) {
	if !slices.Equal(got, want) {
		for at := 0; at < len(got) || at < len(want); at++ {
			if at >= len(got) || at >= len(want) || got[at] != want[at] {
				panic(fmt.Sprintf("%s: %d names, not %d, from %q on, not %q", what, len(got), len(want), got[at:min(at+3, len(got))], want[at:min(at+3, len(want))]))
			}
		}
	}
}

// oddNames are put, read, listed in all ways, and copied.
func (m withMinio) oddNames() {
	names := oddNames()
	for at, name := range names {
		if len(name) < 1000 {
			name = "odd/" + name
			names[at] = name
		}
		m.put(name, []byte(name), minio.PutObjectOptions{})
	}
	for _, name := range names {
		m.holds(name, []byte(name))
	}
	sort.Strings(names)
	below := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name[0] != 'o' })
	for _, v1 := range []bool{false, true} {
		for _, most := range []int{0, 1, 7} {
			what := fmt.Sprintf("odd names, first version %v, %d a page", v1, most)
			sameNames(what, m.names(minio.ListObjectsOptions{Prefix: "odd/", Recursive: true, UseV1: v1, MaxKeys: most}), below)
		}
		level := m.names(minio.ListObjectsOptions{Prefix: "odd/", UseV1: v1, MaxKeys: 3})
		for _, folder := range []string{"odd/../", "odd/./", "odd/a/", "odd//", "odd/trail/"} {
			same(fmt.Sprintf("%s is shown, first version %v", folder, v1), slices.Contains(level, folder), true)
		}
	}
	sameNames("versions", m.names(minio.ListObjectsOptions{Prefix: "odd/", Recursive: true, WithVersions: true}), below)
	after := m.names(minio.ListObjectsOptions{Prefix: "odd/", Recursive: true, StartAfter: "odd/a\x01b"})
	sameNames("after a control character", after, below[slices.Index(below, "odd/a\x01b")+1:])
	sameNames("below a control character", m.names(minio.ListObjectsOptions{Prefix: "odd/a\x01", Recursive: true}), []string{"odd/a\x01b"})
}

func (m withMinio) lists() {
	want := []string{}
	for n := range 1500 {
		name := fmt.Sprintf("many/%02d/%04d %%+\x01", n%30, n)
		m.put(name, []byte{byte(n)}, minio.PutObjectOptions{})
		want = append(want, name)
	}
	sort.Strings(want)
	for _, v1 := range []bool{false, true} {
		for _, most := range []int{0, 333} {
			what := fmt.Sprintf("1,500 names, first version %v, %d a page", v1, most)
			sameNames(what, m.names(minio.ListObjectsOptions{Prefix: "many/", Recursive: true, UseV1: v1, MaxKeys: most}), want)
		}
		same("folders", len(m.names(minio.ListObjectsOptions{Prefix: "many/", UseV1: v1, MaxKeys: 4})), 30)
	}
	// MinIO's own: a listing with metadata would lack it elsewhere, so that it is refused.
	for object := range m.ListObjects(ctx, m.bucket, minio.ListObjectsOptions{Prefix: "many/", WithMetadata: true}) {
		refused(object.Err, "NotImplemented")
	}
}

// uploads that are not completed are listed, their parts too, and removed.
func (m withMinio) uploads() {
	core, key := minio.Core{Client: m.Client}, "unfinished a\x01+%"
	id := must(core.NewMultipartUpload(ctx, m.bucket, key, minio.PutObjectOptions{}))
	for number := range 3 {
		body := fresh(5*mib, number)
		must(core.PutObjectPart(ctx, m.bucket, key, id, number+1, bytes.NewReader(body), int64(len(body)), minio.PutObjectPartOptions{}))
	}
	parts := must(core.ListObjectParts(ctx, m.bucket, key, id, 0, 2))
	same("parts", len(parts.ObjectParts), 2)
	same("more parts", parts.IsTruncated, true)
	found := 0
	for upload := range m.ListIncompleteUploads(ctx, m.bucket, "unfinished a\x01", true) {
		ok(upload.Err)
		same("key of the upload", upload.Key, key)
		found++
	}
	same("uploads", found, 1)
	ok(m.RemoveIncompleteUpload(ctx, m.bucket, key))
	for range m.ListIncompleteUploads(ctx, m.bucket, "unfinished", true) {
		panic("an upload that was removed is listed")
	}
}

// removes empties the bucket and then removes it.
func (m withMinio) removes() {
	ok(m.RemoveObject(ctx, m.bucket, "odd/a\x01b", minio.RemoveObjectOptions{}))
	ok(m.RemoveObject(ctx, m.bucket, "odd/a\x01b", minio.RemoveObjectOptions{}))
	_, err := m.StatObject(ctx, m.bucket, "odd/a\x01b", minio.StatObjectOptions{})
	refused(err, "NoSuchKey")
	refused(m.RemoveBucket(ctx, m.bucket), "BucketNotEmpty")
	all := m.ListObjects(ctx, m.bucket, minio.ListObjectsOptions{Recursive: true})
	for fault := range m.RemoveObjects(ctx, m.bucket, all, minio.RemoveObjectsOptions{}) {
		panic(fmt.Sprintf("%q was not removed: %v", fault.ObjectName, fault.Err))
	}
	sameNames("what is left", m.names(minio.ListObjectsOptions{Recursive: true}), []string{})
	ok(m.RemoveBucket(ctx, m.bucket))
}
