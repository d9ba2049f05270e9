//! Dates, date ranges, durations and events in words.

use larder_date_phrase::{DateRange, Language, PointInTime, Sentence, parse_duration};
use larder_time::civil::CivilTime;

/// The languages that have a vocabulary.
const LOCALES: [&str; 13] =
    ["C", "de", "fr", "es", "it", "nl", "pt", "sv", "da", "nb", "fi", "pl", "cs"];

/// Bounds the time of one input, as each word is compared with hundreds of forms.
const MAX_TEXT_CHARS: usize = 500;

/// Checks that ranges end after they begin, and that a range which is not relative is the same at
/// any moment. The first byte chooses the language, the second the present moment.
pub fn check_phrase(data: &[u8]) {
    let [locale, moment, text @ ..] = data else { return };
    let locale = LOCALES.get(usize::from(*locale) % LOCALES.len()).copied().unwrap_or_default();
    let language = Language::from_locale(locale);
    let moments = [
        CivilTime::MIN,
        CivilTime::from_seconds_clamped(1_772_618_400),
        CivilTime::from_seconds_clamped(0),
        CivilTime::MAX,
    ];
    let now = moments.get(usize::from(*moment) % moments.len()).copied().unwrap_or(CivilTime::MIN);
    let text: String = String::from_utf8_lossy(text).chars().take(MAX_TEXT_CHARS).collect();
    if let Ok(window) = DateRange::parse(&text, now, &language) {
        assert!(window.from <= window.to, "{window:?}");
        if !window.is_relative {
            let later = DateRange::parse(&text, CivilTime::from_seconds_clamped(1), &language);
            assert_eq!(later, Ok(window), "a range that is not relative changed with the moment");
        }
    }
    if let Ok(moment) = PointInTime::parse(&text, now, &language) {
        assert!(!moment.is_date || moment.at.second_of_day() == 0, "{moment:?}");
    }
    if let Ok(length) = parse_duration(&text, &language) {
        assert!(length.days >= 0 && length.seconds >= 0, "{length}");
    }
    match Sentence::parse(&text, now, &language) {
        Ok(sentence) => check_sentence(&sentence),
        Err(error) => assert!(!error.to_string().is_empty(), "an error has no message"),
    }
}

fn check_sentence(sentence: &Sentence) {
    assert!(sentence.until.is_none() || sentence.rule.is_some(), "{sentence:?}");
    let Some(start) = sentence.start else { return };
    assert!(sentence.end.is_some_and(|end| start <= end), "{sentence:?}");
    assert!(sentence.until.is_none_or(|until| start <= until), "{sentence:?}");
    assert!(!sentence.is_all_day || start.second_of_day() == 0, "{sentence:?}");
}
