//! Several requests under way at once.
//!
//! The futures are boxed: the compiler cannot otherwise show that one which holds a stream of them may
//! go from thread to thread.

use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, TryStreamExt};
use holdall::Result;

/// Runs what `make` makes of each item, at most `most` together, and returns what came, in order. After
/// an error no other is begun.
pub(crate) async fn together<'f, I, T, F>(
    items: impl IntoIterator<Item = I>,
    most: usize,
    make: impl Fn(I) -> F,
) -> Result<Vec<T>>
where
    T: Send + 'f,
    F: Future<Output = Result<T>> + Send + 'f,
{
    let numbered = |(at, item)| {
        let work = make(item);
        async move { Ok((at, work.await?)) }.boxed()
    };
    let work: Vec<BoxFuture<'f, Result<(usize, T)>>> =
        items.into_iter().enumerate().map(numbered).collect();
    // One that takes long keeps none from beginning.
    let work = futures::stream::iter(work).buffer_unordered(most);
    let mut done: Vec<(usize, T)> = work.try_collect().await?;
    done.sort_unstable_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, value)| value).collect())
}
