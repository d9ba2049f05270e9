//! Servers that ask for a name and a password.

use crate::servers::{MERCURIAL, answer, serve};
use larder_hg::{CredentialSource, HttpSettings, Login, Node, connect_http};
use std::sync::{Arc, Mutex};

#[test]
fn a_server_that_asks_for_a_login_gets_one() {
    let server = serve(|request| {
        if !request.contains("uthorization: Basic dXNlcjpzZWNyZXQ=\r\n") {
            let headers = "WWW-Authenticate: Basic realm=\"r\"\r\n";
            return answer("401 Unauthorized", headers, b"");
        }
        let is_first = request.starts_with("GET /?cmd=capabilities ");
        let body: &[u8] = if is_first { b"lookup known" } else { b"0\n" };
        answer("200 OK", MERCURIAL, body)
    });
    let connect = |password: &'static str, count: &Arc<Mutex<usize>>| {
        let count = Arc::clone(count);
        let credentials = move |url: &str| {
            assert!(url.starts_with("http://127.0.0.1:") && !url.contains("cmd"));
            *count.lock().unwrap() += 1;
            Some(("user".to_owned(), password.to_owned()))
        };
        let settings =
            HttpSettings { credentials: Some(Box::new(credentials)), ..HttpSettings::default() };
        connect_http(&server.url, settings)
    };
    let count = Arc::default();
    let mut peer = connect("secret", &count).unwrap();
    assert_eq!(peer.find_known(&[Node([1; 20])]).unwrap(), [false]);
    assert_eq!(*count.lock().unwrap(), 1, "the login is kept");
    let error = connect("wrong", &Arc::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("the server says: 401 Unauthorized (http://127.0.0.1:"), "{error}");
    // In the URL.
    let url = server.url.replace("http://", "http://user:secret@");
    assert!(connect_http(&url, HttpSettings::default()).is_ok());
    assert!(connect_http(&server.url, HttpSettings::default()).is_err());
}

/// A source of logins that notes what it is told.
struct NotedLogins(Arc<Mutex<Vec<&'static str>>>);

impl CredentialSource for NotedLogins {
    fn find_login(&mut self, _: &str, _: Option<&str>) -> Option<Login> {
        let mut calls = self.0.lock().unwrap();
        calls.push("find");
        let password = if calls.len() == 1 { "wrong" } else { "secret" };
        Some(Login { user: "user".to_owned(), password: password.to_owned() })
    }

    fn keep_login(&mut self, _: &str, _: &Login) {
        self.0.lock().unwrap().push("keep");
    }

    fn forget_login(&mut self, _: &str, _: &Login) {
        self.0.lock().unwrap().push("forget");
    }
}

/// A fetch has dozens of requests, and each report of a login is a process of git.
#[test]
fn a_right_login_is_reported_once() {
    let server = serve(|request| {
        if !request.contains("uthorization: Basic dXNlcjpzZWNyZXQ=\r\n") {
            let headers = "WWW-Authenticate: Basic realm=\"r\"\r\n";
            return answer("401 Unauthorized", headers, b"");
        }
        let is_first = request.starts_with("GET /?cmd=capabilities ");
        let body: &[u8] = if is_first { b"lookup known" } else { b"0\n" };
        answer("200 OK", MERCURIAL, body)
    });
    let calls = Arc::default();
    let credentials: Option<Box<dyn CredentialSource>> =
        Some(Box::new(NotedLogins(Arc::clone(&calls))));
    let settings = HttpSettings { credentials, ..HttpSettings::default() };
    let mut peer = connect_http(&server.url, settings).unwrap();
    for _ in 0..3 {
        assert_eq!(peer.find_known(&[Node([1; 20])]).unwrap(), [false]);
    }
    assert_eq!(*calls.lock().unwrap(), ["find", "forget", "find", "keep"]);
}

/// The login is that of the repository: a bundle elsewhere that asks for one does not get it, and
/// does not make it wrong.
#[test]
fn a_bundle_that_is_led_on_says_nothing_about_the_login() {
    let elsewhere = serve(|request| {
        assert!(!request.contains("uthorization"), "{request}");
        answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\n", b"")
    });
    let target = format!("Location: {}all.hg\r\n", elsewhere.url);
    let server = serve(move |request| {
        if request.starts_with("GET /all.hg ") {
            return answer("302 Found", &target, b"");
        }
        if !request.contains("uthorization: Basic dXNlcjpzZWNyZXQ=\r\n") {
            let headers = "WWW-Authenticate: Basic realm=\"r\"\r\n";
            return answer("401 Unauthorized", headers, b"");
        }
        let is_first = request.starts_with("GET /?cmd=capabilities ");
        let body: &[u8] = if is_first { b"lookup known" } else { b"0\n" };
        answer("200 OK", MERCURIAL, body)
    });
    let calls = Arc::default();
    let credentials: Option<Box<dyn CredentialSource>> =
        Some(Box::new(NotedLogins(Arc::clone(&calls))));
    let settings = HttpSettings { credentials, ..HttpSettings::default() };
    let mut peer = connect_http(&server.url, settings).unwrap();
    let error = peer.open_clone_bundle(&format!("{}all.hg", server.url)).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("401 Unauthorized"), "{error}");
    assert_eq!(peer.find_known(&[Node([1; 20])]).unwrap(), [false]);
    assert_eq!(*calls.lock().unwrap(), ["find", "forget", "find", "keep"]);
}

/// A server that leads to another folder of its own: the client does not send the login there, so
/// that it is sent again, before another one is asked for.
#[test]
fn a_login_is_right_also_where_the_server_leads_to() {
    let server = serve(|request| {
        if request.starts_with("GET /?cmd=capabilities ") {
            return answer("302 Found", "Location: /r/?cmd=capabilities\r\n", b"");
        }
        if !request.contains("uthorization: Basic dXNlcjpzZWNyZXQ=\r\n") {
            let headers = "WWW-Authenticate: Basic realm=\"r\"\r\n";
            return answer("401 Unauthorized", headers, b"");
        }
        answer("200 OK", MERCURIAL, b"lookup known")
    });
    let calls = Arc::default();
    let credentials: Option<Box<dyn CredentialSource>> =
        Some(Box::new(NotedLogins(Arc::clone(&calls))));
    let settings = HttpSettings { credentials, ..HttpSettings::default() };
    let url = server.url.replace("http://", "http://user:secret@");
    connect_http(&url, settings).unwrap();
    assert_eq!(*calls.lock().unwrap(), ["keep"]);
}
