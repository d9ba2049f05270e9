//! Names of people, by culture.
//!
//! The lists are short, ordered roughly from common to rare, and chosen to contain every script and
//! every letter with special folding or collation: ß and umlauts, ı and İ, ł, ø, å, ё, final sigma,
//! Vietnamese tones, Arabic without vowels, Thai and Devanagari vowel signs, names without a space.
//! They are separate from the other texts because they are tuned separately.

use super::countries::{self, Country};
use super::random::SplitMix64;

/// A name as it is written, and in lower-case ASCII for e-mail addresses and sort keys.
pub(super) struct PersonName {
    pub(super) written: String,
    pub(super) ascii: String,
}

/// The order of the parts of a display name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum NameOrder {
    /// Anna Müller
    GivenFirst,
    /// Nguyễn Văn
    FamilyFirst,
    /// 王小明
    FamilyFirstUnspaced,
}

/// The names and the country of people who share a language.
pub(super) struct Culture {
    pub(super) order: NameOrder,
    pub(super) place: &'static Country,
    pub(super) given: Vec<PersonName>,
    pub(super) family: Vec<PersonName>,
    weight: u64,
}

impl Culture {
    /// Returns all cultures, with their lists parsed.
    pub(super) fn load_all() -> Vec<Culture> {
        let split = |list: &str| list.split_whitespace().map(PersonName::parse).collect();
        CULTURE_ENTRIES
            .iter()
            .map(|&(weight, order, place, given, family)| Culture {
                order,
                place,
                given: split(given),
                family: split(family),
                weight,
            })
            .collect()
    }

    /// Chooses one of `cultures` by weight.
    pub(super) fn pick<'c>(cultures: &'c [Culture], random: &mut SplitMix64) -> &'c Culture {
        let mut roll = random.next_below(cultures.iter().map(|culture| culture.weight).sum());
        for culture in cultures {
            if roll < culture.weight {
                return culture;
            }
            roll -= culture.weight;
        }
        &cultures[0]
    }
}

impl PersonName {
    /// Parses `written=ascii`, or `written` alone if it is ASCII; `_` stands for a space.
    fn parse(entry: &str) -> PersonName {
        let (written, ascii) = entry.split_once('=').unwrap_or((entry, entry));
        let ascii = ascii.chars().filter(char::is_ascii_alphanumeric).collect::<String>();
        PersonName { written: written.replace('_', " "), ascii: ascii.to_ascii_lowercase() }
    }
}

/// Weight, order, country, given names, family names.
type CultureEntry = (u64, NameOrder, &'static Country, &'static str, &'static str);

use NameOrder::{FamilyFirst, FamilyFirstUnspaced, GivenFirst};

static CULTURE_ENTRIES: &[CultureEntry] = &[
    (
        16,
        GivenFirst,
        &countries::UNITED_STATES,
        "James Mary John Patricia Robert Jennifer Michael Linda William Elizabeth David Barbara Susan \
         Joseph Jessica Thomas Sarah Charles Karen Daniel Lisa Matthew Nancy Anthony Betty Mark Sandra \
         Donald Ashley Steven Kimberly Andrew Emily Joshua Donna Kevin Carol Brian Amanda Zoë=zoe",
        "Smith Johnson Williams Brown Jones Miller Davis Wilson Anderson Taylor Moore Jackson Martin Lee \
         Thompson White Harris Clark Lewis Robinson Walker Young Allen King Wright Scott Hill Green Adams \
         Nelson Baker Hall Campbell Mitchell Carter Roberts Turner Phillips Parker Evans",
    ),
    (
        8,
        GivenFirst,
        &countries::BRITAIN,
        "Oliver Amelia George Olivia Harry Isla Jack Ava Jacob Emily Charlie Grace Thomas Freya Alfie \
         Siân=sian Rhys Niamh Aoife Ewan Fiona Hamish Isobel Gareth Bronwen Seán=sean Róisín=roisin Chloé=chloe",
        "Smith Jones Taylor Brown Williams Wilson Johnson Davies Patel Robinson Wright Thompson Evans \
         Walker White Roberts Green Hall Wood O'Brien=obrien O'Neill=oneill MacDonald Campbell Ó_Súilleabháin=osullivan \
         Llewellyn Hughes Stewart Fitzgerald Featherstonehaugh Blackwood-Hay=blackwoodhay",
    ),
    (
        12,
        GivenFirst,
        &countries::GERMANY,
        "Anna Lukas Jürgen=juergen Sabine Thomas Käthe=kaethe Jörg=joerg Ute Günter=guenter Monika Stefan \
         Bärbel=baerbel Uwe Petra Wolfgang Heike Björn=bjoern Jana Matthias Ursula Götz=goetz Silke \
         Hans-Jürgen=hansjuergen Gisela Tobias Änne=aenne Sören=soeren Katharina Felix Ottilie",
        "Müller=mueller Schmidt Schneider Fischer Weber Meyer Wagner Becker Schulz Hoffmann Schäfer=schaefer \
         Koch Bauer Richter Klein Wolf Schröder=schroeder Neumann Schwarz Zimmermann Braun Krüger=krueger \
         Hofmann Groß=gross Weiß=weiss Köhler=koehler Jäger=jaeger Strauß=strauss Böhm=boehm \
         von_der_Heide=vonderheide Übelacker=uebelacker Ötken=oetken Mueller Strauss Voßkuhl=vosskuhl",
    ),
    (
        7,
        GivenFirst,
        &countries::FRANCE,
        "Marie Jean François=francois Élodie=elodie Chloé=chloe Jérôme=jerome Hélène=helene Benoît=benoit \
         Léa=lea Thierry Anaïs=anais Noël=noel Zoé=zoe Gaëlle=gaelle Mathieu Aurélie=aurelie Rémi=remi Cécile=cecile \
         Loïc=loic Solène=solene Étienne=etienne Maëlys=maelys Jean-Luc=jeanluc Agnès=agnes",
        "Martin Bernard Dubois Thomas Robert Richard Petit Durand Leroy Moreau Simon Laurent Lefèvre=lefevre \
         Michel García=garcia Roux Fournier Girard Bonnet François=francois Lœuillet=loeuillet Müller=muller Béranger=beranger \
         d'Arcy=darcy Le_Goff=legoff Hébert=hebert Guérin=guerin Châtelain=chatelain",
    ),
    (
        7,
        GivenFirst,
        &countries::SPAIN,
        "María=maria José=jose Carmen Antonio Josefa Manuel Isabel Francisco Dolores Juan Pilar Javier Ángela=angela \
         Íñigo=inigo Begoña=begona Raúl=raul Núria=nuria Joaquín=joaquin Lucía=lucia Andrés=andres Sofía=sofia \
         Óscar=oscar Concepción=concepcion Jesús=jesus Montserrat Álvaro=alvaro",
        "García=garcia Fernández=fernandez González=gonzalez Rodríguez=rodriguez López=lopez Martínez=martinez \
         Sánchez=sanchez Pérez=perez Gómez=gomez Martín=martin Jiménez=jimenez Ruiz Hernández=hernandez Díaz=diaz \
         Moreno Muñoz=munoz Álvarez=alvarez Romero Núñez=nunez Ibáñez=ibanez Peña=pena Puig Ordóñez=ordonez de_la_Fuente=delafuente",
    ),
    (
        4,
        GivenFirst,
        &countries::POLAND,
        "Anna Piotr Małgorzata=malgorzata Krzysztof Łukasz=lukasz Agnieszka Paweł=pawel Zofia Michał=michal \
         Elżbieta=elzbieta Świętosław=swietoslaw Żaneta=zaneta Grażyna=grazyna Jacek Stanisław=stanislaw Bożena=bozena \
         Wojciech Jadwiga Rafał=rafal Łucja=lucja",
        "Nowak Kowalski Wiśniewska=wisniewska Wójcik=wojcik Kamiński=kaminski Lewandowska Zieliński=zielinski \
         Szymańska=szymanska Woźniak=wozniak Dąbrowski=dabrowski Kozłowska=kozlowska Jankowski Mazur Łuczak=luczak \
         Świątek=swiatek Żuraw=zuraw Źrebiec=zrebiec Błażejczyk=blazejczyk Grzegrzółka=grzegrzolka Ćwik=cwik",
    ),
    (
        3,
        GivenFirst,
        &countries::CZECHIA,
        "Jiří=jiri Jana Petr Eva Tomáš=tomas Hana Miloš=milos Kateřina=katerina Zdeněk=zdenek Věra=vera Václav=vaclav \
         Lenka Ondřej=ondrej Alžběta=alzbeta Vojtěch=vojtech Šárka=sarka Luboš=lubos Růžena=ruzena Čeněk=cenek Žofie=zofie",
        "Novák=novak Svobodová=svobodova Novotný=novotny Dvořák=dvorak Černá=cerna Procházka=prochazka Kučerová=kucerova \
         Veselý=vesely Horáková=horakova Němec=nemec Šimek=simek Čapková=capkova Řezníček=reznicek Říha=riha \
         Žižka=zizka Chalupa Hlaváčová=hlavacova Chytil Ďuriš=duris Škoda=skoda",
    ),
    (
        4,
        GivenFirst,
        &countries::SWEDEN,
        "Anna Lars Åsa=asa Björn=bjorn Ingrid Göran=goran Märta=marta Søren=soren Håkon=hakon Åke=ake \
         Örjan=orjan Kjell Sigríður=sigridur Þóra=thora Guðrún=gudrun Ægir=aegir Øystein=oystein Väinö=vaino Jyrki Aino Linnéa=linnea",
        "Andersson Johansson Karlsson Nilsson Lindström=lindstrom Åkesson=akesson Öberg=oberg Sjögren=sjogren Hansen \
         Sørensen=sorensen Ødegård=odegard Bjørnstad=bjornstad Nygård=nygard Ångström=angstrom Virtanen Mäkelä=makela \
         Hämäläinen=hamalainen Jónsdóttir=jonsdottir Þórsson=thorsson Æbelø=aebelo Wåhlin=wahlin Ahlström=ahlstrom",
    ),
    (
        4,
        GivenFirst,
        &countries::TURKEY,
        "Mehmet Fatma Mustafa Ayşe=ayse Ahmet Emine Ali Hatice Hüseyin=huseyin Zeynep İbrahim=ibrahim Elif İsmail=ismail \
         Özlem=ozlem Yusuf Işıl=isil Çağla=cagla Ümit=umit Gülşen=gulsen Tuğba=tugba Ilgın=ilgin Şükrü=sukru İrem=irem Kıvanç=kivanc",
        "Yılmaz=yilmaz Kaya Demir Şahin=sahin Çelik=celik Yıldız=yildiz Yıldırım=yildirim Öztürk=ozturk Aydın=aydin \
         Özdemir=ozdemir Arslan Doğan=dogan Kılıç=kilic Çetin=cetin Kara Koç=koc Işık=isik İnce=ince Güneş=gunes Ünal=unal \
         Dağ=dag Iğdır=igdir",
    ),
    (
        4,
        FamilyFirst,
        &countries::VIETNAM,
        "Anh Thị_Hoa=hoa Văn_Minh=minh Hương=huong Dũng=dung Thảo=thao Đức=duc Ngọc=ngoc Hùng=hung Linh Quỳnh=quynh \
         Tuấn=tuan Thúy=thuy Phương=phuong Đạt=dat Trâm=tram Sơn=son Yến=yen Hải=hai Thu_Hà=thuha Việt=viet Mỹ_Duyên=myduyen",
        "Nguyễn=nguyen Trần=tran Lê=le Phạm=pham Huỳnh=huynh Hoàng=hoang Phan Vũ=vu Võ=vo Đặng=dang Bùi=bui Đỗ=do Hồ=ho \
         Ngô=ngo Dương=duong Lý=ly Đinh=dinh Trịnh=trinh",
    ),
    (
        3,
        GivenFirst,
        &countries::GREECE,
        "Γιώργος=giorgos Μαρία=maria Γιάννης=giannis Ελένη=eleni Κώστας=kostas Κατερίνα=katerina Δημήτρης=dimitris \
         Βασιλική=vasiliki Νίκος=nikos Σοφία=sofia Παναγιώτης=panagiotis Αγγελική=angeliki Χρήστος=christos Ιωάννα=ioanna \
         Άρης=aris Όλγα=olga Μαΐα=maia Ήβη=ivi Θανάσης=thanasis Ζωή=zoi",
        "Παπαδόπουλος=papadopoulos Βλάχος=vlachos Αγγελόπουλος=angelopoulos Νικολαΐδης=nikolaidis Γεωργίου=georgiou \
         Οικονόμου=oikonomou Παπαδάκη=papadaki Κωνσταντίνου=konstantinou Δημητρίου=dimitriou Μακρής=makris Αντωνίου=antoniou \
         Σαμαράς=samaras Χατζής=chatzis Καραγιάννη=karagianni Αλεξίου=alexiou Ψαρράς=psarras Ξένος=xenos Τσιτσάνης=tsitsanis",
    ),
    (
        6,
        GivenFirst,
        &countries::RUSSIA,
        "Александр=alexander Елена=elena Сергей=sergey Ольга=olga Дмитрий=dmitry Наталья=natalya Андрей=andrey Екатерина=ekaterina \
         Алексей=alexey Анна=anna Иван=ivan Татьяна=tatyana Михаил=mikhail Мария=maria Фёдор=fyodor Семён=semyon Юлия=yulia \
         Пётр=pyotr Ксения=ksenia Артём=artyom Алёна=alyona Игорь=igor Любовь=lyubov Щукарь=shchukar",
        "Иванов=ivanov Смирнова=smirnova Кузнецов=kuznetsov Попова=popova Васильев=vasilyev Петрова=petrova Соколов=sokolov \
         Михайлова=mikhaylova Новиков=novikov Фёдорова=fyodorova Морозов=morozov Волкова=volkova Алексеев=alekseev Лебедева=lebedeva \
         Семёнов=semyonov Егорова=egorova Козлов=kozlov Щербакова=shcherbakova Соловьёв=solovyov Цветаева=tsvetaeva Ёлкин=yolkin Чехова=chekhova",
    ),
    (
        2,
        GivenFirst,
        &countries::UKRAINE,
        "Олександр=oleksandr Оксана=oksana Андрій=andrii Наталія=nataliia Сергій=serhii Ірина=iryna Євген=yevhen Юлія=yuliia \
         Тарас=taras Соломія=solomiia Ігор=ihor Ганна=hanna Богдан=bohdan Лариса=larysa Дмитро=dmytro",
        "Шевченко=shevchenko Бондаренко=bondarenko Коваленко=kovalenko Ткаченко=tkachenko Кравчук=kravchuk Олійник=oliinyk \
         Шевчук=shevchuk Поліщук=polishchuk Ґалаґан=galagan Їжакевич=yizhakevych Єфремова=yefremova Гнатюк=hnatiuk Мельник=melnyk Лисенко=lysenko",
    ),
    (
        4,
        GivenFirst,
        &countries::EGYPT,
        "محمد=mohamed فاطمة=fatma أحمد=ahmed مريم=mariam محمود=mahmoud نور=nour علي=ali عائشة=aisha حسن=hassan سارة=sara \
         إبراهيم=ibrahim زينب=zeinab يوسف=youssef هدى=hoda عمر=omar ليلى=layla خالد=khaled آمنة=amna عبد_الرحمن=abdelrahman رؤى=roaa",
        "حسن=hassan إبراهيم=ibrahim السيد=elsayed علي=ali عبد_الله=abdallah محمود=mahmoud المصري=elmasry سالم=salem منصور=mansour \
         الشافعي=elshafei حداد=haddad خوري=khoury النجار=elnaggar الطيب=eltayeb بن_سعيد=bensaid القاضي=elkady رزق=rizk عيسى=issa",
    ),
    (
        2,
        GivenFirst,
        &countries::ISRAEL,
        "נועם=noam תמר=tamar דוד=david שרה=sarah יוסף=yosef רבקה=rivka אורי=uri יעל=yael משה=moshe מיכל=michal איתן=eitan \
         שירה=shira אבי=avi רות=ruth עומר=omer חנה=hana",
        "כהן=cohen לוי=levi מזרחי=mizrahi פרץ=peretz ביטון=biton אברהם=avraham פרידמן=friedman אזולאי=azoulay כץ=katz \
         שפירא=shapira בן-דוד=bendavid גולדשטיין=goldstein רוזן=rosen חדד=hadad",
    ),
    (
        5,
        GivenFirst,
        &countries::INDIA,
        "राहुल=rahul प्रिया=priya अमित=amit सुनीता=sunita राजेश=rajesh अनीता=anita विजय=vijay पूजा=pooja संजय=sanjay नेहा=neha अर्जुन=arjun \
         कविता=kavita Ananya Arjun Deepika Vikram Lakshmi Sanjay Meera Rohan दीपक=deepak लक्ष्मी=lakshmi मोहन=mohan श्रेया=shreya",
        "शर्मा=sharma वर्मा=verma सिंह=singh गुप्ता=gupta कुमार=kumar Patel Iyer Reddy Nair Chatterjee Krishnamurthy मिश्रा=mishra \
         जोशी=joshi यादव=yadav अग्रवाल=agarwal चौधरी=chaudhary त्रिपाठी=tripathi श्रीवास्तव=srivastava",
    ),
    (
        2,
        GivenFirst,
        &countries::THAILAND,
        "สมชาย=somchai สมหญิง=somying สุดา=suda ประเสริฐ=prasert วิชัย=wichai นภา=napa ณัฐพล=nattapon พิมพ์ใจ=pimjai ธนากร=thanakorn กัญญา=kanya \
         อรุณ=arun ศิริพร=siriporn ชัยวัฒน์=chaiwat มาลี=malee",
        "ใจดี=jaidee ศรีสุข=srisuk วงศ์สวัสดิ์=wongsawat บุญมี=boonmee ทองคำ=thongkham แสงจันทร์=saengchan สุขสันต์=suksan รัตนกุล=rattanakul \
         พงษ์พันธุ์=pongpan จันทร์เพ็ญ=chanphen เจริญสุข=charoensuk มณีรัตน์=maneerat",
    ),
    (
        7,
        FamilyFirstUnspaced,
        &countries::CHINA,
        "伟=wei 芳=fang 娜=na 秀英=xiuying 敏=min 静=jing 丽=li 强=qiang 磊=lei 军=jun 洋=yang 勇=yong 艳=yan 杰=jie 小明=xiaoming 娟=juan \
         涛=tao 明=ming 超=chao 雪梅=xuemei 建国=jianguo 子涵=zihan 浩然=haoran 欣怡=xinyi 志强=zhiqiang 美玲=meiling 曉東=xiaodong 淑芬=shufen",
        "王=wang 李=li 张=zhang 刘=liu 陈=chen 杨=yang 黄=huang 赵=zhao 吴=wu 周=zhou 徐=xu 孙=sun 马=ma 朱=zhu 胡=hu 郭=guo 何=he 高=gao \
         林=lin 羅=luo 陳=chen 歐陽=ouyang 司马=sima 诸葛=zhuge 曾=zeng 谢=xie",
    ),
    (
        5,
        FamilyFirst,
        &countries::JAPAN,
        "太郎=taro 花子=hanako 翔太=shota 美咲=misaki 健一=kenichi さくら=sakura 大輔=daisuke 陽子=yoko 直樹=naoki 由美子=yumiko 蓮=ren 葵=aoi \
         拓也=takuya 恵=megumi 誠=makoto ひなた=hinata 和夫=kazuo 真由美=mayumi マリア=maria 剛=tsuyoshi 優希=yuki 結衣=yui ケン=ken 薫=kaoru",
        "佐藤=sato 鈴木=suzuki 高橋=takahashi 田中=tanaka 伊藤=ito 渡辺=watanabe 山本=yamamoto 中村=nakamura 小林=kobayashi 加藤=kato 吉田=yoshida \
         山田=yamada 佐々木=sasaki 山口=yamaguchi 松本=matsumoto 井上=inoue 木村=kimura 斎藤=saito 齋藤=saito 渡邉=watanabe 髙橋=takahashi 五十嵐=igarashi",
    ),
    (
        3,
        FamilyFirstUnspaced,
        &countries::KOREA,
        "민준=minjun 서연=seoyeon 지훈=jihun 수진=sujin 영수=youngsu 영희=younghee 현우=hyunwoo 지은=jieun 도윤=doyun 하은=haeun 성민=sungmin 미영=miyoung \
         준호=junho 은주=eunju 태현=taehyun 유나=yuna 철수=chulsu 보라=bora",
        "김=kim 이=lee 박=park 최=choi 정=jung 강=kang 조=cho 윤=yoon 장=jang 임=lim 한=han 오=oh 서=seo 신=shin 권=kwon 황=hwang 남궁=namgung 선우=sunwoo",
    ),
];
