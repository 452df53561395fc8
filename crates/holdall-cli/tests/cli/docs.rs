//! Runs the examples of docs/cli.md: each `$ command` of a console block, in order, in one
//! directory, and compares what it prints. `…` stands for any text within a line; a line of
//! `…` alone for any number of lines.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::server::Server;
use crate::support::{HOLDALL, Home};

pub const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");

struct Example {
    line: usize,
    command: String,
    expected: Vec<String>,
}

fn examples(text: &str) -> Vec<Example> {
    let mut found: Vec<Example> = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        match (inside, line) {
            (_, "```console") => inside = true,
            (_, "```") => inside = false,
            (true, _) => match line.strip_prefix("$ ") {
                Some(command) => {
                    let (line, command) = (at + 1, command.to_owned());
                    found.push(Example { line, command, expected: Vec::new() });
                }
                None => found.last_mut().unwrap().expected.push(line.to_owned()),
            },
            (false, _) => {}
        }
    }
    found
}

/// Whether a line fits a pattern in which `…` stands for any text.
fn fits(pattern: &str, line: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    true
}

fn all_fit(patterns: &[String], lines: &[&str]) -> bool {
    match (patterns.split_first(), lines.split_first()) {
        (None, None) => true,
        (Some((p, rest)), _) if p == "…" => (0..=lines.len()).any(|n| all_fit(rest, &lines[n..])),
        (Some((p, patterns)), Some((line, lines))) => fits(p, line) && all_fit(patterns, lines),
        _ => false,
    }
}

#[test]
fn the_examples_print_what_they_show() {
    let home = Home::new();
    let text = fs::read_to_string(DOCS).unwrap();
    let examples = examples(&text);
    assert!(examples.len() > 20, "docs/cli.md has lost its examples");
    let bin = Path::new(HOLDALL).parent().unwrap().display();
    let path = format!("{bin}:{}", std::env::var("PATH").unwrap_or_default());
    let (elsewhere, mut code) = (Home::new(), 0);
    let server = Server::start(&elsewhere, &[]);
    for Example { line, command, expected } in &examples {
        // `$?` is the code of the example before.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("exec 2>&1; (exit {code}); {command}")]);
        server.tell(&mut shell, &home);
        let output = shell.env("PATH", &path).current_dir(home.path("")).output().unwrap();
        code = output.status.code().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let lines: Vec<_> = printed.lines().collect();
        assert!(
            all_fit(expected, &lines),
            "docs/cli.md line {line}: $ {command}\nexpected:\n{}\nprinted:\n{printed}",
            expected.join("\n")
        );
    }
}

#[test]
fn every_subcommand_and_option_is_in_the_reference() {
    let home = Home::new();
    let text = fs::read_to_string(DOCS).unwrap();
    let help = String::from_utf8(home.ok(&["--help"])).unwrap();
    let commands = help.lines().skip_while(|l| !l.starts_with("Commands:")).skip(1);
    let commands: Vec<_> = commands
        .take_while(|l| !l.is_empty())
        .filter_map(|l| l.split_whitespace().next())
        .collect();
    assert!(commands.len() > 10, "{help}");
    for command in commands.into_iter().filter(|c| *c != "help") {
        let (_, section) = text.split_once(&format!("\n## {command}\n")).expect(command);
        let section = section.split("\n## ").next().unwrap();
        let help = String::from_utf8(home.ok(&[command, "--help"])).unwrap();
        for option in help.split([' ', '\n', '=']).filter(|w| w.starts_with("--") && w.len() > 2) {
            if option != "--help" {
                assert!(section.contains(option), "{option} is not in the section of {command}");
            }
        }
    }
}

#[test]
fn patterns_fit_what_they_should() {
    assert!(fits("a … c", "a b c") && fits("a…", "a") && fits("…", "x") && fits("ab", "ab"));
    assert!(!fits("a … c", "a b d") && !fits("ab", "abc") && !fits("a…b…c", "a c b"));
    let lines = |text: &str| text.split('|').map(str::to_owned).collect::<Vec<_>>();
    assert!(all_fit(&lines("a|…|d"), &["a", "b", "c", "d"]) && all_fit(&lines("a|…"), &["a"]));
    assert!(!all_fit(&lines("a|…|d"), &["a", "b"]) && !all_fit(&lines("a"), &["a", "b"]));
}
