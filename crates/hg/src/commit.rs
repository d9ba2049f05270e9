//! The commit of a changeset, byte for byte as git-cinnabar 0.7 writes it (docs/hg.md).

use crate::changeset::Changeset;
use crate::object_id::GitId;
use memchr::memchr;

/// Returns the content of the commit of a changeset. The parents are in the order of the
/// changeset's, without null ones.
pub(crate) fn commit_content(changeset: &Changeset<'_>, tree: GitId, parents: &[GitId]) -> Vec<u8> {
    let mut content = Vec::with_capacity(300 + changeset.description.len());
    write_id(&mut content, b"tree ", tree);
    for parent in parents {
        write_id(&mut content, b"parent ", *parent);
    }
    let time = SignatureTime::of_author(changeset);
    let author = signature(identity(changeset.user), time);
    let committer = changeset.extra(b"committer");
    let committer = committer.and_then(|value| committer_signature(value, time));
    for (name, signature) in
        [(&b"author "[..], &author), (b"committer ", committer.as_ref().unwrap_or(&author))]
    {
        content.extend_from_slice(name);
        content.extend_from_slice(signature);
        content.push(b'\n');
    }
    content.push(b'\n');
    content.extend_from_slice(changeset.description);
    content
}

fn write_id(content: &mut Vec<u8>, name: &[u8], id: GitId) {
    content.extend_from_slice(name);
    content.extend_from_slice(&id.to_hex());
    content.push(b'\n');
}

/// Returns name and address of a user as git writes them: `name <address>`. The address is between
/// the first `<` and the next `>`; without them, a text with `@` is an address, any other a name.
/// Further `<` and `>` are dropped, and so is all after the address.
fn identity(user: &[u8]) -> Vec<u8> {
    let opening = memchr(b'<', user);
    let address = opening.and_then(|start| {
        let (name, rest) = user.split_at_checked(start)?;
        let len = memchr(b'>', rest)?;
        Some((name.strip_suffix(b" ").unwrap_or(name), rest.get(1..len)?))
    });
    let (name, address): (&[u8], &[u8]) = match address {
        Some(both) => both,
        None if memchr(b'@', user).is_some() => (b"", user),
        None => (user, b""),
    };
    let kept = |byte: &&u8| !matches!(**byte, b'<' | b'>');
    let mut identity: Vec<u8> = name.iter().filter(kept).copied().collect();
    identity.extend_from_slice(b" <");
    identity.extend(address.iter().filter(kept));
    identity.push(b'>');
    identity
}

/// Reads a number as git-cinnabar does: a sign and digits, however many zeros there are before.
/// Numbers that nothing here can have are bounded.
pub(crate) fn whole_number(text: &[u8]) -> Option<i128> {
    let (sign, digits) = match text.split_first()? {
        (b'-', digits) => (-1, digits),
        (b'+', digits) => (1, digits),
        _ => (1, text),
    };
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0_i128, |number, byte| {
        let digit = char::from(*byte).to_digit(10)?;
        Some(number.saturating_mul(10).saturating_add(sign * i128::from(digit)))
    })
}

/// Returns the part before a fraction.
fn whole_part(number: &[u8]) -> &[u8] {
    number.split(|byte| *byte == b'.').next().unwrap_or_default()
}

/// The time of a signature. The metadata keeps the true one.
#[derive(Clone, Copy, Debug)]
struct SignatureTime {
    /// Seconds since 1970, not below 0.
    seconds: i128,
    seconds_west: i128,
}

impl SignatureTime {
    /// git refuses later times (`badDateOverflow`).
    const MAX_SECONDS: i128 = i64::MAX as i128;
    /// git refuses zones of more than four digits (`badTimezone`).
    const MAX_ZONE_MINUTES: u128 = 99 * 60 + 59;

    /// Returns the time of a changeset, without fractions. A time before 1970 is 0, in UTC: git
    /// shows none that is below 0 in its zone.
    fn of_author(changeset: &Changeset<'_>) -> SignatureTime {
        if changeset.time.starts_with(b"-") {
            return SignatureTime { seconds: 0, seconds_west: 0 };
        }
        let seconds = whole_number(whole_part(changeset.time)).unwrap_or(0);
        let seconds_west = whole_number(whole_part(changeset.zone)).unwrap_or(0);
        SignatureTime { seconds, seconds_west }
    }

    /// Returns whether git does not take it as it is.
    fn is_bounded(self) -> bool {
        self.seconds > SignatureTime::MAX_SECONDS
            || self.zone_minutes() > SignatureTime::MAX_ZONE_MINUTES
    }

    /// Returns the minutes from UTC; seconds are cut off.
    fn zone_minutes(self) -> u128 {
        self.seconds_west.unsigned_abs() / 60
    }

    /// Writes it as git does, with the zone as hours and minutes.
    fn digits(self) -> String {
        let seconds = self.seconds.min(SignatureTime::MAX_SECONDS);
        let sign = if self.seconds_west > 0 { '-' } else { '+' };
        let minutes = self.zone_minutes().min(SignatureTime::MAX_ZONE_MINUTES);
        format!("{seconds} {sign}{:02}{:02}", minutes / 60, minutes % 60)
    }
}

/// Returns whether a time or a zone of a changeset is beyond what git takes, and bounded.
pub(crate) fn has_bounded_time(changeset: &Changeset<'_>) -> bool {
    let committer = changeset.extra(b"committer").and_then(committer_parts);
    SignatureTime::of_author(changeset).is_bounded()
        || committer.is_some_and(|(_, time)| time.is_bounded())
}

fn signature(mut identity: Vec<u8>, time: SignatureTime) -> Vec<u8> {
    identity.push(b' ');
    identity.extend_from_slice(time.digits().as_bytes());
    identity
}

/// Returns the signature of the committer that hg-git keeps in an extra field: an identity alone,
/// or an identity, a time and a zone. `None` if it is neither.
fn committer_signature(value: &[u8], author_time: SignatureTime) -> Option<Vec<u8>> {
    if value.ends_with(b">") {
        return Some(signature(identity(value), author_time));
    }
    let (user, time) = committer_parts(value)?;
    Some(signature(identity(user), time))
}

/// Divides the field of a committer with a time of its own.
fn committer_parts(value: &[u8]) -> Option<(&[u8], SignatureTime)> {
    let mut parts = value.rsplitn(3, |byte| *byte == b' ');
    let seconds_west = committer_zone(parts.next()?)?;
    let seconds = whole_number(parts.next()?).filter(|seconds| *seconds >= 0)?;
    Some((parts.next()?, SignatureTime { seconds, seconds_west }))
}

/// Reads the zone of a committer as seconds west of UTC. It is written so, or as git does; only a
/// text that cannot be seconds is taken for hours and minutes.
fn committer_zone(zone: &[u8]) -> Option<i128> {
    // More is bounded anyway.
    let number = whole_number(zone)?.clamp(-1_000_000_000, 1_000_000_000);
    let (hours, minutes) = (number.abs() / 100, number.abs() % 100);
    let is_of_git = zone.starts_with(b"+")
        || zone.starts_with(b"-0")
        || zone.starts_with(b"-1") && number > -1800 && number % 900 != 0 && minutes % 15 == 0;
    if !is_of_git {
        return Some(number);
    }
    Some(-number.signum() * (hours * 60 + minutes) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn identity_of(user: &str) -> String {
        String::from_utf8(identity(user.as_bytes())).expect("a text")
    }

    #[test]
    fn identities_are_divided() {
        for (user, expected) in [
            ("Ann Example <ann@example.org>", "Ann Example <ann@example.org>"),
            ("ann@example.org", " <ann@example.org>"),
            ("Ann", "Ann <>"),
            ("", " <>"),
            ("Ann  <a@b> (work) <c@d>", "Ann  <a@b>"),
            ("<a@b>", " <a@b>"),
            ("Ann <<a@b>>", "Ann <a@b>"),
            ("Ann > x <a@b>", "Ann  x <a@b>"),
            ("Ann <a@b", " <Ann a@b>"),
        ] {
            assert_eq!(identity_of(user), expected, "{user}");
        }
    }

    fn signatures(date: &str, committer: &str) -> (String, String) {
        let separator = if committer.is_empty() { "" } else { " committer:" };
        let manifest = "1".repeat(40);
        let text = format!("{manifest}\nAnn\n{date}{separator}{committer}\n\nmessage");
        let changeset = Changeset::parse(text.as_bytes()).unwrap();
        let content = String::from_utf8(commit_content(&changeset, GitId([0; 20]), &[])).unwrap();
        let line = |name: &str| {
            let mut lines = content.lines();
            lines.find_map(|line| line.strip_prefix(name)).unwrap().to_string()
        };
        (line("author "), line("committer "))
    }

    #[test]
    fn numbers_are_read_as_git_cinnabar_does() {
        for (date, expected) in [
            ("012 0", "12 +0000"),
            ("+5 +3600", "5 -0100"),
            ("5 012", "5 -0000"),
            ("5 -0", "5 +0000"),
            ("0 3600", "0 -0100"),
            ("5 359999", "5 -9959"),
        ] {
            assert_eq!(signatures(date, "").0, format!("Ann <> {expected}"), "{date}");
        }
    }

    #[test]
    fn times_and_zones_that_git_refuses_are_made_valid() {
        for (date, expected) in [
            ("12.75 16200.5", "12 -0430"),
            ("1 -29", "1 +0000"),
            ("-86400 3600", "0 +0000"),
            ("-0.5 -3600", "0 +0000"),
            ("x 0", "0 +0000"),
            ("9223372036854775807 0", "9223372036854775807 +0000"),
            ("9223372036854775808 0", "9223372036854775807 +0000"),
            ("99999999999999999999999999999999999999999999 0", "9223372036854775807 +0000"),
            ("5 360000", "5 -9959"),
            ("5 -999999999", "5 +9959"),
            ("5 -99999999999999999999999999999999999999999999", "5 +9959"),
        ] {
            let (author, committer) = signatures(date, "Bob <b@c>");
            assert_eq!(author, format!("Ann <> {expected}"), "{date}");
            assert_eq!(committer, format!("Bob <b@c> {expected}"), "{date}");
        }
    }

    #[test]
    fn committers_of_hg_git_are_read() {
        for (committer, expected) in [
            ("Bob <b@c>", "Bob <b@c> 7 +0100"),
            ("Bob <b@c> 99 -7200", "Bob <b@c> 99 +0200"),
            ("Bob <b@c> 99 +0130", "Bob <b@c> 99 +0130"),
            ("Bob <b@c> 99 -1030", "Bob <b@c> 99 -1030"),
            ("Bob <b@c> 007 -1015", "Bob <b@c> 7 -1015"),
            ("Bob <b@c> +7 0", "Bob <b@c> 7 +0000"),
            ("Bob <b@c> 99 +9223372036854775807", "Bob <b@c> 99 +9959"),
            ("Bob <b@c> 99 -9223372036854775808", "Bob <b@c> 99 +9959"),
            ("Bob <b@c> 18446744073709551616 +9999", "Bob <b@c> 9223372036854775807 +9959"),
            ("Bob <b@c> -7 0", "Ann <> 7 +0100"),
            ("Bob <b@c> 7.5 0", "Ann <> 7 +0100"),
            ("Bob", "Ann <> 7 +0100"),
        ] {
            assert_eq!(signatures("7 -3600", committer).1, expected, "{committer}");
        }
    }

    proptest! {
        /// Any date and any committer give a time and a zone that git takes.
        #[test]
        fn times_and_zones_are_ones_of_git(
            time in "[+-]?[0-9]{1,45}",
            zone in "[+-]?[0-9]{1,45}",
            own_time in "[+-]?[0-9]{0,45}",
            own_zone in "[+-]?[0-9]{0,45}",
        ) {
            let date = format!("{time} {zone}");
            let (author, committer) = signatures(&date, &format!("Bob <b> {own_time} {own_zone}"));
            for signature in [author, committer] {
                let (_, digits) = signature.split_once("> ").unwrap();
                let (seconds, zone) = digits.split_once(' ').unwrap();
                prop_assert!(seconds.parse::<i64>().is_ok_and(|seconds| seconds >= 0));
                prop_assert!(seconds == "0" || !seconds.starts_with('0'));
                prop_assert!(zone.len() == 5 && zone.get(1..).unwrap().parse::<u16>().is_ok());
            }
        }
    }
}
