//! Figures as people read them: three digits and a unit.

/// Returns a length of time, given in nanoseconds.
pub(super) fn time(ns: u64) -> String {
    scaled(ns, 1000, &["ns", "µs", "ms", "s"])
}

/// Returns a number of bytes.
pub(super) fn bytes(bytes: u64) -> String {
    scaled(bytes, 1024, &["B", "KiB", "MiB", "GiB", "TiB"])
}

/// Returns a count a second, over a span in nanoseconds.
pub(super) fn rate(count: u64, span_ns: u64) -> String {
    if span_ns == 0 {
        return "-".into();
    }
    let tenths = u128::from(count) * 10_000_000_000 / u128::from(span_ns);
    match tenths {
        0 if count > 0 => "<0.1".into(),
        0..1000 => format!("{}.{}", tenths / 10, tenths % 10),
        _ => grouped(u64::try_from(tenths / 10).unwrap_or(u64::MAX)),
    }
}

/// Returns a count a second, over a span in nanoseconds, rounded down.
pub(super) fn per_second(count: u64, span_ns: u64) -> u64 {
    let each = u128::from(count) * 1_000_000_000 / u128::from(span_ns.max(1));
    u64::try_from(each).unwrap_or(u64::MAX)
}

/// Returns a moment, given in seconds since the epoch.
pub(super) fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March here, so that a leap day is the last of its year.
    let from_march = days + 719_468;
    let (era, day) = (from_march / 146_097, from_march % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = (era * 400 + year + month / 10, (month + 2) % 12 + 1);
    format!("{year}-{month:02}-{day:02} {:02}:{:02}:{:02} UTC", second / 3600, second / 60 % 60, second % 60)
}

pub(super) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".into();
    }
    let tenths = u128::from(part) * 1000 / u128::from(whole);
    format!("{}.{} %", tenths / 10, tenths % 10)
}

/// Returns a number with a comma at each thousand.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// With three digits, in the largest unit that leaves at least 1.
fn scaled(value: u64, step: u64, units: &[&str]) -> String {
    let mut unit = 0;
    let mut whole = 1_u64;
    while unit + 1 < units.len() && value / whole >= step {
        whole *= step;
        unit += 1;
    }
    let hundredths = u128::from(value) * 100 / u128::from(whole);
    match hundredths {
        _ if unit == 0 => format!("{value} {}", units[unit]),
        0..1000 => format!("{}.{:02} {}", hundredths / 100, hundredths % 100, units[unit]),
        1000..10_000 => format!("{}.{} {}", hundredths / 100, hundredths % 100 / 10, units[unit]),
        _ => format!("{} {}", hundredths / 100, units[unit]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_unit() {
        let cases = [
            (time(0), "0 ns"),
            (time(999), "999 ns"),
            (time(1000), "1.00 µs"),
            (time(12_345), "12.3 µs"),
            (time(123_456_789), "123 ms"),
            (time(68_000_000_000), "68.0 s"),
            (time(u64::MAX), "18446744073 s"),
            (bytes(1023), "1023 B"),
            (bytes(1536), "1.50 KiB"),
            (bytes(256 << 20), "256 MiB"),
            (rate(5, 1_000_000_000), "5.0"),
            (rate(123_456, 1_000_000_000), "123,456"),
            (rate(1, 3_600_000_000_000), "<0.1"),
            (rate(1, 0), "-"),
            (bytes(per_second(3 << 20, 2_000_000_000)), "1.50 MiB"),
            (utc(0), "1970-01-01 00:00:00 UTC"),
            (utc(951_782_399), "2000-02-28 23:59:59 UTC"),
            (utc(951_782_400), "2000-02-29 00:00:00 UTC"),
            (utc(951_868_800), "2000-03-01 00:00:00 UTC"),
            (utc(1_767_225_599), "2025-12-31 23:59:59 UTC"),
            (utc(4_107_542_400), "2100-03-01 00:00:00 UTC"),
            (percent(1, 3), "33.3 %"),
            (percent(1, 0), "-"),
            (grouped(1_234_567), "1,234,567"),
            (grouped(12), "12"),
        ];
        for (text, expected) in cases {
            assert_eq!(text, expected);
        }
    }
}
