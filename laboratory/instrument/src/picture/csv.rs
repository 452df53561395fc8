//! Numbers of figures as CSV (RFC 4180, but with line feeds alone).

use super::{Panel, Table};

impl Panel {
    /// One row per point: the series' name, x and y with all their digits, and, if the axis
    /// names its values, the name of x. A coordinate that is not finite is an empty cell.
    ///
    /// The first line names the columns by the axes' labels.
    #[must_use]
    pub fn csv(&self) -> String {
        let named = !self.x.ticks.is_empty();
        let mut head = vec!["series", &self.x.label, &self.y.label];
        if named {
            head.push("x name");
        }
        let mut out = line(&head);
        for series in &self.series {
            for &(x, y) in &series.points {
                let cell = |v: f64| if v.is_finite() { v.to_string() } else { String::new() };
                let (a, b) = (cell(x), cell(y));
                let mut cells = vec![series.name.as_str(), &a, &b];
                if named {
                    let tick = self.x.ticks.iter().find(|(value, _)| *value == x);
                    cells.push(tick.map_or("", |(_, name)| name));
                }
                out.push_str(&line(&cells));
            }
        }
        out
    }
}

impl Table {
    /// The head, then the rows.
    #[must_use]
    pub fn csv(&self) -> String {
        let rows = std::iter::once(&self.head).chain(&self.rows);
        rows.map(|row| line(&row.iter().map(String::as_str).collect::<Vec<_>>())).collect()
    }
}

fn line(cells: &[&str]) -> String {
    let quoted: Vec<String> = cells.iter().map(|cell| quote(cell)).collect();
    quoted.join(",") + "\n"
}

fn quote(cell: &str) -> String {
    if cell.contains(['"', ',', '\n', '\r']) || cell.trim() != cell {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}
