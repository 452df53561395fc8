//! The paper's workloads (McAuliffe §5), on any disk, with real bytes.
//!
//! Owns object sizes and contents, the table of live objects, the two drivers (fill a volume;
//! create and delete), the second on real threads too (`threads`), and what they sample. An
//! object's bytes follow from its number, and every object deleted or read is compared with them.
//! Threads: none but those.

mod churn;
mod clock;
mod fill;
mod objects;
mod sample;
mod threads;

pub use churn::{Churn, churn};
pub use fill::{Fill, fill};
pub use objects::Sizes;
pub use sample::{Run, Sample};
pub use threads::threads;
