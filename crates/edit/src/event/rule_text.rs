//! The text of recurrence rules: their end, and their weekdays.
//!
//! Works on the text of a rule and not on [`Rule`], so that the parts which stay keep the form in
//! which their program wrote them. Separate from its users because splitting a series and moving
//! one both rewrite rules.

use super::date_time_form::DateTimeForm;
use larder_time::civil::Weekday;
use larder_time::rule::{Rule, RuleEnd};

/// The weekdays in rules, from Monday on.
pub(super) const WEEKDAY_CODES: [&str; 7] = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"];

/// Returns UNTIL as an occurrence key of a series whose start has this form.
pub(super) fn until_key(form: &DateTimeForm, rule: &Rule) -> Option<i64> {
    match rule.end() {
        RuleEnd::Until(stamp) if stamp.is_utc && form.zone().is_some() => {
            Some(stamp.civil.seconds())
        }
        _ => rule.until_bound().map(|last| form.civil_to_key(last)),
    }
}

/// Replaces COUNT and UNTIL of a rule. `end` is the new part, or `None` for an endless rule.
pub(super) fn with_rule_end(text: &str, end: Option<String>) -> String {
    let is_no_end = |part: &&str| {
        let name = part.split('=').next().unwrap_or_default().trim();
        !name.eq_ignore_ascii_case("COUNT") && !name.eq_ignore_ascii_case("UNTIL")
    };
    let kept = text.split(';').filter(is_no_end).map(str::to_string);
    kept.chain(end).collect::<Vec<_>>().join(";")
}

/// Returns whether a rule names its days, by weekday or by number. Otherwise they depend on the
/// start.
pub(super) fn has_day_part(text: &str) -> bool {
    ["BYDAY", "BYMONTHDAY", "BYYEARDAY", "BYWEEKNO"].iter().any(|name| has_part(text, name))
}

/// Returns whether a rule has the part with this name.
pub(super) fn has_part(text: &str, name: &str) -> bool {
    let names = text.split(';').filter_map(|part| part.split('=').next());
    names.map(str::trim).any(|part| part.eq_ignore_ascii_case(name))
}

/// Moves the weekdays of a weekly rule by a number of days.
pub(super) fn rotate_byday(text: &str, days: i64) -> String {
    let rotate = |code: &str| {
        let at = WEEKDAY_CODES.iter().position(|known| known.eq_ignore_ascii_case(code.trim()));
        let at = at.map(|at| (at as i64 + days).rem_euclid(Weekday::ALL.len() as i64) as usize);
        at.and_then(|at| WEEKDAY_CODES.get(at).copied()).unwrap_or(code).to_string()
    };
    let rotate_part = |part: &str| match part.split_once('=') {
        // The weeks of an INTERVAL are counted from WKST, so it moves along.
        Some((name, list)) if ["BYDAY", "WKST"].contains(&&*name.trim().to_ascii_uppercase()) => {
            format!("{name}={}", list.split(',').map(rotate).collect::<Vec<_>>().join(","))
        }
        _ => part.to_string(),
    };
    let mut rotated = text.split(';').map(rotate_part).collect::<Vec<_>>().join(";");
    let crosses_week = days.rem_euclid(7) != 0;
    let has = |name| has_part(text, name);
    if has("BYDAY") && has("INTERVAL") && !has("WKST") && crosses_week {
        rotated.push_str(&format!(";WKST={}", rotate("MO")));
    }
    rotated
}
