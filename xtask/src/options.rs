//! The commands of the tree's programs and their options, as their sources define them for clap.
//!
//! Owns: [`Program`]. Sources are read as text: what stands below `derive(Parser)`,
//! `derive(Args)` and `derive(Subcommand)`, laid out as rustfmt does.

use crate::source::File;
use std::collections::{BTreeMap, BTreeSet};

/// A program that is run from a command line.
#[derive(Debug, Default)]
pub struct Program {
    /// Its subcommands, also those below others, each with its options if they are known.
    pub subcommands: BTreeMap<String, Option<BTreeSet<String>>>,
    /// All its options, without their dashes.
    pub options: BTreeSet<String>,
}

/// A structure or a list of commands that clap reads.
#[derive(Debug, Default)]
struct Definition {
    file: String,
    name: String,
    /// Whether the program's own arguments are in it, which stand before a subcommand too.
    is_root: bool,
    /// Whether other commands stand behind this one.
    is_nested: bool,
    options: BTreeSet<String>,
    /// Types of fields that are flattened in.
    flattened: Vec<String>,
    /// Subcommands, and the path of the structure that each has.
    commands: Vec<(String, Option<String>)>,
}

impl Program {
    /// Of the crate whose sources lie below `folder`; empty if it reads no command line.
    pub fn of(files: &[File], folder: &str) -> Self {
        let own = files.iter().filter(|f| f.path.starts_with(folder));
        let all: Vec<Definition> = own.flat_map(definitions).collect();
        let mut program = Self::default();
        for definition in &all {
            program.options.extend(definition.options.iter().cloned());
        }
        let root = all.iter().filter(|d| d.is_root).flat_map(|d| with_flattened(d, &all));
        let root: BTreeSet<String> = root.collect();
        for (command, path) in all.iter().flat_map(|d| &d.commands) {
            let found = path.as_ref().and_then(|path| named(path, &all));
            let found = found.filter(|d| !d.is_nested);
            let options = found.map(|d| with_flattened(d, &all).into_iter().collect());
            let options = options.map(|o: BTreeSet<String>| &o | &root);
            program.subcommands.insert(command.clone(), options);
        }
        program
    }

    /// Whether `option` can stand behind `command`, or behind the program's name without one.
    pub fn has(&self, command: Option<&str>, option: &str) -> bool {
        let of_command = command.and_then(|c| self.subcommands.get(c)?.as_ref());
        matches!(option, "help" | "version") || of_command.unwrap_or(&self.options).contains(option)
    }
}

/// The definition that a path such as `import::Args` means.
fn named<'a>(path: &str, all: &'a [Definition]) -> Option<&'a Definition> {
    let (module, name) = path.rsplit_once("::").unwrap_or(("", path));
    let module = module.rsplit("::").next().unwrap_or_default();
    let (file, folder) = (format!("/{module}.rs"), format!("/{module}/mod.rs"));
    let mut all = all.iter().filter(|d| d.name == name);
    all.find(|d| module.is_empty() || d.file.ends_with(&file) || d.file.ends_with(&folder))
}

fn with_flattened(definition: &Definition, all: &[Definition]) -> Vec<String> {
    let mut out: Vec<String> = definition.options.iter().cloned().collect();
    for path in &definition.flattened {
        out.extend(named(path, all).map(|d| with_flattened(d, all)).unwrap_or_default());
    }
    out
}

/// All that clap reads in a file.
fn definitions(file: &File) -> Vec<Definition> {
    let mut out = Vec::new();
    for (at, _) in file.text.match_indices("#[derive(") {
        let rest = &file.text[at + 9..];
        let derived = rest.split(')').next().unwrap_or_default();
        let derives = |name: &str| derived.split([',', ' ', ':']).any(|d| d == name);
        if !["Parser", "Args", "Subcommand"].into_iter().any(derives) {
            continue;
        }
        let Some(head) = rest.find(['{', ';']).map(|end| &rest[..end]) else { continue };
        let name = head.split_whitespace().last().unwrap_or_default();
        let body = rest[head.len()..].split("\n}").next().unwrap_or_default();
        let mut definition = Definition {
            file: file.path.clone(),
            name: name.split('<').next().unwrap_or_default().to_owned(),
            is_root: derives("Parser"),
            ..Definition::default()
        };
        read(body, derives("Subcommand"), &mut definition);
        out.push(definition);
    }
    out
}

/// Reads the fields of a structure, or the subcommands of a list and their fields.
fn read(body: &str, is_list: bool, into: &mut Definition) {
    let mut attributes = String::new();
    let mut open = false;
    for line in body.lines() {
        let inside = line.trim();
        if inside.starts_with("#[") || open {
            attributes.push_str(inside);
            open = !inside.ends_with(']');
            continue;
        }
        if inside.is_empty() || inside.starts_with("//") {
            continue;
        }
        let public = inside.strip_prefix("pub").and_then(|rest| rest.split_once(' '));
        let inside = public.map_or(inside, |(_, rest)| rest);
        let word = inside.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(inside.len());
        let (name, rest) = inside.split_at(word);
        let given = |key: &str| {
            let value = attributes.split(&format!("{key} = \"")).nth(1)?;
            value.split('"').next().map(str::to_owned)
        };
        if is_list && line.starts_with("    ") && !line.starts_with("     ") && !name.is_empty() {
            let path = rest.strip_prefix('(').and_then(|r| r.split([')', ',']).next());
            into.commands
                .push((given("name").unwrap_or_else(|| dashed(name)), path.map(str::to_owned)));
        } else if let Some(kind) = rest.strip_prefix(": ") {
            if attributes.contains("subcommand") {
                into.is_nested = true;
            } else if attributes.contains("flatten") {
                into.flattened.push(kind.trim_end_matches(',').to_owned());
            } else if attributes.split(['(', ',', ' ', ')']).any(|a| a == "long") {
                into.options.insert(given("long").unwrap_or_else(|| dashed(name)));
            }
        }
        attributes.clear();
    }
}

/// As clap names a field or a variant.
fn dashed(name: &str) -> String {
    let mut out = String::new();
    for (i, c) in name.chars().enumerate() {
        if i > 0 && c.is_uppercase() {
            out.push('-');
        }
        out.extend(if c == '_' { '-' } else { c }.to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_options_of_their_structures() {
        let file = |path: &str, text: &str| File { path: path.into(), text: text.into() };
        let files = [
            file(
                "c/src/main.rs",
                "#[derive(Parser)]\nstruct Args {\n    #[arg(long, global = true)]\n    quiet: bool,\n}\n\
                 #[derive(Subcommand)]\nenum Command {\n    /// x\n    DeleteRange(cut::Args),\n    \
                 Own {\n        #[arg(long)]\n        seeds: u8,\n    },\n}\n",
            ),
            file(
                "c/src/cut/mod.rs",
                "/// x\n#[derive(clap::Args, Debug)]\npub struct Args {\n    #[command(flatten)]\n    \
                 more: More,\n    name: String,\n    #[arg(\n        long = \"at\",\n        short\n    )]\n    \
                 place: u8,\n}\n#[derive(clap::Args)]\nstruct More {\n    #[arg(long)]\n    page_size: u8,\n}\n",
            ),
            file(
                "d/src/main.rs",
                "#[derive(Parser)]\nstruct A {\n    #[arg(long)]\n    other: u8,\n}\n",
            ),
        ];
        let program = Program::of(&files, "c/");
        assert_eq!(program.subcommands.keys().collect::<Vec<_>>(), ["delete-range", "own"]);
        for option in ["at", "page-size", "quiet", "help"] {
            assert!(program.has(Some("delete-range"), option), "{option}");
        }
        for option in ["seeds", "name", "place", "other"] {
            assert!(!program.has(Some("delete-range"), option), "{option}");
        }
        assert!(program.has(Some("own"), "seeds") && program.has(None, "at"));
    }
}
