//! From names of objects to paths below a directory.
//!
//! Owns no state. A name becomes a path only if each of its parts is a plain file name.

use std::path::{Component, Path, PathBuf};

use crate::files;
use crate::leftovers::is_temporary;

/// The path of a name below the directory, or why it has none.
pub(super) fn relative(name: &[u8]) -> Result<PathBuf, &'static str> {
    if name.is_empty() {
        return Err("nothing of its name is left for a path");
    }
    if name.starts_with(b"/") {
        return Err("its name is an absolute path");
    }
    if name.contains(&0) {
        return Err("its name holds a NUL byte");
    }
    let mut path = PathBuf::new();
    for part in name.split(|&byte| byte == b'/') {
        match part {
            b"" => return Err("its name has an empty part"),
            b"." | b".." => return Err("its name has a part . or .."),
            // The next export would remove it.
            _ if is_temporary(part) => return Err("its name has that of a temporary file"),
            _ => {}
        }
        let part =
            files::os_string(part).ok_or("its name is not UTF-8, which this system needs")?;
        // Whatever else the system takes for more than a plain name (drives, backslashes).
        let mut parts = Path::new(&part).components();
        match (parts.next(), parts.next()) {
            (Some(Component::Normal(only)), None) if only == part => path.push(&part),
            _ => return Err("its name has a part that is no plain file name here"),
        }
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::name;

    #[test]
    fn only_plain_relative_names_become_paths() {
        assert_eq!(relative(b"a/b c/..d").unwrap(), Path::new("a/b c/..d"));
        assert_eq!(relative(b"-x").unwrap(), Path::new("-x"));
        let bad: [&[u8]; 13] = [
            b"a/.holdall-12-3.tmp/b",
            b"",
            b"/",
            b"/etc/passwd",
            b"..",
            b"../a",
            b"a/../b",
            b"a/..",
            b"a//b",
            b"a/",
            b".",
            b"a/./b",
            b"a\0b",
        ];
        for name in bad {
            assert!(relative(name).is_err(), "{}", name::escape(name));
        }
    }

    #[cfg(unix)]
    #[test]
    fn names_keep_their_bytes() {
        assert_eq!(name::bytes(relative(b"a\xff/b").unwrap().as_os_str()), b"a\xff/b");
    }
}
