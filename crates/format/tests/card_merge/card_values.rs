//! The values of a card as people would read them. Separate from the tests of merges because it
//! computes them independently of the merge, by simpler means.

use larder_format::contact::Contact;
use larder_format::content_line::content_lines;
use larder_format::decoding::unescape_text;
use larder_format::property::Property;

/// Parameters that rank a value among others of its card.
const RANK_PARAMETERS: &[&str] = &["PREF", "PID", "INDEX", "X-EVOLUTION-UI-SLOT"];

/// A value by its name, without differences of notation.
pub(super) struct CardValue {
    pub(super) name: String,
    pub(super) value: String,
    pub(super) params: Vec<(String, String)>,
    /// Whether it has one of [`RANK_PARAMETERS`] or the preferred type.
    pub(super) is_ranked: bool,
}

impl CardValue {
    pub(super) fn is(&self, name: &str, value: &str) -> bool {
        self.name == name && self.value == value
    }

    /// Returns the values of one of its parameters.
    pub(super) fn param(&self, name: &str) -> Vec<&str> {
        self.params.iter().filter(|(key, _)| key == name).map(|(_, value)| value.as_str()).collect()
    }

    pub(super) fn has_all_params(&self, other: &CardValue) -> bool {
        other.params.iter().all(|param| self.params.contains(param))
    }
}

fn is_binary(name: &str) -> bool {
    ["PHOTO", "KEY", "LOGO", "SOUND"].contains(&name)
}

/// Returns the parameters of a property that exist in every version, and whether they rank it.
pub(super) fn comparable_params(
    property: &Property<'_>,
    name: &str,
) -> (Vec<(String, String)>, bool) {
    let (mut params, mut is_ranked) = (Vec::new(), false);
    for param in property.params() {
        let key = param.name.to_ascii_uppercase();
        if ["ENCODING", "CHARSET", "VALUE", "MEDIATYPE"].contains(&key.as_str()) {
            continue;
        }
        for value in param.values {
            if RANK_PARAMETERS.contains(&key.as_str()) {
                is_ranked = true;
            } else if key != "TYPE" {
                params.push((key.clone(), value.replace("\r\n", "\n").replace('\r', "\n")));
            } else {
                for one in value.split(',').map(|one| one.trim().to_ascii_lowercase()) {
                    is_ranked |= one == "pref";
                    if one != "pref" && !one.is_empty() && !is_binary(name) {
                        params.push((key.clone(), one));
                    }
                }
            }
        }
    }
    (params, is_ranked)
}

/// Returns the values of a property as people would read them; each member of a list.
pub(super) fn property_values(property: &Property<'_>) -> Vec<CardValue> {
    let name = property.name().to_ascii_uppercase();
    let name = name.strip_prefix("X-LARDER-").unwrap_or(&name).to_string();
    if ["VERSION", "PRODID", "REV"].contains(&name.as_str()) {
        return Vec::new();
    }
    let text = property.text();
    let text = unescape_text(&text).replace("\r\n", "\n").replace('\r', "\n");
    let values: Vec<String> = match name.as_str() {
        // Their members may be in several lines.
        "CATEGORIES" | "NICKNAME" => text.split(',').map(str::to_string).collect(),
        "TEL" => vec![text.to_lowercase().replace("tel:", "").replace(['-', ' ', '\t'], "")],
        "EMAIL" => vec![text.to_lowercase().replace("mailto:", "")],
        "GEO" => vec![text.replace("geo:", "").replace(';', ",")],
        "BDAY" | "ANNIVERSARY" => vec![text.replace('-', "")],
        // One form for all versions: the part after the comma is the base64.
        name if is_binary(name) => {
            let all = text.rsplit(',').next().unwrap_or_default();
            vec![all.chars().filter(|c| c.is_ascii_alphanumeric()).collect()]
        }
        _ => vec![text],
    };
    let (params, is_ranked) = comparable_params(property, &name);
    let values = values.iter().map(|value| value.trim().trim_end_matches([';', ' ']));
    values
        .filter(|value| !value.trim_matches([';', ',', ' ']).is_empty())
        .map(|value| CardValue {
            name: name.clone(),
            value: value.to_string(),
            params: params.clone(),
            is_ranked,
        })
        .collect()
}

pub(super) fn card_values(card: &Contact<'_>) -> Vec<CardValue> {
    card.properties().iter().flat_map(property_values).collect()
}

/// Returns the lines that are not properties.
pub(super) fn unparsed_lines(bytes: &[u8]) -> Vec<String> {
    let card = Contact::parse(bytes);
    let numbers: Vec<u32> = card.properties().iter().map(Property::line_number).collect();
    let loose = content_lines(bytes).filter(|line| !numbers.contains(&line.number));
    loose.map(|line| String::from_utf8_lossy(&line.text).trim().to_string()).collect()
}

/// Returns whether a property has no value, or is a name that another one completes.
pub(super) fn is_refined_name(known: &Property<'_>, now: &Property<'_>) -> bool {
    let parts = |property: &Property<'_>| -> Vec<String> {
        property.text().split(';').map(|part| part.trim().to_string()).collect()
    };
    let (before, now_parts) = (parts(known), parts(now));
    let mut now_parts = now_parts.iter().map(String::as_str).chain(std::iter::repeat(""));
    let kept = before.iter().all(|part| now_parts.next() == Some(part.as_str()) || part.is_empty());
    let nothing = property_values(known).is_empty();
    known.has_name(now.name())
        && known.group().is_none()
        && (nothing || (known.has_name("N") && kept))
}
