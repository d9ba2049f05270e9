//! Languages by the names of locales.

use larder_date_phrase::Language;
use larder_time::civil::{Date, Weekday};

#[test]
fn locales_decide_date_order_and_first_weekday() {
    for (locale, month_first, week) in [
        ("C", true, Weekday::Monday),
        ("POSIX", true, Weekday::Monday),
        ("C.UTF-8", true, Weekday::Monday),
        ("", true, Weekday::Monday),
        ("en_US.UTF-8", true, Weekday::Sunday),
        ("en-US", true, Weekday::Sunday),
        ("en_GB.UTF-8", false, Weekday::Monday),
        ("en_DE", false, Weekday::Monday),
        ("en_IN", false, Weekday::Sunday),
        ("en_CA", true, Weekday::Sunday),
        ("de_DE.UTF-8@euro", false, Weekday::Monday),
        ("de", false, Weekday::Monday),
        ("fr_CA", false, Weekday::Sunday),
        ("pt_BR", false, Weekday::Sunday),
        ("pt_PT", false, Weekday::Monday),
        ("sv_SE", false, Weekday::Monday),
        ("hu_HU", true, Weekday::Monday),
        ("zh_Hant_TW", true, Weekday::Sunday),
        ("ar_EG", false, Weekday::Saturday),
    ] {
        let language = Language::from_locale(locale);
        assert_eq!(
            (language.is_month_first(), language.first_weekday()),
            (month_first, week),
            "{locale}"
        );
    }
}

#[test]
fn dates_are_printed_by_language() {
    let date = Date::new(2026, 3, 6).unwrap();
    for (locale, expect) in [
        ("C", "Fri 6 Mar 2026"),
        ("en_US", "Fri 6 Mar 2026"),
        ("de_DE.UTF-8", "Fr 6. März 2026"),
        ("fr_FR", "ven. 6 mars 2026"),
        ("es_ES", "vie 6 mar 2026"),
        ("it_IT", "ven 6 mar 2026"),
        ("nl_NL", "vr 6 mrt 2026"),
        ("pt_PT", "sex 6 mar 2026"),
        ("sv_SE", "fre 6 mars 2026"),
        ("da_DK", "fre. 6. mar. 2026"),
        ("nb_NO", "fre. 6. mars 2026"),
        ("nn_NO", "fre. 6. mars 2026"),
        ("fi_FI", "pe 6. maalisk. 2026"),
        ("pl_PL", "pt. 6 mar 2026"),
        ("cs_CZ", "pá 6. bře 2026"),
        ("ja_JP", "Fri 6 Mar 2026"),
    ] {
        assert_eq!(Language::from_locale(locale).date(date), expect, "{locale}");
    }
    let czech = Language::from_locale("cs_CZ");
    assert_eq!((czech.weekday_long(Weekday::Friday), czech.month_long(3)), ("pátek", "března"));
    assert_eq!((czech.month_long(0), czech.month_short(13)), ("", ""));
    assert_eq!(Language::default(), Language::from_locale("C"));
    assert_ne!(Language::from_locale("en_GB"), Language::from_locale("C"));
}
