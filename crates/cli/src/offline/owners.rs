//! Names of users and groups: `passwd(5)`, `group(5)`. What is kept elsewhere (LDAP, systemd) stays a number.

use std::collections::BTreeMap;
use std::fs;

/// The names that this machine's files know.
#[derive(Default)]
pub(super) struct Owners {
    users: BTreeMap<u32, String>,
    groups: BTreeMap<u32, String>,
}

impl Owners {
    /// Those of `/etc`; none if numbers are asked for.
    pub(super) fn read(numbers: bool) -> Self {
        if numbers {
            return Self::default();
        }
        let names =
            |path| fs::read(path).map_or_else(|_| BTreeMap::new(), |text| parse(&String::from_utf8_lossy(&text)));
        Self { users: names("/etc/passwd"), groups: names("/etc/group") }
    }

    pub(super) fn user(&self, uid: u32) -> String {
        self.users.get(&uid).cloned().unwrap_or_else(|| uid.to_string())
    }

    pub(super) fn group(&self, gid: u32) -> String {
        self.groups.get(&gid).cloned().unwrap_or_else(|| gid.to_string())
    }
}

/// The first name of each number: both files have the name in the first field and the number in the third.
fn parse(text: &str) -> BTreeMap<u32, String> {
    let mut names = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split(':');
        if let (Some(name), Some(Ok(id))) = (fields.next(), fields.nth(1).map(str::parse)) {
            let is_plain = !name.is_empty() && !name.contains(char::is_control);
            if is_plain {
                names.entry(id).or_insert_with(|| name.to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_name_of_a_number_counts_and_nonsense_does_not() {
        let names =
            parse("root:x:0:0::/root:/bin/sh\ntoor:x:0:0\n# comment\n+::::\nbad:x:no\na\x1b:x:7\nme:x:1000:1\n");
        assert_eq!(names, BTreeMap::from([(0, "root".into()), (1000, "me".into())]));
    }
}
