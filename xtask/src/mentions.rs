//! What documents name in code: spans between backticks, and commands after a prompt.
//!
//! Owns: [`Mention`].

/// One span or command line of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention<'a> {
    /// From 1 on.
    pub line: usize,
    /// Between the backticks, or behind `$ `, or the line.
    pub text: &'a str,
    /// Whether it is a command line of a console block.
    pub is_console: bool,
}

/// All of them, in order. Other lines of fenced blocks are left out.
pub fn mentions(text: &str) -> Vec<Mention<'_>> {
    let (mut out, mut fenced) = (Vec::new(), false);
    for (at, line) in text.lines().enumerate() {
        let line_number = at + 1;
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if fenced {
            let command = line.strip_prefix("$ ").or_else(|| is_command(line).then_some(line));
            out.extend(command.map(|text| Mention { line: line_number, text, is_console: true }));
        } else {
            let spans = spans(line).into_iter();
            out.extend(spans.map(|text| Mention { line: line_number, text, is_console: false }));
        }
    }
    out
}

/// Whether a line without a prompt begins with a program of ours, make or cargo.
fn is_command(line: &str) -> bool {
    let first = line.split(' ').next().unwrap_or_default();
    let name = first.rsplit('/').next().unwrap_or_default();
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
    is_plain && (name.starts_with("holdall") || ["make", "cargo"].contains(&name))
}

/// What stands between runs of as many backticks.
fn spans(line: &str) -> Vec<&str> {
    let (mut out, mut rest) = (Vec::new(), line);
    while let Some(at) = rest.find('`') {
        let open = rest[at..].len() - rest[at..].trim_start_matches('`').len();
        let ticks = &rest[at..at + open];
        let inside = &rest[at + open..];
        let Some(end) = inside.find(ticks) else { break };
        out.push(inside[..end].trim());
        rest = &inside[end + open..];
    }
    out
}

/// The single commands of a command line: its parts between pipes, `&&` and `;`, without
/// settings of variables. What is quoted is one word, and no part of the command.
pub fn commands(text: &str) -> Vec<Vec<String>> {
    let (mut out, mut command, mut word) = (Vec::new(), Vec::new(), String::new());
    let (mut quote, mut is_quoted) = (None, false);
    let text = text.split(" # ").next().unwrap_or_default();
    for c in text.chars().chain([';']) {
        match (quote, c) {
            (Some(q), _) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => (quote, is_quoted) = (Some(c), true),
            (None, ' ' | '|' | '&' | ';' | '(' | ')') => {
                let sets = command.is_empty() && word.contains('=');
                if !sets && (!word.is_empty() || is_quoted) {
                    command.push(std::mem::take(&mut word));
                }
                word.clear();
                is_quoted = false;
                if c != ' ' && !command.is_empty() {
                    out.push(std::mem::take(&mut command));
                }
            }
            (None, _) => word.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_commands_are_found() {
        let text =
            "a `b` and ``c`d``\n```console\n$ e f\nprinted `g`\nholdall: g\nmake g\n```\n`h i`\n";
        let found: Vec<_> =
            mentions(text).into_iter().map(|m| (m.line, m.text, m.is_console)).collect();
        assert_eq!(
            found,
            [
                (1, "b", false),
                (1, "c`d", false),
                (3, "e f", true),
                (6, "make g", true),
                (8, "h i", false)
            ]
        );
        let words = commands("A=1 holdall put s 'a | b' --json | head -1 && make x # note");
        assert_eq!(
            words,
            [vec!["holdall", "put", "s", "", "--json"], vec!["head", "-1"], vec!["make", "x"]]
        );
    }
}
