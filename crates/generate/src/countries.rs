//! Countries: the notations of telephone numbers, addresses and employers.
//!
//! The patterns are typical of address books, national and international, with brackets, dots,
//! slashes and extensions; they are not authoritative for numbering plans. In countries that
//! reserve numbers for fiction (North America, Britain, France), the patterns use these numbers.

/// The texts and number patterns of a country.
pub(super) struct Country {
    /// Its name in its own language.
    pub(super) name: &'static str,
    /// The calling code, with `+`.
    pub(super) calling_code: &'static str,
    /// The trunk prefix of national numbers, which is omitted after the country code.
    pub(super) trunk_prefix: &'static str,
    /// Patterns of mobile numbers; see `fill_pattern` in contact.rs.
    pub(super) mobile_patterns: &'static [&'static str],
    /// Patterns of landline numbers.
    pub(super) landline_patterns: &'static [&'static str],
    /// Patterns of streets with house numbers.
    pub(super) streets: &'static [&'static str],
    /// Cities: name, region, pattern of the postal code.
    pub(super) cities: &'static [(&'static str, &'static str, &'static str)],
    /// Organisations.
    pub(super) organisations: &'static [&'static str],
    /// Job titles in the language of the country.
    pub(super) titles: &'static [&'static str],
    /// Sentences for notes.
    pub(super) note_sentences: &'static [&'static str],
}

pub(super) static UNITED_STATES: Country = Country {
    name: "United States",
    calling_code: "+1",
    trunk_prefix: "",
    mobile_patterns: &["+1 ~## 555 01##", "(~##) 555-01##", "~##-555-01##", "+1~##55501##"],
    landline_patterns: &[
        "(~##) 555-01##",
        "+1 (~##) 555-01## x1##",
        "1-~##-555-01##",
        "~##.555.01##",
    ],
    streets: &[
        "% Maple Street",
        "% W 5#th Ave, Apt #",
        "% Old Mill Rd",
        "PO Box 1###",
        "% Harbor Blvd; Suite #0#",
    ],
    cities: &[
        ("Springfield", "IL", "627##"),
        ("Portland", "OR", "972##"),
        ("Austin", "TX", "787##"),
        ("Brooklyn", "NY", "112##-1###"),
        ("San José", "CA", "951##"),
        ("Fargo", "ND", "581##"),
    ],
    organisations: &[
        "Copperleaf Foods, Inc.",
        "Tidewell Insurance Group",
        "Quillmark Press",
        "Dunes & Daughters LLC",
        "Larkfield School District",
    ],
    titles: &["Sales Representative", "Vice President, Operations", "Registered Nurse", "Teacher"],
    note_sentences: &["Call after 5pm only.", "Prefers text messages; never answers the phone."],
};

pub(super) static BRITAIN: Country = Country {
    name: "United Kingdom",
    calling_code: "+44",
    trunk_prefix: "0",
    mobile_patterns: &["+44 7700 900###", "07700 900###", "07700900###"],
    landline_patterns: &[
        "020 7946 0###",
        "+44 (0)161 496 0###",
        "(0131) 496 0###",
        "+44 20 7946 0###",
    ],
    streets: &[
        "% High Street",
        "Flat #, % Queen's Road",
        "The Old Rectory, Church Lane",
        "% St. Mary's Close",
    ],
    cities: &[
        ("London", "", "SW1# 2AB"),
        ("Manchester", "Greater Manchester", "M1 #WD"),
        ("Edinburgh", "Midlothian", "EH8 #DX"),
        ("Aberystwyth", "Ceredigion", "SY23 #AS"),
        ("Leeds", "West Yorkshire", "LS2 #JT"),
    ],
    organisations: &[
        "Fernhill Surveyors Ltd",
        "Oakstead & Sons",
        "The Harbourline Trust",
        "Brackenbury plc",
    ],
    titles: &["Solicitor", "Head of Procurement", "GP", "Site Manager"],
    note_sentences: &["Met on the train to Crewe.", "Owes me a pint."],
};

pub(super) static GERMANY: Country = Country {
    name: "Deutschland",
    calling_code: "+49",
    trunk_prefix: "0",
    mobile_patterns: &[
        "+49 171 39200##",
        "0171/39200##",
        "+49-176-0403####",
        "01579 230####",
        "+49 (0) 152 2881####",
    ],
    landline_patterns: &[
        "030 23125 ###",
        "(089) 99998-###",
        "+49 40 66969 ###",
        "0221-4710###",
        "+49 69 90009-###",
    ],
    streets: &[
        "Hauptstraße %",
        "Goethestr. %a",
        "Am Mühlbach %",
        "Königsallee %, 3. OG",
        "Größter Weg %",
    ],
    cities: &[
        ("Berlin", "", "10###"),
        ("München", "Bayern", "80###"),
        ("Köln", "Nordrhein-Westfalen", "50###"),
        ("Düsseldorf", "", "40###"),
        ("Görlitz", "Sachsen", "028##"),
        ("Lübeck", "Schleswig-Holstein", "235##"),
    ],
    organisations: &[
        "Weißbach Maschinenbau GmbH & Co. KG",
        "Gemeinde Süderbrück",
        "Bäckerei Öhler",
        "Nordlicht Versand AG",
        "Grundschule am Mühlenteich",
    ],
    titles: &["Geschäftsführerin", "Sachbearbeiter", "Oberärztin", "Lehrer für Physik, Mathematik"],
    note_sentences: &[
        "Erst ab 18 Uhr erreichbar.",
        "Schlüssel liegt bei Familie Groß im Erdgeschoß.",
    ],
};

pub(super) static FRANCE: Country = Country {
    name: "France",
    calling_code: "+33",
    trunk_prefix: "0",
    mobile_patterns: &["06 39 98 ## ##", "+33 6 39 98 ## ##", "06.39.98.##.##", "+3363998####"],
    landline_patterns: &[
        "01 99 00 ## ##",
        "+33 (0)2 61 91 ## ##",
        "03.53.01.##.##",
        "0465 71 ## ##",
    ],
    streets: &[
        "% rue de l'Église",
        "% bis, avenue du Général-Leclerc",
        "% boulevard Voltaire",
        "Résidence Les Chênes, bât. C",
    ],
    cities: &[
        ("Paris", "Île-de-France", "750##"),
        ("Lyon", "", "6900#"),
        ("Saint-Étienne", "Loire", "42###"),
        ("Besançon", "", "250##"),
        ("Nîmes", "Gard", "300##"),
    ],
    organisations: &[
        "Société Générine",
        "Crêperie du Vieux Port",
        "Mairie de Châteauvert",
        "Éditions Belœil",
    ],
    titles: &["Ingénieure d'études", "Gérant", "Infirmière", "Maître de conférences"],
    note_sentences: &[
        "Rappeler après les fêtes de Noël.",
        "Habite au troisième étage, code à l'entrée.",
    ],
};

pub(super) static SPAIN: Country = Country {
    name: "España",
    calling_code: "+34",
    trunk_prefix: "",
    mobile_patterns: &["+34 6## ### ###", "6## ## ## ##", "(+34) 6########"],
    landline_patterns: &["91 ### ## ##", "+34 93 ### ## ##", "954 ## ## ##", "0034 96 ### ## ##"],
    streets: &[
        "Calle Mayor, %",
        "Avda. de la Constitución %, 2º B",
        "Plaza de España, %",
        "C/ Núñez de Balboa %",
    ],
    cities: &[
        ("Madrid", "Madrid", "280##"),
        ("Málaga", "Andalucía", "290##"),
        ("A Coruña", "Galicia", "150##"),
        ("Castellón", "", "120##"),
        ("Girona", "Cataluña", "170##"),
    ],
    organisations: &[
        "Hermanos Ibáñez, S.L.",
        "Clínica Señorío",
        "Ayuntamiento de Peñalba",
        "Cerámicas Muñiz",
    ],
    titles: &["Directora de compras", "Técnico de mantenimiento", "Abogada", "Médico"],
    note_sentences: &["Llamar por la mañana.", "Cumple años el mismo día que mamá."],
};

pub(super) static POLAND: Country = Country {
    name: "Polska",
    calling_code: "+48",
    trunk_prefix: "",
    mobile_patterns: &["+48 5## ### ###", "6##-###-###", "+485########"],
    landline_patterns: &["(22) ### ## ##", "+48 12 ### ## ##", "58 ### ## ##"],
    streets: &["ul. Długa %", "ul. Świętokrzyska %/##", "al. Jana Pawła II %", "os. Przyjaźni %"],
    cities: &[
        ("Łódź", "łódzkie", "90-###"),
        ("Kraków", "małopolskie", "30-###"),
        ("Gdańsk", "", "80-###"),
        ("Warszawa", "", "00-###"),
    ],
    organisations: &["Żurawex sp. z o.o.", "Piekarnia Pod Dębem", "Szkoła Podstawowa nr 7"],
    titles: &["Księgowa", "Kierownik działu", "Inżynier"],
    note_sentences: &["Dzwonić po szóstej.", "Zna się na piecach."],
};

pub(super) static CZECHIA: Country = Country {
    name: "Česká republika",
    calling_code: "+420",
    trunk_prefix: "",
    mobile_patterns: &["+420 6## ### ###", "7## ### ###", "00420 60# ### ###"],
    landline_patterns: &["2## ### ###", "+420 541 ### ###"],
    streets: &["Na Příkopě %", "Dlouhá %/##", "Žižkova %", "náměstí Míru %"],
    cities: &[
        ("Praha 1", "", "110 ##"),
        ("Brno", "Jihomoravský kraj", "602 ##"),
        ("Plzeň", "", "301 ##"),
        ("Ústí nad Labem", "", "400 ##"),
    ],
    organisations: &["Truhlářství Řehoř", "Knihovna města Žďárce", "Šťastný a syn, s.r.o."],
    titles: &["Účetní", "Vedoucí skladu", "Překladatelka"],
    note_sentences: &["Volat až po obědě.", "Půjčil si vrtačku."],
};

pub(super) static SWEDEN: Country = Country {
    name: "Sverige",
    calling_code: "+46",
    trunk_prefix: "0",
    mobile_patterns: &["070-174 06 ##", "+46 70 174 06 ##", "0701740###"],
    landline_patterns: &["08-465 004 ##", "+46 31 390 06 ##", "040-628 04 ##"],
    streets: &["Storgatan %", "Åsögatan % A", "Björkvägen %", "Östra Hamngatan %"],
    cities: &[
        ("Malmö", "Skåne", "21# ##"),
        ("Göteborg", "", "41# ##"),
        ("Umeå", "Västerbotten", "90# ##"),
        ("Stockholm", "", "11# ##"),
    ],
    organisations: &["Älvsjö Möbler AB", "Bröderna Åkesson", "Nordanvik kommun"],
    titles: &["Förskollärare", "Säljchef", "Sjuksköterska"],
    note_sentences: &["Ring helst på kvällen.", "Granne från Åre."],
};

pub(super) static TURKEY: Country = Country {
    name: "Türkiye",
    calling_code: "+90",
    trunk_prefix: "0",
    mobile_patterns: &["0 (53#) ### ## ##", "+90 54# ### ## ##", "053# ### ####", "+9055########"],
    landline_patterns: &["0212 ### ## ##", "(0312) ### ####", "+90 232 ### ## ##"],
    streets: &["Atatürk Cad. No: %", "Gül Sok. %/#", "Cumhuriyet Mah. Işık Sok. No:% D:#"],
    cities: &[
        ("Kadıköy", "İstanbul", "347##"),
        ("İzmir", "", "352##"),
        ("Çankaya", "Ankara", "066##"),
        ("Muğla", "", "480##"),
    ],
    organisations: &["Işıklar Tekstil A.Ş.", "Çınar Yapı Ltd. Şti.", "İnci Kırtasiye"],
    titles: &["Müdür Yardımcısı", "Öğretmen", "Diş Hekimi"],
    note_sentences: &["Akşamları aranabilir.", "Kızı İngiltere'de okuyor."],
};

pub(super) static VIETNAM: Country = Country {
    name: "Việt Nam",
    calling_code: "+84",
    trunk_prefix: "0",
    mobile_patterns: &["09# ### ## ##", "+84 9# ### ## ##", "03########"],
    landline_patterns: &["(024) 3### ####", "+84 28 3### ####", "0236 3### ###"],
    streets: &["% Lê Lợi", "Số %, ngõ ##, phố Huế", "% Điện Biên Phủ, Phường #"],
    cities: &[
        ("Hà Nội", "", "1####"),
        ("Thành phố Hồ Chí Minh", "", "7####"),
        ("Đà Nẵng", "", "550###"),
    ],
    organisations: &["Công ty TNHH Hương Sen", "Trường Tiểu học Hoa Phượng"],
    titles: &["Giám đốc", "Kế toán trưởng", "Kỹ sư"],
    note_sentences: &["Gọi vào buổi tối.", "Bạn học cũ ở Huế."],
};

pub(super) static GREECE: Country = Country {
    name: "Ελλάδα",
    calling_code: "+30",
    trunk_prefix: "",
    mobile_patterns: &["69# ### ####", "+30 69########", "+30 694 ### ####"],
    landline_patterns: &["210 ### ####", "+30 2310 ### ###", "2810-######"],
    streets: &["Οδός Ερμού %", "Λεωφ. Κηφισίας %", "Αγίας Σοφίας %"],
    cities: &[
        ("Αθήνα", "Αττική", "1## ##"),
        ("Θεσσαλονίκη", "", "546 ##"),
        ("Ηράκλειο", "Κρήτη", "712 ##"),
    ],
    organisations: &["Εκδόσεις Άνεμος", "Φούρνος Ο Στάχυς Α.Ε."],
    titles: &["Λογιστής", "Καθηγήτρια", "Πολιτικός μηχανικός"],
    note_sentences: &["Να τον πάρω μετά τις έξι.", "Γνωριστήκαμε στη Νάξο."],
};

pub(super) static RUSSIA: Country = Country {
    name: "Россия",
    calling_code: "+7",
    trunk_prefix: "8",
    mobile_patterns: &["+7 9## ###-##-##", "8 (9##) ### ## ##", "89#########", "+79#########"],
    landline_patterns: &["8 (495) ###-##-##", "+7 812 ### ## ##", "+7 (343) ###-##-## доб. ##"],
    streets: &["ул. Ленина, д. %, кв. ##", "Невский пр., %", "пер. Зелёный, д. %", "ул. Щорса, %"],
    cities: &[
        ("Москва", "", "1#####"),
        ("Санкт-Петербург", "", "19####"),
        ("Екатеринбург", "Свердловская обл.", "620###"),
        ("Орёл", "Орловская обл.", "302###"),
    ],
    organisations: &["ООО «Берёзка»", "Школа № 57", "Издательство «Чайка»"],
    titles: &["Главный бухгалтер", "Инженер-конструктор", "Врач"],
    note_sentences: &["Звонить только в будни.", "Вернуть книгу до лета!"],
};

pub(super) static UKRAINE: Country = Country {
    name: "Україна",
    calling_code: "+380",
    trunk_prefix: "0",
    mobile_patterns: &["+380 67 ### ## ##", "(050) ###-##-##", "063 ### ####"],
    landline_patterns: &["(044) ###-##-##", "+380 32 ### ## ##"],
    streets: &["вул. Хрещатик, %", "вул. Лесі Українки, буд. %", "просп. Свободи, %"],
    cities: &[
        ("Київ", "", "01###"),
        ("Львів", "", "79###"),
        ("Харків", "", "61###"),
        ("Чернівці", "", "58###"),
    ],
    organisations: &["ТОВ «Калина»", "Друкарня «Їжак»"],
    titles: &["Учителька", "Керівник проєкту"],
    note_sentences: &["Дзвонити після обіду."],
};

pub(super) static EGYPT: Country = Country {
    name: "مصر",
    calling_code: "+20",
    trunk_prefix: "0",
    mobile_patterns: &["+20 10 #### ####", "010########", "0122 ### ####", "٠١٠ ٠٠٠٠ ٠٠٠٠"],
    landline_patterns: &["(02) 2### ####", "+20 3 ### ####", "02-2#######"],
    streets: &["% شارع التحرير", "شارع الهرم، عمارة %", "% ش. سعد زغلول"],
    cities: &[("القاهرة", "", "11###"), ("الإسكندرية", "", "21###"), ("الجيزة", "الجيزة", "12###")],
    organisations: &["شركة النيل للتجارة", "مدرسة الأمل"],
    titles: &["مهندس", "مدير المبيعات", "طبيبة"],
    note_sentences: &["الاتصال بعد صلاة العصر.", "صديق من أيام الجامعة."],
};

pub(super) static ISRAEL: Country = Country {
    name: "ישראל",
    calling_code: "+972",
    trunk_prefix: "0",
    mobile_patterns: &["05#-###-####", "+972 5#-###-####", "05########"],
    landline_patterns: &["03-### ####", "+972-2-###-####"],
    streets: &["רחוב הרצל %", "שד' רוטשילד % דירה #", "הגפן %"],
    cities: &[("תל אביב-יפו", "", "6######"), ("ירושלים", "", "9######"), ("חיפה", "", "3######")],
    organisations: &["דפוס השקד בע\"מ", "מאפיית הכרמל"],
    titles: &["מנהלת חשבונות", "מהנדס תוכנה"],
    note_sentences: &["להתקשר רק בערב."],
};

pub(super) static INDIA: Country = Country {
    name: "भारत",
    calling_code: "+91",
    trunk_prefix: "0",
    mobile_patterns: &["+91 9#### #####", "09#########", "+91-98########", "8#### #####"],
    landline_patterns: &["(011) 2### ####", "+91 22 2### ####", "080-4#######"],
    streets: &[
        "%, M. G. Road",
        "मकान नं. %, गाँधी नगर",
        "Flat ##, Lotus Towers, %th Cross",
        "% नेहरू मार्ग",
    ],
    cities: &[
        ("नई दिल्ली", "", "1100##"),
        ("Mumbai", "Maharashtra", "4000##"),
        ("Bengaluru", "Karnataka", "5600##"),
        ("लखनऊ", "उत्तर प्रदेश", "2260##"),
    ],
    organisations: &["Kamal Traders Pvt. Ltd.", "सरस्वती विद्यालय", "Monsoon Textiles"],
    titles: &["Chartered Accountant", "प्रबंधक", "Senior Engineer"],
    note_sentences: &["शाम को फ़ोन करें।", "Cousin of Meera, lives near the station."],
};

pub(super) static THAILAND: Country = Country {
    name: "ประเทศไทย",
    calling_code: "+66",
    trunk_prefix: "0",
    mobile_patterns: &["08#-###-####", "+66 8# ### ####", "09########"],
    landline_patterns: &["02-###-####", "+66 53 ### ###"],
    streets: &["% ถนนสุขุมวิท", "%/# หมู่ # ถนนนิมมานเหมินท์"],
    cities: &[("กรุงเทพมหานคร", "", "10###"), ("เชียงใหม่", "", "50###")],
    organisations: &["บริษัท ดอกบัว จำกัด", "โรงเรียนบ้านสวน"],
    titles: &["ผู้จัดการ", "ครู"],
    note_sentences: &["โทรหลังหกโมงเย็น"],
};

pub(super) static CHINA: Country = Country {
    name: "中国",
    calling_code: "+86",
    trunk_prefix: "0",
    mobile_patterns: &["13# #### ####", "+86 15# #### ####", "18#########", "+86-139-####-####"],
    landline_patterns: &["(010) 6### ####", "021-5#######", "+86 755 2### ####"],
    streets: &["中山路%号", "朝阳区建国路%号#单元##室", "人民南路%號"],
    cities: &[
        ("北京市", "", "1000##"),
        ("上海市", "", "2000##"),
        ("深圳市", "广东省", "5180##"),
        ("臺北市", "", "1##"),
    ],
    organisations: &["青竹软件有限公司", "第三小学", "东方茶行"],
    titles: &["经理", "软件工程师", "教師"],
    note_sentences: &["周末不要打电话。", "大学同学，住在老城区。"],
};

pub(super) static JAPAN: Country = Country {
    name: "日本",
    calling_code: "+81",
    trunk_prefix: "0",
    mobile_patterns: &["090-####-####", "+81 80 #### ####", "070########", "+81-90-####-####"],
    landline_patterns: &["03-3###-####", "(06) 6###-####", "+81 45 ### ####", "075(###)####"],
    streets: &["桜町#-##-#", "中央区銀座#丁目##番#号", "北山通り% メゾン青空##号室"],
    cities: &[
        ("千代田区", "東京都", "100-00##"),
        ("大阪市", "大阪府", "530-00##"),
        ("京都市", "京都府", "600-80##"),
        ("札幌市", "北海道", "060-00##"),
    ],
    organisations: &["株式会社あおぞら印刷", "みどり電機", "さくら小学校"],
    titles: &["部長", "営業担当", "システムエンジニア"],
    note_sentences: &["平日の夜に電話すること。", "同じ町内会の人。"],
};

pub(super) static KOREA: Country = Country {
    name: "대한민국",
    calling_code: "+82",
    trunk_prefix: "0",
    mobile_patterns: &["010-####-####", "+82 10-####-####", "010########"],
    landline_patterns: &["02-###-####", "+82 51 ### ####", "(031) ###-####"],
    streets: &["세종대로 %", "강남구 테헤란로 %, ##층", "해운대로 %번길 #"],
    cities: &[
        ("서울특별시", "", "0####"),
        ("부산광역시", "", "48###"),
        ("수원시", "경기도", "16###"),
    ],
    organisations: &["(주)푸른나무", "한빛초등학교"],
    titles: &["과장", "선임 연구원"],
    note_sentences: &["저녁에 전화하기."],
};
