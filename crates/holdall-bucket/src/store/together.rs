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
    let work: Vec<BoxFuture<'f, Result<T>>> =
        items.into_iter().map(|item| make(item).boxed()).collect();
    futures::stream::iter(work).buffered(most).try_collect().await
}
