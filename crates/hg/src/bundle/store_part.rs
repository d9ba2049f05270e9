//! The files of a store in a bundle: the parts `stream2` and `stream3-exp` of bundle2, and the
//! older bundles `packed1`, whose begin is `HGS1`.

use super::part::Parts;
use super::{ByteStream, ChangeError, PartParameter, finish};
use crate::byte_reader::{read_array, read_bytes};
use std::io::{self, BufRead, Read};

/// The type of the older bundles, by the name that `hg bundle` has for them.
pub(crate) const PACKED: &str = "packed1";

/// A part with the files of a store. [`Read`] and [`BufRead`] give its payload.
pub struct StorePart<'a> {
    /// The type of the part: `stream2`, `stream3-exp` or `packed1`.
    pub name: String,
    /// The parameters: `requirements`, `filecount`, `bytecount`.
    pub parameters: Vec<PartParameter>,
    payload: StorePayload<'a>,
}

enum StorePayload<'a> {
    /// A part among others.
    Part(Box<Parts<'a>>),
    /// The rest of a stream, whose end the number of files tells.
    Rest(ByteStream<'a>),
}

impl<'a> StorePart<'a> {
    pub(super) fn new(
        name: String,
        parameters: Vec<PartParameter>,
        parts: Parts<'a>,
    ) -> StorePart<'a> {
        StorePart { name, parameters, payload: StorePayload::Part(Box::new(parts)) }
    }

    /// Reads the start of a bundle `packed1` after `HGS1`: a compression, of which there is only
    /// one, the numbers of files and of bytes, and the requirements (mercurial/streamclone.py,
    /// `readbundle1header`).
    pub(super) fn read_packed(mut read: ByteStream<'a>) -> Result<StorePart<'a>, ChangeError> {
        let compression: [u8; 2] = read_array(&mut read)?;
        if compression != *b"UN" {
            let name = compression.escape_ascii();
            return Err(ChangeError::new_unsupported(format!("bundle compression {name}")));
        }
        let files = u64::from_be_bytes(read_array(&mut read)?);
        let bytes = u64::from_be_bytes(read_array(&mut read)?);
        let len = u16::from_be_bytes(read_array(&mut read)?);
        let mut requirements = Vec::new();
        read_bytes(&mut read, usize::from(len), &mut requirements)?;
        if requirements.pop() != Some(0) {
            return Err(ChangeError::new_damaged("the requirements of a store have no end"));
        }
        let parameters = vec![
            (b"requirements".to_vec(), requirements),
            (b"filecount".to_vec(), files.to_string().into_bytes()),
            (b"bytecount".to_vec(), bytes.to_string().into_bytes()),
        ];
        Ok(StorePart { name: PACKED.to_owned(), parameters, payload: StorePayload::Rest(read) })
    }

    /// Returns the value of a parameter.
    pub(crate) fn parameter(&self, name: &str) -> Option<&[u8]> {
        let found = self.parameters.iter().find(|(found, _)| found == name.as_bytes());
        found.map(|(_, value)| value.as_slice())
    }

    /// Reads the rest of the bundle, which reports a message of the server and a damaged end.
    pub fn finish(&mut self) -> Result<(), ChangeError> {
        match &mut self.payload {
            StorePayload::Part(parts) => finish(parts),
            StorePayload::Rest(_) => Ok(()),
        }
    }
}

impl Read for StorePart<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.payload {
            StorePayload::Part(parts) => parts.read(buffer),
            StorePayload::Rest(read) => read.read(buffer),
        }
    }
}

impl BufRead for StorePart<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match &mut self.payload {
            StorePayload::Part(parts) => parts.fill_buf(),
            StorePayload::Rest(read) => read.fill_buf(),
        }
    }

    fn consume(&mut self, count: usize) {
        match &mut self.payload {
            StorePayload::Part(parts) => parts.consume(count),
            StorePayload::Rest(read) => read.consume(count),
        }
    }
}
