//! The object dependence graph (Iyengar §4): which pages are to be built again when fragments
//! change.
//!
//! Owns nodes and edges as objects in tables. Table 0 has all nodes, and the edges of each
//! object that at most 50 others depend on, as one object; of an object with more, each edge is
//! an object of a table of its own. The graph keeps nothing in memory but the number of tables
//! ([`tables`]). The caches of fragments beside it are in [`site`]. Threads: none.

pub mod sample;
pub mod site;
pub mod tables;
#[cfg(test)]
mod tests;

use anyhow::{Context, Result, bail, ensure};
use std::collections::HashSet;
use tables::Tables;

/// Most edges that are kept with the nodes.
pub const FEW: usize = 50;

/// What a node stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A piece of pages.
    Fragment,
    /// What is served.
    Page,
}

/// The graph.
#[derive(Debug)]
pub struct Odg {
    tables: Tables,
    /// Tables of edges.
    count: u32,
}

/// Where the edges of an object are.
enum Edges {
    Few(Vec<Vec<u8>>),
    Many(u32),
}

const COUNT: &[u8] = b"\0tables";

impl Odg {
    /// An empty graph in empty tables.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn create(mut tables: Tables) -> Result<Self> {
        tables.add(0)?;
        tables.put(0, COUNT, &0u32.to_le_bytes())?;
        Ok(Self { tables, count: 0 })
    }

    /// The graph in `tables`. Opens every table.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn open(mut tables: Tables) -> Result<Self> {
        tables.open(0)?;
        let count = tables.get(0, COUNT)?.context("these tables hold no graph")?;
        let count = u32::from_le_bytes(count[..].try_into().context("a damaged graph")?);
        for table in 1..=count {
            tables.open(table)?;
        }
        Ok(Self { tables, count })
    }

    /// The tables under it.
    pub fn tables(&mut self) -> &mut Tables {
        &mut self.tables
    }

    /// Number of tables of edges.
    #[must_use]
    pub fn edge_tables(&self) -> u32 {
        self.count
    }

    /// Adds a node, or replaces its attributes.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn add_node(&mut self, name: &str, kind: Kind, attributes: &[u8]) -> Result<()> {
        let mut value = Vec::with_capacity(attributes.len() + 1);
        value.push(u8::from(kind == Kind::Page));
        value.extend_from_slice(attributes);
        self.tables.put(0, &node_key(name.as_bytes()), &value)
    }

    /// Adds an edge: `to` depends on `from`. `about` is kept with it if `from` has many.
    ///
    /// # Errors
    /// A node that is missing; an edge that would close a cycle; those of the tables.
    pub fn add_edge(&mut self, from: &str, to: &str, about: &[u8]) -> Result<()> {
        for name in [from, to] {
            let there = self.tables.get(0, &node_key(name.as_bytes()))?.is_some();
            ensure!(there, "{name} is no node: add it first");
        }
        let mut cycle = from == to;
        self.reach([to.as_bytes().to_vec()], |name| cycle |= name == from.as_bytes())?;
        ensure!(!cycle, "{to} would depend on itself through {from}");
        let key = edges_key(from.as_bytes());
        match self.edges(from.as_bytes())? {
            Edges::Many(table) => self.tables.put(table, to.as_bytes(), about),
            Edges::Few(few) if few.iter().any(|name| name == to.as_bytes()) => Ok(()),
            Edges::Few(mut few) => {
                few.push(to.as_bytes().to_vec());
                if few.len() <= FEW {
                    return self.tables.put(0, &key, &encode(&few)?);
                }
                // The new table is whole before the node leads to it.
                let table = self.count + 1;
                self.tables.add(table)?;
                for name in &few {
                    self.tables.put(table, name, about)?;
                }
                self.tables.put(0, COUNT, &table.to_le_bytes())?;
                self.count = table;
                let mut value = vec![1];
                value.extend(table.to_le_bytes());
                self.tables.put(0, &key, &value)
            }
        }
    }

    /// The pages that depend on any of the fragments changed, each once, in no order.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn publish(&mut self, changed: &[&str]) -> Result<Vec<String>> {
        let mut pages = Vec::new();
        for name in self.reached(changed)? {
            let node = self.tables.get(0, &node_key(&name))?.context("an edge without a node")?;
            if node.first() == Some(&1) {
                pages.push(String::from_utf8(name).context("a name that is no text")?);
            }
        }
        Ok(pages)
    }

    /// Every node that depends on any of the nodes changed, and these.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn reached(&mut self, changed: &[&str]) -> Result<Vec<Vec<u8>>> {
        let mut found = Vec::new();
        let changed = changed.iter().map(|name| name.as_bytes().to_vec());
        self.reach(changed, |name| found.push(name.to_vec()))?;
        Ok(found)
    }

    /// Every node that can be reached, those begun with too.
    fn reach(
        &mut self,
        from: impl IntoIterator<Item = Vec<u8>>,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut open: Vec<Vec<u8>> = from.into_iter().collect();
        let mut seen: HashSet<Vec<u8>> = open.iter().cloned().collect();
        while let Some(name) = open.pop() {
            each(&name);
            let next = match self.edges(&name)? {
                Edges::Few(few) => few,
                Edges::Many(table) => self.tables.keys(table)?,
            };
            open.extend(next.into_iter().filter(|name| seen.insert(name.clone())));
        }
        Ok(())
    }

    fn edges(&mut self, name: &[u8]) -> Result<Edges> {
        let Some(value) = self.tables.get(0, &edges_key(name))? else {
            return Ok(Edges::Few(Vec::new()));
        };
        match value.split_first() {
            Some((1, table)) => {
                Ok(Edges::Many(u32::from_le_bytes(table.try_into().context("a damaged graph")?)))
            }
            Some((0, list)) => Ok(Edges::Few(decode(list)?)),
            _ => bail!("a damaged graph"),
        }
    }

    /// Brings everything to disk; the graph stays open.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn checkpoint(&mut self) -> Result<()> {
        self.tables.checkpoint()
    }

    /// Shuts the graph down.
    ///
    /// # Errors
    /// Those of the tables.
    pub fn close(self) -> Result<()> {
        self.tables.close()
    }
}

fn node_key(name: &[u8]) -> Vec<u8> {
    [b"n", name].concat()
}

fn edges_key(name: &[u8]) -> Vec<u8> {
    [b"e", name].concat()
}

/// A list of names, each behind its length.
fn encode(names: &[Vec<u8>]) -> Result<Vec<u8>> {
    let mut out = vec![0];
    for name in names {
        out.extend(u16::try_from(name.len()).context("a name of 64 KiB")?.to_le_bytes());
        out.extend_from_slice(name);
    }
    Ok(out)
}

fn decode(mut list: &[u8]) -> Result<Vec<Vec<u8>>> {
    let mut names = Vec::new();
    while let [low, high, rest @ ..] = list {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        let (name, after) = rest.split_at_checked(len).context("a damaged graph")?;
        names.push(name.to_vec());
        list = after;
    }
    ensure!(list.is_empty(), "a damaged graph");
    Ok(names)
}
