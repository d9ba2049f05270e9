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
    let time = time_digits(changeset.time);
    let zone = seconds_west(changeset.zone);
    let author = signature(&identity(changeset.user), &time, zone);
    let committer = changeset.extra(b"committer");
    let committer = committer.and_then(|value| committer_signature(value, &time, zone));
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

/// Returns the seconds as git takes them: a fraction is cut off, and a time before 1970 is 0. The
/// metadata keeps the true time.
fn time_digits(time: &[u8]) -> Vec<u8> {
    let digits = time.iter().take_while(|byte| byte.is_ascii_digit()).count();
    match time.get(..digits) {
        Some(digits) if !digits.is_empty() => digits.to_vec(),
        _ => b"0".to_vec(),
    }
}

/// Returns the seconds west of UTC, without a fraction.
fn seconds_west(zone: &[u8]) -> i64 {
    let whole = zone.split(|byte| *byte == b'.').next().unwrap_or_default();
    std::str::from_utf8(whole).ok().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

/// Writes a zone as hours and minutes; seconds are cut off.
fn zone_digits(seconds_west: i64) -> String {
    let sign = if seconds_west > 0 { '-' } else { '+' };
    let minutes = seconds_west.unsigned_abs() / 60;
    format!("{sign}{:02}{:02}", minutes / 60, minutes % 60)
}

fn signature(identity: &[u8], time: &[u8], seconds_west: i64) -> Vec<u8> {
    let zone = zone_digits(seconds_west);
    [identity, b" ", time, b" ", zone.as_bytes()].concat()
}

/// Returns the signature of the committer that hg-git keeps in an extra field: an identity alone,
/// or an identity, a time and a zone. `None` if it is neither.
fn committer_signature(value: &[u8], time: &[u8], zone: i64) -> Option<Vec<u8>> {
    if value.ends_with(b">") {
        return Some(signature(&identity(value), time, zone));
    }
    let mut parts = value.rsplitn(3, |byte| *byte == b' ');
    let zone = parts.next()?;
    let time = parts.next()?;
    let user = parts.next()?;
    let is_number = !time.is_empty() && time.iter().all(u8::is_ascii_digit);
    let zone = committer_zone(zone).filter(|_| is_number)?;
    Some(signature(&identity(user), time, zone))
}

/// Reads the zone of a committer as seconds west of UTC. It is written so, or as git does; only a
/// text that cannot be seconds is taken for hours and minutes.
fn committer_zone(zone: &[u8]) -> Option<i64> {
    let number: i64 = std::str::from_utf8(zone).ok()?.parse().ok()?;
    let hours_and_minutes = (number.abs() / 100, number.abs() % 100);
    let is_of_git = zone.starts_with(b"+")
        || zone.starts_with(b"-0")
        || zone.starts_with(b"-1")
            && number > -1800
            && number % 900 != 0
            && hours_and_minutes.1 % 15 == 0;
    if !is_of_git {
        return Some(number);
    }
    Some(-number.signum() * (hours_and_minutes.0 * 60 + hours_and_minutes.1) * 60)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn times_and_zones_that_git_refuses_are_made_valid() {
        assert_eq!(time_digits(b"-5"), b"0");
        assert_eq!(time_digits(b"12.75"), b"12");
        assert_eq!(time_digits(b""), b"0");
        assert_eq!(zone_digits(seconds_west(b"-7200")), "+0200");
        assert_eq!(zone_digits(seconds_west(b"16200.5")), "-0430");
        assert_eq!(zone_digits(seconds_west(b"-29")), "+0000");
    }

    #[test]
    fn committers_of_hg_git_are_read() {
        let read = |value: &str| {
            committer_signature(value.as_bytes(), b"7", -3600)
                .map(|signature| String::from_utf8(signature).expect("a text"))
        };
        assert_eq!(read("Bob <b@c>").as_deref(), Some("Bob <b@c> 7 +0100"));
        assert_eq!(read("Bob <b@c> 99 -7200").as_deref(), Some("Bob <b@c> 99 +0200"));
        assert_eq!(read("Bob <b@c> 99 +0130").as_deref(), Some("Bob <b@c> 99 +0130"));
        assert_eq!(read("Bob <b@c> 99 -1030").as_deref(), Some("Bob <b@c> 99 -1030"));
        assert_eq!(read("Bob"), None);
    }
}
