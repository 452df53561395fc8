//! What the experiments of all papers share beside the instrument: a pool of pages, the cost of
//! their accesses, calls counted, panels, a database server, claims and notes as data, errors.
//!
//! Owns: nothing of a paper; each part says what it owns itself.

pub mod calls;
pub mod claims;
pub mod error;
pub mod model;
pub mod notes;
pub mod plot;
pub mod pool;
pub mod postgres;

/// All sources of the lab as one text, for tests of what is named there.
#[cfg(test)]
fn sources() -> String {
    fn below(dir: &std::path::Path, out: &mut String) {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                below(&path, out);
            } else {
                out.push_str(&std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut text = String::new();
    below(&std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut text);
    text
}
