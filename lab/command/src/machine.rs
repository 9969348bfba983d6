//! The machine that the numbers come from.

use serde::Serialize;
use std::fs;
use std::thread;

/// The facts about the machine that belong beside any number measured on it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    /// Model of the CPU, as `/proc/cpuinfo` has it.
    pub(crate) cpu: String,
    /// CPUs that this process may use.
    pub(crate) cpus: usize,
    /// Release of the kernel.
    pub(crate) kernel: String,
    /// Setting of transparent huge pages.
    pub(crate) huge_pages: String,
}

impl Machine {
    /// This machine.
    pub(crate) fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let uname = rustix::system::uname();
        let huge_pages = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled").unwrap_or_default();
        Self {
            cpu: model(&info).unwrap_or_else(|| uname.machine().to_string_lossy().into_owned()),
            cpus: usable_cpus().len(),
            kernel: format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy()),
            huge_pages: chosen(&huge_pages).unwrap_or("unknown").into(),
        }
    }
}

/// Returns the numbers of the CPUs that threads may be pinned to, no more than the process can use
/// at once.
pub(crate) fn usable_cpus() -> Vec<usize> {
    let at_once = thread::available_parallelism().map_or(1, usize::from);
    lab::calibrate::allowed_cpus().into_iter().take(at_once).collect()
}

fn model(info: &str) -> Option<String> {
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().into())
}

/// Returns the word in brackets.
fn chosen(setting: &str) -> Option<&str> {
    setting.split_once('[')?.1.split_once(']').map(|(word, _)| word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_in_brackets_is_the_chosen_one() {
        assert_eq!(chosen("always [madvise] never\n"), Some("madvise"));
        assert_eq!(chosen(""), None);
    }

    #[test]
    fn the_model_is_what_follows_the_colon() {
        assert_eq!(model("processor\t: 0\nmodel name\t: Foo 9\n").as_deref(), Some("Foo 9"));
    }
}
