//! Importing and exporting a real directory tree with the command `holdall`, beside `cp -r`.

use crate::product;
use anyhow::{Context as _, Result, bail, ensure};
use holdall::Store;
use holdall_instrument::contest::{BARE, Bound, Contest, Ctx, Figure, Goal, Than, Unit, What};
use holdall_instrument::system;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Trees that make up a default import, as many of them as it takes.
const TREES: [&str; 5] = ["/usr/share", "/usr/local", "/usr/lib", "/usr/include", "/usr/bin"];
/// What the default import has at least.
const LEAST: Size = Size { files: 50_000, bytes: 2_000_000_000 };
const IMPORT: &str = "import";
const EXPORT: &str = "export";
const IMPORT_MEMORY: &str = "import, most memory resident";
const EXPORT_MEMORY: &str = "export, most memory resident";

/// Regular files below some directories.
#[derive(Debug, Clone, Copy, Default)]
struct Size {
    files: u64,
    bytes: u64,
}

/// The contest, over these trees; over parts of /usr if there are none.
pub struct Import {
    /// Directories.
    pub trees: Vec<PathBuf>,
}

impl Contest for Import {
    fn id(&self) -> &'static str {
        "import"
    }

    fn title(&self, _ctx: &Ctx) -> String {
        "a directory tree imported and exported by the command".into()
    }

    fn remark(&self) -> &'static str {
        "Caches are warm on both sides. What comes out is compared with the tree byte by byte. \
         Bare: `cp -r` and `sync -f`."
    }

    fn contestants(&self) -> Vec<&'static str> {
        vec![super::HOLDALL, BARE]
    }

    fn arguments(&self) -> Vec<OsString> {
        self.trees.iter().flat_map(|tree| ["--tree".into(), tree.into()]).collect()
    }

    fn measure(&self, ctx: &Ctx, contestant: &str, out: &mut Vec<Figure>) -> Result<()> {
        let trees = if self.trees.is_empty() { choose(ctx.quick)? } else { self.trees.clone() };
        let mut size = Size::default();
        for tree in &trees {
            measure(tree, &mut size)?;
        }
        eprintln!("  {} files, {:.2} GB", size.files, size.bytes as f64 / 1e9);
        if contestant == BARE { copy(ctx, &trees, out) } else { ours(ctx, &trees, out) }
    }

    fn goals(&self, _ctx: &Ctx) -> Vec<Goal> {
        let most = |row| Goal::new(super::HOLDALL, row, Than::Nothing, Bound::AtMost(300.0));
        let dense = Goal::new(super::HOLDALL, IMPORT, Than::Nothing, Bound::AtMost(1.05));
        vec![most(IMPORT_MEMORY), most(EXPORT_MEMORY), dense.of(What::Disk)]
    }
}

fn choose(quick: bool) -> Result<Vec<PathBuf>> {
    let mut size = Size::default();
    let mut trees = Vec::new();
    for tree in TREES.map(PathBuf::from) {
        // A link would bring in the same files twice.
        if !fs::symlink_metadata(&tree).is_ok_and(|m| m.is_dir()) {
            continue;
        }
        measure(&tree, &mut size)?;
        trees.push(tree);
        if quick || size.files >= LEAST.files && size.bytes >= LEAST.bytes {
            break;
        }
    }
    Ok(trees)
}

/// Adds what is below `dir`; reads every file, which warms the caches.
fn measure(dir: &Path, size: &mut Size) -> Result<()> {
    let mut buf = vec![0; 1 << 20];
    each_file(dir, &mut |path| {
        let mut file = File::open(path)?;
        size.files += 1;
        loop {
            match file.read(&mut buf)? {
                0 => return Ok(()),
                n => size.bytes += n as u64,
            }
        }
    })
}

fn each_file(dir: &Path, found: &mut dyn FnMut(&Path) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(dir).with_context(|| dir.display().to_string())? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            each_file(&entry.path(), found)?;
        } else if kind.is_file() {
            found(&entry.path()).with_context(|| entry.path().display().to_string())?;
        }
    }
    Ok(())
}

fn copy(ctx: &Ctx, trees: &[PathBuf], out: &mut Vec<Figure>) -> Result<()> {
    let to = ctx.dir.join("copy");
    system::sync_all(&ctx.dir)?;
    fs::create_dir(&to)?;
    let begin = Instant::now();
    copy_trees(trees, &to)?;
    out.push(Figure::new(IMPORT, Unit::Ms, millis(begin)));
    Ok(fs::remove_dir_all(&to)?)
}

fn ours(ctx: &Ctx, trees: &[PathBuf], out: &mut Vec<Figure>) -> Result<()> {
    let (command, path) = (product::command(!cfg!(debug_assertions))?, ctx.dir.join("imported"));
    system::sync_all(&ctx.dir)?;
    let (begin, mut peak) = (Instant::now(), 0);
    for (i, tree) in trees.iter().enumerate() {
        peak = peak.max(import(&command, &path, tree, i)?);
    }
    let mut figure = Figure::new(IMPORT, Unit::Ms, millis(begin));
    let store = Store::open(&path)?;
    figure.disk = Some(1.0 / store.stat()?.utilization);
    store.close()?;
    out.push(figure);
    out.push(Figure::new(IMPORT_MEMORY, Unit::Mib, peak as f64 / f64::from(1 << 20)));
    export(ctx, &command, &path, trees, out)
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1e3
}

fn copy_trees(trees: &[PathBuf], to: &Path) -> Result<()> {
    for (i, tree) in trees.iter().enumerate() {
        let status = Command::new("cp").arg("-r").arg(tree).arg(to.join(prefix(i))).status()?;
        ensure!(status.success(), "cp failed for {}", tree.display());
    }
    let status = Command::new("sync").arg("-f").arg(to).status()?;
    ensure!(status.success(), "sync failed");
    Ok(())
}

/// What the names of tree number `i` begin with.
fn prefix(i: usize) -> String {
    format!("tree-{i}")
}

fn import(cli: &Path, store: &Path, tree: &Path, i: usize) -> Result<u64> {
    let mut command = Command::new(cli);
    command.arg("import").arg(store).arg(tree).arg("--prefix").arg(prefix(i) + "/");
    let child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    watch(child, "holdall import")
}

/// Waits for a command; its memory, or its last words if it fails.
fn watch(mut child: std::process::Child, what: &str) -> Result<u64> {
    let errors = child.stderr.take().context("the child's errors")?;
    let reader = std::thread::spawn(move || std::io::read_to_string(errors));
    let result = system::wait_and_watch(&mut child);
    let text = reader.join().ok().and_then(Result::ok).unwrap_or_default();
    result.with_context(|| format!("{what}: {}", text.trim_end()))
}

fn export(
    ctx: &Ctx,
    command: &Path,
    store: &Path,
    trees: &[PathBuf],
    out: &mut Vec<Figure>,
) -> Result<()> {
    let to = ctx.dir.join("exported");
    let begin = Instant::now();
    let mut export = Command::new(command);
    export.arg("export").arg(store).arg(&to);
    let child = export.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let peak = watch(child, "holdall export")?;
    out.push(Figure::new(EXPORT, Unit::Ms, millis(begin)));
    out.push(Figure::new(EXPORT_MEMORY, Unit::Mib, peak as f64 / f64::from(1 << 20)));
    for (i, tree) in trees.iter().enumerate() {
        let there = to.join(prefix(i));
        each_file(tree, &mut |path| same(path, &there.join(path.strip_prefix(tree)?)))?;
    }
    Ok(fs::remove_dir_all(&to)?)
}

fn same(a: &Path, b: &Path) -> Result<()> {
    let (mut a, mut b) = (File::open(a)?, File::open(b)?);
    ensure!(a.metadata()?.len() == b.metadata()?.len(), "the lengths differ");
    let (mut one, mut two) = (vec![0; 256 << 10], vec![0; 256 << 10]);
    loop {
        let n = a.read(&mut one)?;
        if n == 0 {
            return Ok(());
        }
        b.read_exact(&mut two[..n])?;
        if one[..n] != two[..n] {
            bail!("the bytes differ");
        }
    }
}
