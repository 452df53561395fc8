//! Whether what documents name exists: files, items, functions, commands, options.
//!
//! Owns: the rules by which a span of code is a name, and the names that are others'. A span that
//! is no name by these rules (an expression, a value, an address) is passed over. The change log
//! names what is gone, and is not checked.

use crate::mentions::{Mention, commands, mentions};
use crate::source::File;
use crate::tree::Tree;

/// Endings of files that lie in the tree, if a document names them.
const ENDINGS: [&str; 9] = ["rs", "md", "sh", "py", "toml", "txt", "json", "yml", "html"];
/// Options of cargo and of its test programs, which documents name alone.
const OF_CARGO: [&str; 5] = ["release", "cfg", "test", "nocapture", "no-default-features"];
/// What looks like a folder of the tree, and is an object in an example.
const FOREIGN: [&str; 2] = ["folder/", "a/"];

/// Names that lead nowhere.
pub fn problems(tree: &Tree, documents: &[File]) -> Vec<String> {
    let mut out = Vec::new();
    for document in documents.iter().filter(|d| d.path != "CHANGELOG.md") {
        let folder = document.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for mention in mentions(&document.text) {
            let found = faults(tree, folder, &mention);
            let found = found.into_iter().filter(|what| !FOREIGN.contains(&what.name.as_str()));
            out.extend(found.map(|what| {
                let (path, line, text) = (&document.path, mention.line, mention.text);
                format!("{path}:{line}: `{text}`: there is no {} {}", what.kind, what.name)
            }));
        }
    }
    out
}

/// Something that does not exist.
struct Fault {
    kind: &'static str,
    name: String,
}

fn fault(kind: &'static str, name: &str) -> Vec<Fault> {
    vec![Fault { kind, name: name.to_owned() }]
}

fn faults(tree: &Tree, folder: &str, mention: &Mention<'_>) -> Vec<Fault> {
    let text = mention.text;
    if mention.is_console {
        return commands(text).iter().flat_map(|words| command(tree, words)).collect();
    }
    let plain = text.replace(['|', '[', ']'], " ");
    let words: Vec<String> = commands(&plain).into_iter().flatten().collect();
    let Some(first) = words.first() else { return Vec::new() };
    if first.starts_with("--") {
        return bare_options(tree, &words);
    }
    let is_ours = tree.program("holdall").is_some_and(|p| p.subcommands.contains_key(first));
    if is_ours && words.iter().any(|w| w.starts_with("--")) {
        let whole: Vec<String> = std::iter::once("holdall".to_owned()).chain(words).collect();
        return command(tree, &whole);
    }
    let is_program =
        ["make", "cargo"].contains(&first.as_str()) || tree.program(base(first)).is_some();
    if is_program && words.len() > 1 {
        return command(tree, &words);
    }
    if text.contains("::") && text.chars().all(|c| is_word(c) || c == ':') {
        return item(tree, text);
    }
    if let Some(found) = file(tree, folder, text) {
        return found;
    }
    let exists = |(name, is_call): &(&str, bool)| {
        if *is_call { tree.names.contains(*name) } else { tree.words.contains(*name) }
    };
    let missing = identifiers(text).filter(|found| !exists(found));
    missing.flat_map(|(name, _)| fault("item", name)).collect()
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Options that stand alone: any program of ours may have them.
fn bare_options(tree: &Tree, words: &[String]) -> Vec<Fault> {
    let has = |option: &str| {
        OF_CARGO.contains(&option) || tree.programs.values().any(|p| p.has(None, option))
    };
    let options = words.iter().filter_map(|word| option(word));
    options.filter(|name| !has(name)).flat_map(|name| fault("option", name)).collect()
}

/// The name of an option, without dashes, value and what follows in a sentence.
fn option(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?;
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '-').unwrap_or(name.len());
    (!name[..end].is_empty()).then_some(&name[..end])
}

/// A command of ours, of make or of cargo; others are passed over.
fn command(tree: &Tree, words: &[String]) -> Vec<Fault> {
    let Some((program, rest)) = words.split_first() else { return Vec::new() };
    match base(program) {
        "make" => {
            let targets = rest.iter().filter(|w| !w.contains('=') && !w.starts_with('-'));
            let missing = targets.filter(|w| !tree.targets.contains(*w) && lower(w));
            missing.flat_map(|w| fault("target of make", w)).collect()
        }
        "cargo" => of_cargo(tree, rest),
        name => of_program(tree, name, rest),
    }
}

/// Whether a word is one that a command takes as it is, no placeholder and no value.
fn lower(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
        && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn of_program(tree: &Tree, name: &str, rest: &[String]) -> Vec<Fault> {
    let Some(program) = tree.program(name) else { return Vec::new() };
    let mut out = Vec::new();
    let first = rest.first().filter(|w| lower(w) && !program.subcommands.is_empty());
    let known = first.filter(|w| program.subcommands.contains_key(*w) || *w == "help");
    if let (Some(first), None) = (first, known) {
        out.extend(fault("command", &format!("{name} {first}")));
    }
    let options = rest.iter().take_while(|w| *w != "--").filter_map(|word| option(word));
    let missing = options.filter(|option| !program.has(known.map(String::as_str), option));
    out.extend(
        missing.flat_map(|o| fault("option", &format!("{} --{o}", known.map_or(name, |k| k)))),
    );
    out
}

fn of_cargo(tree: &Tree, rest: &[String]) -> Vec<Fault> {
    if rest.first().is_some_and(|word| word == "xtask") {
        return of_program(tree, "xtask", &rest[1..]);
    }
    let mut out = Vec::new();
    let after = |option: &'static str| {
        rest.iter()
            .zip(rest.iter().skip(1))
            .filter(move |(o, _)| *o == option)
            .map(|(_, value)| value)
    };
    let packages = after("-p").filter(|p| p.starts_with("holdall"));
    out.extend(
        packages.filter(|p| !tree.packages.contains_key(*p)).flat_map(|p| fault("package", p)),
    );
    for (option, kind, folder) in
        [("--test", "test", "tests"), ("--example", "example", "examples")]
    {
        let exists = |name: &String| {
            let (file, module) =
                (format!("/{folder}/{name}.rs"), format!("/{folder}/{name}/main.rs"));
            tree.files.iter().any(|f| f.ends_with(&file) || f.ends_with(&module))
        };
        out.extend(after(option).filter(|n| !exists(n)).flat_map(|n| fault(kind, n)));
    }
    let ours = after("-p").next().filter(|_| rest.first().is_some_and(|w| w == "run"));
    if let (Some(package), Some(at)) = (ours, rest.iter().position(|w| w == "--")) {
        out.extend(of_program(tree, package, &rest[at + 1..]));
    }
    out
}

/// A file or folder, or what looks like one; `None` if it looks like none.
fn file(tree: &Tree, folder: &str, text: &str) -> Option<Vec<Fault>> {
    let is_path = text.chars().all(|c| is_word(c) || "./-*".contains(c));
    let text = text.trim_start_matches("./");
    let first = text.split('/').next().unwrap_or_default();
    let ending = text.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = ENDINGS.contains(&ending);
    let ours = tree.folders.contains(first) || tree.packages.contains_key(first);
    let below = text.contains('/') && (is_file || ours || text.ends_with('/'));
    let made =
        first == "target" || first.is_empty() || first.chars().all(|c| c.is_ascii_uppercase());
    if !is_path || !(below || is_file) || made {
        return None;
    }
    // Up to what stands for any name.
    let path = text.split('*').next().unwrap_or_default();
    let path =
        if path.len() < text.len() { path.rsplit_once('/').map_or("", |(p, _)| p) } else { path };
    let path = path.trim_end_matches('/');
    let there = path.is_empty()
        || exists(tree, folder, path)
        || (!text.contains('/') && tree.words.contains(text));
    Some(if there { Vec::new() } else { fault("file", text) })
}

/// Whether a file or folder has this path, or its end; a crate may go by its short name.
fn exists(tree: &Tree, folder: &str, path: &str) -> bool {
    let mut near: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        if part == ".." {
            near.pop();
        } else {
            near.push(part);
        }
    }
    let near = near.join("/");
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let inside = format!("/holdall-{first}/src/{rest}");
    let engine = format!("/{first}/src/{rest}");
    let ends = [format!("/{path}"), inside.clone(), format!("{inside}.rs"), engine];
    let fits =
        |p: &String| p == path || *p == near || ends.iter().any(|end| p.ends_with(end.as_str()));
    tree.files.iter().chain(&tree.folders).any(fits)
}

/// A path of an item, from a crate, a module or a type on.
fn item(tree: &Tree, text: &str) -> Vec<Fault> {
    let parts: Vec<&str> = text.split("::").collect();
    let [.., owner, member] = parts.as_slice() else { return Vec::new() };
    let first = parts[0];
    let package = tree.packages.get(&first.replace('_', "-"));
    let is_foreign = ["std", "core", "alloc"].contains(&first) || tree.foreign.contains(first);
    if package.is_none() && is_foreign {
        return Vec::new();
    }
    if let Some(missing) = parts.iter().find(|p| !tree.words.contains(**p)) {
        return fault("item", missing);
    }
    let is_type = owner.starts_with(|c: char| c.is_ascii_uppercase());
    // Where it lies: below the folder of a package of ours, and in each module that is named.
    let modules = &parts[usize::from(package.is_some())..parts.len() - 1];
    let modules = modules.iter().filter(|p| !p.starts_with(|c: char| c.is_ascii_uppercase()));
    let holds = tree.defined.iter().any(|(path, defined)| {
        let named = |name: &str| {
            path.contains(&format!("/{name}/")) || path.ends_with(&format!("/{name}.rs"))
        };
        let in_package = package.is_none_or(|folder| path.starts_with(folder.as_str()));
        let here = in_package
            && modules.clone().all(|m| named(m))
            && (!is_type || defined.types.contains(*owner));
        let is_module = [format!("/{member}.rs"), format!("/{member}/mod.rs")];
        let is_module = !is_type && is_module.iter().any(|end| path.ends_with(end.as_str()));
        let found = if is_type { &defined.members } else { &defined.items };
        here && (is_module || found.contains(*member))
    });
    if holds { Vec::new() } else { fault("item", text) }
}

/// Words of a span that name something in code: calls, which are marked, and words in parts by
/// case or `_`.
fn identifiers(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let whole = text.chars().all(is_word);
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(is_word)?;
        let end = text[start..].find(|c| !is_word(c)).map_or(text.len(), |n| start + n);
        at = end;
        Some((start, end))
    })
    .filter_map(move |(start, end)| {
        let name = &text[start..end];
        let is_call =
            text[end..].starts_with('(') && name.starts_with(|c: char| c.is_ascii_lowercase());
        let inner = name.trim_matches('_');
        let snake = inner.contains('_');
        let hump = |pair: &[u8]| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase();
        let camel = name.starts_with(|c: char| c.is_ascii_uppercase())
            && name.as_bytes().windows(2).any(hump);
        (is_call || (whole && (snake || camel))).then_some((name, is_call))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source;

    /// The message of a document that holds `text`.
    fn said(tree: &Tree, text: &str) -> Vec<String> {
        problems(tree, &[File { path: "docs/x.md".into(), text: text.into() }])
    }

    #[test]
    fn names_that_lead_nowhere_are_told() {
        let root = crate::root().unwrap();
        let tree = Tree::read(&root, &source::files(&root).unwrap()).unwrap();
        let wrong = [
            ("crates/holdall/src/gone.rs", "crates/holdall/src/store/mod.rs"),
            ("crates/holdall/src/gone/", "crates/holdall/src/store/"),
            ("crates/gone", "crates/holdall"),
            ("gone_by.rs", "failure.rs"),
            ("store/gone.rs", "store/mod.rs"),
            ("core/gone_tree/find.rs", "core/segment_tree/find.rs"),
            ("testdata/gone/*.txt", "testdata/damaged/*.txt"),
            ("../gone.md", "../README.md"),
            ("gone.json", "results.json"),
            ("Store::gone", "Store::write"),
            ("Store::put_whole_gone", "ObjectsMut::put"),
            ("Gone::write", "Reader::get"),
            ("holdall::object::record", "holdall_core::segment_tree"),
            ("holdall_gone::checksum", "holdall_core::checksum::crc"),
            ("log::gone", "log::scan"),
            ("read_records_gone", "copy_range"),
            ("GoneTx", "PageTx"),
            ("store.gone_by_now()", "store.verify()"),
            ("gone_by_now()", "stat()"),
            ("HOLDALL_GONE", "HOLDALL_FUZZ_RUNS"),
            ("holdall gone STORE", "holdall stat STORE"),
            ("holdall get STORE NAME [--gone A:B]", "holdall get STORE NAME [--range A:B]"),
            ("holdall get STORE NAME --checksum", "holdall import STORE DIR --checksum"),
            ("import --gone P", "import --prefix P"),
            ("--gone", "--json"),
            ("make gone", "make test"),
            ("cargo xtask gone", "cargo xtask tidy"),
            ("cargo xtask tidy --gone", "cargo xtask count"),
            ("cargo test -p holdall-gone", "cargo test -p holdall"),
            ("cargo test -p holdall --test gone", "cargo test -p holdall --test flip"),
            ("cargo run -p holdall-sim -- --gone", "cargo run -p holdall-sim -- --minutes 1"),
            ("holdall-sim --gone 3", "holdall-sim --seed 3"),
            ("holdall-bench gone", "holdall-bench all"),
        ];
        for (wrong, right) in wrong {
            assert_eq!(said(&tree, &format!("See `{wrong}`.")).len(), 1, "{wrong}");
            assert_eq!(said(&tree, &format!("See `{right}`.")), [""; 0], "{right}");
        }
        let console =
            "```console\n$ printf x | holdall gone s\n$ holdall put s n --gone\n$ make gone\n```\n";
        assert_eq!(said(&tree, console).len(), 3);
        let console =
            "```console\n$ printf '| make gone' | holdall put s n --json && make test\n```\n";
        assert_eq!(said(&tree, console), [""; 0]);
        // Values, expressions, addresses, commands of others.
        let other = "`a/b` `GET /BUCKET` `x = 1` `</dev/null` `std::fs::gone` `git gone --gone` `http://x/y.rs`";
        assert_eq!(said(&tree, other), [""; 0]);
    }
}
