//! Where to run: the value of `--on`.

use crate::error::Error;
use fuse::message::Reason;
use sim::Machine;
use std::fs;
use std::path::Path;

/// A place to run at.
#[derive(Debug)]
pub(crate) enum Place {
    /// This machine.
    Native,
    /// A simulated one, with as many of its nodes as were requested.
    Simulated(Box<Machine>),
}

impl Place {
    /// Returns the place that `text` names: `native`, `sim:MACHINE` or `sim:MACHINE:NODES`.
    pub(crate) fn named(text: &str) -> Result<Self, Error> {
        if text == "native" {
            return Ok(Self::Native);
        }
        let Some(name) = text.strip_prefix("sim:") else {
            let place = "--on native, or --on sim:NAME with a name that lightfoot-lab list shows";
            return Err(Error::no_such("--on", text, place));
        };
        // The last part is a number of nodes; a file may have colons in its name.
        let (name, nodes) = match name.rsplit_once(':') {
            Some((name, nodes)) if !nodes.contains('/') => (name, Some(nodes)),
            _ => (name, None),
        };
        let machine =
            if name.contains('/') || name.ends_with(".toml") { read(Path::new(name))? } else { preset(name)? };
        let Some(nodes) = nodes else { return Ok(Self::Simulated(Box::new(machine))) };
        let there = machine.nodes;
        let refuse = || Error::Invalid(format!("number of nodes {nodes:?} of {name} (use 1 to {there})"));
        let count = nodes.parse().map_err(|_| refuse())?;
        machine.with_nodes(count).map(|machine| Self::Simulated(Box::new(machine))).map_err(|_| refuse())
    }
}

fn preset(name: &str) -> Result<Machine, Error> {
    Machine::preset(name).ok_or_else(|| {
        let there: Vec<String> = sim::machine::presets().iter().map(|machine| machine.name.clone()).collect();
        let use_what = format!("{}, or a file: sim:/path/to/machine.toml", there.join(", "));
        Error::no_such("simulated machine", name, &use_what)
    })
}

fn read(path: &Path) -> Result<Machine, Error> {
    let refuse = |reason: Reason| Error::MachineFile { path: path.into(), reason };
    let text = fs::read_to_string(path).map_err(|error| refuse(error.into()))?;
    // The parser's message has several lines; the first states the error, the rest shows where.
    Machine::from_toml(&text).map_err(|error| {
        let message = error.to_string();
        let lines: Vec<&str> = message.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        refuse(lines.join(" ").as_str().into())
    })
}
