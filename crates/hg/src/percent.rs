//! Percent-encoding as Python's `urllib` has it, which Mercurial's protocol uses.

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
    fn texts_are_decoded() {
        assert_eq!(decode(b"a/b%20~%C3%bc"), "a/b ~ü".as_bytes());
        assert_eq!(decode(b"100%, %4, %zz %41"), b"100%, %4, %zz A");
    }
}
