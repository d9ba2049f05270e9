//! Tests of bundles that are written here byte by byte.

use super::*;
use proptest::prelude::*;
use std::io::Write as _;

fn with_size(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

fn header(name: &str, parameters: &[(&str, &str)], mandatory_count: u8) -> Vec<u8> {
    let mut bytes = vec![name.len() as u8];
    bytes.extend(name.as_bytes());
    bytes.extend([0, 0, 0, 7, mandatory_count, parameters.len() as u8 - mandatory_count]);
    bytes.extend(parameters.iter().flat_map(|(key, value)| [key.len() as u8, value.len() as u8]));
    bytes.extend(
        parameters.iter().flat_map(|(key, value)| [key.as_bytes(), value.as_bytes()].concat()),
    );
    with_size(&bytes)
}

/// A part whose payload is cut into chunks of three bytes.
fn part(name: &str, parameters: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut bytes = header(name, parameters, parameters.len() as u8);
    payload.chunks(3).for_each(|chunk| bytes.extend(with_size(chunk)));
    bytes.extend([0; 4]);
    bytes
}

/// A changegroup of a changeset, and of a file without revisions.
fn changegroup() -> Vec<u8> {
    let revision = [&[1; 20], &[0; 20], &[0; 20], &[1; 20], b"text".as_slice()].concat();
    let mut bytes = (revision.len() as u32 + 4).to_be_bytes().to_vec();
    bytes.extend(revision);
    bytes.extend([0; 8]);
    bytes.extend([0, 0, 0, 5, b'f']);
    bytes.extend([0; 8]);
    bytes
}

fn zlib(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn bzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn bundle2(parameters: &str, body: &[u8]) -> Vec<u8> {
    [b"HG20".as_slice(), &with_size(parameters.as_bytes()), body].concat()
}

fn body(parts: &[Vec<u8>]) -> Vec<u8> {
    [parts.concat(), vec![0; 4]].concat()
}

/// Reads all revisions and paths; returns the delta of each changeset and the paths.
fn read_all(bytes: &[u8]) -> Result<Vec<String>, ChangeError> {
    let mut source = open_bundle(Box::new(bytes))?;
    let mut revision = Revision::empty();
    let mut events = Vec::new();
    while source.next_revision(&mut revision)? {
        events.push(revision.delta.escape_ascii().to_string());
    }
    while source.next_revision(&mut revision)? {}
    while let Some(path) = source.next_file()? {
        events.push(path.escape_ascii().to_string());
        while source.next_revision(&mut revision)? {}
    }
    Ok(events)
}

fn expect_error(bytes: &[u8], expected: &str) {
    let error = read_all(bytes).expect_err("an error");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn all_envelopes_are_read() {
    let changes = changegroup();
    let parts = body(&[
        part("output", &[], b"a message"),
        part("changegroup", &[("version", "01"), ("nbchanges", "1")], &changes),
        part("cache:rev-branch-cache", &[], b"cache"),
    ]);
    let zstd = zstd::encode_all(parts.as_slice(), 1).expect("memory");
    let bundles = [
        changes.clone(),
        [b"HG10UN", changes.as_slice()].concat(),
        [b"HG10GZ", zlib(&changes).as_slice()].concat(),
        [b"HG10", bzip(&changes).as_slice()].concat(),
        bundle2("", &parts),
        bundle2("e%78tra=1 other Compression=UN", &parts),
        bundle2("Compression=GZ", &zlib(&parts)),
        bundle2("Compression=BZ", &bzip(&parts)),
        bundle2("Compression=ZS", &zstd),
    ];
    for bundle in bundles {
        assert_eq!(read_all(&bundle).expect("a bundle"), ["text", "f"]);
        for end in 0..bundle.len() {
            assert!(read_all(&bundle[..end]).is_err(), "cut at {end} of {}", bundle.len());
        }
    }
    assert_eq!(read_all(&bundle2("", &body(&[]))).expect("a bundle"), Vec::<String>::new());
}

/// Of a file of zeros, nothing after the first three empty groups would be looked at.
#[test]
fn only_servers_send_changes_without_an_envelope() {
    let zeros = [0; 400];
    for bytes in [changegroup().as_slice(), &zeros] {
        assert!(open_bundle(Box::new(bytes)).is_ok());
        let message = open_bundle_content(Box::new(bytes)).map(|_| ()).expect_err("no bundle");
        assert!(message.to_string().starts_with("not a bundle: it begins with \"\\x00\\x00"));
    }
}

#[test]
fn mandatory_names_that_are_unknown_are_refused() {
    expect_error(&bundle2("Other=1", &body(&[])), "not supported: bundle parameter Other");
    expect_error(&bundle2("Compression=XZ", &[]), "not supported: bundle compression XZ");
    let unknown = bundle2("", &body(&[part("b2x:Other", &[], b"")]));
    expect_error(&unknown, "not supported: bundle part b2x:other");
    let advisory = bundle2("", &body(&[part("b2x:other", &[("p", "v")], b"payload")]));
    assert!(read_all(&advisory).is_ok());
    let sidedata = [("version", "02"), ("exp-sidedata", "1")];
    let parameter = bundle2("", &body(&[part("CHANGEGROUP", &sidedata, b"")]));
    expect_error(&parameter, "not supported: parameter exp-sidedata of part changegroup");
    let version = bundle2("", &body(&[part("CHANGEGROUP", &[("version", "05")], b"")]));
    expect_error(&version, "not supported: changegroup version 05");
    expect_error(b"HG2Y", "not supported: bundle version HG2Y");
    expect_error(b"HGS1GZ", "not supported: bundle compression GZ");
    expect_error(b"<!DOCTYPE", "not a bundle: it begins with \"<!DO\"");
}

#[test]
fn a_server_ends_a_bundle_in_its_own_words() {
    let parameters = [("message", "disk is full"), ("hint", "ask the administrator")];
    let expected = "the server says: disk is full (ask the administrator)";
    expect_error(&bundle2("", &body(&[part("error:abort", &parameters, b"")])), expected);
    // After the changes.
    let first = part("CHANGEGROUP", &[("version", "01")], &changegroup());
    let after = [first, part("error:abort", &parameters, b"")];
    expect_error(&bundle2("", &body(&after)), expected);
    // Between two chunks of the changes.
    let changes = changegroup();
    let (begin, end) = changes.split_at(30);
    let interrupted = |between: Vec<u8>| {
        let mut bytes = header("CHANGEGROUP", &[("version", "01")], 1);
        bytes.extend(with_size(begin));
        bytes.extend([0xff; 4]);
        bytes.extend(between);
        bytes.extend(with_size(end));
        bytes.extend([0; 8]);
        bundle2("", &bytes)
    };
    expect_error(&interrupted(part("error:abort", &parameters, b"")), expected);
    let output = interrupted(part("output", &[], b"words"));
    assert_eq!(read_all(&output).expect("a bundle"), ["text", "f"]);
    assert_eq!(read_all(&interrupted(vec![0; 4])).expect("a bundle"), ["text", "f"]);
}

#[test]
fn bookmarks_and_files_of_a_store_are_delivered() {
    let bookmark = [&[2; 20], [0, 1].as_slice(), b"@"].concat();
    let keys = b"a b\t0303030303030303030303030303030303030303\n".as_slice();
    let parts = [
        part("bookmarks", &[], &bookmark),
        part("listkeys", &[("namespace", "bookmarks")], keys),
        part("listkeys", &[("namespace", "phases")], b"publishing\tTrue"),
        part("stream2", &[("filecount", "1")], b"files"),
    ];
    let (changes, store) = (bundle2("", &body(&parts[..3])), bundle2("", &body(&parts[3..])));
    match open_bundle_content(Box::new(changes.as_slice())).expect("a bundle") {
        BundleContent::Changes { bookmarks, .. } => {
            let expected = [(b"@".to_vec(), Node([2; 20])), (b"a b".to_vec(), Node([3; 20]))];
            assert_eq!(bookmarks, expected);
        }
        BundleContent::Store(_) => panic!("files of a store"),
    }
    match open_bundle_content(Box::new(store.as_slice())).expect("a bundle") {
        BundleContent::Store(mut part) => {
            assert_eq!(part.parameters, [(b"filecount".to_vec(), b"1".to_vec())]);
            let mut payload = Vec::new();
            part.read_to_end(&mut payload).expect("a payload");
            assert_eq!(payload, b"files");
            part.finish().expect("the end");
        }
        BundleContent::Changes { .. } => panic!("changes"),
    }
    let broken = [keys, b"broken\t12"].concat();
    let broken = part("listkeys", &[("namespace", "bookmarks")], &broken);
    let expected = "damaged changes: line 2 of the bookmarks: no name and node: \"broken\\t12\"";
    expect_error(&bundle2("", &body(&[broken])), expected);
    expect_error(&store, "not supported: a stream clone bundle (part stream2)");
    let numbers = [[0; 7].as_slice(), &[1], &[0; 7], &[9], &[0, 3]].concat();
    let packed = [b"HGS1UN".as_slice(), &numbers, b"ab\0files"].concat();
    match open_bundle_content(Box::new(packed.as_slice())).expect("a bundle") {
        BundleContent::Store(part) => {
            assert_eq!(part.parameter("requirements"), Some(b"ab".as_slice()));
            assert_eq!(part.parameter("filecount"), Some(b"1".as_slice()));
        }
        BundleContent::Changes { .. } => panic!("changes"),
    }
    expect_error(&packed, "not supported: a stream clone bundle (part packed1)");
    expect_error(&packed[..24], "reading changes: the stream ended early");
    let endless = [b"HGS1UN".as_slice(), &numbers, b"abcfiles"].concat();
    expect_error(&endless, "damaged changes: the requirements of a store have no end");
}

/// A bundle of each compression, uncompressed ones first.
fn samples() -> Vec<Vec<u8>> {
    let parts = body(&[
        part("bookmarks", &[], &[&[2; 20], [0, 1].as_slice(), b"@"].concat()),
        part("CHANGEGROUP", &[("version", "01")], &changegroup()),
    ]);
    vec![
        bundle2("", &parts),
        changegroup(),
        bundle2("Compression=ZS", &zstd::encode_all(parts.as_slice(), 3).expect("memory")),
        bundle2("Compression=GZ", &zlib(&parts)),
        [b"HG10", bzip(&changegroup()).as_slice()].concat(),
    ]
}

proptest! {
    /// A bundle with changed bytes is read or refused: no panic, no endless loop.
    #[test]
    fn damaged_bundles_never_panic(
        sample in 0..5_usize,
        cut in any::<prop::sample::Index>(),
        flips in prop::collection::vec((any::<prop::sample::Index>(), 0..8_u32), 1..6),
    ) {
        let mut bytes = samples().swap_remove(sample);
        for (index, bit) in flips {
            let index = index.index(bytes.len());
            bytes[index] ^= 1 << bit;
        }
        bytes.truncate(cut.index(2 * bytes.len()).max(8));
        drop(read_all(&bytes));
    }
}

#[test]
fn a_damaged_end_behind_the_changes_is_found() {
    let mut content = changegroup();
    content.resize(content.len() + 100_000, 0);
    let whole = [b"HG10GZ", zlib(&content).as_slice()].concat();
    let read = |bytes: &[u8]| -> Result<(), ChangeError> {
        let stream = Box::new(std::io::BufReader::with_capacity(7, Cursor::new(bytes.to_vec())));
        let mut source = open_bundle(stream)?;
        while source.next_file()?.is_some() {}
        Ok(())
    };
    assert!(read(&whole).is_ok());
    let mut damaged = whole.clone();
    // The checksum of the data.
    *damaged.last_mut().expect("a byte") ^= 1;
    assert!(read(&damaged).is_err());
}
