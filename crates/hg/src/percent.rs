//! Percent-encoding as Python's `urllib` has it, which Mercurial's protocol uses.

/// Encodes a text as `urllib.parse.quote` does, which leaves letters, digits and `_.-~/`.
pub(crate) fn encode(bytes: &[u8]) -> Vec<u8> {
    encode_except(bytes, b"_.-~/")
}

/// Encodes an argument of a URL or a form as `urllib.parse.urlencode` does: `/` is encoded too, and
/// a space is a plus sign.
pub(crate) fn encode_argument(bytes: &[u8]) -> Vec<u8> {
    let mut encoded = encode_except(bytes, b"_.-~ ");
    encoded.iter_mut().filter(|byte| **byte == b' ').for_each(|byte| *byte = b'+');
    encoded
}

/// Encodes bytes that are not letters, digits or one of the given ones.
fn encode_except(bytes: &[u8], plain: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut encoded = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || plain.contains(byte) {
            encoded.push(*byte);
        } else {
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
            encoded.extend([b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}

/// Decodes percent signs that stand before two hexadecimal digits; others stay.
pub(crate) fn decode(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((byte, after)) = rest.split_first() {
        let code = after.split_first_chunk::<2>().and_then(|(digits, after)| {
            let [high, low] = digits.map(|digit| char::from(digit).to_digit(16));
            Some(((high? << 4 | low?) as u8, after))
        });
        match code.filter(|_| *byte == b'%') {
            Some((code, after)) => {
                decoded.push(code);
                rest = after;
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_encoded_and_decoded() {
        assert_eq!(encode("a/b ~ü;=".as_bytes()), b"a/b%20~%C3%BC%3B%3D");
        assert_eq!(encode_argument(b"a/b +"), b"a%2Fb+%2B");
        assert_eq!(decode(b"a/b%20~%C3%bc"), "a/b ~ü".as_bytes());
        assert_eq!(decode(b"100%, %4, %zz %41"), b"100%, %4, %zz A");
    }
}
