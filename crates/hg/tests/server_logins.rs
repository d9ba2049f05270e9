//! Servers that ask for a name and a password.

use crate::servers::{MERCURIAL, answer, serve};
use larder_hg::{
    ChangeError, CredentialSource, FetchError, HttpSettings, Login, Node, connect_http,
};
use std::sync::{Arc, Mutex};

/// Answers the user `user` with the password `secret`, and asks others for a login.
fn answer_user(request: &str) -> Vec<u8> {
    if !request.contains("uthorization: Basic dXNlcjpzZWNyZXQ=\r\n") {
        return ask_for_login();
    }
    let is_first = request.contains("?cmd=capabilities ");
    let body: &[u8] = if is_first { b"lookup known" } else { b"0\n" };
    answer("200 OK", MERCURIAL, body)
}

fn ask_for_login() -> Vec<u8> {
    answer("401 Unauthorized", "WWW-Authenticate: Basic realm=\"r\"\r\n", b"")
}

#[test]
fn a_server_that_asks_for_a_login_gets_one() {
    let server = serve(answer_user);
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
    let error = connect("wrong", &Arc::default()).map(|_| ()).unwrap_err();
    let refused = "refuses the name and the password of the user user";
    assert_eq!(error.to_string(), format!("{} {refused}", server.url));
    assert!(FetchError::from(error).advice().unwrap().contains("credential helpers"));
    // In the URL.
    let url = server.url.replace("http://", "http://user:secret@");
    assert!(connect_http(&url, HttpSettings::default()).is_ok());
    let error = |url: &str| connect_http(url, HttpSettings::default()).map(|_| ()).unwrap_err();
    let none = "asks for a name and a password, and there are none";
    assert_eq!(error(&server.url).to_string(), format!("{} {none}", server.url));
    let url = server.url.replace("http://", "http://user:wrong@");
    assert_eq!(error(&url).to_string(), format!("{} {refused}", server.url));
}

/// A server that leads on, or wants another kind of login, does not learn the one in the URL.
#[test]
fn a_login_in_the_url_waits_for_the_question() {
    for (status, headers) in [
        ("401 Unauthorized", "WWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n"),
        ("302 Found", "Location: http://127.0.0.1:1/\r\n"),
        ("200 OK", MERCURIAL),
    ] {
        let (sender, requests) = std::sync::mpsc::channel();
        let server = serve(move |request| {
            sender.send(request.to_lowercase()).unwrap();
            answer(status, headers, b"lookup known")
        });
        let url = server.url.replace("http://", "http://user:secret@");
        let connected = connect_http(&url, HttpSettings::default());
        assert_eq!(connected.is_ok(), status == "200 OK", "{status}");
        let request = requests.try_recv().unwrap();
        assert!(!request.contains("authorization"), "{request}");
        assert!(requests.try_recv().is_err(), "{status}: one request");
    }
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

/// Returns settings whose source of logins notes what it is told.
fn note_logins(calls: &Arc<Mutex<Vec<&'static str>>>) -> HttpSettings {
    let credentials: Box<dyn CredentialSource> = Box::new(NotedLogins(Arc::clone(calls)));
    HttpSettings { credentials: Some(credentials), ..HttpSettings::default() }
}

/// A fetch has dozens of requests, and each report of a login is a process of git.
#[test]
fn a_right_login_is_reported_once() {
    let server = serve(answer_user);
    let calls = Arc::default();
    let settings = note_logins(&calls);
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
        ask_for_login()
    });
    let target = format!("Location: {}all.hg\r\n", elsewhere.url);
    let server = serve(move |request| {
        if request.starts_with("GET /all.hg ") {
            return answer("302 Found", &target, b"");
        }
        answer_user(request)
    });
    let calls = Arc::default();
    let settings = note_logins(&calls);
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
        answer_user(request)
    });
    let calls = Arc::default();
    let settings = note_logins(&calls);
    let url = server.url.replace("http://", "http://user:secret@");
    connect_http(&url, settings).unwrap();
    assert_eq!(*calls.lock().unwrap(), ["keep"]);
}

/// The helper forgets each of the wrong logins, so that the next attempt does not meet them.
#[test]
fn wrong_logins_are_forgotten() {
    let server = serve(|_| ask_for_login());
    let calls = Arc::default();
    let error = connect_http(&server.url, note_logins(&calls)).map(|_| ()).unwrap_err();
    assert!(matches!(error, ChangeError::Login { user: Some(_), .. }), "{error}");
    assert_eq!(*calls.lock().unwrap(), ["find", "forget", "find", "forget"]);
}
