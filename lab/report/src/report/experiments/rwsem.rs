//! The reader slow path of the reader/writer semaphore, 2018: a sweep.

use super::super::input::Input;
use super::{Claim, Experiment, Published, Setting, claim, row};
use crate::outcome::Outcome;
use crate::report::{Drawing, Figure, Grid, Reason};

const USER_US: [u64; 3] = [5, 20, 80];
const HOLD_NS: [u64; 2] = [500, 2_000];
const WRITE_EVERY: [u64; 3] = [50, 500, 5_000];

/// Without and with the early exit.
const SCHEMES: [&str; 2] = ["rwsem-2017", "rwsem-2018"];

const REMARKS: &str = "The published shares are those of one program on one machine, whose times are not known. The mean of \
    a sweep is not the same thing: compare the direction only. In this sweep the early exit matters near saturation with \
    short holds. Where the lock is never busy (80 us) or always (5 us), it makes no difference beyond the scatter of seeds. \
    Whether a run gets into the jam that the change ended is partly chance, so only the direction is claimed.";

/// Returns each point of the sweep, with the point's name in the table.
fn regimes() -> impl Iterator<Item = (String, u64, u64, u64)> {
    USER_US.into_iter().flat_map(|user| {
        HOLD_NS.into_iter().flat_map(move |hold| {
            WRITE_EVERY.into_iter().map(move |every| (format!("{user} us, {hold} ns, 1 in {every}"), user, hold, every))
        })
    })
}

fn system_label(era: &str, regime: &str) -> String {
    format!("{era}: system share %, {regime}")
}

fn wait_label(era: &str, regime: &str) -> String {
    format!("{era}: time in the slow path and its lock %, {regime}")
}

fn mean_label(era: &str) -> String {
    format!("{era}: mean system share of the sweep, %")
}

fn mean_wait_label(era: &str) -> String {
    format!("{era}: mean time in the slow path and its lock, %")
}

/// A figure of one outcome.
type Read = fn(&Outcome) -> f64;

/// How a figure is read, its label by era and regime, and the label of its mean by era.
type Measure = (Read, fn(&str, &str) -> String, fn(&str) -> String);

/// The figures that are read from each run of the sweep.
const MEASURES: [Measure; 2] = [
    (Outcome::system_percent, system_label, mean_label),
    (|outcome| outcome.share("RwSem") + outcome.spin_percent(), wait_label, mean_wait_label),
];

pub(super) fn experiment(published: &Published) -> Experiment {
    let mut cells = Vec::new();
    let mut rows = vec![];
    for (regime, user, hold, every) in regimes() {
        let setting = Setting::new("skylake4", "pread-storm", 8_000)
            .set("user_ns", user * 1_000)
            .set("read_ns", hold)
            .set("write_ns", hold)
            .set("write_every", every);
        for era in SCHEMES {
            let key = format!("{era} {regime}");
            cells.push(setting.cell(key.clone(), era, 96));
            for (read, label, _) in MEASURES {
                let key = key.clone();
                rows.push(row(label(era, &regime), None, move |outcomes| read(outcomes.of(&key))));
            }
        }
    }
    for (read, _, label) in MEASURES {
        for (era, column) in SCHEMES.into_iter().zip(["before", "after"]) {
            let keys = regimes().map(|(regime, ..)| format!("{era} {regime}")).collect::<Vec<_>>();
            let name = label(era);
            let figure = (name == mean_label(era)).then(|| published.single("rwsem_pread_2018", &[column]));
            rows.push(row(name, figure, move |outcomes| {
                keys.iter().map(|key| read(outcomes.of(key))).sum::<f64>() / keys.len() as f64
            }));
        }
    }
    Experiment {
        name: "rwsem",
        title: "Reads of one file with rare writes, 2018",
        sources: &["rwsem_pread_2018"],
        about: "96 CPUs read one file under its shared lock; sometimes one writes. The times are not published, so they are \
                swept: the program's time between calls, how long a call holds the lock, and the share of writes. The second \
                table has the sweep, in percent of the CPUs' time.",
        inputs: inputs(),
        cells,
        rows,
        grids: vec![grid()],
        reasons: vec![Reason {
            rows: |row| row.contains("mean system share"),
            why: "the published shares are of one program whose times are not known; the mean of a sweep is another thing",
        }],
        claims: claims(),
        figures: vec![Figure {
            name: "rwsem",
            title: "system time of reads with rare writes, 96 CPUs (simulated; published: one program, 85 and 57 %)",
            drawing: Drawing::Dots { unit: Some("percent of the CPUs' time"), rows: drawn() },
        }],
        has_box: true,
        remarks: REMARKS,
        ..Experiment::default()
    }
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters(
            "time between calls; how long a read and a write hold the file; one write in",
            &["user_ns", "read_ns", "write_ns", "write_every"],
        )
        .seen(
            "a sweep around one regime, which a search over some 100 settings found for the published direction",
            |row| row.contains("mean"),
        ),
    ]
}

fn grid() -> Grid {
    let head = ["user time, hold, writes", "system, 2017", "system, 2018", "slow path, 2017", "slow path, 2018"];
    let labels = |regime: &str| {
        MEASURES.iter().flat_map(|(_, label, _)| SCHEMES.iter().map(move |era| label(era, regime))).collect()
    };
    Grid {
        head: head.map(str::to_owned).into(),
        lines: regimes().map(|(regime, ..)| (regime.clone(), labels(&regime))).collect(),
    }
}

/// Returns the rows of the plot: both means with the published ones, and the sweep.
fn drawn() -> Vec<(String, String)> {
    let means = SCHEMES.iter().map(|era| (format!("{era}: mean of the sweep"), mean_label(era)));
    let sweep =
        regimes().flat_map(|(regime, ..)| SCHEMES.map(|era| (format!("{era}: {regime}"), system_label(era, &regime))));
    means.chain(sweep).collect()
}

fn claims() -> Vec<Claim> {
    vec![
        claim("the early exit lowers the mean system share of the sweep by a tenth of it, at least", |figures| {
            let of = |era| figures.of(&mean_label(era));
            of(SCHEMES[1]) <= 0.9 * of(SCHEMES[0])
        })
        .unless(
            "the early exit lowers system time by a tenth",
            "In most regimes of the sweep the early exit makes no difference; published: 85 to 57 %",
        ),
        claim("the early exit raises system time by at most three points in each regime", |figures| {
            regimes().all(|(regime, ..)| {
                let of = |era| figures.of(&system_label(era, &regime));
                of(SCHEMES[1]) <= of(SCHEMES[0]) + 3.0
            })
        })
        .unless(
            "and raises it in no regime",
            "Whether a run gets into the jam is partly chance, and differs by more between seeds",
        ),
        claim("the early exit lowers the mean time in the slow path and its lock", |figures| {
            let of = |era| figures.of(&mean_wait_label(era));
            of(SCHEMES[1]) < of(SCHEMES[0])
        })
        .unless("and lowers the time in the slow path", "As above: the means differ by less than seeds do"),
    ]
}
