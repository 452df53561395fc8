//! Tables as Markdown and HTML, and a panel's numbers as a table.

use std::collections::HashSet;

use super::{Panel, Table, number};

impl Panel {
    /// The panel's numbers for reading, about four digits each: a row per x with a column per
    /// series, or, if a series has several points at one x, a row per point.
    #[must_use]
    pub fn table(&self) -> Table {
        let x_name = |x: f64| {
            let tick = self.x.ticks.iter().find(|(value, _)| *value == x);
            tick.map_or_else(|| number::plain(x), |(_, name)| name.clone())
        };
        let unique = self.series.iter().all(|s| {
            let mut seen = HashSet::new();
            s.points.iter().all(|(x, _)| seen.insert(x.to_bits()))
        });
        let (head, rows) = if unique { self.wide(&x_name) } else { self.long(&x_name) };
        Table { id: self.id.clone(), title: self.title.clone(), head, rows }
    }

    fn wide(&self, x_name: &dyn Fn(f64) -> String) -> (Vec<String>, Vec<Vec<String>>) {
        let mut xs: Vec<f64> =
            self.series.iter().flat_map(|s| &s.points).map(|point| point.0).collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup_by(|a, b| a.total_cmp(b).is_eq());
        let mut head = vec![self.x.label.clone()];
        head.extend(self.series.iter().map(|s| s.name.clone()));
        let columns: Vec<std::collections::HashMap<u64, f64>> = self
            .series
            .iter()
            .map(|s| s.points.iter().map(|&(x, y)| (x.to_bits(), y)).collect())
            .collect();
        let rows = xs.into_iter().map(|x| {
            let cell = |column: &std::collections::HashMap<u64, f64>| {
                column.get(&x.to_bits()).map_or(String::new(), |&y| number::plain(y))
            };
            std::iter::once(x_name(x)).chain(columns.iter().map(cell)).collect()
        });
        (head, rows.collect())
    }

    fn long(&self, x_name: &dyn Fn(f64) -> String) -> (Vec<String>, Vec<Vec<String>>) {
        let head = vec!["series".into(), self.x.label.clone(), self.y.label.clone()];
        let rows = self.series.iter().flat_map(|s| {
            s.points.iter().map(|&(x, y)| vec![s.name.clone(), x_name(x), number::plain(y)])
        });
        (head, rows.collect())
    }
}

impl Table {
    /// As a table of GitHub's Markdown, without the title. Bars and line ends in cells are
    /// escaped; columns of numbers are aligned to the right.
    #[must_use]
    pub fn markdown(&self) -> String {
        let cell = |text: &String| {
            let text = text.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;");
            text.replace(['\n', '\r'], " ")
        };
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let rules = (0..self.head.len()).map(|c| if self.numeric(c) { "---:" } else { "---" });
        let mut out = row(self.head.iter().map(cell).collect());
        out += &row(rules.map(String::from).collect());
        for cells in &self.rows {
            out += &row(cells.iter().map(cell).collect());
        }
        out
    }

    /// As an HTML `table` without the title; cells are text, never markup. Cells of columns of
    /// numbers have the class `n`.
    #[must_use]
    pub fn html(&self) -> String {
        let right: Vec<bool> = (0..self.head.len()).map(|c| self.numeric(c)).collect();
        let row = |tag: &str, cells: &[String]| {
            let cells = cells.iter().enumerate().map(|(c, text)| {
                let class = if right.get(c) == Some(&true) { " class=\"n\"" } else { "" };
                format!("<{tag}{class}>{}</{tag}>", escape(text))
            });
            format!("<tr>{}</tr>\n", cells.collect::<String>())
        };
        let body: String = self.rows.iter().map(|cells| row("td", cells)).collect();
        format!(
            "<table>\n<thead>{}</thead>\n<tbody>\n{body}</tbody>\n</table>\n",
            row("th", &self.head).trim_end()
        )
    }

    /// Whether every cell of the column begins as a number does.
    fn numeric(&self, column: usize) -> bool {
        let cells = || self.rows.iter().filter_map(|row| row.get(column));
        let is_number = |cell: &String| {
            let first = cell.trim_start_matches(['-', '−', '+', '<', '>', '≈', '≤', '≥', ' ']);
            first.is_empty() || first.starts_with(|c: char| c.is_ascii_digit())
        };
        cells().all(is_number) && cells().any(|cell| !cell.is_empty())
    }
}

/// `text` as it must stand in HTML and XML, in elements and in quoted attributes; controls that
/// XML forbids become spaces.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{FFFE}' | '\u{FFFF}') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
