//! The last calls of a faulty storage, for debugging ([`Trace`]).
//!
//! Owns a ring of fixed length; a call costs one small copy, text is made only when asked for.

use std::collections::VecDeque;
use std::fmt;
use std::io;

use super::plan::Kind;

/// How many calls are remembered.
const LAST: usize = 256;

/// Which file a call is about; logs are numbered in order of creation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileId {
    Volume,
    Log(u32),
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) kind: Kind,
    pub(super) file: Option<FileId>,
    pub(super) offset: u64,
    pub(super) len: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    number: u64,
    call: Call,
    error: Option<io::ErrorKind>,
}

/// The last calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace(VecDeque<Entry>);

impl Trace {
    pub(super) fn push(&mut self, number: u64, call: Call, error: Option<io::ErrorKind>) {
        if self.0.len() == LAST {
            self.0.pop_front();
        }
        self.0.push_back(Entry { number, call, error });
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Entry { number, call, error } in &self.0 {
            write!(f, "{number:>6} {:?}", call.kind)?;
            match call.file {
                Some(FileId::Volume) => f.write_str(" volume")?,
                Some(FileId::Log(id)) => write!(f, " log#{id}")?,
                None => {}
            }
            match call.kind {
                Kind::Read | Kind::Write | Kind::Hint | Kind::Punch | Kind::Fill => {
                    write!(f, " {}+{}", call.offset, call.len)?;
                }
                Kind::Grow | Kind::Truncate => write!(f, " to {}", call.len)?,
                _ => {}
            }
            match error {
                Some(kind) => writeln!(f, " -> {kind:?}")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}
