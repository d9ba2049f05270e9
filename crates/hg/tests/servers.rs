//! Repositories behind `hg serve`, over HTTP and pipes.

use crate::golden_vectors::NoProgress;
use crate::test_repository::{TestRepository, has_mercurial, read_all};
use larder_hg::{
    ChangeError, GitDirectory, HttpSettings, Node, Peer, PipeServer, SshCommand, SshLocation,
    connect_http, connect_pipe, fetch,
};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A server on a port of its own.
struct HttpServer {
    child: Child,
    url: String,
}

impl HttpServer {
    fn start(repository: &TestRepository, options: &[&str]) -> HttpServer {
        // Without a file for its log, the server writes to the pipe that is closed below.
        let mut arguments =
            vec!["serve", "-a", "127.0.0.1", "-p", "0", "-E", "errors.log", "-A", "access.log"];
        arguments.extend(options.iter().flat_map(|option| ["--config", option]));
        let mut child = repository.command(&arguments).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.split_whitespace().find(|word| word.starts_with("http://"));
        let port = url.unwrap().rsplit_once(':').unwrap().1.trim_end_matches('/').to_owned();
        HttpServer { child, url: format!("http://127.0.0.1:{port}/") }
    }

    fn connect(&self) -> Box<dyn Peer> {
        connect_http(&self.url, HttpSettings::default()).unwrap()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// What each server of the test repository must answer.
fn check_peer(repository: &TestRepository, peer: &mut dyn Peer, name: &str) {
    let refs = peer.refs().unwrap();
    let expected = [
        (b"default".to_vec(), repository.nodes("4+5")),
        (b"other/%C3%BC%20~x".to_vec(), repository.nodes("3")),
    ];
    let mut branches = refs.branches.clone();
    branches.sort();
    assert_eq!(branches, expected, "{name}");
    let mut heads = refs.heads.clone();
    heads.sort();
    let mut expected = repository.nodes("4+5");
    expected.sort();
    assert_eq!(heads, expected, "{name}");
    assert_eq!(refs.bookmarks, [(b"book mark".to_vec(), repository.nodes("1")[0])], "{name}");

    let nodes = repository.nodes("all()");
    // More than one sample.
    let many: Vec<Node> = (0..150_u8).map(|byte| Node([byte; 20])).chain(nodes.clone()).collect();
    let known = peer.find_known(&many).unwrap();
    assert_eq!(known[..150], [[true].as_slice(), &[false; 149]].concat(), "{name}");
    assert_eq!(known[150..], [true; 6], "{name}");
    assert_eq!(peer.lookup(b"book mark").unwrap(), nodes[1], "{name}");
    assert_eq!(peer.lookup(&nodes[2].to_hex()[..9]).unwrap(), nodes[2], "{name}");
    let error = peer.lookup(b"nothing").unwrap_err().to_string();
    assert_eq!(error, "the server says: unknown revision 'nothing'", "{name}");

    let all = read_all(peer.changes(&refs.heads, &[]).unwrap().as_mut()).unwrap();
    assert_eq!(all.changesets, nodes, "{name}");
    assert_eq!(all.manifests.len(), 6, "{name}");
    assert_eq!(all.files.len(), 5, "{name}");
    let one = read_all(peer.changes(&nodes[..1], &[]).unwrap().as_mut()).unwrap();
    assert_eq!(one.changesets, nodes[..1], "{name}");
    let none = read_all(peer.changes(&refs.heads, &refs.heads).unwrap().as_mut()).unwrap();
    assert_eq!((none.changesets, none.files.len()), (Vec::new(), 0), "{name}");
    // The connection is in order after a refusal.
    let result = peer.changes(&[Node([7; 20])], &[]).map(|_| ());
    assert!(matches!(result, Err(ChangeError::Aborted { .. })), "{name}: {result:?}");
}

#[test]
fn servers_of_mercurial_are_read() {
    if !has_mercurial("servers_of_mercurial_are_read") {
        return;
    }
    let repository = TestRepository::new();
    check_http(&repository);
    check_pipes(&repository);
    check_ssh(&repository);
    check_bundles_of_servers(&repository);
}

fn check_http(repository: &TestRepository) {
    let configurations: [&[&str]; 4] = [
        &[],
        &["experimental.httppostargs=yes", "server.compressionengines=zlib"],
        &["experimental.bundle2-advertise=no", "server.maxhttpheaderlen=64"],
        &["server.compressionengines=none", "experimental.changegroup3=yes"],
    ];
    for options in configurations {
        let server = HttpServer::start(repository, options);
        check_peer(repository, server.connect().as_mut(), &format!("{options:?}"));
    }
}

fn check_pipes(repository: &TestRepository) {
    let server = PipeServer::local("hg".as_ref(), repository.path());
    let mut peer = connect_pipe(server, Box::new(|_| {})).unwrap();
    check_peer(repository, &mut peer, "a pipe");
}

/// A stand-in for ssh runs the command in a shell, as a server of ssh does.
fn check_ssh(repository: &TestRepository) {
    let script = "test \"$1 $2 $3\" = '-p 77 user@machine' && echo a banner && exec sh -c \"$4\" #";
    let script = repository.path().join("ssh.sh").to_str().map(|path| (path.to_owned(), script));
    let (path, text) = script.unwrap();
    std::fs::write(&path, text).unwrap();
    let location = |path: &str| SshLocation {
        user: Some("user".to_owned()),
        host: "machine".to_owned(),
        port: Some(77),
        path: path.to_owned(),
    };
    let ssh = SshCommand::Shell(format!("sh '{path}'").into());
    let place = location(repository.path().to_str().unwrap());
    let server = PipeServer::ssh(&ssh, "hg", &place);
    let mut peer = connect_pipe(server, Box::new(|_| {})).unwrap();
    check_peer(repository, &mut peer, "ssh");

    // A repository that does not exist: the words come from the other machine.
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let kept = Arc::clone(&lines);
    let output = move |line: &[u8]| {
        kept.lock().unwrap().push(String::from_utf8_lossy(line).into_owned());
    };
    let server = PipeServer::ssh(&ssh, "hg", &location("/no such; place"));
    let error = connect_pipe(server, Box::new(output)).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("repository /no such; place not found"), "{error}");
    assert!(lines.lock().unwrap().iter().any(|line| line.contains("not found")));
}

/// A bundle at a URL, and bundles that a server recommends for clones.
fn check_bundles_of_servers(repository: &TestRepository) {
    repository.hg(&["bundle", "-q", "-a", "-t", "zstd-v2", "bundle.hg"]);
    let files = FileServer::start(std::fs::read(repository.path().join("bundle.hg")).unwrap());
    let mut peer = connect_http(&files.url, HttpSettings::default()).unwrap();
    assert_eq!(peer.refs().unwrap().branches.len(), 2);
    let all = read_all(peer.changes(&[], &[]).unwrap().as_mut()).unwrap();
    assert_eq!(all.changesets.len(), 6);

    let manifest = format!("{0}s BUNDLESPEC=none-packed1\n{0} BUNDLESPEC=zstd-v2\n", files.url);
    std::fs::write(repository.path().join(".hg/clonebundles.manifest"), manifest).unwrap();
    let server = HttpServer::start(repository, &["extensions.clonebundles="]);
    let mut peer = server.connect();
    let mut bundle = peer.clone_bundle().unwrap().unwrap();
    assert_eq!(bundle.url, files.url);
    assert_eq!(read_all(bundle.source.as_mut()).unwrap().changesets.len(), 6);
    drop(bundle);

    // A first fetch takes the bundle, and the rest from the server: one pack of each. Without its
    // end, the bundle is of no use, and all comes from the server.
    repository.hg(&["commit", "-q", "--config", "ui.allowemptycommit=1", "-m", "newer"]);
    let heads = server.connect().refs().unwrap().heads;
    let bytes = std::fs::read(repository.path().join("bundle.hg")).unwrap();
    let cut_off = FileServer::start(bytes[..bytes.len() * 2 / 3].to_vec());
    for (url, packs) in [(&files.url, 2), (&cut_off.url, 1)] {
        let manifest = format!("{url} BUNDLESPEC=zstd-v2\n");
        std::fs::write(repository.path().join(".hg/clonebundles.manifest"), manifest).unwrap();
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let mut peer = server.connect();
        let threads = std::num::NonZeroUsize::MIN;
        let converted = fetch(folder.path(), &mut *peer, &heads, threads, &mut NoProgress).unwrap();
        assert_eq!(converted.changesets, 7, "{url}");
        let files = std::fs::read_dir(folder.path().join("objects/pack")).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        assert_eq!(names.filter(|name| name.ends_with(".pack")).count(), packs, "{url}");
    }
}

/// A server that sends the same bytes to every request, to one client after the other.
struct FileServer {
    url: String,
}

impl FileServer {
    fn start(bytes: Vec<u8>) -> FileServer {
        serve(move |_| {
            let mut answer =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n".to_vec();
            answer.extend(format!("Content-Length: {}\r\n\r\n", bytes.len()).into_bytes());
            answer.extend(&bytes);
            answer
        })
    }
}

/// Starts a server that answers the header of each request, and closes the connection.
fn serve(mut answer: impl FnMut(&str) -> Vec<u8> + Send + 'static) -> FileServer {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut request = String::new();
            let mut read = BufReader::new(stream.try_clone().unwrap());
            while !request.ends_with("\r\n\r\n") && read.read_line(&mut request).unwrap() > 0 {}
            // The client may close the connection when it has read enough.
            drop(std::io::Write::write_all(&mut stream, &answer(&request)));
        }
    });
    FileServer { url }
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let begin =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {len}\r\nConnection: close\r\n\r\n");
    [begin.as_bytes(), body].concat()
}

const MERCURIAL: &str = "Content-Type: application/mercurial-0.1\r\n";

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

#[test]
fn later_commands_go_where_the_first_one_was_led_to() {
    let target = serve(|request| match request.starts_with("GET /r/?cmd=capabilities ") {
        true => answer("200 OK", MERCURIAL, b"known"),
        false => answer("200 OK", MERCURIAL, request.lines().next().unwrap().as_bytes()),
    });
    let url = target.url.clone();
    let server = serve(move |request| {
        assert!(request.starts_with("GET /?cmd=capabilities "), "{request}");
        answer("302 Found", &format!("Location: {url}r/?cmd=capabilities\r\n"), b"")
    });
    let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
    let error = peer.find_known(&[Node([1; 20])]).unwrap_err();
    assert!(matches!(error, ChangeError::Damaged { .. }), "{error}");
}

#[test]
fn failures_of_servers_are_named() {
    let check =
        |status: &'static str, headers: &'static str, body: &'static str, expected: &str| {
            let server = serve(move |_| answer(status, headers, body.as_bytes()));
            let error = connect_http(&server.url, HttpSettings::default()).map(|_| ()).unwrap_err();
            let error = error.to_string().replace(&server.url, "URL");
            assert_eq!(error, expected);
        };
    let error = "Content-Type: application/hg-error\r\n";
    check("200 OK", error, "no access\n", "the server says: no access");
    check("500 Oops", error, "broken", "the server says: broken");
    check("404 Not Found", "", "page", "the server says: 404 Not Found (URL?cmd=capabilities)");
    let page = "Content-Type: text/html\r\n";
    let expected = "not supported: URL is not a repository of Mercurial";
    check("200 OK", page, "<html>", expected);
    let digest = "WWW-Authenticate: Digest realm=\"r\"\r\n";
    let expected = "not supported: the login that the server asks for (Digest realm=\"r\")";
    check("401 Unauthorized", digest, "", expected);
    // Nobody listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = connect_http(&url, HttpSettings::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("reading changes: {url}?cmd=capabilities: ")), "{error}");
}

#[test]
fn a_stream_that_ends_early_is_an_error() {
    let server = serve(|request| match request.contains("cmd=capabilities ") {
        true => answer("200 OK", MERCURIAL, b"getbundle httpmediatype=0.2tx httpheader=1024"),
        // More is promised than comes.
        false => {
            let headers = "HTTP/1.1 200 OK\r\nContent-Type: application/mercurial-0.2\r\n";
            [headers.as_bytes(), b"Content-Length: 100\r\n\r\n\x04noneHG20\0\0\0\0"].concat()
        }
    });
    let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
    let result = peer.changes(&[], &[]).and_then(|mut source| read_all(source.as_mut()));
    assert!(matches!(result, Err(ChangeError::Read(_))), "{result:?}");
}

#[test]
fn a_program_that_is_not_mercurial_is_named() {
    let location = SshLocation::parse("ssh://h/r").unwrap();
    let connect = |text: &str| {
        let server = PipeServer::ssh(&SshCommand::Shell(text.into()), "hg", &location);
        connect_pipe(server, Box::new(|_| {})).map(|_| ()).unwrap_err().to_string()
    };
    let expected = "the server says: the connection ended early: no such host";
    assert_eq!(connect("echo no such host >&2; exit 255 #"), expected);
    let expected = "damaged changes: the program at the other end is not Mercurial";
    assert_eq!(connect("yes #"), expected);
    let server = PipeServer::ssh(&SshCommand::Program("/no/program".into()), "hg", &location);
    let error = connect_pipe(server, Box::new(|_| {})).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("/no/program cannot be run"), "{error}");
}
