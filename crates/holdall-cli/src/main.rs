//! The command `holdall`.
fn main() {}
