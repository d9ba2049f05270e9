//! Servers and connections that end in mid-stream, or are silent: what is said, and what is left.

use crate::golden_vectors::{NoProgress, git};
use crate::servers::{HttpServer, connect_local, serve};
use crate::test_repository::{TestRepository, has_mercurial};
use larder_hg::{
    BundlePeer, FetchError, GitDirectory, HttpSettings, Node, Peer, PipeServer, SshCommand,
    SshLocation, connect_http, connect_pipe, fetch,
};
use std::io::{BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn new_repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    GitDirectory::create(folder.path()).unwrap();
    folder
}

fn fetch_all(folder: &Path, peer: &mut dyn Peer) -> Result<usize, FetchError> {
    let heads = peer.refs()?.heads;
    let summary =
        fetch(&GitDirectory::new(folder), peer, &heads, NonZeroUsize::MIN, &mut NoProgress)?;
    Ok(summary.changesets)
}

/// Nothing is in the repository: no ref, no pack, no temporary file.
fn check_empty(folder: &Path) {
    assert_eq!(git(folder, &["for-each-ref"]), "");
    assert_eq!(std::fs::read_dir(folder.join("objects/pack")).unwrap().count(), 0);
    let names = std::fs::read_dir(folder).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.contains("scratch")).count(), 0);
}

/// Passes a request on to a server, and returns all of its answer.
fn forward(port: u16, request: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = request.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    answer
}

fn port(url: &str) -> u16 {
    url.trim_end_matches('/').rsplit_once(':').unwrap().1.parse().unwrap()
}

/// The answer with the bundle ends after each of several parts of it, in the three forms that HTTP
/// has for the end of an answer.
#[test]
fn a_server_that_ends_in_mid_stream_leaves_nothing() {
    if !has_mercurial("a_server_that_ends_in_mid_stream_leaves_nothing") {
        return;
    }
    let repository = TestRepository::new();
    let server = HttpServer::start(&repository, &[]);
    let target = port(&server.url);
    let cut = Arc::new(Mutex::new((0_usize, "chunked")));
    let shared = Arc::clone(&cut);
    let proxy = serve(move |request| {
        let answer = forward(target, request);
        if !request.contains("cmd=getbundle") {
            let end = answer.iter().position(|byte| *byte == b'\n').unwrap() + 1;
            return [&answer[..end], b"Connection: close\r\n", &answer[end..]].concat();
        }
        let (tenths, form) = *shared.lock().unwrap();
        let begin = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 2;
        let (header, body) = (&answer[..begin], &answer[begin + 2..]);
        let header = std::str::from_utf8(header).unwrap();
        let (line, body) = match form {
            "chunked" => ("Transfer-Encoding: chunked\r\n".to_owned(), to_chunks(body)),
            "length" => (format!("Content-Length: {}\r\n", body.len()), body.to_vec()),
            _ => (String::new(), body.to_vec()),
        };
        let part = &body[..body.len() * tenths / 10];
        [header.as_bytes(), line.as_bytes(), b"\r\n", part].concat()
    });
    for form in ["chunked", "length", "close"] {
        let folder = new_repository();
        for tenths in [0, 1, 3, 5, 7, 9] {
            *cut.lock().unwrap() = (tenths, form);
            let mut peer = connect_http(&proxy.url, HttpSettings::default()).unwrap();
            let error = fetch_all(folder.path(), &mut *peer).unwrap_err();
            let text = error.to_string();
            let is_named = text.contains("ended early") || text.contains("the connection ended");
            assert!(is_named, "{form} {tenths}: {text}");
            assert!(error.advice().is_some(), "{form} {tenths}: {text}");
            check_empty(folder.path());
        }
        *cut.lock().unwrap() = (10, form);
        let mut peer = connect_http(&proxy.url, HttpSettings::default()).unwrap();
        assert_eq!(fetch_all(folder.path(), &mut *peer).unwrap(), 6, "{form}");
        git(folder.path(), &["fsck", "--full", "--no-progress"]);
    }
}

/// Writes a body in chunks.
fn to_chunks(body: &[u8]) -> Vec<u8> {
    let mut chunks = Vec::new();
    for part in body.chunks(100) {
        chunks.extend(format!("{:x}\r\n", part.len()).into_bytes());
        chunks.extend(part);
        chunks.extend(b"\r\n");
    }
    chunks.extend(b"0\r\n\r\n");
    chunks
}

/// The server itself fails in the middle: its words arrive in the stream.
#[test]
fn a_server_that_fails_in_mid_stream_is_quoted() {
    if !has_mercurial("a_server_that_fails_in_mid_stream_is_quoted") {
        return;
    }
    let repository = TestRepository::new();
    std::fs::remove_file(repository.path().join(".hg/store/data/dir/~c3~bc b.txt.i")).unwrap();
    let folder = new_repository();
    // A compressed stream ends before the words, and the page of an error follows it.
    let log = "the compressed data is not complete (";
    for (option, expected) in [
        ("server.compressionengines=none", "the server says: "),
        ("server.compressionengines=zstd", log),
        ("server.compressionengines=zlib", log),
    ] {
        let server = HttpServer::start(&repository, &[option]);
        let mut peer = connect_http(&server.url, HttpSettings::default()).unwrap();
        let text = fetch_all(folder.path(), &mut *peer).unwrap_err().to_string();
        assert!(text.contains(expected), "{option}: {text}");
        check_empty(folder.path());
    }
    let mut peer = connect_local(repository.path());
    let error = fetch_all(folder.path(), &mut peer).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("the server says: ") && text.contains("ü b.txt"), "{text}");
    check_empty(folder.path());
}

/// A pipe that closes: the last words of the other side are in the message.
#[test]
fn a_pipe_that_closes_leaves_nothing() {
    if !has_mercurial("a_pipe_that_closes_leaves_nothing") {
        return;
    }
    let repository = TestRepository::new();
    let location = SshLocation::parse(&format!("ssh://h/{}", repository.path().display())).unwrap();
    let kept = repository.path().join("answers");
    let connect = |script: String| {
        let server = PipeServer::ssh(&SshCommand::Shell(script.into()), "hg", &location);
        connect_pipe(server, Box::new(|_| {})).unwrap()
    };
    let script = format!("f() {{ sh -c \"$2\" | tee '{}'; }}; f", kept.display());
    let mut peer = connect(script);
    assert_eq!(fetch_all(new_repository().path(), &mut peer).unwrap(), 6);
    drop(peer);
    let all = std::fs::metadata(&kept).unwrap().len();
    // The answers again, up to a point in the bundle. What is sent is read, to the end.
    for missing in [1, 10, 500, 1000] {
        let bytes = all - missing;
        let kept = kept.display();
        let script =
            format!("head -c {bytes} '{kept}'; echo cable cut >&2; exec >/dev/null 2>&1; cat #");
        let mut peer = connect(script);
        let folder = new_repository();
        let text = fetch_all(folder.path(), &mut peer).unwrap_err().to_string();
        assert_eq!(
            text, "reading changes: the connection to the server ended early: cable cut",
            "{missing}"
        );
        drop(peer);
        check_empty(folder.path());
    }
}

#[test]
fn a_silent_server_is_left() {
    // Connections are accepted by the system, and nobody answers.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let timeout = Some(Duration::from_millis(30));
    let settings = || HttpSettings { timeout, ..HttpSettings::default() };
    let error = connect_http(&url, settings()).map(|_| ()).unwrap_err();
    let expected = format!("reading changes: {url}: the server did not answer");
    assert!(error.to_string().starts_with(&expected), "{error}");
    // One that falls silent in the middle.
    let sockets = Mutex::new(Vec::new());
    let thread = std::thread::spawn(move || {
        for stream in listener.incoming().skip(1).take(2) {
            let mut stream = stream.unwrap();
            let mut request = [0; 4096];
            let count = stream.read(&mut request).unwrap();
            let is_first = String::from_utf8_lossy(&request[..count]).contains("capabilities");
            let body: &[u8] = if is_first { b"getbundle" } else { b"" };
            let len = if is_first { body.len() } else { 1000 };
            let header = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
            let kind = "Content-Type: application/mercurial-0.1\r\n";
            let text = format!("{header}{kind}Content-Length: {len}\r\n\r\n");
            stream.write_all(&[text.as_bytes(), body].concat()).unwrap();
            sockets.lock().unwrap().push(stream);
        }
        sockets
    });
    let mut peer = connect_http(&url, settings()).unwrap();
    let error = peer.changes(&[Node([1; 20])], &[]).map(|_| ()).unwrap_err();
    let expected = format!("reading changes: {url}: the server was silent for 0.03 seconds");
    assert_eq!(error.to_string(), expected);
    assert!(FetchError::from(error).advice().is_some());
    drop(thread.join().unwrap());
}

/// A bundle of the web whose download breaks off is continued, if it is the same file still.
#[test]
fn a_broken_download_of_a_bundle_is_continued() {
    if !has_mercurial("a_broken_download_of_a_bundle_is_continued") {
        return;
    }
    let repository = TestRepository::new();
    let bytes = std::fs::read(repository.bundle("none-v2")).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    for (has_mark, changes_file) in [(true, false), (false, false), (true, true)] {
        requests.store(0, Ordering::Relaxed);
        let (count, bytes) = (Arc::clone(&requests), bytes.clone());
        let server = serve(move |request| {
            let number = count.fetch_add(1, Ordering::Relaxed);
            // Each answer has a fifth of the file.
            let part = bytes.len() / 5 + 1;
            let line = |name: &str| {
                let found = request.lines().find(|line| line.to_lowercase().starts_with(name));
                found.map(|line| line.split_once(": ").unwrap().1.to_owned())
            };
            let start = line("range:").map_or(0, |range| {
                range.trim_start_matches("bytes=").trim_end_matches('-').parse().unwrap()
            });
            let is_same = !(changes_file && number > 2);
            let is_rest = start > 0 && is_same && line("if-range:").as_deref() == Some("\"m\"");
            let start = if is_rest { start } else { 0 };
            let end = bytes.len().min(start + part);
            let status = match is_rest {
                true => format!(
                    "206 Partial Content\r\nContent-Range: bytes {start}-{}/{}",
                    bytes.len() - 1,
                    bytes.len()
                ),
                false => "200 OK".to_owned(),
            };
            let mark = if has_mark { "ETag: \"m\"\r\n" } else { "" };
            let len = bytes.len() - start;
            let header = format!("HTTP/1.1 {status}\r\n{mark}Content-Length: {len}\r\n\r\n");
            [header.as_bytes(), &bytes[start..end]].concat()
        });
        let folder = new_repository();
        let fetched = connect_http(&server.url, HttpSettings::default())
            .map_err(FetchError::from)
            .and_then(|mut peer| fetch_all(folder.path(), &mut *peer));
        if has_mark && !changes_file {
            assert_eq!(fetched.unwrap(), 6);
            git(folder.path(), &["fsck", "--full", "--no-progress"]);
        } else {
            let text = fetched.unwrap_err().to_string();
            assert!(text.contains("the connection ended after "), "{text}");
            check_empty(folder.path());
        }
    }
}

#[test]
fn a_cut_off_bundle_leaves_nothing() {
    if !has_mercurial("a_cut_off_bundle_leaves_nothing") {
        return;
    }
    let repository = TestRepository::new();
    for specification in ["none-v2", "zstd-v2", "gzip-v1", "bzip2-v1"] {
        let bytes = std::fs::read(repository.bundle(specification)).unwrap();
        let folder = new_repository();
        for tenths in 0..10 {
            let part = bytes[..bytes.len() * tenths / 10].to_vec();
            let mut peer = BundlePeer::new(Box::new(move || {
                Ok(Box::new(BufReader::new(std::io::Cursor::new(part.clone()))))
            }));
            let heads = repository.nodes("4+5");
            let threads = NonZeroUsize::MIN;
            let fetched = fetch(
                &GitDirectory::new(folder.path()),
                &mut peer,
                &heads,
                threads,
                &mut NoProgress,
            );
            let error = fetched.unwrap_err();
            let text = error.to_string();
            assert_eq!(text, "reading changes: the stream ended early", "{specification} {tenths}");
            assert!(error.advice().is_some());
            check_empty(folder.path());
        }
    }
}
