#!/usr/bin/env python3
"""generate_maildir.py -- seeded generator of a realistic synthetic maildir tree.

Standard library only.  Same (seed, n, options) => byte-identical tree
(file names, contents, mtimes), independent of the machine.

    generate_maildir.py --out DIR --n 10000 [--seed 1] [--years 10] [--scale 1.0]

Layout written:   DIR/<folder>/{cur,new,tmp}/<unique>[:2,FLAGS]
Ground truth:     DIR.truth.json  (counts of planted tokens, flags, folders,
                                   threads, duplicates ... for checking the
                                   results of any searcher under test)

What is modelled (see --help and the code for the exact rates):
  * Zipf-Mandelbrot vocabulary (120k latin words; the ~330 most frequent are
    real English function/office words so that stemming has work to do),
    plus German/French/Spanish-like accented, Cyrillic, Greek, Japanese,
    Chinese, Korean vocabularies.
  * threads: replies with In-Reply-To/References, quoting of the parent,
    subject prefixes (Re:, AW:, Fwd:), a few broken reference chains,
    missing parents.
  * 24 folders: INBOX, Sent, Drafts, Trash, Spam, Archive/YYYY, Lists/*.
  * MIME: text/plain, alternative(text+html), html only, mixed with base64
    attachments (binary, csv text, pdf-like), inline images in related,
    multipart/signed (pgp), message/rfc822, multipart/report bounces,
    text/calendar invitations, git patches, nested mixed(alternative(related)).
  * charsets/encodings: us-ascii, utf-8 (8bit/qp/b64), iso-8859-1/-2/-15,
    windows-1252/-1251, koi8-r, iso-8859-7, iso-2022-jp, shift_jis, euc-jp,
    gb2312, gb18030, big5, euc-kr, RFC 2047 headers (B and Q), RFC 2231 names.
  * defects (about 1.5 %): no Date, no Message-ID, unparsable Date, raw 8-bit
    headers, unknown charset, missing closing boundary, truncated base64,
    NUL bytes, header without colon, empty body, very long lines, CRLF files,
    mbox "From " line on top.
  * duplicates: 2 % of the messages are stored a second time in a second
    folder (same Message-ID; half of them with list-footer difference).
  * flags in the file names (S, R, F, P, D, T), new/ versus cur/.
"""

import argparse
import base64
import binascii
import json
import os
import quopri
import random
import time
from bisect import bisect_left
from email.header import Header  # only for RFC 2047 of odd charsets
from itertools import accumulate

EPOCH0 = 1420070400  # 2015-01-01T00:00:00Z

COMMON = """the to and of a in for is on that you it this with be have are i not
as or at we can from by if will your an but all was has there would please which
my they do one so what me more our no when thanks any out up new just time about
how also get some like should were been only use could than other see us know work
need their here may these into first am now then who make file send two message
he over well because them list hi used problem does want version same system find
using way his think code try after its even test made change set help right error
where look people very before sure many him good does still back better such
something might both those line between under too point said each while few
available question following without used information support current
different through next case end data last read below working issue run
another take show long great since being anyone part call order number let
example name best put own seems again mail week day though down start server
release report user users meeting project team update review document attached
office budget schedule customer order invoice payment account contract monday
tuesday wednesday thursday friday january february march april may june july
august september october november december regards hello dear yes great
development kernel patch driver memory network device function compile build
config option package install library string value return type class object
thread process module script source branch commit merge request bug fix feature
performance database table query index search running installed configured
building compiled returned processes networks devices drivers functions patches
requests features databases tables queries indexing searching searched
messages systems problems versions projects teams updates reviews documents
meetings budgets schedules customers orders invoices payments accounts""".split()

GERMAN = """und der die das ist nicht für mit auf ein eine ich sie wir über können
möchte würde größe straße grüße schön müssen während zurück prüfung änderung
geschäft verfügung rückmeldung anhänge bestätigung vielen dank bitte termin
besprechung rechnung angebot vertrag änderungen nächste woche""".split()
FRENCH = """et le la les des une que pas pour dans avec être très déjà après
réunion année côté français leçon façon voilà société téléphone démarré problème
réponse présenté équipe à été où château forêt merci bonjour cordialement
facture réservé intéressé""".split()
SPANISH = """y el la los para con por más también año señor reunión información
está mañana código días número después página español niño difícil atención
gracias saludos factura adjunto próxima""".split()

FIRST = """James Mary Robert Patricia John Jennifer Michael Linda David Elizabeth
William Barbara Richard Susan Joseph Jessica Thomas Sarah Charles Karen Wei Ming
Yuki Hiroshi Jürgen Björn Søren Łukasz Zoë François Renée José María Håkan Jiří
Ondřej Agnès Günther Ana Olga Dmitri Ivan Sergey Chen Priya Raj Anil Fatima Omar
Ahmed Noor Giulia Marco Luca Paolo Elena Nikos Yannis Ingrid Lars Nils Aiko Kenji
Seo-yeon Min-jun Thi Van Nguyen Carlos Diego Lucía Pedro Inês João Tiago""".split()
LAST = """Smith Johnson Williams Brown Jones Garcia Miller Davis Rodriguez Martinez
Hernández López Müller Schmidt Schröder Weiß Dubois Lefèvre Moreau Rossi Bianchi
Novák Dvořák Kowalski Wiśniewski Nielsen Ångström Lindqvist Virtanen Ivanov
Petrov Kuznetsova Papadopoulos Tanaka Suzuki Yamamoto Kim Lee Park Wang Zhang Liu
Singh Patel Kumar Khan Hussain Okafor Mensah Silva Santos Pereira Almeida Costa
O'Brien McDonald Van-der-Berg de-Groot Bakker Jansen Peeters Horváth Nagy Popescu""".split()
DOMAINS = """example.com example.org example.net corp.example uni.example.edu
mail.example lists.example.org dev.example.io shop.example.com bank.example
gov.example cloud.example.net kernel.example.org startup.example.io""".split()

CYR = "абвгдежзийклмнопрстуфхцчшщъыьэюя"
GRK = "αβγδεζηθικλμνξοπρστυφχψω"
HIRA = "あいうえおかきくけこさしすせそたちつてとなにぬねのはひふへほまみむめもやゆよらりるれろわをん"
KATA = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモ"
KANJI = "日本語会社東京大学電話番号時間問題質問開発環境情報技術変更確認連絡予定資料送信受信担当者様願致申上"
HANZI = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可她里后小么心多天而能好都然没日于起还发成事只作当想看文无开手十用主行方又如前所本见经头面公同三已老从动两长知民样现分将外但身些与高意进把法此实回二理美点月明其种声全工己话儿者向情部正名定女问力机给等几很业最间新什打便位因重被走电四第门相次东政海口使教西再平真听世气信北少关并内加化由却代军产入先山五太水万市"
BIG5 = "的一是不了人我在有他這中大來上國個到說們為子和你地出道也時年得就那要下以生會自著去之過家學對可她裡後小麼心多天而能好都然沒日於起還發成事只作當想看文無開手十用主行方又如前所本見經頭面公同三已老從動兩長知民樣現分將外但身些與高意進把法此實回二理美點月明"
HANGUL = "가나다라마바사아자차카타파하고노도로모보소오조초코토포호기니디리미비시이지치키티피히한국어메일회의자료확인부탁드립니다감사합니다안녕하세요문제개발환경서버설정"

MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()
DAYS = "Mon Tue Wed Thu Fri Sat Sun".split()


class Vocab:
    """Zipf-Mandelbrot sampler: p(r) ~ 1/(r+q)^s"""

    def __init__(self, words, s=1.02, q=2.7):
        self.words = words
        self.cum = list(accumulate(1.0 / (r + q) ** s for r in range(1, len(words) + 1)))
        self.total = self.cum[-1]

    def take(self, rnd, k):
        return rnd.choices(self.words, cum_weights=self.cum, k=k)

    def one(self, rnd):
        return self.words[bisect_left(self.cum, rnd.random() * self.total)]


def make_latin(rnd, n):
    onset = "b c d f g h j k l m n p r s t v w br cl cr dr fl fr gr pl pr sh st tr th ch".split()
    nuc = "a e i o u ai ea ou io ee".split()
    coda = ["", "", "", "n", "r", "s", "t", "l", "m", "ck", "nd", "st", "ng"]
    suffix = ["", "", "", "", "s", "ing", "ed", "er", "ly", "ion", "able", "ness"]
    seen, out = set(), []
    for w in COMMON:
        if w not in seen:
            seen.add(w)
            out.append(w)
    while len(out) < n:
        w = "".join(rnd.choice(onset) + rnd.choice(nuc) + rnd.choice(coda)
                    for _ in range(rnd.choice((1, 2, 2, 2, 3, 3, 4)))) + rnd.choice(suffix)
        if w not in seen:
            seen.add(w)
            out.append(w)
    return out


def make_script(rnd, alphabet, n, lo, hi):
    seen, out = set(), []
    while len(out) < n:
        w = "".join(rnd.choice(alphabet) for _ in range(rnd.randint(lo, hi)))
        if w not in seen:
            seen.add(w)
            out.append(w)
    return out


def wrap(words, width=72):
    lines, cur, ln = [], [], 0
    for w in words:
        if ln + len(w) + 1 > width and cur:
            lines.append(" ".join(cur))
            cur, ln = [], 0
        cur.append(w)
        ln += len(w) + 1
    if cur:
        lines.append(" ".join(cur))
    return lines


class Gen:
    def __init__(self, a):
        self.a = a
        self.rnd = random.Random(a.seed)
        r = self.rnd
        self.latin = Vocab(make_latin(r, a.vocab))
        self.lang = {
            "de": Vocab(GERMAN + make_script(r, "abcdefghiklmnoprstuvwzäöüß", 8000, 4, 12)),
            "fr": Vocab(FRENCH + make_script(r, "abcdefghilmnopqrstuvéèêàçôù", 8000, 3, 10)),
            "es": Vocab(SPANISH + make_script(r, "abcdefghilmnopqrstuvñáéíóú", 8000, 3, 10)),
            "ru": Vocab(make_script(r, CYR, 12000, 2, 11)),
            "el": Vocab(make_script(r, GRK, 5000, 2, 10)),
            "ja": Vocab(make_script(r, HIRA + HIRA + KATA + KANJI * 2, 6000, 1, 5)),
            "zh": Vocab(make_script(r, HANZI, 6000, 1, 3)),
            "tw": Vocab(make_script(r, BIG5, 4000, 1, 3)),
            "ko": Vocab(make_script(r, HANGUL, 6000, 2, 5)),
        }
        # weight, charset, language
        self.charsets = [
            (520, "us-ascii", "en"), (240, "utf-8", "en"), (60, "iso-8859-1", "en"),
            (30, "utf-8", "de"), (15, "iso-8859-1", "de"), (10, "iso-8859-15", "fr"),
            (15, "windows-1252", "fr"), (20, "utf-8", "fr"), (15, "utf-8", "es"),
            (8, "iso-8859-1", "es"), (20, "utf-8", "ru"), (8, "koi8-r", "ru"),
            (8, "windows-1251", "ru"), (3, "iso-8859-7", "el"), (4, "utf-8", "el"),
            (12, "utf-8", "ja"), (8, "iso-2022-jp", "ja"), (3, "shift_jis", "ja"),
            (2, "euc-jp", "ja"), (15, "utf-8", "zh"), (6, "gb2312", "zh"),
            (4, "gb18030", "zh"), (4, "big5", "tw"), (8, "utf-8", "ko"), (4, "euc-kr", "ko"),
        ]
        self.cs_cum = list(accumulate(w for w, _, _ in self.charsets))
        self.people = []
        seen = set()
        while len(self.people) < a.people:
            f, l = r.choice(FIRST), r.choice(LAST)
            loc = "".join(c for c in (f + "." + l).lower() if c.isascii() and (c.isalnum() or c in ".-"))
            if r.random() < 0.4:
                loc += str(r.randint(1, 99))
            addr = loc + "@" + r.choice(DOMAINS)
            if addr in seen:
                continue
            seen.add(addr)
            self.people.append((f + " " + l.replace("-", " "), addr))
        self.pcum = list(accumulate(1.0 / (i + 8) ** 0.9 for i in range(len(self.people))))
        self.me = ("Testa User", "testa.user@example.com")
        names = "rust-dev kernel-announce python-users emacs-help db-hackers net-ops qa-team design-talk sysadmin hiring".split()
        self.lists = [(n, n + "@lists.example.org") for n in names]
        self.lcum = list(accumulate(1.0 / (i + 1.5) for i in range(len(self.lists))))
        self.threads = {f: [] for f in ["INBOX"] + [n for n, _ in self.lists]}
        self.mid = 0
        self.truth = {"seed": a.seed, "n": a.n, "tokens": {}, "phrases": {}, "folders": {}, "flags": {},
                      "mime": {}, "charset": {}, "defects": {}, "duplicates": 0, "threads": 0,
                      "bytes": 0, "files": 0, "unread": 0, "attach": 0, "new_dir": 0}
        # planted single tokens: (token, rate)
        self.tokens = [("zarquon", 0.0), ("frobnitzel", 0.0005), ("quuxilate", 0.005), ("blivetware", 0.05)]
        self.phrases = [("purple monkey dishwasher", 0.001), ("annual walrus audit", 0.01)]
        self.chunk = r.randbytes(1 << 20)  # shared random bytes for attachments

    # -- small parts -------------------------------------------------------
    def cnt(self, key, sub, k=1):
        d = self.truth[key]
        d[sub] = d.get(sub, 0) + k

    def person(self):
        return self.people[bisect_left(self.pcum, self.rnd.random() * self.pcum[-1])]

    def text(self, lang, nwords):
        r = self.rnd
        if lang == "en":
            w = self.latin.take(r, nwords)
        else:
            v = self.lang[lang]
            w = v.take(r, nwords)
            if lang in ("ja", "zh", "tw"):  # no spaces between words
                s, out = "", []
                for x in w:
                    s += x
                    if len(s) > 34:
                        out.append(s)
                        s = ""
                if s:
                    out.append(s)
                return out
        i = 0
        out = []
        while i < len(w):
            k = r.randint(6, 18)
            sent = w[i:i + k]
            i += k
            sent[0] = sent[0].capitalize()
            sent[-1] = sent[-1] + r.choice(".....?!,:")
            out.extend(sent)
        return out

    def encode_hdr(self, s, charset):
        if s.isascii():
            return s
        if charset in ("us-ascii",):
            charset = "utf-8"
        try:
            raw = s.encode(charset)
        except (UnicodeEncodeError, LookupError):
            charset, raw = "utf-8", s.encode()
        if charset == "iso-2022-jp":
            return Header(s, charset).encode()
        out = []
        q = self.rnd.random() < 0.4 and charset != "shift_jis"
        # split on character boundaries
        cur = b""
        parts = []
        for ch in s:
            b = ch.encode(charset)
            if len(cur) + len(b) > (20 if q else 42):
                parts.append(cur)
                cur = b""
            cur += b
        parts.append(cur)
        for p in parts:
            if q:
                e = "".join(chr(c) if (48 <= c <= 57 or 65 <= c <= 90 or 97 <= c <= 122) else
                            "_" if c == 32 else "=%02X" % c for c in p)
                out.append("=?%s?Q?%s?=" % (charset, e))
            else:
                out.append("=?%s?B?%s?=" % (charset, base64.b64encode(p).decode()))
        return "\n ".join(out)

    def addr(self, p, charset="utf-8"):
        n, a = p
        if self.rnd.random() < 0.12:
            return a
        if not n.isascii():
            return self.encode_hdr(n, charset if charset != "us-ascii" else "utf-8") + " <" + a + ">"
        if "'" in n or "." in n or self.rnd.random() < 0.2:
            return '"' + n + '" <' + a + ">"
        return n + " <" + a + ">"

    def fmt_date(self, t):
        tz = self.rnd.choice((0, 0, 60, 120, -300, -480, 330, 540, 480))
        g = time.gmtime(t + tz * 60)
        return "%s, %02d %s %d %02d:%02d:%02d %s%02d%02d" % (
            DAYS[g.tm_wday], g.tm_mday, MONTHS[g.tm_mon - 1], g.tm_year, g.tm_hour, g.tm_min, g.tm_sec,
            "-" if tz < 0 else "+", abs(tz) // 60, abs(tz) % 60)

    def hexs(self, n):
        return "%0*x" % (n, self.rnd.getrandbits(4 * n))

    def b64lines(self, raw):
        e = base64.b64encode(raw).decode()
        return "\n".join(e[i:i + 76] for i in range(0, len(e), 76)) + "\n"

    def noise(self, n):
        o = self.rnd.randrange(0, len(self.chunk) - min(n, len(self.chunk) - 1))
        b = self.chunk[o:o + n]
        while len(b) < n:
            b += self.chunk[:n - len(b)]
        return b

    def leaf(self, ctype, text, charset, extra=""):
        """one text part: returns header block + encoded body as bytes"""
        r = self.rnd
        try:
            raw = text.encode(charset)
        except (UnicodeEncodeError, LookupError):
            raw = text.encode(charset, "replace") if charset != "us-ascii" else text.encode("ascii", "replace")
        if charset == "us-ascii":
            cte = "7bit"
        elif charset == "iso-2022-jp":
            cte = "7bit"
        else:
            x = r.random()
            cte = "quoted-printable" if x < 0.45 else "base64" if x < 0.8 else "8bit"
            if charset in ("utf-8", "iso-8859-1") and raw.isascii() and x >= 0.25:
                cte = "7bit"
        if cte == "base64":
            raw = self.b64lines(raw).encode()
        elif cte == "quoted-printable":
            raw = quopri.encodestring(raw)
        fl = "; format=flowed" if ctype == "text/plain" and r.random() < 0.1 else ""
        q = '"' if r.random() < 0.5 else ""
        h = "Content-Type: %s; charset=%s%s%s%s\nContent-Transfer-Encoding: %s\n%s" % (
            ctype, q, charset, q, fl, cte, extra)
        if not raw.endswith(b"\n"):
            raw += b"\n"
        return h.encode() + b"\n" + raw

    def html(self, paras, lang):
        r = self.rnd
        css = "".join("td.c%d{font-family:Arial,Helvetica,sans-serif;font-size:%dpx;color:#%s;padding:%dpx}\n" %
                      (i, r.randint(10, 18), self.hexs(6), r.randint(0, 20)) for i in range(r.randint(2, 14)))
        o = ["<html><head><meta http-equiv=\"Content-Type\" content=\"text/html\"><style type=\"text/css\">\n" + css +
             "</style></head>\n<body bgcolor=\"#ffffff\">\n<table width=\"600\" cellpadding=\"0\" cellspacing=\"0\">\n"]
        for p in paras:
            t = p.replace("&", "&amp;").replace("<", "&lt;").replace("é", "&eacute;" if r.random() < .2 else "é")
            o.append("<tr><td class=\"c%d\" style=\"padding:%dpx\" valign=\"top\"><p><font face=\"Arial\">%s</font></p>" %
                     (r.randint(0, 5), r.randint(0, 9), t))
            if r.random() < 0.4:
                o.append("<a href=\"https://%s/track/%s?u=%s\">%s</a>" % (r.choice(DOMAINS), self.hexs(24), self.hexs(32),
                                                                        self.latin.one(r)))
            if r.random() < 0.3:
                o.append("<img src=\"https://%s/i/%s.gif\" width=\"1\" height=\"1\" alt=\"\">" % (r.choice(DOMAINS), self.hexs(12)))
            o.append("</td></tr>\n")
        o.append("</table></body></html>\n")
        return "".join(o)

    def patch(self):
        r = self.rnd
        o = ["---", " %s/%s.c | %d ++--" % (self.latin.one(r), self.latin.one(r), r.randint(1, 60)),
             " 1 file changed, %d insertions(+), %d deletions(-)" % (r.randint(1, 40), r.randint(1, 20)), ""]
        f = self.latin.one(r) + "/" + self.latin.one(r) + ".c"
        o += ["diff --git a/%s b/%s" % (f, f), "index %s..%s 100644" % (self.hexs(12), self.hexs(12)),
              "--- a/" + f, "+++ b/" + f]
        for _ in range(r.randint(1, 8)):
            l = r.randint(1, 3000)
            o.append("@@ -%d,7 +%d,9 @@ static int %s_%s(struct %s *%s)" % ((l, l) + tuple(self.latin.take(r, 4))))
            for _ in range(r.randint(6, 24)):
                o.append(r.choice((" ", " ", "+", "-")) + "\t" * r.randint(1, 3) +
                         "%s = %s_%s(%s->%s);" % tuple(self.latin.take(r, 5)))
        o += ["-- ", "2.%d.%d" % (r.randint(10, 45), r.randint(0, 9)), ""]
        return o

    # -- one message -----------------------------------------------------
    def message(self, i, t):
        r = self.rnd
        a = self.a
        x = r.random()
        # folder
        if x < 0.52:
            li = bisect_left(self.lcum, r.random() * self.lcum[-1])
            folder, lst = "Lists/" + self.lists[li][0], self.lists[li]
        else:
            lst = None
            y = r.random()
            yr = time.gmtime(t).tm_year
            folder = ("INBOX" if y < 0.30 else "Archive/%d" % yr if y < 0.72 else "Sent" if y < 0.86 else
                      "Spam" if y < 0.93 else "Trash" if y < 0.98 else "Drafts")
        _, charset, lang = self.charsets[bisect_left(self.cs_cum, r.random() * self.cs_cum[-1])]
        if lst and lang != "en" and r.random() < 0.7:
            charset, lang = "utf-8", "en"
        # thread
        pool = self.threads[lst[0] if lst else "INBOX"]
        parent = None
        if pool and folder not in ("Spam", "Drafts") and r.random() < (0.72 if lst else 0.5):
            # prefer recent
            k = len(pool) - 1 - min(int(r.expovariate(1 / 25.0)), len(pool) - 1)
            parent = pool[k]
            if parent["lang"] != "en" and not lst:
                lang = parent["lang"]
                charset = parent["charset"]
        sender = self.me if folder in ("Sent", "Drafts") else self.person()
        self.mid += 1
        msgid = "%s.%d.%s@%s" % (self.hexs(8), self.mid, self.hexs(6), sender[1].split("@")[1])
        # subject
        if parent:
            s = parent["subject"]
            if not s.lower().startswith(("re:", "aw:", "fwd:")):
                s = r.choice(("Re: ",) * 8 + ("RE: ", "AW: ", "Fwd: ")) + s
            subject = s
            refs = parent["refs"] + [parent["id"]]
        else:
            subject = " ".join(self.text(lang, r.randint(2, 9))) if lang != "en" else \
                " ".join(self.latin.take(r, r.randint(2, 9))).capitalize()
            if lst and r.random() < 0.5:
                subject = "[%s] %s" % (lst[0], subject)
            refs = []
            self.truth["threads"] += 1
        # body words, log-normal
        nw = max(4, min(6000, int(r.lognormvariate(4.85, 0.95) * a.scale)))
        words = self.text(lang, nw)
        for tok, rate in self.tokens:
            if r.random() < rate:
                words.insert(r.randrange(len(words) + 1), tok)
                self.cnt("tokens", tok)
        for ph, rate in self.phrases:
            if r.random() < rate:
                p = r.randrange(len(words) + 1)
                words[p:p] = ph.split()
                self.cnt("phrases", ph)
        lines = []
        if parent and r.random() < 0.85:
            lines.append("On %s, %s wrote:" % (self.fmt_date(parent["t"]), parent["from"][0]))
            q = parent["lines"]
            lo = 0 if r.random() < 0.6 else r.randrange(max(1, len(q)))
            lines += ["> " + l for l in q[lo:lo + r.randint(3, 40)]]
            lines.append("")
        paras = []
        j = 0
        while j < len(words):
            k = r.randint(25, 90)
            p = wrap(words[j:j + k])
            paras.append(" ".join(words[j:j + k]))
            lines += p + [""]
            j += k
        if r.random() < 0.3:
            lines += ["", "See https://%s/%s/%s?id=%d for details" % (r.choice(DOMAINS), self.latin.one(r), self.latin.one(r), r.randint(1, 99999))]
        if r.random() < 0.55:
            lines += ["-- ", sender[0], "%s %s" % (self.latin.one(r).capitalize(), self.latin.one(r)), "+1 555 01%02d %04d" % (r.randint(0, 99), r.randint(0, 9999))]
        z = r.random()
        is_patch = False
        if lst and lst[0] in ("kernel-announce", "rust-dev", "db-hackers") and z < 0.15:
            lines += self.patch()
            is_patch = True
            if not parent:
                subject = "[PATCH %d/%d] %s" % (1, r.randint(1, 12), subject)
        if lst and r.random() < 0.7:
            lines += ["_" * 47, "%s mailing list" % lst[0], lst[1], "https://lists.example.org/mailman/listinfo/" + lst[0]]
        body = "\n".join(lines) + "\n"

        # -- MIME shape
        kind = r.random()
        b = "=_%s_%s" % (self.hexs(12), self.hexs(8))
        b2 = "=_%s_%s" % (self.hexs(12), self.hexs(8))
        has_att = False
        B = lambda x, y="": ("--" + x + y + "\n").encode()
        defect = None
        if r.random() < 0.015:
            defect = r.choice(("nodate", "nomsgid", "baddate", "raw8", "badcharset", "noclose", "truncb64", "nul",
                               "nocolon", "empty", "longline", "crlf", "mboxfrom"))
            self.cnt("defects", defect)
        if is_patch or (lst and kind < 0.80) or (not lst and kind < 0.38):
            shape = "plain"
            content = self.leaf("text/plain", body, charset)
        elif (lst and kind < 0.90) or (not lst and kind < 0.72):
            shape = "alternative"
            content = (("Content-Type: multipart/alternative; boundary=\"%s\"\n\n" % b).encode() +
                       B(b) + self.leaf("text/plain", body, charset) +
                       B(b) + self.leaf("text/html", self.html(paras, lang), charset) + B(b, "--"))
        elif (lst and kind < 0.91) or (not lst and kind < 0.80):
            shape = "html"
            content = self.leaf("text/html", self.html(paras, lang), charset)
        elif (lst and kind < 0.96) or (not lst and kind < 0.92):
            shape = "mixed"
            has_att = True
            parts = b""
            for _ in range(r.choice((1, 1, 1, 2, 3))):
                at = r.choice(("application/pdf", "image/jpeg", "image/png", "application/zip", "text/csv",
                               "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "text/x-patch"))
                ext = {"application/pdf": "pdf", "image/jpeg": "jpg", "image/png": "png", "application/zip": "zip",
                       "text/csv": "csv", "text/x-patch": "patch"}.get(at, "docx")
                fn = "%s-%s.%s" % (self.latin.one(r), self.latin.one(r), ext)
                sz = int(min(400000, max(300, r.lognormvariate(9.3, 1.2))) * a.scale)
                if at.startswith("text/"):
                    raw = ("\n".join(",".join(self.latin.take(r, 6)) for _ in range(max(3, sz // 400)))).encode()
                else:
                    raw = self.noise(sz)
                disp = 'attachment; filename="%s"' % fn
                if r.random() < 0.1:
                    disp = "attachment; filename*=utf-8''%s%s" % ("%C3%BCbersicht-", fn)
                parts += B(b) + ("Content-Type: %s; name=\"%s\"\nContent-Transfer-Encoding: base64\nContent-Disposition: %s\n\n%s" % (
                    at, fn, disp, self.b64lines(raw))).encode()
            if r.random() < 0.4:
                first = (("Content-Type: multipart/alternative; boundary=\"%s\"\n\n" % b2).encode() + B(b2) +
                         self.leaf("text/plain", body, charset) + B(b2) +
                         self.leaf("text/html", self.html(paras, lang), charset) + B(b2, "--"))
            else:
                first = self.leaf("text/plain", body, charset)
            content = ("Content-Type: multipart/mixed; boundary=\"%s\"\n\n" % b).encode() + b"This is a multi-part message in MIME format.\n" + \
                B(b) + first + parts + B(b, "--")
        elif (lst and kind < 0.965) or (not lst and kind < 0.945):
            shape = "related"
            img = self.noise(int(r.lognormvariate(8.3, 0.8)))
            content = (("Content-Type: multipart/related; boundary=\"%s\"; type=\"multipart/alternative\"\n\n" % b).encode() + B(b) +
                       ("Content-Type: multipart/alternative; boundary=\"%s\"\n\n" % b2).encode() + B(b2) +
                       self.leaf("text/plain", body, charset) + B(b2) + self.leaf("text/html", self.html(paras, lang), charset) + B(b2, "--") +
                       B(b) + ("Content-Type: image/png\nContent-ID: <img1@%s>\nContent-Transfer-Encoding: base64\nContent-Disposition: inline\n\n%s" % (
                           self.hexs(8), self.b64lines(img))).encode() + B(b, "--"))
        elif (lst and kind < 0.985) or (not lst and kind < 0.965):
            shape = "signed"
            sig = "-----BEGIN PGP SIGNATURE-----\n\n" + self.b64lines(self.noise(430)) + "=%s\n-----END PGP SIGNATURE-----\n" % self.hexs(4)
            content = (("Content-Type: multipart/signed; micalg=pgp-sha256; protocol=\"application/pgp-signature\"; boundary=\"%s\"\n\n" % b).encode() +
                       B(b) + self.leaf("text/plain", body, charset) + B(b) +
                       ("Content-Type: application/pgp-signature; name=\"signature.asc\"\n\n" + sig).encode() + B(b, "--"))
        elif (lst and kind < 0.992) or (not lst and kind < 0.985):
            shape = "forward"
            p2 = self.person()
            inner = ("From: %s\nTo: %s\nSubject: %s\nDate: %s\nMessage-ID: <%s@fwd.example>\nMIME-Version: 1.0\n" % (
                self.addr(p2), self.addr(self.me), " ".join(self.latin.take(r, 5)), self.fmt_date(t - 86400), self.hexs(16))).encode() + \
                self.leaf("text/plain", "\n".join(wrap(self.text("en", r.randint(30, 300)))) + "\n", "us-ascii")
            content = (("Content-Type: multipart/mixed; boundary=\"%s\"\n\n" % b).encode() + B(b) +
                       self.leaf("text/plain", body, charset) + B(b) + b"Content-Type: message/rfc822\nContent-Disposition: inline\n\n" +
                       inner + b"\n" + B(b, "--"))
        elif (lst and kind < 0.995) or (not lst and kind < 0.992):
            shape = "calendar"
            ics = "\n".join(["BEGIN:VCALENDAR", "METHOD:REQUEST", "PRODID:-//gen//EN", "VERSION:2.0", "BEGIN:VEVENT",
                             "UID:%s" % self.hexs(32), "DTSTART:%s" % time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(t + 86400)),
                             "SUMMARY:" + " ".join(self.latin.take(r, 4)), "ORGANIZER:mailto:" + sender[1], "END:VEVENT", "END:VCALENDAR", ""])
            content = (("Content-Type: multipart/alternative; boundary=\"%s\"\n\n" % b).encode() + B(b) + self.leaf("text/plain", body, charset) +
                       B(b) + ("Content-Type: text/calendar; charset=utf-8; method=REQUEST\n\n" + ics).encode() + B(b, "--"))
        else:
            shape = "report"
            content = (("Content-Type: multipart/report; report-type=delivery-status; boundary=\"%s\"\n\n" % b).encode() + B(b) +
                       self.leaf("text/plain", "Delivery failed.\n" + body, "us-ascii") + B(b) +
                       ("Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.example.net\n\nFinal-Recipient: rfc822; %s\nAction: failed\nStatus: 5.1.1\n\n" %
                        self.person()[1]).encode() + B(b) +
                       ("Content-Type: text/rfc822-headers\n\nSubject: %s\nFrom: %s\n\n" % ("lost", self.me[1])).encode() + B(b, "--"))
        # -- headers
        H = []
        hop = "mx%d.example.net" % r.randint(1, 9)
        if folder not in ("Sent", "Drafts"):
            H.append("Return-Path: <%s>" % sender[1])
            H.append("Delivered-To: %s" % self.me[1])
            for _ in range(r.choice((1, 2, 2, 3, 4))):
                H.append("Received: from %s (%s [192.0.2.%d])\n\tby %s (Postfix) with ESMTPS id %s\n\tfor <%s>; %s" % (
                    "h%d.%s" % (r.randint(1, 99), r.choice(DOMAINS)), hop, r.randint(1, 254), hop, self.hexs(10).upper(), self.me[1], self.fmt_date(t + 5)))
            if t > EPOCH0 + 86400 * 700 or r.random() < 0.4:
                H.append("Authentication-Results: %s; dkim=pass (2048-bit key) header.d=%s; spf=pass smtp.mailfrom=%s" % (hop, sender[1].split("@")[1], sender[1]))
                sg = base64.b64encode(self.noise(256)).decode()
                H.append("DKIM-Signature: v=1; a=rsa-sha256; c=relaxed/relaxed; d=%s; s=%s;\n\tbh=%s;\n\th=from:to:subject:date;\n\tb=%s" % (
                    sender[1].split("@")[1], self.latin.one(r), base64.b64encode(self.noise(32)).decode(),
                    "\n\t ".join(sg[q:q + 70] for q in range(0, len(sg), 70))))
        to = [lst] if lst else ([self.me] if folder != "Sent" else [self.person() for _ in range(r.choice((1, 1, 1, 2, 3)))])
        cc = []
        if parent and lst:
            to = [parent["from"]]
            cc = [lst] + ([self.person() for _ in range(r.choice((0, 0, 1, 2, 4, 9)))])
        elif r.random() < 0.3:
            cc = [self.person() for _ in range(r.choice((1, 1, 2, 3, 8)))]
        hs = ["From: " + self.addr(sender, charset), "To: " + ",\n\t".join(self.addr(p) for p in to)]
        if cc:
            hs.append("Cc: " + ",\n\t".join(self.addr(p) for p in cc))
        if folder == "Sent" and r.random() < 0.1:
            hs.append("Bcc: " + self.addr(self.person()))
        if defect == "raw8":
            hs.append("Subject: " + subject + " caf\udce9 gr\udcfc\udcdfe")
        else:
            hs.append("Subject: " + self.encode_hdr(subject, charset))
        if defect == "baddate":
            hs.append("Date: " + r.choice(("yesterday", "32 Foo 99999", "2019-13-45T99:99", "Thu, 00 Jan 0000 00:00:00")))
        elif defect != "nodate":
            hs.append("Date: " + self.fmt_date(t))
        if defect != "nomsgid":
            hs.append("Message-ID: <" + msgid + ">")
        if refs:
            z = r.random()
            if z < 0.93:
                rf = refs[-20:] if len(refs) > 20 else refs
                hs.append("References: " + "\n\t".join("<" + m + ">" for m in rf))
            if z > 0.02:
                hs.append("In-Reply-To: <" + refs[-1] + ">")
        if lst:
            H2 = ["List-Id: %s discussion <%s.lists.example.org>" % (lst[0], lst[0]), "List-Post: <mailto:%s>" % lst[1],
                  "List-Unsubscribe: <https://lists.example.org/u/%s>,\n\t<mailto:%s-request@lists.example.org>" % (lst[0], lst[0]), "Precedence: list"]
        else:
            H2 = []
        if r.random() < 0.04:
            hs.append(r.choice(("X-Priority: 1", "Importance: high", "Priority: urgent", "Precedence: bulk")))
        if r.random() < 0.05:
            hs.append("X-Keywords: " + ", ".join(r.sample(["work", "todo", "family", "travel", "invoices"], 2)))
        hs.append("MIME-Version: 1.0")
        if r.random() < 0.5:
            hs.append("User-Agent: " + r.choice(("Mutt/1.10.1", "mu4e 1.8; emacs 28.1", "Thunderbird/102", "Notmuch/0.37", "K-9 Mail")))
        if r.random() < 0.4:
            hs.append("X-Spam-Status: No, score=%.1f required=5.0 tests=BAYES_00,DKIM_SIGNED,DKIM_VALID\n\tautolearn=ham" % r.uniform(-5, 4))
        if defect == "nocolon":
            hs.insert(2, "this header line has no colon at all")
        raw = ("\n".join(H + hs + H2) + "\n").encode("utf-8", "surrogateescape") + content
        if defect == "badcharset":
            raw = raw.replace(b"charset=", b"charset=x-unknown-", 1)
        elif defect == "noclose":
            raw = raw[:-len(b) - 4] if shape != "plain" else raw
        elif defect == "truncb64":
            raw = raw[:int(len(raw) * 0.9)] if b"base64" in raw else raw
        elif defect == "nul":
            raw = raw.replace(b" the ", b" \0the\0 ", 3)
        elif defect == "empty":
            raw = raw[:raw.index(b"\n\n") + 1]
        elif defect == "longline":
            raw += b"x" * 20000 + b"\n"
        elif defect == "mboxfrom":
            raw = b"From someone@example.org Mon Jan  1 00:00:00 2018\n" + raw
        if defect == "crlf" or r.random() < 0.02:
            raw = raw.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        if defect not in ("nomsgid", "empty") and folder not in ("Drafts", "Spam"):
            pool.append({"id": msgid, "refs": refs, "subject": subject, "t": t, "from": sender, "lines": lines[:60],
                         "lang": lang, "charset": charset})
            if len(pool) > 400:
                del pool[:200]
        self.cnt("mime", shape)
        self.cnt("charset", charset)
        if has_att:
            self.truth["attach"] += 1
        return folder, raw

    def flags(self, folder):
        r = self.rnd
        if folder == "Drafts":
            return "DS"
        if folder == "Sent":
            return "S"
        x = r.random()
        f = ""
        if x > 0.12:
            f = "S"
            if r.random() < 0.12:
                f = "R" + f
            if r.random() < 0.03:
                f = "P" + f
            if r.random() < 0.04:
                f = "F" + f
        elif x > 0.05:
            return None  # -> new/
        if folder == "Trash":
            f += "T"
        return "".join(sorted(f))

    def deliver(self, folder, raw, t, i):
        a = self.a
        base = os.path.join(a.out, folder)
        if base not in self.made:
            for d in ("cur", "new", "tmp"):
                os.makedirs(os.path.join(base, d), exist_ok=True)
            self.made.add(base)
        fl = self.flags(folder)
        uniq = "%d.M%06dP%d_%d.host,S=%d" % (t, self.rnd.randrange(1000000), 1000 + i % 30000, i, len(raw))
        if fl is None:
            path = os.path.join(base, "new", uniq)
            self.truth["new_dir"] += 1
        else:
            path = os.path.join(base, "cur", uniq + ":2," + fl)
            for c in fl:
                self.cnt("flags", c)
        if fl is None or "S" not in fl:
            self.truth["unread"] += 1
        with open(path, "wb", buffering=0) as fh:
            fh.write(raw)
        os.utime(path, (t + 10, t + 10))
        self.cnt("folders", folder)
        self.truth["files"] += 1
        self.truth["bytes"] += len(raw)

    def run(self):
        a = self.a
        r = self.rnd
        self.made = set()
        os.makedirs(a.out, exist_ok=True)
        span = int(a.years * 365.25 * 86400)
        t0 = time.time()
        i = 0
        while self.truth["files"] < a.n:
            t = EPOCH0 + a.offset_days * 86400 + int(span * min(i, a.n) / a.n) + r.randint(-40000, 40000)
            folder, raw = self.message(i, t)
            self.deliver(folder, raw, t, i)
            if self.truth["files"] < a.n and folder.startswith("Lists/") and r.random() < 0.04:
                dup = raw if r.random() < 0.5 else raw + b"\n-- \nlist footer\n"
                self.deliver("INBOX", dup, t + 2, i)
                self.truth["duplicates"] += 1
            i += 1
            if i % 10000 == 0:
                print(i, "messages", round(time.time() - t0, 1), "s", flush=True)
        self.truth["messages"] = i
        self.truth["avg_bytes"] = self.truth["bytes"] // self.truth["files"]
        with open(a.out.rstrip("/") + ".truth.json", "w") as fh:
            json.dump(self.truth, fh, indent=1, sort_keys=True)
        print(json.dumps(self.truth, indent=1, sort_keys=True))


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--out", required=True)
    p.add_argument("--n", type=int, default=10000, help="number of files")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--years", type=float, default=10)
    p.add_argument("--offset-days", type=int, default=0, help="shift the date range (for incremental batches)")
    p.add_argument("--vocab", type=int, default=120000)
    p.add_argument("--people", type=int, default=4000)
    p.add_argument("--scale", type=float, default=1.0, help="scales text and attachment sizes")
    Gen(p.parse_args()).run()
