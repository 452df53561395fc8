//! What HTTP needs whatever a request asks: connections and how long their clients are waited for,
//! bodies, digests, and how headers, dates, queries and XML are read.
//!
//! It knows of no object. `objects` lies above it, the doors above that.

pub mod answer;
pub mod body;
pub mod date;
pub mod digest;
pub mod header;
pub mod host;
pub mod idle;
pub mod lingering;
pub mod pace;
pub mod slots;
pub mod spelling;
pub mod target;
pub mod tls;
pub mod xml;
