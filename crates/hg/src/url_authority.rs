//! The part of a URL between the scheme and the path: the login, the machine and the port (RFC
//! 3986, section 3.2).

use crate::revision::ChangeError;

/// Signs that end this part, as `/` does.
const AUTHORITY_ENDS: [char; 2] = ['#', '?'];

/// Returns a URL without user and password, for messages and files: what git prints for its own.
/// Paths stay as they are.
#[must_use]
pub fn strip_login(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.into() };
    let (authority, _) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // A password may have signs that should be encoded in it. No part of it is shown.
    let is_unclear = authority.contains(AUTHORITY_ENDS) || has_wrong_port(authority);
    let login_end = authority.rfind('@').or_else(|| rest.rfind('@').filter(|_| is_unclear));
    match login_end {
        Some(at) => format!("{scheme}://{}", &rest[at + 1..]),
        None => url.into(),
    }
}

/// Returns whether a password may go on after the first `/`, `#` or `?` of the part of a URL after
/// its scheme: signs that should be encoded there. `is_port` tells what can be a port.
pub(crate) fn has_open_password(rest: &str, is_port: impl Fn(&str) -> bool) -> bool {
    let Some(end) = rest.find(is_authority_end) else { return false };
    let (authority, after) = rest.split_at(end);
    if authority.contains('@') || !after.contains('@') {
        return false;
    }
    // Before a path, `USER:PASSWORD` and `HOST:PORT` are told apart by the port.
    split_port(authority).1.is_some_and(|port| !after.starts_with('/') || !is_port(port))
}

fn is_authority_end(sign: char) -> bool {
    sign == '/' || AUTHORITY_ENDS.contains(&sign)
}

/// Splits a port off a machine, which may be an address with colons in brackets.
pub(crate) fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// Returns whether a text can be a port. Without digits it means the usual port.
pub(crate) fn is_port(text: &str) -> bool {
    text.is_empty()
        || text.bytes().all(|byte| byte.is_ascii_digit())
            && text.parse::<u16>().is_ok_and(|port| port > 0)
}

fn has_wrong_port(authority: &str) -> bool {
    split_port(authority).1.is_some_and(|port| !is_port(port))
}

/// Refuses a URL of HTTP, or of a proxy, with a port that is none: the client would take the usual
/// one, and send a login to whatever listens there.
pub(crate) fn check_port(url: &str) -> Result<(), ChangeError> {
    let (_, rest) = url.split_once("://").unwrap_or(("", url));
    let end = rest.find(is_authority_end);
    let authority = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match has_wrong_port(host) {
        true => Err(ChangeError::new_unsupported(format!("the port of {}", strip_login(url)))),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_no_login() {
        for (url, shown) in [
            ("https://me:secret@h:8/r@x#b", "https://h:8/r@x#b"),
            ("hg::http://me@h", "hg::http://h"),
            ("https://me:p@ss@h/r", "https://h/r"),
            ("https://h/a@b", "https://h/a@b"),
            ("https://h:8/a@b", "https://h:8/a@b"),
            ("/srv/a@b", "/srv/a@b"),
            ("https://me:sec#ret@h/r", "https://h/r"),
            ("https://me:s?c@h/r", "https://h/r"),
            ("https://me:sec#r/et@h/r", "https://h/r"),
            ("https://me:sec/ret@h/r", "https://h/r"),
            ("https://h/r?x=a@b", "https://h/r?x=a@b"),
        ] {
            assert_eq!(strip_login(url), shown);
        }
    }

    #[test]
    fn ports_are_numbers() {
        for url in ["http://h", "http://h:80/", "http://u:p@h:65535", "http://[::1]", "h:3128"] {
            assert!(check_port(url).is_ok(), "{url}");
        }
        for url in ["http://u:pw@h:80800/x", "http://u:pw@h:0", "http://[::1]:abc?x", "h:99999"] {
            let message = check_port(url).unwrap_err().to_string();
            assert!(message.starts_with("not supported: the port of "), "{message}");
            assert!(!message.contains("pw"), "{message}");
        }
    }
}
