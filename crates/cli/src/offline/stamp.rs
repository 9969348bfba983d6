//! Times as people read them: in local time, or in UTC where programs read them.

use super::zone::Zone;

/// Nanoseconds of a second.
const SECOND_NS: i64 = 1_000_000_000;

/// Seconds of a day.
const DAY: i64 = 86_400;

/// Half of a year as `ls` counts it, in seconds: older times are shown with their year.
const HALF_YEAR: i64 = 31_556_952 / 2;

const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A moment, taken apart.
struct Moment {
    year: i64,
    month: i64,
    day: i64,
    hour: i64,
    minute: i64,
    second: i64,
    ns: i64,
    /// Seconds east of UTC.
    offset: i64,
}

impl Moment {
    /// `ns` since the epoch, so many seconds east of UTC.
    fn of(ns: i64, offset: impl FnOnce(i64) -> i64) -> Self {
        let seconds = ns.div_euclid(SECOND_NS);
        let offset = offset(seconds);
        let local = seconds + offset;
        let (year, month, day) = date(local.div_euclid(DAY));
        let of_day = local.rem_euclid(DAY);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        Self { year, month, day, hour, minute, second, ns: ns.rem_euclid(SECOND_NS), offset }
    }
}

/// Year, month and day of a day, counted from the epoch: H. Hinnant, "chrono-Compatible Low-Level Date Algorithms".
pub(super) fn date(days: i64) -> (i64, i64, i64) {
    let from_march = days + 719_468;
    let era = from_march.div_euclid(146_097);
    let day_of_era = from_march.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// The day of a date, counted from the epoch: the way back of [`date`].
pub(super) fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = year - i64::from(month <= 2);
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// As `ls -l` shows it: `Nov 22 07:17`, or `Nov 22  2025` if it is not of the half year before `now`. Both are
/// nanoseconds since the epoch.
pub(super) fn short(ns: i64, now: i64, zone: &Zone) -> String {
    let Moment { year, month, day, hour, minute, .. } = Moment::of(ns, |seconds| zone.offset(seconds));
    let age = now.div_euclid(SECOND_NS).saturating_sub(ns.div_euclid(SECOND_NS));
    let month = usize::try_from(month - 1).ok().and_then(|month| MONTHS.get(month)).unwrap_or(&"");
    if (0..HALF_YEAR).contains(&age) && ns <= now {
        format!("{month} {day:2} {hour:02}:{minute:02}")
    } else {
        format!("{month} {day:2} {year:5}")
    }
}

/// As `stat` shows it: `2026-11-22 07:17:59.000000000 +0000`.
pub(super) fn long(ns: i64, zone: &Zone) -> String {
    let Moment { year, month, day, hour, minute, second, ns, offset } = Moment::of(ns, |seconds| zone.offset(seconds));
    let (sign, east) = (if offset < 0 { '-' } else { '+' }, offset.abs() / 60);
    let (hours, minutes) = (east / 60, east % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ns:09} {sign}{hours:02}{minutes:02}")
}

/// As RFC 3339 has it, in UTC: `2026-11-22T07:17:59.000000000Z`.
pub(super) fn rfc3339(ns: i64) -> String {
    let Moment { year, month, day, hour, minute, second, ns, .. } = Moment::of(ns, |_| 0);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ns:09}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_calendar() {
        let cases = [
            (0, "1970-01-01 00:00:00.000000000 +0000"),
            (-1, "1969-12-31 23:59:59.999999999 +0000"),
            (951_782_400 * SECOND_NS, "2000-02-29 00:00:00.000000000 +0000"),
            (1_709_251_199 * SECOND_NS + 5, "2024-02-29 23:59:59.000000005 +0000"),
            (4_107_542_400 * SECOND_NS, "2100-03-01 00:00:00.000000000 +0000"),
            (i64::MAX, "2262-04-11 23:47:16.854775807 +0000"),
            (i64::MIN, "1677-09-21 00:12:43.145224192 +0000"),
        ];
        for (ns, expected) in cases {
            assert_eq!(long(ns, &Zone::default()), expected);
        }
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000000000Z");
    }

    #[test]
    fn a_short_time_has_the_hour_for_half_a_year() {
        let now = 1_709_251_199 * SECOND_NS;
        let utc = Zone::default();
        let ago = |seconds: i64| short(now - seconds * SECOND_NS, now, &utc);
        assert_eq!(ago(0), "Feb 29 23:59");
        assert_eq!(ago(28 * DAY), "Feb  1 23:59");
        assert_eq!(ago(HALF_YEAR - 1), "Aug 31 09:05");
        assert_eq!(ago(HALF_YEAR), "Aug 31  2023");
        assert_eq!(ago(-1), "Mar  1  2024", "what is to come has its year");
        assert_eq!(short(i64::MIN, i64::MAX, &utc), "Sep 21  1677");
    }

    #[test]
    fn the_days_of_dates_are_those_that_they_are_the_dates_of() {
        for day in (-800_000..800_000).step_by(13) {
            let (year, month, of_month) = date(day);
            assert_eq!(days(year, month, of_month), day);
        }
    }
}
