//! The settings of git that hold for servers of Mercurial.

use crate::test_home::{Home, Run};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// Starts a server that leads every request to another URL; returns its URL and the requests.
fn start_server() -> (String, Receiver<String>) {
    // Nothing listens there.
    serve("302 Found\r\nLocation: http://127.0.0.1:1/elsewhere")
}

/// Starts a server that answers every request with a status and a header.
fn serve(status: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/project", listener.local_addr().unwrap());
    let (send, requests) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = String::new();
            let mut read = BufReader::new(stream.try_clone().unwrap());
            while !request.ends_with("\r\n\r\n") && read.read_line(&mut request).unwrap() > 0 {}
            let _sent = send.send(request.to_lowercase());
            let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
            let answer = format!("HTTP/1.1 {status}\r\n{rest}");
            let _written = stream.write_all(answer.as_bytes());
        }
    });
    (url, requests)
}

/// Converts with a configuration of git.
fn convert(home: &Home, url: &str, configuration: &str) -> Run {
    let path = home.write("configuration", configuration);
    let mut command = home.command(&["hg", "convert", url, "converted.git"]);
    command.env("GIT_CONFIG_GLOBAL", path).env("http_proxy", "http://127.0.0.1:1");
    home.finish(command.output().unwrap())
}

#[test]
fn settings_of_git_hold_for_servers() {
    let home = Home::new();
    let (url, requests) = start_server();
    let configuration = format!(
        "[http]\nproxy =\nfollowRedirects = false\nextraHeader = Private-Token: walrus\n\
         [http \"{url}\"]\nextraHeader = \"X-Seal: flippers\"\n\
         [http \"http://other.example\"]\nextraHeader = \"X-Other: y\"\n"
    );
    let run = convert(&home, &url, &configuration);
    let expected = format!("302 Found ({url}), and redirects are not followed");
    assert!(run.stderr().contains(&expected), "{}", run.stderr());
    let request = requests.try_recv().unwrap();
    for header in ["private-token: walrus\r\n", "x-seal: flippers\r\n"] {
        assert!(request.contains(header), "{request}");
    }
    assert!(!request.contains("x-other"), "{request}");
    // The proxy of the environment is asked, and named: nothing listens there.
    let run = convert(&home, &url, "");
    let expected = format!("{url} (through the proxy 127.0.0.1:1): Connection refused");
    assert!(run.stderr().contains(&expected), "{}", run.stderr());
    // The redirect is followed, and no warning says that it could not be.
    let run = convert(&home, &url, "[http]\nproxy =\n");
    assert!(run.stderr().contains("Connection refused"), "{}", run.stderr());
    assert!(!run.stderr().contains("warning"), "{}", run.stderr());
    assert!(requests.try_recv().is_ok());
    // Without the setting, the proxy of the environment is asked.
    let run = convert(&home, &url, "");
    assert!(run.stderr().contains("Connection refused"), "{}", run.stderr());
    assert!(requests.try_recv().is_err());
}

#[test]
fn settings_that_are_not_followed_are_named() {
    let home = Home::new();
    let configuration = "[http]\ncookieFile = ~/cookies\nsslVersion = tlsv1.3\n";
    let warning = |name: &str| format!("warning: larder does not follow the setting http.{name}\n");
    let run = convert(&home, "https://127.0.0.1:1/project", configuration);
    for name in ["cookieFile", "sslVersion"] {
        assert!(run.stderr().contains(&warning(name)), "{}", run.stderr());
    }
    let run = convert(&home, "http://127.0.0.1:1/project", configuration);
    assert!(run.stderr().contains(&warning("cookieFile")), "{}", run.stderr());
    assert!(!run.stderr().contains("sslVersion"), "{}", run.stderr());
    let run = convert(&home, "http://127.0.0.1:1/project", "[http]\nextraHeader = secret\n");
    let expected = "http.extraHeader has a value without a colon";
    assert!(run.stderr().contains(expected), "{}", run.stderr());
    let configuration = "[http]\nsslCert = ~/missing.pem\n";
    let run = convert(&home, "https://127.0.0.1:1/project", configuration);
    let expected = "reading a client certificate (GIT_SSL_CERT, http.sslCert): ";
    assert!(run.stderr().contains(expected), "{}", run.stderr());
    home.write("home-own.pem", "no certificate");
    let configuration = format!("[http]\nsslCert = {}\n", home.work("home-own.pem").display());
    let run = convert(&home, "https://127.0.0.1:1/project", &configuration);
    let expected = "the client certificate: there is no private key that is not encrypted";
    assert!(run.stderr().contains(expected), "{}", run.stderr());
}

/// A helper is told that its password is wrong, so that it does not give it again.
#[test]
fn a_refused_password_is_forgotten() {
    let home = Home::new();
    let (url, _requests) = serve("401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"r\"");
    let configuration = "[http]\nproxy =\n[credential]\nhelper = \"!f() { echo $1 >> calls; \
        test $1 != get || { echo username=anna; echo password=wrong; }; }; f\"\n";
    let run = convert(&home, &url, configuration);
    assert_eq!(run.code, 5);
    let refused = format!("{url} refuses the name and the password of the user anna");
    assert!(run.stderr().contains(&refused), "{}", run.stderr());
    assert!(run.stderr().contains("hint: git's credential helpers were told"), "{}", run.stderr());
    let calls = std::fs::read_to_string(home.work("calls")).unwrap();
    assert_eq!(calls, "get\nerase\nget\nerase\n");
}
