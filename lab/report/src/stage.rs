//! An era, a workload's tree in it, and its workers: the common part of both substrates.
//!
//! The eras are compiled twice, as `eras` and as its twin `eras_sim`, whose types are others. So this file is one macro
//! that is expanded for each; it holds no more than needs the names of those types.
//!
//! A [`Plan`](native::Plan) is made before a simulation, a `Staged` inside of it: allocations of
//! simulated threads do not outlive the simulation. For the same reason failures inside are plain
//! values ([`Trouble`]).

use crate::failure::Failure;
use crate::job::Job;

/// The error of a run, without anything allocated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trouble {
    pub(crate) place: TroublePlace,
    pub(crate) kind: TroubleKind,
}

/// The place of an error.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TroublePlace {
    Tree,
    Making(usize),
    Step(usize),
}

/// The error that the era returned.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TroubleKind {
    Unsupported,
    /// The name of the era's error.
    Error(&'static str),
}

impl Trouble {
    /// Returns the failure that describes the trouble in words, with the names of the era and the
    /// workload.
    pub(crate) fn of(self, job: &Job) -> Failure {
        let (era, workload) = (job.era.clone(), job.workload.clone());
        let place = match self.place {
            TroublePlace::Tree => "making the tree".to_owned(),
            TroublePlace::Making(worker) => format!("making worker {worker}"),
            TroublePlace::Step(worker) => format!("worker {worker}"),
        };
        match self.kind {
            TroubleKind::Unsupported => Failure::Unsupported { era, workload },
            TroubleKind::Error(error) => Failure::Operation { era, workload, place, error: error.into() },
        }
    }
}

/// Defines the module `$module` over the crate `$eras`.
macro_rules! stage {
    ($module:ident, $eras:ident) => {
        pub(crate) mod $module {
            use super::{Trouble, TroubleKind, TroublePlace};
            use crate::failure::Failure;
            use crate::job::Job;
            use locks::lockstat::Counts;
            use $eras::workload::{self, Workload};
            use $eras::{Era, Error, Options};

            type Stage<'era> = Box<dyn workload::Stage + 'era>;

            self_cell::self_cell!(
                struct EraAndStage {
                    owner: Box<dyn Era>,
                    #[covariant]
                    dependent: Stage,
                }
            );

            /// The function that makes an era.
            pub(crate) type MakeEra = fn(&Options) -> Box<dyn Era>;

            /// The function that makes a workload.
            pub(crate) type MakeWorkload = fn() -> Box<dyn Workload>;

            /// The settings of a job, looked up.
            pub(crate) struct Plan {
                workload: Box<dyn Workload>,
                make_era: MakeEra,
                options: Options,
                workers: usize,
                seed: u64,
            }

            impl Plan {
                /// With an era or a workload that is not in the catalogues.
                pub(crate) fn new(job: &Job, era: Option<MakeEra>, load: Option<MakeWorkload>) -> Result<Self, Failure> {
                    let workload = load.map_or_else(|| workload_of(job), |make| Ok(make()))?;
                    let workers = job.on.threads();
                    let known = || $eras::catalogue().iter().map(|entry| entry.name.to_owned()).collect();
                    let make_era = era
                        .or_else(|| $eras::find(&job.era).map(|entry| entry.make))
                        .ok_or_else(|| Failure::NoSuchEra { era: job.era.clone(), known: known() })?;
                    // Room beyond the names: negative entries, and entries that wait for a grace
                    // period.
                    let capacity = 2 * workload.entries(workers) + 4096;
                    let mut options = Options { capacity, ..Options::default() };
                    for (name, &value) in &job.era_options {
                        set(&mut options, name, value).map_err(|reason| Failure::BadValue {
                            of: format!("options of the era {}", job.era),
                            reason,
                        })?;
                    }
                    Ok(Self { workload, make_era, options, workers, seed: job.seed })
                }

                pub(crate) fn roles(&self) -> &'static [&'static str] {
                    self.workload.roles()
                }
            }

            /// Returns the workload of a job, with the job's values.
            fn workload_of(job: &Job) -> Result<Box<dyn Workload>, Failure> {
                let entry = workload::find(&job.workload).ok_or_else(|| Failure::NoSuchWorkload {
                    workload: job.workload.clone(),
                    known: workload::catalogue().iter().map(|entry| entry.name.to_owned()).collect(),
                })?;
                let values = job.parameters.iter().map(|(name, &value)| (name.as_str(), value));
                entry.make(values).map_err(|refused| Failure::BadValue {
                    of: format!("workload {}", job.workload),
                    reason: refused.to_string(),
                })
            }

            /// Sets the field of this name.
            pub(crate) fn set(options: &mut Options, name: &str, value: u64) -> Result<(), String> {
                match name {
                    "capacity" => options.capacity = usize::try_from(value).unwrap_or(usize::MAX),
                    "mounts" => options.mounts = usize::try_from(value).unwrap_or(usize::MAX),
                    "is_pinned" => options.is_pinned = value != 0,
                    "table_kib" => options.table_kib = usize::try_from(value).unwrap_or(usize::MAX),
                    "is_remounted" => options.is_remounted = value != 0,
                    "component_ns" => options.component_ns = value,
                    "search_ns" => options.search_ns = value,
                    "permission_ns" => options.permission_ns = value,
                    "stat_ns" => options.stat_ns = value,
                    "open_ns" => options.open_ns = value,
                    "create_ns" => options.create_ns = value,
                    "unlink_ns" => options.unlink_ns = value,
                    "path_ns" => options.path_ns = value,
                    "mount_ns" => options.mount_ns = value,
                    "attach_ns" => options.attach_ns = value,
                    _ => {
                        return Err(format!(
                            "there is no option {name:?}; there are capacity, mounts, is_pinned, is_remounted, table_kib, component_ns, \
                             search_ns, permission_ns, stat_ns, open_ns, create_ns, unlink_ns, path_ns, mount_ns, attach_ns"
                        ));
                    }
                }
                Ok(())
            }

            /// An era with a workload's tree in it.
            pub(crate) struct Staged {
                seed: u64,
                parts: EraAndStage,
            }

            impl Staged {
                /// Makes the era and the tree.
                pub(crate) fn new(plan: &Plan) -> Result<Self, Trouble> {
                    let era = (plan.make_era)(&plan.options);
                    let parts = EraAndStage::try_new(era, |era| plan.workload.stage(&**era, plan.workers));
                    let parts = parts.map_err(|error| trouble(error, TroublePlace::Tree))?;
                    Ok(Self { seed: plan.seed, parts })
                }

                pub(crate) fn role(&self, worker: usize) -> usize {
                    self.parts.borrow_dependent().role(worker)
                }

                /// Makes worker `index`, calls `ready`, and lets the worker step while `goes_on`
                /// returns `true`. `goes_on` is called before each step, `stepped` after each step.
                pub(crate) fn work(
                    &self,
                    index: usize,
                    ready: impl FnOnce(),
                    mut goes_on: impl FnMut() -> bool,
                    mut stepped: impl FnMut(),
                ) -> Result<(), Trouble> {
                    let worker = self.parts.borrow_dependent().worker(index, self.seed);
                    ready();
                    let mut worker = worker.map_err(|error| trouble(error, TroublePlace::Making(index)))?;
                    while goes_on() {
                        worker.step().map_err(|error| trouble(error, TroublePlace::Step(index)))?;
                        stepped();
                    }
                    Ok(())
                }

                /// Makes the locks count.
                pub(crate) fn count_locks(&self) {
                    self.parts.borrow_owner().visit_locks(&mut |class| {
                        class.reset();
                        class.enable();
                    });
                }

                /// Calls `visit` with the era's counts since it was made.
                pub(crate) fn visit_counters(&self, visit: &mut dyn FnMut(&'static str, u64)) {
                    self.parts.borrow_owner().visit_counters(visit);
                }

                /// Calls `visit` with the locks' counts since [`count_locks`](Self::count_locks).
                pub(crate) fn visit_locks(&self, visit: &mut dyn FnMut(&'static str, Counts)) {
                    self.parts.borrow_owner().visit_locks(&mut |class| {
                        let counts = class.counts();
                        let counts = Counts {
                            acquisitions: counts.acquisitions,
                            contended: counts.contended,
                            hold_ns: counts.hold_ns,
                            hold_max_ns: counts.hold_max_ns,
                            wait_ns: counts.wait_ns,
                            wait_max_ns: counts.wait_max_ns,
                        };
                        visit(class.name(), counts);
                    });
                }
            }

            fn trouble(error: Error, place: TroublePlace) -> Trouble {
                let kind = match error {
                    Error::NoEntry => TroubleKind::Error("NoEntry"),
                    Error::Exists => TroubleKind::Error("Exists"),
                    Error::NotDirectory => TroubleKind::Error("NotDirectory"),
                    Error::IsDirectory => TroubleKind::Error("IsDirectory"),
                    Error::NotEmpty => TroubleKind::Error("NotEmpty"),
                    Error::Invalid => TroubleKind::Error("Invalid"),
                    Error::NoSpace => TroubleKind::Error("NoSpace"),
                    Error::NameTooLong => TroubleKind::Error("NameTooLong"),
                    Error::Unsupported => TroubleKind::Unsupported,
                };
                Trouble { place, kind }
            }
        }
    };
}

stage!(native, eras);
stage!(simulated, eras_sim);
