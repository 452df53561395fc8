//! What may happen to a request on its way.
//!
//! Owns: [`Fate`], and the one place where a process's request meets the bucket.

use crate::bucket::{Answer, Bucket, Late, Page, Request};
use crate::process::Process;
use crate::rules::Setting;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fate {
    Normal,
    /// It takes effect; the answer is lost.
    Unanswered,
    /// It never takes effect, or later; no answer.
    Delayed,
    /// It takes effect, is answered, and may take effect again.
    Repeated,
    /// As the one before; the answer is lost.
    RepeatedUnanswered,
    /// A read or listing fails.
    Fails,
}

/// What may happen to the request of this process besides [`Fate::Normal`].
pub fn fates(process: &Process, request: &Request) -> &'static [Fate] {
    match request {
        Request::PutIf(_)
        | Request::RemoveIf(..)
        | Request::PutBlob(_)
        | Request::PutNode(..)
        | Request::DeleteBlob(_)
        | Request::PutIntent(..)
        | Request::PutIntentIf(..)
        | Request::DeleteIntent(_) => {
            &[Fate::Unanswered, Fate::Delayed, Fate::Repeated, Fate::RepeatedUnanswered]
        }
        // Users read again.
        Request::Read(_) | Request::ListNames(_) | Request::ListIntents(_)
            if process.collects() =>
        {
            &[Fate::Fails]
        }
        _ => &[],
    }
}

/// One step of a process. False if it is at its end.
pub fn step(bucket: &mut Bucket, process: &mut Process, fate: Fate, setting: &Setting) -> bool {
    let Some(request) = process.request.take() else { return false };
    let sent = match &request {
        Request::PutIf(put) => bucket.now(put.name),
        _ => 0,
    };
    let is_late = matches!(fate, Fate::Delayed | Fate::Repeated | Fate::RepeatedUnanswered);
    // Before the effect: what ends the life of older requests ends this one's, too.
    if is_late {
        bucket.late.push(Late { request: request.clone(), sent });
    }
    let answer = match fate {
        Fate::Delayed => Answer::Unknown(sent),
        Fate::Fails => failed(bucket.execute(&request, setting.page)),
        _ => bucket.execute(&request, setting.page),
    };
    let answer = match (fate, answer) {
        // The client itself knows this.
        (_, Answer::TooLate) => Answer::TooLate,
        (Fate::Unanswered | Fate::RepeatedUnanswered, _) => Answer::Unknown(sent),
        (_, answer) => answer,
    };
    process.hear(answer, setting);
    true
}

fn failed(answer: Answer) -> Answer {
    match answer {
        Answer::Names(mut found, _) => {
            found.pop();
            Answer::Names(found, Page::Short)
        }
        Answer::Intents(mut found, _) => {
            found.pop();
            Answer::Intents(found, Page::Short)
        }
        _ => Answer::Failed,
    }
}

/// One of the late requests takes effect.
pub fn deliver(bucket: &mut Bucket, index: usize, setting: &Setting) -> Late {
    let late = bucket.late.remove(index);
    bucket.execute(&late.request, setting.page);
    late
}
