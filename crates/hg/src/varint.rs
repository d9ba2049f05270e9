//! Numbers with seven bits in each byte, the lowest first, as in git's deltas and in the metadata.

/// The most bytes of a number.
pub(crate) const MAX_NUMBER_BYTES: usize = 9;

/// Appends a number.
pub(crate) fn write_number(out: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Reads a number, and returns the rest; `None` if it has no end, or more than 63 bits.
pub(crate) fn read_number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0_usize;
    for (place, byte) in bytes.iter().enumerate().take(MAX_NUMBER_BYTES) {
        number |= usize::from(byte & 0x7f) << (7 * place);
        if byte & 0x80 == 0 {
            return Some((number, bytes.get(place + 1..)?));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_again() {
        for number in [0, 1, 0x7f, 0x80, 0x4000, usize::MAX >> 1] {
            let mut bytes = Vec::new();
            write_number(&mut bytes, number);
            bytes.push(7);
            assert_eq!(read_number(&bytes), Some((number, &[7][..])));
        }
        assert_eq!(read_number(&[0x80; 12]), None);
        assert_eq!(read_number(&[]), None);
    }
}
