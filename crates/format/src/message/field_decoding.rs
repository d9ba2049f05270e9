//! The parsed fields of a message with encoded words and parameters as they are meant.
//!
//! Separate from `encoded_words` and `parameters`, which read the text of one field: here the
//! values in the tree of the parser are replaced.

use crate::message::encoded_words::{decode_words, has_encoded_words, recode_words};
use crate::message::parameters::decode_parameter;
use mail_parser::parsers::MessageStream;
use mail_parser::{Attribute, HeaderName, HeaderValue, PartType};

/// Reads the fields of all parts again that have encoded words, or parameters in pieces.
pub(super) fn decode_fields(message: &mut mail_parser::Message<'_>) {
    let source = &message.raw_message;
    for part in &mut message.parts {
        for header in &mut part.headers {
            let range = header.offset_start as usize..header.offset_end as usize;
            let field = source.get(range).unwrap_or_default();
            if let HeaderValue::ContentType(value) = &mut header.value {
                let name = match header.name {
                    HeaderName::ContentDisposition => "filename",
                    _ => "name",
                };
                if let Some(file_name) = decode_parameter(field, name) {
                    let attributes = value.attributes.get_or_insert_default();
                    attributes.retain(|one| one.name != name);
                    attributes.push(Attribute { name: name.into(), value: file_name.into() });
                }
            } else if has_encoded_words(field) {
                let value = match header.value {
                    HeaderValue::Address(_) => {
                        let field = recode_words(field);
                        MessageStream::new(&field).parse_address().into_owned()
                    }
                    HeaderValue::Text(_) if header.name == HeaderName::Subject => {
                        HeaderValue::Text(decode_words(field).into())
                    }
                    _ => continue,
                };
                header.value = value;
            }
        }
        if let PartType::Message(inner) = &mut part.body {
            decode_fields(inner);
        }
    }
}
