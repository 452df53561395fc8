//! What a probe asks one after another.

use super::{LEAST_DATE, Run, fails, require};
use crate::backend::{Backend, Found, Got, Tag};
use bytes::Bytes;
use futures::future::join_all;
use holdall::Result;

impl Run<'_> {
    /// Creating: once, and again after a deletion.
    pub(super) async fn create(&self) -> Result<Option<String>> {
        let key = self.key("n/create!");
        self.holds(&key, None, "before anything was written").await?;
        let first = self.fresh("create");
        self.made(&key, &first).await?;
        let found = self.holds(&key, Some(&first), "after a create").await?;
        let put = self.put(&key, None, &self.fresh("create")).await?;
        require(put.is_none(), "a key that is there can be created again (If-None-Match)")?;
        let again = self.holds(&key, Some(&first), "after a refused create").await?;
        let tag = |found: Option<Found>| found.map(|found| found.tag);
        require(tag(found) == tag(again), "a refused create changes the tag")?;
        self.backend.delete(&key).await?;
        self.holds(&key, None, "after a deletion").await?;
        self.backend.delete(&key).await?;
        let second = self.fresh("create");
        self.made(&key, &second).await?;
        self.holds(&key, Some(&second), "after a create that followed a deletion").await?;
        Ok(None)
    }

    /// Replacing: by the right tag, an old one, one that never was, and what is not there.
    pub(super) async fn replace(&self) -> Result<Option<String>> {
        let key = self.key("n/replace!");
        let first = self.made(&key, &self.fresh("replace")).await?;
        let bytes = self.fresh("replace");
        let second = self.put(&key, Some(&first), &bytes).await?;
        let second =
            second.ok_or_else(|| fails("a key cannot be replaced by its tag (If-Match)"))?;
        require(first != second, "other bytes have the same tag")?;
        let found = self.holds(&key, Some(&bytes), "after a replacement").await?;
        let same = found.is_some_and(|found| found.tag == second);
        require(same, "a read gives another tag than the write")?;
        let never = Tag("00000000000000000000000000000000".into());
        for (tag, which) in [(&first, "an old tag"), (&never, "a tag that never was")] {
            let put = self.put(&key, Some(tag), &self.fresh("replace")).await?;
            require(put.is_none(), format!("a key can be replaced by {which} (If-Match)"))?;
            let when = format!("after a replacement by {which} was refused");
            let found = self.holds(&key, Some(&bytes), &when).await?;
            let same = found.is_some_and(|found| found.tag == second);
            require(same, "a refused replacement changes the tag")?;
        }
        let absent = self.key("n/absent!");
        let put = self.put(&absent, Some(&second), &self.fresh("replace")).await?;
        require(put.is_none(), "a key that holds nothing can be replaced by a tag")?;
        self.holds(&absent, None, "after a replacement of nothing was refused").await?;
        let same = self.backend.get(&key, None, Some(&first)).await?;
        let found = matches!(same, Got::Found(found) if found.bytes == bytes);
        require(found, "a read takes an old tag for the present one (If-None-Match)")?;
        match self.backend.get(&key, None, Some(&second)).await? {
            Got::Same => Ok(None),
            // A waste only.
            Got::Found(found) if found.bytes == bytes => {
                Ok(Some("reads send what the reader has, too".into()))
            }
            _ => Err(fails("a read with the present tag finds something else")),
        }
    }

    /// Ranges, with the whole length, the tag and a date.
    pub(super) async fn ranges(&self) -> Result<Option<String>> {
        let key = self.key("b/00/ranges/0");
        let bytes: Vec<u8> = (0..100_000_u32).map(|n| (n % 251) as u8).collect();
        let bytes = Bytes::from(bytes);
        self.backend.put_new(&key, bytes.clone()).await?;
        let whole = self.holds(&key, Some(&bytes), "after a large write").await?;
        let whole = whole.ok_or_else(|| fails("nothing is read after a large write"))?;
        require(whole.date > LEAST_DATE, "a read gives no date")?;
        let len = bytes.len();
        for range in [0..1, 1..2, 40..16_384, 65_000..66_000, 99_999..len, 0..len, 99_990..len + 90]
        {
            let asked = range.start as u64..range.end as u64;
            let Got::Found(part) = self.backend.get(&key, Some(asked.clone()), None).await? else {
                return Err(fails(format!("bytes {asked:?} are not found")));
            };
            let right = part.bytes == bytes.slice(range.start..range.end.min(len));
            require(right, format!("bytes {asked:?} are asked for, and others come"))?;
            require(part.len == len as u64, "a range does not tell the whole length")?;
            require(part.tag == whole.tag, "a range has another tag than the whole")?;
        }
        Ok(None)
    }

    /// Keys that some servers mix up: by case, by the form of letters, by escapes, as folders.
    pub(super) async fn names(&self) -> Result<Option<String>> {
        let names = [
            "a!",
            "A!",
            "a!x/b",
            "a",
            "a.",
            "%41!",
            "%2F!",
            "%2f!",
            "%252F!",
            "%_/a!",
            "~!",
            "\u{e9}!",
            "e\u{301}!",
            "\u{ff5e}!",
            "\u{1f600}!",
        ];
        let mut written = Vec::new();
        for name in names {
            let (key, bytes) = (self.key(&format!("k/{name}")), self.fresh(name));
            let put = self.put(&key, None, &bytes).await?;
            require(put.is_some(), format!("the key k/{name} is taken for another"))?;
            written.push((name, key, bytes));
        }
        let reads = written.iter().map(|(_, key, _)| self.get(key));
        let found = join_all(reads).await;
        for ((name, _, bytes), found) in written.iter().zip(found) {
            let same = found?.is_some_and(|found| found.bytes == *bytes);
            require(same, format!("the key k/{name} is hidden by another, or changed by it"))?;
        }
        let mut keys: Vec<&String> = written.iter().map(|(_, key, _)| key).collect();
        keys.sort();
        let (listed, _) = self.listed(&self.key("k/"), false, 1000).await?;
        let same = listed.iter().map(|listed| &listed.key).eq(keys);
        require(same, "keys of letters and signs are listed otherwise, or not in order of bytes")?;
        Ok(None)
    }
}
