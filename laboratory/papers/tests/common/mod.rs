//! Experiments made for the tests, and a run of the command line in this process.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, bail};
use holdall_instrument::cli;
use holdall_instrument::experiment::{Claim, Experiment, Needs, Outcome, Settings, Verdict};
use holdall_instrument::picture::{Axis, Kind, Panel, Scale, Series, Table};
use holdall_lab::papers::LIBRARY;

/// What a made-up experiment does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Does {
    Ends,
    Fails,
    Panics,
    /// Keeps a part and is broken off; ends if the part is there.
    Halfway,
}

/// An experiment of our own that counts its runs.
pub struct Made {
    pub id: &'static str,
    pub does: Does,
    pub runs: Arc<AtomicUsize>,
}

/// One called `id` that does `does`.
pub fn made(id: &'static str, does: Does) -> Made {
    Made { id, does, runs: Arc::default() }
}

fn claim(id: &str, tolerance: &str, verdict: Verdict, explanation: &str) -> Claim {
    Claim {
        id: id.into(),
        text: "says <b>something</b>".into(),
        section: "§4.2".into(),
        paper: "10".into(),
        ours: "11".into(),
        ratio: Some(1.1),
        tolerance: tolerance.into(),
        verdict,
        explanation: explanation.into(),
        judged_when_quick: false,
    }
}

impl Experiment for Made {
    fn id(&self) -> &'static str {
        self.id
    }
    fn title(&self) -> &'static str {
        "A made-up figure <&>"
    }
    fn needs(&self) -> Needs {
        Needs { price: self.id.ends_with("modern"), alone: false }
    }
    fn run(&self, settings: &Settings<'_>) -> Result<Outcome> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        (settings.progress)(1, 2);
        match self.does {
            Does::Ends => {}
            Does::Fails => bail!("the disk\nis full"),
            Does::Panics => panic!("a broken invariant"),
            Does::Halfway if settings.parts.load("half").is_none() => {
                settings.parts.save("half", "done")?;
                bail!("broken off");
            }
            Does::Halfway => {}
        }
        let axis = |label: &str| Axis {
            label: label.into(),
            scale: Scale::Linear,
            range: None,
            ticks: Vec::new(),
        };
        let panel = Panel {
            id: "cost".into(),
            title: "Cost".into(),
            caption: "what to see".into(),
            kind: Kind::Lines,
            x: axis("operations"),
            y: axis("seconds"),
            series: vec![Series {
                name: "one".into(),
                reference: false,
                points: vec![(1.0, settings.seed as f64), (2.0, f64::NAN), (3.0, 4.0)],
            }],
        };
        let table = Table {
            id: "cost".into(),
            title: "Counts <i>".into(),
            head: vec!["what".into(), "n".into()],
            rows: vec![vec!["pages".into(), "7".into()]],
        };
        Ok(Outcome {
            panels: vec![panel.clone(), Panel { id: "Odd Name/..".into(), ..panel }],
            tables: vec![table],
            claims: vec![
                claim("B10", "=", Verdict::Holds, ""),
                claim("B2", "5 %", Verdict::Fails, "because of <that>"),
                claim("B3", "shape", Verdict::Note, ""),
            ],
            notes: vec!["an assumption & a note".into()],
        })
    }
}

/// Exit code, standard output and standard error of `args` over `list`.
pub fn command(list: Vec<Made>, args: &[&str]) -> (u8, String, String) {
    let list: Vec<Box<dyn Experiment>> =
        list.into_iter().map(|m| Box::new(m) as Box<dyn Experiment>).collect();
    let args = std::iter::once("holdall-lab").chain(args.iter().copied());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let code = cli::run(args.map(Into::into).collect(), &LIBRARY, &list, &mut out, &mut err);
    (code, String::from_utf8(out).unwrap(), String::from_utf8(err).unwrap())
}
