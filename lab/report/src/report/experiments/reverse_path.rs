//! Reverse paths beside a database, 2013.

use super::super::input::Input;
use super::{Claim, Experiment, Published, Setting, change, claim, is_near, parts, row};
use crate::report::{Key, Reason};

/// Before and after: `rename_lock` taken as a writer and each entry's lock, or as a blocking reader and no other lock.
const SCHEMES: [(&str, &str); 2] = [("rcu-walk", "before"), ("patch-2013-4", "after")];

const WRITERS: [usize; 2] = [0, 64];
const REDO_READERS: [usize; 4] = [8, 32, 80, 128];

fn label(scheme: &str, readers: usize, writers: usize) -> String {
    format!("kernel time in spinning locks, {scheme}, {readers} readers, {writers} writers, %")
}

pub(super) fn experiment(published: &Published) -> Experiment {
    let setting = Setting::new("dl980", "reverse-path", 20_000).spread();
    let mut cells = Vec::new();
    let mut rows = Vec::new();
    for writers in WRITERS {
        for (era, scheme) in SCHEMES {
            for readers in REDO_READERS {
                if writers == 0 && readers == 8 {
                    continue;
                }
                let key = format!("{era} {readers} {writers}");
                let setting = setting.clone().set("writers", writers as u64);
                cells.push(setting.cell(key.clone(), era, readers + writers));
                if readers == 8 {
                    continue;
                }
                let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(writers as i64))];
                let figure = published.figure("slob_cpu_2013", &at, &format!("spinlock_{scheme}"));
                rows.push(row(label(scheme, readers, writers), Some(figure), move |outcomes| {
                    outcomes.of(&key).all_spinning_of_system()
                }));
            }
        }
    }
    for readers in REDO_READERS {
        let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(64))];
        let figure = published.figure("slob_redo_2013", &at, "gain_percent");
        let read = move |outcomes: &super::Outcomes<'_>| {
            let rate = |era: &str| outcomes.of(&format!("{era} {readers} 64")).rate_of_role("writer");
            change(rate(SCHEMES[0].0), rate(SCHEMES[1].0))
        };
        rows.push(row(gain_label(readers), Some(figure), read).within(5.0));
    }
    let figures = vec![parts("reverse-path", "reverse paths beside a database, DL980 (simulated)", &rows)];
    Experiment {
        name: "reverse-path",
        title: "Reverse paths beside a database, 2013",
        sources: &["slob_cpu_2013", "slob_redo_2013"],
        about: "Readers compute and call `d_path` on an open file; writers write and call it too. Before: a reverse path \
                takes `rename_lock` as a writer, and the lock of each entry. After: it is a blocking reader of a sequence lock \
                and takes no other lock, and counts are lockless. Spinning locks are all kinds: those of the table's \
                publication, reader/writer locks and sequence locks.",
        inputs: inputs(),
        cells,
        rows,
        reasons: reasons(),
        claims: claims(published),
        figures,
        has_box: true,
        remarks: "The simulation shows only what the change removes. With 128 readers on 80 CPUs, threads wait in run queues.",
        ..Experiment::default()
    }
}

fn gain_label(readers: usize) -> String {
    format!("writers' rate, {readers} readers, change %")
}

fn inputs() -> Vec<Input> {
    vec![
        Input::parameters("user time, and other kernel time, for each path", &["user_ns", "kernel_ns"])
            .fitted("set on before, 32 and 80 readers, no writers", |row| {
                row.contains("before") && row.contains(", 0 writers") && !row.contains("128 readers")
            }),
        Input::parameters("components of the path", &["depth"]).from("assumed"),
        Input::parameters("workers that rename meanwhile", &["movers"]).from("none, as published"),
        Input::parameters("writers beside the readers", &["writers"]).from("as published"),
        Input::parameters(
            "a writer's own time, its write, and how often it calls for a path",
            &["writer_user_ns", "write_ns", "writer_paths_permille"],
        )
        .from("assumed"),
        Input::occupancies()
            .from("fitted to lock loops of 2013 and to AIM7 short; no figure of this table was in view"),
    ]
}

fn reasons() -> Vec<Reason> {
    vec![
        Reason {
            rows: |row| row.contains("after"),
            why: "the published share after the change comes from other locks of that kernel, which are not simulated",
        },
        Reason {
            rows: |row| row.contains("128 readers") && row.contains("before"),
            why: "with more threads than CPUs the published kernel spins elsewhere too: 43.5 % of the time after the change",
        },
        Reason {
            rows: |row| row.contains("64 writers"),
            why: "a writer takes other locks of the database and the kernel, which are not simulated",
        },
        Reason {
            rows: |row| row.starts_with("writers'"),
            why: "the published writers call for paths more often, or wait for readers in other locks; neither is known",
        },
    ]
}

fn published_before(published: &Published, readers: i64) -> f64 {
    let at = [("readers", Key::Number(readers)), ("writers", Key::Number(0))];
    published.figure("slob_cpu_2013", &at, "spinlock_before")
}

fn claims(published: &Published) -> Vec<Claim> {
    let before = |readers| published_before(published, readers);
    let (at_32, at_80) = (before(32), before(80));
    vec![
        claim("before: within 25 % of the published share at 32 and 80 readers", move |figures| {
            let of = |readers| figures.of(&label("before", readers, 0));
            is_near(of(32), at_32, 0.25) && is_near(of(80), at_80, 0.25)
        }),
        claim("after: at most the published share, in all six cells", {
            let readers = [32, 80, 128];
            let figure = |readers: usize, writers: usize| {
                let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(writers as i64))];
                published.figure("slob_cpu_2013", &at, "spinlock_after")
            };
            let published = readers.map(|readers| WRITERS.map(|writers| figure(readers, writers)));
            move |figures| {
                let is_below = |(i, readers): (usize, &usize)| {
                    (0..WRITERS.len()).all(|j| figures.of(&label("after", *readers, WRITERS[j])) <= published[i][j])
                };
                readers.iter().enumerate().all(is_below)
            }
        }),
        claim(
            "writers gain 8 to 21 % from the change, within a half of the published gain for each number of readers",
            {
                let gain = |readers: usize| {
                    let at = [("readers", Key::Number(readers as i64)), ("writers", Key::Number(64))];
                    published.figure("slob_redo_2013", &at, "gain_percent")
                };
                let published = REDO_READERS.map(gain);
                move |figures| {
                    let near = |(readers, gain): (&usize, &f64)| is_near(figures.of(&gain_label(*readers)), *gain, 0.5);
                    REDO_READERS.iter().zip(&published).all(near)
                }
            },
        )
        .unless(
            "writers gain 8 to 21 %",
            "Simulated writers gain about one percent: they spend little of their time in reverse paths",
        ),
        claim("writers lose nothing by the change", |figures| {
            REDO_READERS.iter().all(|&readers| figures.of(&gain_label(readers)) >= -0.5)
        }),
    ]
}
