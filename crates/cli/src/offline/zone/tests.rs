//! Zones beside those of `date(1)`.

use super::*;
use std::process::Command;

/// Seconds since the epoch from 1971 on, every 20 days and some hours. (For a rule the C library has summer or winter alone
/// before; its files go further back.)
fn moments() -> impl Iterator<Item = i64> {
    (0..2000).map(|number| 366 * DAY + number * (20 * DAY + 5 * 3600 + 17))
}

/// What `date` says of each moment.
fn told_by_date(zone: &str) -> Vec<i64> {
    let file = std::env::temp_dir().join(format!("lightfoot-zone-test-{}-{}", std::process::id(), zone.len()));
    let lines: String = moments().map(|moment| format!("@{moment}\n")).collect();
    fs::write(&file, lines).expect("a file");
    let output = Command::new("date").args(["+%:::z", "-f"]).arg(&file).env("TZ", zone).output().expect("date runs");
    let _ = fs::remove_file(&file);
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| time(line, 24).expect("an offset").0).collect()
}

#[test]
fn rules_give_the_offsets_of_date() {
    let zones = [
        "CET-1CEST,M3.5.0,M10.5.0/3",
        "EST5EDT,M3.2.0,M11.1.0",
        "AEST-10AEDT,M10.1.0,M4.1.0/3",
        "<+1030>-10:30<+11>-11,M10.1.0,M4.1.0",
        "<-02>2<-01>,M3.5.0/-1,M10.5.0/0",
        "IST-5:30",
        "XXX3YYY,J59,J300/4:30",
        "XXX3YYY2:30,59/1,300",
        "IST-2IDT,M3.4.4/26,M10.5.0",
        "UTC0",
    ];
    for zone in zones {
        let ours = Zone::named(OsStr::new(zone)).expect(zone);
        let theirs = told_by_date(zone);
        assert_eq!(theirs.len(), moments().count());
        for (moment, offset) in moments().zip(theirs) {
            assert_eq!(ours.offset(moment), offset, "{zone} at {moment}");
        }
    }
}

#[test]
fn files_give_the_offsets_of_date() {
    for zone in ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Africa/Casablanca"] {
        if !Path::new(DATABASE).join(zone).exists() {
            eprintln!("SKIPPED: there is no {zone} here");
            continue;
        }
        let ours = Zone::named(OsStr::new(zone)).expect(zone);
        for (moment, offset) in moments().zip(told_by_date(zone)) {
            assert_eq!(ours.offset(moment), offset, "{zone} at {moment}");
        }
    }
}

/// A file of the second version: an empty first block, two transitions, and a rule.
fn file() -> Vec<u8> {
    let head = |counts: [u32; 6]| {
        let mut bytes = b"TZif2".to_vec();
        bytes.extend([0; 15]);
        bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
        bytes
    };
    let mut bytes = head([0; 6]);
    bytes.extend(head([0, 0, 0, 2, 2, 8]));
    bytes.extend([-1000_i64, 1000].iter().flat_map(|time| time.to_be_bytes()));
    bytes.extend([1, 0]);
    bytes.extend([0, 0, 0x0e, 0x10, 0, 0]);
    bytes.extend([0xff, 0xff, 0xf1, 0xf0, 1, 4]);
    bytes.extend(b"AAA\0BBB\0");
    bytes.extend(b"\nAAA-2\n");
    bytes
}

#[test]
fn a_file_has_transitions_and_then_a_rule() {
    let zone = Zone::parse(&file()).expect("a good file");
    let cases = [(i64::MIN, 3600), (-1001, 3600), (-1000, -3600), (999, -3600), (1000, 7200), (1 << 40, 7200)];
    for (moment, offset) in cases {
        assert_eq!(zone.offset(moment), offset, "at {moment}");
    }
}

#[test]
fn a_file_that_is_cut_or_changed_is_none_or_another_and_never_a_panic() {
    let file = file();
    for len in 0..file.len() - 1 {
        assert_eq!(Zone::parse(&file[..len]), None, "the first {len} bytes");
    }
    for at in 0..file.len() {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut changed = file.clone();
            changed[at] = byte;
            if let Some(zone) = Zone::parse(&changed) {
                for moment in [i64::MIN / 1_000_000_000, 0, i64::MAX / 1_000_000_000] {
                    zone.offset(moment);
                }
            }
        }
    }
}

#[test]
fn what_is_no_rule_is_none() {
    let texts = [
        "",
        "X",
        "XX5",
        "XXX",
        "XXX5YYY",
        "XXX25",
        "XXX5YYY,",
        "XXX5YYY,M3.2.0",
        "XXX5YYY,M13.2.0,M1.1.0",
        "<XXX5",
        "XXX5YYY,M3.2.0,M11.1.0x",
        "XXX5YYY,M3.6.0,M11.1.0",
        "XXX5YYY,J0,J1",
        "XXX5:60",
        "XXX5YYY,366,1",
        "ÄÖÜ5",
        "XXX99999999999999999999",
        "XXX-",
        "XXX5YYY,M3.2.0/168,M11.1.0",
    ];
    for text in texts {
        assert_eq!(Rule::parse(text), None, "{text}");
    }
}
