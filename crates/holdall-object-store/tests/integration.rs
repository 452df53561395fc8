//! The functions that `object_store` exports for testing implementations: all but
//! `response_extensions`, which asks for the extensions of HTTP responses. There are none here.
#![expect(clippy::unwrap_used, reason = "a test that fails says where")]

use holdall::Store;
use holdall_object_store::HoldallObjectStore;
use object_store::integration;
use object_store::path::Path;

fn open() -> (tempfile::TempDir, HoldallObjectStore) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::create(dir.path().join("a.holdall")).unwrap();
    (dir, HoldallObjectStore::with_collection(store, "bucket"))
}

macro_rules! tests {
    ($($name:ident($store:ident) $call:expr;)*) => {
        $(#[tokio::test]
        async fn $name() {
            let (_dir, $store) = open();
            $call.await;
        })*
    };
}

// Each asks for a store of its own.
tests! {
    put_get_delete_list(s) integration::put_get_delete_list(&s);
    put_get_attributes(s) integration::put_get_attributes(&s);
    get_opts(s) integration::get_opts(&s);
    put_opts(s) integration::put_opts(&s, true);
    stream_get(s) integration::stream_get(&s);
    list_uses_directories_correctly(s) integration::list_uses_directories_correctly(&s);
    list_with_delimiter(s) integration::list_with_delimiter(&s);
    list_paginated(s) integration::list_paginated(&s, &s);
    list_with_offset_exclusivity(s) integration::list_with_offset_exclusivity(&s);
    rename_and_copy(s) integration::rename_and_copy(&s);
    copy_if_not_exists(s) integration::copy_if_not_exists(&s);
    copy_rename_nonexistent_object(s) integration::copy_rename_nonexistent_object(&s);
    multipart(s) integration::multipart(&s, &s);
    multipart_with_opts(s) integration::multipart_with_opts(&s, &s);
    multipart_put_part_out_of_order(s) integration::multipart_put_part_out_of_order(&s, &s);
    multipart_race_condition(s) integration::multipart_race_condition(&s, true);
    multipart_out_of_order(s) integration::multipart_out_of_order(&s);
}

#[tokio::test]
async fn get_nonexistent_object() {
    let (_dir, store) = open();
    for path in [None, Some(Path::from("none"))] {
        let got = integration::get_nonexistent_object(&store, path).await;
        assert!(matches!(got, Err(object_store::Error::NotFound { .. })), "{got:?}");
    }
}
