//! Zone names outside the tz database: Windows names and Outlook's display names.
//!
//! A Windows name maps to CLDR's zone for the territory `001`. Outlook has shown several texts for
//! one name over the years.

/// Windows names without their ` Standard Time`, sorted.
pub(super) const WINDOWS_ZONES: &[(&str, &str)] = &[
    ("AUS Central", "Australia/Darwin"),
    ("AUS Eastern", "Australia/Sydney"),
    ("Afghanistan", "Asia/Kabul"),
    ("Alaskan", "America/Anchorage"),
    ("Alberta", "America/Edmonton"),
    ("Aleutian", "America/Adak"),
    ("Altai", "Asia/Barnaul"),
    ("Arab", "Asia/Riyadh"),
    ("Arabian", "Asia/Dubai"),
    ("Arabic", "Asia/Baghdad"),
    ("Argentina", "America/Buenos_Aires"),
    ("Astrakhan", "Europe/Astrakhan"),
    ("Atlantic", "America/Halifax"),
    ("Aus Central W.", "Australia/Eucla"),
    ("Azerbaijan", "Asia/Baku"),
    ("Azores", "Atlantic/Azores"),
    ("Bahia", "America/Bahia"),
    ("Bangladesh", "Asia/Dhaka"),
    ("Belarus", "Europe/Minsk"),
    ("Bougainville", "Pacific/Bougainville"),
    ("British Columbia", "America/Vancouver"),
    ("Canada Central", "America/Regina"),
    ("Cape Verde", "Atlantic/Cape_Verde"),
    ("Caucasus", "Asia/Yerevan"),
    ("Cen. Australia", "Australia/Adelaide"),
    ("Central", "America/Chicago"),
    ("Central America", "America/Guatemala"),
    ("Central Asia", "Asia/Bishkek"),
    ("Central Brazilian", "America/Cuiaba"),
    ("Central Europe", "Europe/Budapest"),
    ("Central European", "Europe/Warsaw"),
    ("Central Pacific", "Pacific/Guadalcanal"),
    ("Central Standard Time (Mexico)", "America/Mexico_City"),
    ("Chatham Islands", "Pacific/Chatham"),
    ("China", "Asia/Shanghai"),
    ("Cuba", "America/Havana"),
    ("Dateline", "Etc/GMT+12"),
    ("E. Africa", "Africa/Nairobi"),
    ("E. Australia", "Australia/Brisbane"),
    ("E. Europe", "Europe/Chisinau"),
    ("E. South America", "America/Sao_Paulo"),
    ("Easter Island", "Pacific/Easter"),
    ("Eastern", "America/New_York"),
    ("Eastern Standard Time (Mexico)", "America/Cancun"),
    ("Egypt", "Africa/Cairo"),
    ("Ekaterinburg", "Asia/Yekaterinburg"),
    ("FLE", "Europe/Kiev"),
    ("Fiji", "Pacific/Fiji"),
    ("GMT", "Europe/London"),
    ("GTB", "Europe/Bucharest"),
    ("Georgian", "Asia/Tbilisi"),
    ("Greenland", "America/Godthab"),
    ("Greenwich", "Atlantic/Reykjavik"),
    ("Haiti", "America/Port-au-Prince"),
    ("Hawaiian", "Pacific/Honolulu"),
    ("India", "Asia/Calcutta"),
    ("Iran", "Asia/Tehran"),
    ("Israel", "Asia/Jerusalem"),
    ("Jordan", "Asia/Amman"),
    ("Kaliningrad", "Europe/Kaliningrad"),
    ("Kamchatka", "Asia/Kamchatka"),
    ("Korea", "Asia/Seoul"),
    ("Libya", "Africa/Tripoli"),
    ("Line Islands", "Pacific/Kiritimati"),
    ("Lord Howe", "Australia/Lord_Howe"),
    ("Magadan", "Asia/Magadan"),
    ("Magallanes", "America/Punta_Arenas"),
    ("Manitoba", "America/Winnipeg"),
    ("Marquesas", "Pacific/Marquesas"),
    ("Mauritius", "Indian/Mauritius"),
    ("Mexico", "America/Mexico_City"),
    ("Mexico Standard Time 2", "America/Mazatlan"),
    ("Mid-Atlantic", "Etc/GMT+2"),
    ("Middle East", "Asia/Beirut"),
    ("Montevideo", "America/Montevideo"),
    ("Morocco", "Africa/Casablanca"),
    ("Mountain", "America/Denver"),
    ("Mountain Standard Time (Mexico)", "America/Mazatlan"),
    ("Myanmar", "Asia/Rangoon"),
    ("N. Central Asia", "Asia/Novosibirsk"),
    ("Namibia", "Africa/Windhoek"),
    ("Nepal", "Asia/Katmandu"),
    ("New Zealand", "Pacific/Auckland"),
    ("Newfoundland", "America/St_Johns"),
    ("Norfolk", "Pacific/Norfolk"),
    ("North Asia", "Asia/Krasnoyarsk"),
    ("North Asia East", "Asia/Irkutsk"),
    ("North Korea", "Asia/Pyongyang"),
    ("Omsk", "Asia/Omsk"),
    ("Pacific", "America/Los_Angeles"),
    ("Pacific SA", "America/Santiago"),
    ("Pacific Standard Time (Mexico)", "America/Tijuana"),
    ("Pakistan", "Asia/Karachi"),
    ("Paraguay", "America/Asuncion"),
    ("Qyzylorda", "Asia/Qyzylorda"),
    ("Romance", "Europe/Paris"),
    ("Russia Time Zone 10", "Asia/Srednekolymsk"),
    ("Russia Time Zone 11", "Asia/Kamchatka"),
    ("Russia Time Zone 3", "Europe/Samara"),
    ("Russian", "Europe/Moscow"),
    ("SA Eastern", "America/Cayenne"),
    ("SA Pacific", "America/Bogota"),
    ("SA Western", "America/La_Paz"),
    ("SE Asia", "Asia/Bangkok"),
    ("Saint Pierre", "America/Miquelon"),
    ("Sakhalin", "Asia/Sakhalin"),
    ("Samoa", "Pacific/Apia"),
    ("Sao Tome", "Africa/Sao_Tome"),
    ("Saratov", "Europe/Saratov"),
    ("Singapore", "Asia/Singapore"),
    ("South Africa", "Africa/Johannesburg"),
    ("South Sudan", "Africa/Juba"),
    ("Sri Lanka", "Asia/Colombo"),
    ("Sudan", "Africa/Khartoum"),
    ("Syria", "Asia/Damascus"),
    ("Taipei", "Asia/Taipei"),
    ("Tasmania", "Australia/Hobart"),
    ("Tocantins", "America/Araguaina"),
    ("Tokyo", "Asia/Tokyo"),
    ("Tomsk", "Asia/Tomsk"),
    ("Tonga", "Pacific/Tongatapu"),
    ("Transbaikal", "Asia/Chita"),
    ("Turkey", "Europe/Istanbul"),
    ("Turks And Caicos", "America/Grand_Turk"),
    ("US Eastern", "America/Indianapolis"),
    ("US Mountain", "America/Phoenix"),
    ("UTC", "Etc/UTC"),
    ("UTC+12", "Etc/GMT-12"),
    ("UTC+13", "Etc/GMT-13"),
    ("UTC-02", "Etc/GMT+2"),
    ("UTC-08", "Etc/GMT+8"),
    ("UTC-09", "Etc/GMT+9"),
    ("UTC-11", "Etc/GMT+11"),
    ("Ulaanbaatar", "Asia/Ulaanbaatar"),
    ("Venezuela", "America/Caracas"),
    ("Vladivostok", "Asia/Vladivostok"),
    ("Volgograd", "Europe/Volgograd"),
    ("W. Australia", "Australia/Perth"),
    ("W. Central Africa", "Africa/Lagos"),
    ("W. Europe", "Europe/Berlin"),
    ("W. Mongolia", "Asia/Hovd"),
    ("West Asia", "Asia/Tashkent"),
    ("West Bank", "Asia/Hebron"),
    ("West Pacific", "Pacific/Port_Moresby"),
    ("Yakutsk", "Asia/Yakutsk"),
    ("Yukon", "America/Whitehorse"),
];

/// Outlook's display names after `(UTC+01:00) `, with their Windows names.
pub(super) const OUTLOOK_DISPLAY_NAMES: &[(&str, &str)] = &[
    ("Abu Dhabi, Muscat", "Arabian"),
    ("Adelaide", "Cen. Australia"),
    ("Alaska", "Alaskan"),
    ("Alberta", "Alberta"),
    ("Aleutian Islands", "Aleutian"),
    ("Almaty, Novosibirsk", "N. Central Asia"),
    ("Amman", "Jordan"),
    ("Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna", "W. Europe"),
    ("Anadyr, Petropavlovsk-Kamchatsky", "Russia Time Zone 11"),
    ("Araguaina", "Tocantins"),
    ("Arizona", "US Mountain"),
    ("Ashgabat, Tashkent", "West Asia"),
    ("Astana", "Central Asia"),
    ("Astana, Dhaka", "Central Asia"),
    ("Astrakhan, Ulyanovsk", "Astrakhan"),
    ("Asuncion", "Paraguay"),
    ("Athens, Bucharest", "GTB"),
    ("Athens, Bucharest, Istanbul", "GTB"),
    ("Athens, Istanbul, Minsk", "GTB"),
    ("Atlantic Time (Canada)", "Atlantic"),
    ("Auckland, Wellington", "New Zealand"),
    ("Azores", "Azores"),
    ("Baghdad", "Arabic"),
    ("Baja California", "Pacific Standard Time (Mexico)"),
    ("Baku", "Azerbaijan"),
    ("Bangkok, Hanoi, Jakarta", "SE Asia"),
    ("Barnaul, Gorno-Altaysk", "Altai"),
    ("Beijing, Chongqing, Hong Kong, Urumqi", "China"),
    ("Beirut", "Middle East"),
    ("Belgrade, Bratislava, Budapest, Ljubljana, Prague", "Central Europe"),
    ("Bogota, Lima, Quito", "SA Pacific"),
    ("Bogota, Lima, Quito, Rio Branco", "SA Pacific"),
    ("Bougainville Island", "Bougainville"),
    ("Brasilia", "E. South America"),
    ("Brisbane", "E. Australia"),
    ("British Columbia", "British Columbia"),
    ("Brussels, Copenhagen, Madrid, Paris", "Romance"),
    ("Buenos Aires", "Argentina"),
    ("Cabo Verde Is.", "Cape Verde"),
    ("Cairo", "Egypt"),
    ("Canberra, Melbourne, Sydney", "AUS Eastern"),
    ("Cape Verde Is.", "Cape Verde"),
    ("Caracas", "Venezuela"),
    ("Casablanca", "Morocco"),
    ("Cayenne, Fortaleza", "SA Eastern"),
    ("Central America", "Central America"),
    ("Central Time (US & Canada)", "Central"),
    ("Chatham Islands", "Chatham Islands"),
    ("Chennai, Kolkata, Mumbai, New Delhi", "India"),
    ("Chetumal", "Eastern Standard Time (Mexico)"),
    ("Chihuahua, La Paz, Mazatlan", "Mountain Standard Time (Mexico)"),
    ("Chisinau", "E. Europe"),
    ("Chita", "Transbaikal"),
    ("Chokurdakh", "Russia Time Zone 10"),
    ("Coordinated Universal Time", "UTC"),
    ("Cuiaba", "Central Brazilian"),
    ("Damascus", "Syria"),
    ("Darwin", "AUS Central"),
    ("Dhaka", "Bangladesh"),
    ("Dublin, Edinburgh, Lisbon, London", "GMT"),
    ("Easter Island", "Easter Island"),
    ("Eastern Time (US & Canada)", "Eastern"),
    ("Ekaterinburg", "Ekaterinburg"),
    ("Eucla", "Aus Central W."),
    ("Fiji", "Fiji"),
    ("Gaza, Hebron", "West Bank"),
    ("Georgetown, La Paz, Manaus, San Juan", "SA Western"),
    ("Greenland", "Greenland"),
    ("Greenwich Mean Time : Dublin, Edinburgh, Lisbon, London", "GMT"),
    ("Guadalajara, Mexico City, Monterrey", "Central Standard Time (Mexico)"),
    ("Guam, Port Moresby", "West Pacific"),
    ("Haiti", "Haiti"),
    ("Harare, Pretoria", "South Africa"),
    ("Havana", "Cuba"),
    ("Hawaii", "Hawaiian"),
    ("Helsinki, Kyiv, Riga, Sofia, Tallinn, Vilnius", "FLE"),
    ("Hobart", "Tasmania"),
    ("Hovd", "W. Mongolia"),
    ("Indiana (East)", "US Eastern"),
    ("International Date Line West", "Dateline"),
    ("Irkutsk", "North Asia East"),
    ("Irkutsk, Ulaan Bataar", "North Asia East"),
    ("Islamabad, Karachi", "Pakistan"),
    ("Istanbul", "Turkey"),
    ("Izhevsk, Samara", "Russia Time Zone 3"),
    ("Jerusalem", "Israel"),
    ("Juba", "South Sudan"),
    ("Kabul", "Afghanistan"),
    ("Kaliningrad", "Kaliningrad"),
    ("Kathmandu", "Nepal"),
    ("Khartoum", "Sudan"),
    ("Kiritimati Island", "Line Islands"),
    ("Krasnoyarsk", "North Asia"),
    ("Kuala Lumpur, Singapore", "Singapore"),
    ("Kuwait, Riyadh", "Arab"),
    ("La Paz, Mazatlan", "Mountain Standard Time (Mexico)"),
    ("Lord Howe Island", "Lord Howe"),
    ("Magadan", "Magadan"),
    ("Manitoba", "Manitoba"),
    ("Marquesas Islands", "Marquesas"),
    ("Minsk", "Belarus"),
    ("Monrovia, Reykjavik", "Greenwich"),
    ("Montevideo", "Montevideo"),
    ("Moscow, St. Petersburg", "Russian"),
    ("Moscow, St. Petersburg, Volgograd", "Russian"),
    ("Mountain Time (US & Canada)", "Mountain"),
    ("Nairobi", "E. Africa"),
    ("Newfoundland", "Newfoundland"),
    ("Norfolk Island", "Norfolk"),
    ("Novosibirsk", "N. Central Asia"),
    ("Nuku'alofa", "Tonga"),
    ("Omsk", "Omsk"),
    ("Osaka, Sapporo, Tokyo", "Tokyo"),
    ("Pacific Time (US & Canada)", "Pacific"),
    ("Pacific Time (US & Canada); Tijuana", "Pacific"),
    ("Perth", "W. Australia"),
    ("Port Louis", "Mauritius"),
    ("Punta Arenas", "Magallanes"),
    ("Pyongyang", "North Korea"),
    ("Qyzylorda", "Qyzylorda"),
    ("Saint Pierre and Miquelon", "Saint Pierre"),
    ("Sakhalin", "Sakhalin"),
    ("Salvador", "Bahia"),
    ("Samoa", "Samoa"),
    ("Santiago", "Pacific SA"),
    ("Sao Tome", "Sao Tome"),
    ("Sarajevo, Skopje, Warsaw, Zagreb", "Central European"),
    ("Saratov", "Saratov"),
    ("Saskatchewan", "Canada Central"),
    ("Seoul", "Korea"),
    ("Solomon Is., New Caledonia", "Central Pacific"),
    ("Sri Jayawardenepura", "Sri Lanka"),
    ("Taipei", "Taipei"),
    ("Tbilisi", "Georgian"),
    ("Tehran", "Iran"),
    ("Tomsk", "Tomsk"),
    ("Tripoli", "Libya"),
    ("Turks and Caicos", "Turks And Caicos"),
    ("Ulaanbaatar", "Ulaanbaatar"),
    ("Vladivostok", "Vladivostok"),
    ("Volgograd", "Volgograd"),
    ("West Central Africa", "W. Central Africa"),
    // Lotus Notes.
    ("Western/Central Europe", "W. Europe"),
    ("Windhoek", "Namibia"),
    ("Yakutsk", "Yakutsk"),
    ("Yangon (Rangoon)", "Myanmar"),
    ("Yerevan", "Caucasus"),
    ("Yukon", "Yukon"),
];

/// Returns the zone of a Windows name.
pub(super) fn zone_of_windows_name(name: &str) -> Option<&'static str> {
    let bare = name.strip_suffix(" Standard Time");
    let bare = bare.or_else(|| name.strip_suffix(" Daylight Time")).unwrap_or(name);
    // Without their suffix, most names are words with other meanings.
    let whole = bare == name;
    let found = WINDOWS_ZONES.iter().find(|(known, _)| known.eq_ignore_ascii_case(bare))?;
    (!whole
        || found.0.starts_with("UTC")
        || found.0.contains("Standard Time")
        || found.0.contains("Time Zone"))
    .then_some(found.1)
}

/// Returns the zone with this city in its name: `New York`. Only zones that represent a country, or
/// a large part of one, are known.
pub fn zone_of_city(text: &str) -> Option<&'static str> {
    let named = |zone: &&'static str| {
        let city = zone.rsplit('/').next().unwrap_or_default();
        city.len() == text.len()
            && city.chars().zip(text.chars()).all(|(a, b)| a == b || (a == '_' && b == ' '))
    };
    let zones = WINDOWS_ZONES.iter().map(|(_, zone)| *zone).filter(|zone| has_area_prefix(zone));
    zones.chain(CITY_ZONES.iter().copied()).find(named)
}

/// Cities that the table of Windows names has under another name, or not at all.
const CITY_ZONES: &[&str] = &[
    "America/Toronto",
    "America/Vancouver",
    "Asia/Hong_Kong",
    "Asia/Kolkata",
    "Europe/Amsterdam",
    "Europe/Brussels",
    "Europe/Copenhagen",
    "Europe/Dublin",
    "Europe/Lisbon",
    "Europe/Madrid",
    "Europe/Oslo",
    "Europe/Prague",
    "Europe/Rome",
    "Europe/Stockholm",
    "Europe/Vienna",
    "Europe/Zurich",
];

/// Returns whether a name begins with a continent or an ocean, as zone names do.
pub fn has_area_prefix(name: &str) -> bool {
    const AREA_NAMES: [&str; 10] = [
        "Africa",
        "America",
        "Antarctica",
        "Arctic",
        "Asia",
        "Atlantic",
        "Australia",
        "Europe",
        "Indian",
        "Pacific",
    ];
    name.split_once('/')
        .is_some_and(|(area, place)| AREA_NAMES.contains(&area) && !place.is_empty())
}

/// Returns the zone of an Outlook display name, with or without the offset in front.
pub(super) fn zone_of_display_name(text: &str) -> Option<&'static str> {
    let places = match text.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
        Some((offset, places)) if offset.starts_with("UTC") || offset.starts_with("GMT") => places,
        Some(_) => return None,
        None => text,
    };
    // The sign is a word in some texts.
    let places = places.trim().replace("US and Canada", "US & Canada");
    let (_, name) =
        OUTLOOK_DISPLAY_NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&places))?;
    WINDOWS_ZONES.iter().find(|(known, _)| known == name).map(|(_, zone)| *zone)
}

#[cfg(test)]
mod tests {
    use super::{OUTLOOK_DISPLAY_NAMES, WINDOWS_ZONES, zone_of_display_name, zone_of_windows_name};

    #[test]
    fn every_name_leads_to_a_zone() {
        let database = jiff::tz::db();
        for (name, zone) in WINDOWS_ZONES {
            assert!(database.get(zone).is_ok(), "{name}: {zone}");
            let suffix = if name.contains(" Standard Time") { "" } else { " Standard Time" };
            assert_eq!(zone_of_windows_name(&format!("{name}{suffix}")), Some(*zone), "{name}");
        }
        for (text, name) in OUTLOOK_DISPLAY_NAMES {
            let zone = WINDOWS_ZONES.iter().find(|(known, _)| known == name).map(|(_, zone)| *zone);
            assert!(zone.is_some(), "{text}: {name}");
            assert_eq!(zone_of_display_name(&format!("(UTC+01:00) {text}")), zone);
        }
        assert_eq!(zone_of_windows_name("Tokyo"), None, "a city is no Windows name");
    }
}
