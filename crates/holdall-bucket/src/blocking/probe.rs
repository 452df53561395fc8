//! Probing a server from a program without an executor.

use super::Threads;
use crate::access::Access;
use crate::backend::S3;
use crate::probe::{ProbeReport, Progress, probe_peer, probe_s3};
use crate::store::Machine;
use holdall::Result;

/// Asks a server all that a store at `s3://BUCKET/PREFIX` relies on, as [`probe_s3`]; with the name of a
/// meeting, then beside the other machine that was given it, as [`probe_peer`].
///
/// # Errors
/// As these.
pub fn probe_at(
    place: &str,
    access: &Access,
    meeting: Option<&str>,
    progress: Progress<'_>,
) -> Result<ProbeReport> {
    let s3 = S3::open(place, access)?;
    Threads::start()?.wait(async {
        let (s3, mut report) = probe_s3(s3, "", progress).await?;
        if let Some(meeting) = meeting {
            let beside = probe_peer(&s3, &Machine, "", meeting, progress).await?;
            report.checks.extend(beside.checks);
            report.requests += beside.requests;
            report.took += beside.took;
        }
        Ok(report)
    })
}
