//! Names and passwords for servers that ask for them.

/// A name and a password.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    /// The user's name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Returns the value of the header `Authorization` (RFC 7617).
    pub(super) fn header_value(&self) -> String {
        let text = format!("{}:{}", self.user, self.password);
        format!("Basic {}", encode_base64(text.as_bytes()))
    }
}

/// Where names and passwords come from, as git's credential helpers. URLs are those of the
/// repository, without a query.
pub trait CredentialSource: Send {
    /// Returns the login for a URL, whose name of a user is given if the URL has one; `None` if
    /// there is none.
    fn find_login(&mut self, url: &str, user: Option<&str>) -> Option<Login>;

    /// Is told that the server accepted a login.
    fn keep_login(&mut self, url: &str, login: &Login) {
        let _ = (url, login);
    }

    /// Is told that the server refused a login.
    fn forget_login(&mut self, url: &str, login: &Login) {
        let _ = (url, login);
    }
}

/// A function of a URL that returns the user's name and the password.
impl<F: FnMut(&str) -> Option<(String, String)> + Send> CredentialSource for F {
    fn find_login(&mut self, url: &str, _user: Option<&str>) -> Option<Login> {
        self(url).map(|(user, password)| Login { user, password })
    }
}

/// Encodes bytes in base64 with padding (RFC 4648, section 4).
fn encode_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let value = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = DIGITS.get((value >> (18 - 6 * index)) as usize & 63).copied();
            let digit = digit.filter(|_| index <= group.len()).unwrap_or(b'=');
            text.push(char::from(digit));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_padded() {
        let pairs =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (text, encoded) in pairs {
            assert_eq!(encode_base64(text.as_bytes()), encoded);
        }
        let login = Login { user: "Aladdin".into(), password: "open sesame".into() };
        assert_eq!(login.header_value(), "Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
        assert!(!format!("{login:?}").contains("sesame"));
    }
}
