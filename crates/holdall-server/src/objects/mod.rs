//! What a door needs of the stores, in the server's own words: buckets, objects with what is kept
//! beside them, conditions, edits, trees.
//!
//! From the bottom: meta and side have what is kept of objects, records what is kept of buckets;
//! catalog knows the stores; place and node say what lies at a name; put, edit, verbs and tree change it.

pub mod acl;
pub mod catalog;
pub mod condition;
pub mod edit;
pub mod edit_verbs;
pub mod meta;
pub mod node;
pub mod place;
pub mod put;
pub mod records;
pub mod side;
pub mod tree;
