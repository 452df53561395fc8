//! What the archive must be: a list of members.
//!
//! Owns names, sizes and headers; the bytes of a member are made again when needed.

use crate::plain;
use anyhow::Result;
use rand::{Rng, rngs::SmallRng};
use std::io::Write;

/// Bytes of a block of a tar archive; headers and data begin at one.
const BLOCK: u64 = 512;
/// Bytes behind the last member: two blocks of zeros.
const END: u64 = 2 * BLOCK;

/// A member of the archive.
#[derive(Debug, Clone)]
pub struct Member {
    /// Its path.
    pub name: String,
    /// Bytes of its data.
    pub size: u64,
    /// Its header, with those that come before it if its name is long.
    pub headers: Vec<u8>,
    number: u64,
}

impl Member {
    fn new(number: u64, size: u64) -> Result<Self> {
        let long =
            if number % 17 == 3 { "a-folder-with-a-long-name/".repeat(7) } else { String::new() };
        let name = format!("folder-{}/{long}member-{number:05}.bin", number % 20);
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o644);
        header.set_mtime(1_700_000_000);
        header.set_entry_type(tar::EntryType::Regular);
        let mut archive = tar::Builder::new(Vec::new());
        // Without data the archive holds what comes before the data.
        archive.append_data(&mut header, &name, std::io::empty())?;
        let headers = archive.get_ref().clone();
        Ok(Self { name, size, headers, number })
    }

    /// Its bytes.
    pub fn data(&self) -> Vec<u8> {
        // Sizes come from a range of the command line far below 4 GiB.
        plain::noise(self.number, self.size as usize)
    }

    /// Zeros behind its data, up to the next block.
    pub fn padding(&self) -> u64 {
        self.size.next_multiple_of(BLOCK) - self.size
    }

    /// Bytes it takes in the archive: headers, data, padding.
    pub fn span(&self) -> u64 {
        self.headers.len() as u64 + self.size + self.padding()
    }
}

/// The archive as it must be.
#[derive(Debug, Clone)]
pub struct Model {
    /// Its members in order.
    pub members: Vec<Member>,
    /// Members ever drawn.
    drawn: u64,
    /// Size of the largest.
    most: u64,
}

impl Model {
    /// An archive without members; those to come have up to `most` bytes.
    pub fn new(most: u64) -> Self {
        Self { members: Vec::new(), drawn: 0, most }
    }

    /// A member that was not there before. Sizes from nothing to the most; their logarithm is
    /// spread evenly, so that each order of magnitude is there.
    pub fn draw(&mut self, rng: &mut SmallRng) -> Result<Member> {
        self.drawn += 1;
        let size = ((self.most + 1) as f64).powf(rng.random_range(0.0..=1.0)) - 1.0;
        Member::new(self.drawn, size as u64)
    }

    /// Takes out the members at the places `cut`, then puts in `insert`, one by one.
    pub fn apply(&mut self, cut: &[usize], insert: Vec<(usize, Member)>) {
        let all = std::mem::take(&mut self.members).into_iter().enumerate();
        self.members = all.filter(|(i, _)| !cut.contains(i)).map(|(_, m)| m).collect();
        for (at, member) in insert {
            self.members.insert(at, member);
        }
    }

    /// Bytes of the archive.
    pub fn size(&self) -> u64 {
        self.members.iter().map(Member::span).sum::<u64>() + END
    }

    /// Writes the archive; the writer comes back.
    pub fn write<W: Write>(&self, writer: W) -> Result<W> {
        let mut archive = tar::Builder::new(writer);
        for member in &self.members {
            let to = archive.get_mut();
            to.write_all(&member.headers)?;
            to.write_all(&member.data())?;
            to.write_all(&vec![0; member.padding() as usize])?;
        }
        Ok(archive.into_inner()?)
    }
}
