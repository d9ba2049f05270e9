//! Repositories behind `hg serve`, over HTTP and pipes.

use crate::golden_vectors::NoProgress;
use crate::test_repository::{TestRepository, has_mercurial, read_all};
use larder_hg::{
    BundleContent, BundlePeer, ChangeError, ChangeSource, FetchError, FetchNotice, FetchOptions,
    GitDirectory, HttpSettings, LocalPeer, Node, Peer, PeerRefs, Phase, PipeServer, Progress,
    ServerSettings, SshCommand, SshLocation, WirePeer, connect_http, connect_pipe, fetch,
};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};

/// A server on a port of its own.
pub(crate) struct HttpServer {
    child: Child,
    pub(crate) url: String,
}

impl HttpServer {
    pub(crate) fn start(repository: &TestRepository, options: &[&str]) -> HttpServer {
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

/// Checks the answers of a server of the test repository.
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

/// A request without heads is one for all changes, also where a peer could take it for none.
#[test]
fn every_peer_delivers_all_changes_without_heads() {
    if !has_mercurial("every_peer_delivers_all_changes_without_heads") {
        return;
    }
    let repository = TestRepository::new();
    let scratch = tempfile::tempdir().unwrap();
    let server = HttpServer::start(&repository, &[]);
    let stored = || {
        let mut peer = BundlePeer::from_path(repository.bundle("none-v2;stream=v2"));
        peer.set_scratch_folder(scratch.path());
        peer
    };
    let peers: [(&str, Box<dyn Peer>); 5] = [
        ("local", Box::new(LocalPeer::open(repository.path()).unwrap())),
        ("bundle", Box::new(BundlePeer::from_path(repository.bundle("zstd-v2")))),
        ("store", Box::new(stored())),
        ("http", server.connect()),
        ("pipe", Box::new(connect_local(repository.path()))),
    ];
    for (name, mut peer) in peers {
        let delivered = read_all(peer.changes(&[], &[]).unwrap().as_mut()).unwrap();
        assert_eq!(delivered.changesets, repository.nodes("all()"), "{name}");
    }
    // Heads that a store does not have are not none.
    let mut peer = stored();
    let delivered = read_all(peer.changes(&[Node([7; 20])], &[]).unwrap().as_mut()).unwrap();
    assert!(delivered.changesets.is_empty());
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
    check_peer(repository, &mut connect_local(repository.path()), "a pipe");
}

/// Connects to a server by a shell in place of ssh.
pub(crate) fn connect_local(repository: &std::path::Path) -> WirePeer {
    let location = SshLocation {
        user: None,
        host: "machine".to_owned(),
        port: None,
        path: repository.to_str().unwrap().to_owned(),
    };
    let ssh = SshCommand::Shell("f() { shift; exec sh -c \"$1\"; }; f".into());
    connect_pipe(PipeServer::ssh(&ssh, "hg", &location), Box::new(|_| {})).unwrap()
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

    let manifest = format!("{0}s BUNDLESPEC=none-packed2\n{0} BUNDLESPEC=zstd-v2\n", files.url);
    std::fs::write(repository.path().join(".hg/clonebundles.manifest"), manifest).unwrap();
    let server = HttpServer::start(repository, &["extensions.clonebundles="]);
    let mut peer = server.connect();
    assert_eq!(peer.clone_bundles().unwrap(), [files.url.as_str()]);
    let bundle = peer.open_clone_bundle(&files.url).unwrap().unwrap();
    let BundleContent::Changes { mut source, .. } = bundle else { panic!("a store") };
    assert_eq!(read_all(source.as_mut()).unwrap().changesets.len(), 6);
    drop(source);
    check_first_fetches(repository, &server, &files.url);
}

/// The notices of a fetch about bundles that were not taken.
#[derive(Default)]
struct FailedBundles(Vec<String>);

impl Progress for FailedBundles {
    fn advance(&mut self, _: Phase, _: u64, _: Option<u64>) {}

    fn report(&mut self, notice: &FetchNotice) {
        if let FetchNotice::CloneBundleFailed { message } = notice {
            self.0.push(message.clone());
        }
    }
}

/// A first fetch takes the first bundle that can be read, and the rest from the server: one pack
/// of each. Without its end a bundle is of no use; if there is no other one, all comes from the
/// server.
fn check_first_fetches(repository: &TestRepository, server: &HttpServer, whole: &str) {
    repository.hg(&["commit", "-q", "--config", "ui.allowemptycommit=1", "-m", "newer"]);
    let heads = server.connect().refs().unwrap().heads;
    let bytes = std::fs::read(repository.path().join("bundle.hg")).unwrap();
    let cut_off = FileServer::start(bytes[..bytes.len() * 2 / 3].to_vec());
    let gone = serve(|_| answer("404 Not Found", "", b""));
    let (cut_off, gone) = (cut_off.url.as_str(), gone.url.as_str());
    for (urls, failed, packs) in [
        (&[whole][..], &[][..], 2),
        (&[cut_off], &[cut_off], 1),
        (&[gone, cut_off, whole, gone], &[gone, cut_off], 2),
    ] {
        let lines = urls.iter().map(|url| format!("{url} BUNDLESPEC=zstd-v2\n"));
        let manifest = lines.collect::<String>();
        std::fs::write(repository.path().join(".hg/clonebundles.manifest"), manifest).unwrap();
        let folder = tempfile::tempdir().unwrap();
        GitDirectory::create(folder.path()).unwrap();
        let threads = std::num::NonZeroUsize::MIN;
        let mut notices = FailedBundles::default();
        let mut peer = server.connect();
        let converted =
            fetch(&GitDirectory::new(folder.path()), &mut *peer, &heads, threads, &mut notices)
                .unwrap();
        assert_eq!(converted.changesets, 7, "{urls:?}");
        assert_eq!(notices.0.len(), failed.len(), "{:?}", notices.0);
        for (message, url) in notices.0.iter().zip(failed) {
            assert!(message.contains(url), "{message}");
        }
        assert_eq!(count_packs(folder.path()), packs, "{urls:?}");
    }
    let manifest = format!("{whole} BUNDLESPEC=zstd-v2\n");
    std::fs::write(repository.path().join(".hg/clonebundles.manifest"), manifest).unwrap();
    check_continued_fetch(server, &heads);
    check_first_fetch_by_ssh(repository, whole, &heads);
}

/// A server behind ssh does not have the bundle itself: it comes by a connection of its own.
fn check_first_fetch_by_ssh(repository: &TestRepository, whole: &str, heads: &[Node]) {
    let configuration = "[extensions]\nclonebundles =\n";
    std::fs::write(repository.path().join(".hg/hgrc"), configuration).unwrap();
    let mut peer = connect_local(repository.path());
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let settings = |url: &str| {
        assert_eq!(url, whole);
        let http = HttpSettings::default();
        let ssh = SshCommand::Program("ssh".into());
        Ok(ServerSettings { http, ssh, output: Box::new(|_| {}) })
    };
    let mut options = FetchOptions::from(std::num::NonZeroUsize::MIN);
    options.servers = Some(&settings);
    let converted =
        fetch(&GitDirectory::new(folder.path()), &mut peer, heads, options, &mut NoProgress)
            .unwrap();
    assert_eq!((converted.changesets, count_packs(folder.path())), (7, 2));
}

/// A server that ends the connection after the bundle: the next fetch takes what is newer.
fn check_continued_fetch(server: &HttpServer, heads: &[Node]) {
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    let threads = std::num::NonZeroUsize::MIN;
    let mut peer = BundleOnlyPeer(server.connect());
    let failed =
        fetch(&GitDirectory::new(folder.path()), &mut peer, heads, threads, &mut NoProgress);
    assert!(matches!(failed, Err(FetchError::Peer(ChangeError::Aborted { .. }))), "{failed:?}");
    assert_eq!(count_packs(folder.path()), 1);
    let mut peer = server.connect();
    let converted =
        fetch(&GitDirectory::new(folder.path()), &mut *peer, heads, threads, &mut NoProgress)
            .unwrap();
    assert_eq!((converted.changesets, count_packs(folder.path())), (1, 2));
}

fn count_packs(repository: &std::path::Path) -> usize {
    let files = std::fs::read_dir(repository.join("objects/pack")).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".pack")).count()
}

/// A server that sends no changes, and recommends bundles.
struct BundleOnlyPeer(Box<dyn Peer>);

impl Peer for BundleOnlyPeer {
    fn refs(&mut self) -> Result<PeerRefs, ChangeError> {
        self.0.refs()
    }

    fn find_known(&mut self, nodes: &[Node]) -> Result<Vec<bool>, ChangeError> {
        self.0.find_known(nodes)
    }

    fn lookup(&mut self, name: &[u8]) -> Result<Node, ChangeError> {
        self.0.lookup(name)
    }

    fn changes(
        &mut self,
        _: &[Node],
        _: &[Node],
    ) -> Result<Box<dyn ChangeSource + '_>, ChangeError> {
        Err(ChangeError::Aborted { message: "too busy".into() })
    }

    fn clone_bundles(&mut self) -> Result<Vec<String>, ChangeError> {
        self.0.clone_bundles()
    }

    fn open_clone_bundle(&mut self, url: &str) -> Result<Option<BundleContent<'_>>, ChangeError> {
        self.0.open_clone_bundle(url)
    }
}

/// A server that sends the same bytes to every request, to one client after the other.
pub(crate) struct FileServer {
    pub(crate) url: String,
}

impl FileServer {
    pub(crate) fn start(bytes: Vec<u8>) -> FileServer {
        serve(move |_| answer("200 OK", "Content-Type: application/octet-stream\r\n", &bytes))
    }
}

/// Starts a server that answers the header of each request, and closes the connection.
pub(crate) fn serve(mut answer: impl FnMut(&str) -> Vec<u8> + Send + 'static) -> FileServer {
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

pub(crate) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let len = body.len();
    let begin =
        format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {len}\r\nConnection: close\r\n\r\n");
    [begin.as_bytes(), body].concat()
}

pub(crate) const MERCURIAL: &str = "Content-Type: application/mercurial-0.1\r\n";

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

/// A proxy that takes less than others: the changes are asked for again with fewer common nodes.
#[test]
fn a_request_that_is_too_long_is_made_shorter() {
    let lengths: Arc<Mutex<Vec<usize>>> = Arc::default();
    let noted = Arc::clone(&lengths);
    let server = serve(move |request| {
        if request.contains("cmd=capabilities ") {
            return answer("200 OK", MERCURIAL, b"getbundle httpheader=1024");
        }
        noted.lock().unwrap().push(request.len());
        match request.len() > 4000 {
            true => answer("400 Bad Request", "Content-Type: text/html\r\n", b"too long"),
            false => answer("200 OK", "Content-Type: application/hg-error\r\n", b"read"),
        }
    });
    let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
    let common: Vec<Node> = (0..4000_u16)
        .map(|number| {
            let [high, low] = number.to_be_bytes();
            let mut node = Node([7; 20]);
            (node.0[0], node.0[1]) = (high, low);
            node
        })
        .collect();
    let error = peer.changes(&[Node([1; 20])], &common).map(|_| ()).unwrap_err().to_string();
    assert_eq!(error, "the server says: read");
    let lengths = std::mem::take(&mut *lengths.lock().unwrap());
    assert!(matches!(lengths[..], [20_000..26_000, 5_000..8_000, 1_000..4_000]), "{lengths:?}");
    // A request that cannot be shorter is refused.
    let server = serve(move |request| match request.contains("cmd=capabilities ") {
        true => answer("200 OK", MERCURIAL, b"getbundle httpheader=1024"),
        false => answer("400 Bad Request", "", b""),
    });
    let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
    let error = peer.changes(&[], &common).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with("the server says: 400 Bad Request (http://127"), "{error}");
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
    check("404 Not Found", "", "page", "the server says: 404 Not Found (URL)");
    let page = "Content-Type: text/html\r\n";
    let expected = "URL is not a repository of Mercurial";
    check("200 OK", page, "<html>", expected);
    let digest = "WWW-Authenticate: Digest realm=\"r\"\r\n";
    let expected = "not supported: the login that the server asks for (Digest realm=\"r\")";
    check("401 Unauthorized", digest, "", expected);
    // Nobody listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = connect_http(&url, HttpSettings::default()).map(|_| ()).unwrap_err().to_string();
    assert!(error.starts_with(&format!("reading changes: {url}: ")), "{error}");
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
    let expected = "reading changes: the connection to the server ended early: no such host";
    assert_eq!(connect("echo no such host >&2; exit 255 #"), expected);
    let expected = "the program at the other end is not Mercurial";
    assert_eq!(connect("yes #"), expected);
    let server = PipeServer::ssh(&SshCommand::Program("/no/program".into()), "hg", &location);
    let error = connect_pipe(server, Box::new(|_| {})).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("/no/program cannot be run"), "{error}");
}
