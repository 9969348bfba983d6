//! The reader slow path of the reader/writer semaphore, 2018: a sweep.

use super::{Experiment, Origin, Published, Setting, claim, row, tuned};

const USER_US: [u64; 3] = [5, 20, 80];
const HOLD_NS: [u64; 2] = [500, 2_000];
const WRITE_EVERY: [u64; 3] = [50, 500, 5_000];

/// Without and with the early exit.
const SCHEMES: [&str; 2] = ["rwsem-2017", "rwsem-2018"];

const REMARKS: &str = "The published shares are those of one program on one machine, whose times are not known. The mean of \
    a sweep is not the same thing: compare the direction only. In this sweep the early exit matters near saturation with \
    short holds. Where the lock is never busy (80 us) or always (5 us), it makes no difference beyond the scatter of seeds. \
    Whether a run gets into the jam that the change ended is partly chance, so only the direction is claimed.";

/// One point of the sweep, as the table names it.
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

fn slow_label(era: &str, regime: &str) -> String {
    format!("{era}: readers that did not leave the slow path at once, for 1,000 calls, {regime}")
}

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
            let system = key.clone();
            rows.push(row(system_label(era, &regime), None, Origin::Predicted, move |outcomes| {
                outcomes.of(&system).system_percent()
            }));
            rows.push(row(slow_label(era, &regime), None, Origin::Predicted, move |outcomes| {
                let outcome = outcomes.of(&key);
                1_000.0 * (outcome.counter("slow_readers") - outcome.counter("early_exits")) / outcome.operations()
            }));
        }
    }
    for (era, column) in SCHEMES.into_iter().zip(["before", "after"]) {
        let most = regimes().map(|(regime, ..)| format!("{era} {regime}")).collect::<Vec<_>>();
        let figure = published.single("rwsem_pread_2018", &[column]);
        rows.push(row(
            format!("{era}: mean system share of the sweep, %"),
            Some(figure),
            Origin::Predicted,
            move |outcomes| {
                let shares = most.iter().map(|key| outcomes.of(key).system_percent());
                shares.sum::<f64>() / most.len() as f64
            },
        ));
    }
    Experiment {
        name: "rwsem",
        title: "Reads of one file with rare writes, 2018",
        sources: &["rwsem_pread_2018"],
        about: "96 CPUs read one file under its shared lock; sometimes one writes. The times are not published, so they are \
                swept: the program's time between calls, how long a call holds the lock, and the share of writes.",
        tuned: vec![tuned("nothing", "-", "the sweep is the whole range")],
        cells,
        rows,
        claims: vec![
            claim("the early exit lowers system time over the sweep", |figures| {
                let of = |era| figures.of(&format!("{era}: mean system share of the sweep, %"));
                of(SCHEMES[1]) < of(SCHEMES[0])
            }),
            claim("the early exit raises system time by at most one point in each regime", |figures| {
                regimes().all(|(regime, ..)| {
                    let of = |era| figures.of(&system_label(era, &regime));
                    of(SCHEMES[1]) <= of(SCHEMES[0]) + 1.0
                })
            }),
            claim("the early exit lowers the number of readers that queue, summed over the sweep", |figures| {
                let of = |era| regimes().map(|(regime, ..)| figures.of(&slow_label(era, &regime))).sum::<f64>();
                of(SCHEMES[1]) < of(SCHEMES[0])
            }),
        ],
        figures: vec![],
        has_box: true,
        remarks: REMARKS,
    }
}
