//! Claims of the papers that cannot hold today, by the lab's own list.
//!
//! Owns: the list's form, and that it tells the truth: a row that a kept run has holding is not out
//! of reach. The list is data of the lab, which shows it in its report too.

use anyhow::{Context as _, Result};
use serde::Deserialize;
use std::path::Path;

/// Where the lab has it.
pub const LIST: &str = "laboratory/papers/out-of-reach.toml";

/// Which claims cannot hold, and why.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    row: Vec<Row>,
}

/// Claims with one reason.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    claims: Vec<String>,
    obstacle: Obstacle,
    because: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Obstacle {
    Contradiction,
    Omission,
    Today,
}

impl List {
    /// The list at `path`; empty if there is none.
    ///
    /// # Errors
    /// It cannot be read, or has another form.
    pub fn read(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Ok(Self::default());
        }
        let shown = path.display();
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {shown}"))?;
        toml::from_str(&text).with_context(|| format!("{shown} is no list of claims"))
    }

    /// Every claim of the list.
    pub fn claims(&self) -> impl Iterator<Item = &str> {
        self.row.iter().flat_map(|row| row.claims.iter().map(String::as_str))
    }

    /// Why the claim `id` cannot hold today; `None` for one that must.
    pub fn reason(&self, id: &str) -> Option<String> {
        let row = self.row.iter().find(|row| row.claims.iter().any(|name| name == id))?;
        let obstacle = match row.obstacle {
            Obstacle::Contradiction => "The paper contradicts itself",
            Obstacle::Omission => "The paper omits what decides it",
            Obstacle::Today => "The machine or its systems differ",
        };
        Some(format!("*{obstacle}.* {}", row.because))
    }
}
