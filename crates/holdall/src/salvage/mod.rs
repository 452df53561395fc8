//! Bringing what is whole of a damaged store into a new one.
//!
//! Owns: [`Salvage`]. A record has its object's id, name and attributes, and every page says what it is. So
//! objects are found without superblocks, root, handles, names or directories; where these are whole,
//! they say which of these the store had last. See docs/backup.md.

mod body;
mod bring;
mod catalog;
mod ground;
mod handles;
mod lost;
mod map;
mod meter;
mod pages;
mod report;
mod scan;
mod whole;

pub use report::{DoubtfulObject, LostObject, SalvageReport};

use crate::backup::BackupProgress;
use crate::engine::Options;
use crate::engine::catalog::{Root, large};
use crate::store::{Store, open_error};
use crate::txn::{has_writer, io_error};
use bring::{Bringer, Candidate, Only, Source};
use catalog::Catalog;
use ground::{Ground, Upto};
use handles::{Handles, Life};
use holdall_core::collection_entry::{Entry, SMALL_OWNER};
use holdall_core::handle_page::Location;
use holdall_core::heap_page::HeapPage;
use holdall_core::heap_record::Record;
use holdall_core::heap_record::divided::{self, Part};
use holdall_core::page::{self, PageKind};
use holdall_core::page_map_node::FRESH;
use holdall_core::{Error, PageNo, Result};
use holdall_io::{Access, FileStorage, NewFile, Storage};
use meter::Meter;
use pages::Pages;
use scan::Found;
use std::collections::HashSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// Numbers of objects that a store whose superblocks are lost may have given out beyond those found.
const MORE_UNIQUES: u64 = 1 << 20;
/// Most epochs that a new store begins ahead: other lives of the damaged one are in none of them.
const MOST_AHEAD: u64 = 1 << 16;

/// Brings every object of a damaged store whose bytes have their checksums into a new store, under its
/// OID, name and attributes.
///
/// ```
/// # use std::ops::ControlFlow;
/// # let dir = tempfile::tempdir().expect("a directory");
/// # let (damaged, new) = (dir.path().join("damaged.holdall"), dir.path().join("new.holdall"));
/// # let store = holdall::Store::create(&damaged)?;
/// # store.write(|tx| tx.put("a", b"1"))?;
/// # store.close()?;
/// let report = holdall::Salvage::new().to_file(&damaged, &new, &mut |_| ControlFlow::Continue(()))?;
/// assert!(report.is_whole());
/// assert_eq!(holdall::Store::open(&new)?.read()?.get("a")?, Some(b"1".into()));
/// # Ok::<(), holdall::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default)]
#[must_use = "nothing is brought before Salvage::to_file"]
pub struct Salvage {
    partial: bool,
}

impl Salvage {
    /// Whole objects only.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether objects are brought too of which bytes are lost, with zeros in place of these. Default: no.
    pub fn partial(mut self, partial: bool) -> Self {
        self.partial = partial;
        self
    }

    /// Makes a new store at `new` of what is whole in the store at `damaged`, which is only read. Its
    /// name appears once it is complete and durable. It has an id of its own, and the objects' versions and
    /// times; copies share no bytes any more. `progress` may end it. Cost: reads the file once, then what
    /// is in use again; memory of 40 bytes for each page of records.
    ///
    /// # Errors
    /// What is lost is no error but in the report. [`Error::Exists`] if something has the name;
    /// [`Error::NotFound`]; [`Error::NotAStore`] if nothing of one is found; [`Error::Locked`] if somebody
    /// has it open for writing; [`Error::Unsupported`]; [`Error::Cancelled`] if `progress` ended it;
    /// [`Error::Full`], [`Error::Io`]. Then there is no such file.
    pub fn to_file(
        self,
        damaged: impl AsRef<Path>,
        new: impl AsRef<Path>,
        progress: BackupProgress<'_>,
    ) -> Result<SalvageReport> {
        let (damaged, new) = (damaged.as_ref(), new.as_ref());
        let storage = FileStorage::open(damaged, Access::ReadOnly);
        let storage: Arc<dyn Storage> = Arc::new(storage.map_err(|e| open_error(damaged, e))?);
        if has_writer(&*storage)? {
            let (path, by) = (damaged.display().to_string(), "another process".into());
            return Err(Error::Locked { path, by, process: None });
        }
        let failed = |e: std::io::Error| match e.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists(new.display().to_string()),
            _ => io_error(format!("making {}", new.display()), e),
        };
        let file = NewFile::begin(new).map_err(failed)?;
        let like = storage.volume().metadata().ok().flatten();
        let report = self.bring(&storage, progress, &|options| options.create(file.path()))?;
        file.publish(like.as_ref()).map_err(failed)?;
        Ok(report)
    }

    /// As [`Salvage::to_file`], from any storage into another that holds nothing.
    ///
    /// # Errors
    /// As [`Salvage::to_file`].
    #[doc(hidden)]
    pub fn on(self, damaged: &Arc<dyn Storage>, new: &Arc<dyn Storage>) -> Result<SalvageReport> {
        let mut go_on = |_| std::ops::ControlFlow::Continue(());
        self.bring(damaged, &mut go_on, &|options| options.create_on(new.clone()))
    }

    fn bring(
        self,
        damaged: &Arc<dyn Storage>,
        progress: BackupProgress<'_>,
        create: &dyn Fn(&Options) -> Result<Store>,
    ) -> Result<SalvageReport> {
        let (ground, meter) = (Ground::find(damaged, Upto::Last)?, Meter::new(progress));
        let whole = Whole::read(&ground, &damaged.name(), &meter)?;
        let store = create(&options(&ground, &whole.found))?;
        let report = self.bring_into(&store, damaged, &whole, &meter);
        let closed = store.close();
        report.and_then(|report| closed.map(|()| report))
    }

    fn bring_into(
        self,
        store: &Store,
        damaged: &Arc<dyn Storage>,
        whole: &Whole<'_>,
        meter: &Meter<'_>,
    ) -> Result<SalvageReport> {
        let mut bringer = Bringer::new(store, self.partial);
        let handles = whole.bring_all(&mut bringer, meter, None)?;
        let log = &whole.ground.log;
        if log.doubts_last {
            let (lost, why) =
                (bringer.not_brought(), "its last change is damaged: this is the version before");
            let only = Only { may: &|oid| lost.contains(&oid), why };
            bring_before(damaged, Upto::BeforeLast, &mut bringer, meter, only)?;
        }
        let may = |oid| handles.is_live(&whole.pages, oid) != Some(false);
        if whole.pages.is_mixed() {
            let why = "pages of several states were found: this may be of an earlier one";
            // A handle page may be one that a transaction that was given up has left.
            let only = Only { may: &|_| true, why };
            bring_before(damaged, Upto::Places, &mut bringer, meter, only)?;
        }
        if log.wrong.is_some() && !whole.ground.is_sure() {
            let why = "its last version is lost with a part of the log: this is an earlier one";
            bring_before(damaged, Upto::Checkpoint, &mut bringer, meter, Only { may: &may, why })?;
        }
        bringer.finish()
    }
}

/// Brings objects that are not settled as an earlier state has them.
fn bring_before(
    damaged: &Arc<dyn Storage>,
    upto: Upto,
    bringer: &mut Bringer<'_>,
    meter: &Meter<'_>,
    only: Only<'_>,
) -> Result<()> {
    let ground = Ground::find(damaged, upto)?;
    let whole = Whole::read(&ground, &damaged.name(), meter)?;
    bringer.unsettle_lost();
    whole.bring_all(bringer, meter, Some(only)).map(drop)
}

/// What is whole of a damaged store.
struct Whole<'g> {
    ground: &'g Ground,
    found: Found,
    pages: Pages<'g>,
    /// The root, if all pages are of one state.
    root: Option<Root>,
    /// Pages whose newest version lay elsewhere, nobody knows where.
    missing: u64,
}

impl<'g> Whole<'g> {
    fn read(ground: &'g Ground, name: &str, meter: &Meter<'_>) -> Result<Self> {
        let mut found = Found::read(ground, meter)?;
        if found.pages == 0 {
            let detail = "no page of one is whole".into();
            return Err(Error::NotAStore { path: name.into(), detail });
        }
        let mut pages = Pages::new(ground, &mut found)?;
        let (mut missing, root_page) = (0, root_page(ground, &found));
        let known =
            root_page.filter(|no| matches!(pages.look(*no, PageKind::Root), Ok((_, false))));
        match known {
            Some(no) => missing = pages.learn_images(no),
            None => pages.guess_images(&mut found.images),
        }
        // Without the tree of images, what the root leads to may be of an earlier state.
        let root = known.filter(|_| ground.is_sure() && missing == 0).and_then(|no| {
            let (bytes, _) = pages.look(no, PageKind::Root).ok()?;
            Root::decode(&bytes).ok()
        });
        Ok(Self { ground, found, pages, root, missing })
    }

    /// Brings all objects that can be, or only those that `only` names. Returns the handles by which it
    /// knew them.
    fn bring_all(
        &self,
        bringer: &mut Bringer<'_>,
        meter: &Meter<'_>,
        only: Option<Only<'_>>,
    ) -> Result<Handles> {
        let (pages, found, root) = (&self.pages, &self.found, self.root.as_ref());
        let sure = self.ground.is_sure();
        let catalog = Catalog::find(pages, found, root);
        let handles = Handles::find(pages, found, root, sure);
        let blank = root.map_or_else(HashSet::new, |root| blank_pages(pages, root));
        let most_pages = self.most_pages();
        let check = || meter.check();
        let from = Source { pages, catalog: &catalog, check: &check, only, most_pages };
        if only.is_none() {
            self.note(&catalog, &mut bringer.report);
            bringer.make_collections(&catalog)?;
        }
        let mut perhaps = Vec::new();
        let (size, file) = (self.ground.page_size as u64, pages.bytes_behind(0));
        for no in found.heaps(sure) {
            let gone = sure && pages.is_free(no) == Some(true) || blank.contains(&no);
            if !gone {
                self.bring_page(from, &handles, (no, None), bringer, &mut perhaps)?;
            }
            for place in if self.ground.places { pages.versions(no) } else { Vec::new() } {
                pages.pin(Some((no, place)));
                let looked =
                    self.bring_page(from, &handles, (no, Some(place)), bringer, &mut perhaps);
                pages.pin(None);
                looked?;
            }
            meter.at((file, (no.0 * size).min(file)), file)?;
        }
        meter.at((file, file), file)?;
        bringer.bring_best(from, perhaps)?;
        if only.is_none() {
            lost::find((pages, found, sure), &handles, &catalog, bringer);
        }
        Ok(handles)
    }

    /// Notes what is lost beside objects.
    fn note(&self, catalog: &Catalog, report: &mut SalvageReport) {
        report.notes.clone_from(&self.ground.notes);
        report.unreadable = self.found.unreadable;
        if self.root.is_none() && self.ground.is_sure() && self.missing == 0 {
            report.notes.push("the root page is lost".into());
        }
        if self.missing > 0 {
            let text = "the tree of images is damaged: {} pages, and objects in them, may be of an \
                        earlier state";
            report.notes.push(text.replace("{}", &self.missing.to_string()));
        }
        if self.root.is_some() && !catalog.is_whole() {
            let text = "a part of the catalog is lost: collections may be called by their numbers, \
                        and objects of dropped ones come back";
            report.notes.push(text.into());
        }
    }

    /// Brings the objects whose records lie in a page; those that no handle confirms go to `perhaps`.
    fn bring_page(
        &self,
        from: Source<'_, '_>,
        handles: &Handles,
        (no, version): (PageNo, Option<PageNo>),
        bringer: &mut Bringer<'_>,
        perhaps: &mut Vec<Candidate>,
    ) -> Result<()> {
        let pages = from.pages;
        let Ok((page, _)) = pages.look(no, PageKind::Heap) else { return Ok(()) };
        let Ok(heap) = HeapPage::new(&page, no) else { return Ok(()) };
        let sure = self.ground.is_sure();
        for (slot, range) in heap.iter().filter_map(Result::ok) {
            let Some(bytes) = page.get(range) else { continue };
            let Ok((oid, Part::Whole | Part::First(_))) = divided::part(bytes) else { continue };
            let loc = Location { page: no, slot };
            match handles.life(pages, oid, loc) {
                Life::Gone => {}
                Life::Lives if version.is_none() => bringer.bring(from, (oid, loc), None)?,
                life => {
                    let change = Record::parse(bytes).map(|r| r.change).unwrap_or_default();
                    let free = pages.is_free(version.unwrap_or(no));
                    let known = life == Life::Fits || sure && free == Some(false);
                    let why = (!known).then_some("its handle is lost: it may have been removed");
                    let lsn = page::lsn(&page);
                    let used = free != Some(true);
                    perhaps.push(Candidate { oid, loc, version, change, lsn, used, why });
                }
            }
        }
        Ok(())
    }

    /// More handle pages than there can have been.
    fn most_pages(&self) -> u64 {
        let length = self.ground.disk.len().unwrap_or(0) / self.ground.page_size as u64;
        length.max(self.ground.superblock.as_ref().map_or(0, |sb| sb.volume_pages))
    }
}

/// The root page: as the superblock says, else the newest one that was found.
fn root_page(ground: &Ground, found: &Found) -> Option<PageNo> {
    match &ground.superblock {
        Some(sb) => Some(sb.root),
        None => found.root.map(|(_, no)| no),
    }
}

/// Pages of heap files that hold nothing yet: what lies there is of an earlier use.
fn blank_pages(pages: &Pages<'_>, root: &Root) -> HashSet<PageNo> {
    let mut blank = HashSet::new();
    let mut add = |number, page| {
        pages.take_doubt();
        let Ok(collection) = large(pages, number, page) else { return };
        if pages.take_doubt() {
            return;
        }
        map::each_entry(pages, collection.heap.map(), &mut |_, entry| {
            if entry.tag.class == FRESH {
                blank.insert(entry.page);
            }
        });
    };
    let entries = root.entries.iter(pages, Bound::Unbounded).map_while(Result::ok);
    let known =
        entries.filter_map(|(key, value)| crate::engine::catalog::Known::decode(&key, &value).ok());
    for known in known {
        if let Entry::Large(page) = known.entry {
            add(known.number, page);
        }
    }
    if !root.small.is_none() {
        add(SMALL_OWNER, root.small);
    }
    blank
}

/// How the new store is made: it goes on where the damaged one ended, so that no OID and no version is
/// given out twice.
fn options(ground: &Ground, found: &Found) -> Options {
    let sb = ground.superblock.as_ref();
    let drawn = RandomState::new().build_hasher().finish() % MOST_AHEAD;
    let epoch = u64::from(found.most_epoch.max(sb.map_or(0, |sb| sb.epoch))) + 1 + drawn;
    let unique = match sb {
        Some(sb) => sb.unique_ceiling.max(u64::from(found.most_unique) + 1),
        None => u64::from(found.most_unique) + MORE_UNIQUES,
    };
    let mut options = Options::default().page_size(ground.page_size);
    options.tuning.begins = Some((u32::try_from(epoch).unwrap_or(u32::MAX), unique));
    options
}
