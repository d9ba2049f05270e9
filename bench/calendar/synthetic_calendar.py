#!/usr/bin/env python3
"""Writes a synthetic calendar of N events: about 620 bytes each, over twelve years, 15 % all-day, 8 % recurring, a quarter
with attendees, 30 % with an alarm. The output is always the same, so the time to parse it shows the pace of a machine.

usage: synthetic_calendar.py N OUT"""
import datetime
import random
import sys

count, path = int(sys.argv[1]), sys.argv[2]
draw = random.Random(42)
ZONE = """BEGIN:VTIMEZONE
TZID:Europe/Berlin
X-LIC-LOCATION:Europe/Berlin
BEGIN:DAYLIGHT
TZNAME:CEST
TZOFFSETFROM:+0100
TZOFFSETTO:+0200
DTSTART:19700329T020000
RRULE:FREQ=YEARLY;BYMONTH=3;BYDAY=-1SU
END:DAYLIGHT
BEGIN:STANDARD
TZNAME:CET
TZOFFSETFROM:+0200
TZOFFSETTO:+0100
DTSTART:19701025T030000
RRULE:FREQ=YEARLY;BYMONTH=10;BYDAY=-1SU
END:STANDARD
END:VTIMEZONE"""
WORDS = """budget review lunch dentist standup planning train flight berlin team offsite demo quarterly report
kindergarten birthday doctor yoga piano rehearsal interview onboarding retrospective release deploy maintenance""".split()
RULES = [
    "FREQ=WEEKLY;BYDAY=MO,WE",
    "FREQ=WEEKLY;INTERVAL=2;BYDAY=TU",
    "FREQ=MONTHLY;BYDAY=2TH",
    "FREQ=YEARLY",
    "FREQ=DAILY;COUNT=30",
    "FREQ=MONTHLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=-1",
    "FREQ=WEEKLY;UNTIL=20190301T000000Z;BYDAY=FR",
]


def folded(line):
    parts, width = [], 75
    while line:
        parts.append(line[:width])
        line, width = line[width:], 74
    return "\r\n ".join(parts) + "\r\n"


def event():
    start = datetime.datetime(2012, 1, 1) + datetime.timedelta(
        days=draw.randrange(0, 365 * 12), minutes=15 * draw.randrange(28, 80)
    )
    length = draw.choice([30, 45, 60, 60, 60, 90, 120, 240])
    all_day = draw.random() < 0.15
    title = " ".join(draw.choices(WORDS, k=draw.randrange(2, 6))).capitalize()
    text = " ".join(draw.choices(WORDS, k=draw.randrange(5, 45)))

    def before(days):
        return (start - datetime.timedelta(days=days)).strftime("%Y%m%dT%H%M%SZ")

    lines = ["BEGIN:VEVENT", f"UID:{draw.getrandbits(128):032x}@bench", f"DTSTAMP:{before(9)}", f"CREATED:{before(9)}"]
    lines += [f"LAST-MODIFIED:{before(2)}", f"SEQUENCE:{draw.randrange(3)}", f"SUMMARY:{title}"]
    if all_day:
        end = start + datetime.timedelta(days=1)
        lines += [f"DTSTART;VALUE=DATE:{start:%Y%m%d}", f"DTEND;VALUE=DATE:{end:%Y%m%d}"]
    else:
        end = start + datetime.timedelta(minutes=length)
        lines += [f"DTSTART;TZID=Europe/Berlin:{start:%Y%m%dT%H%M%S}", f"DTEND;TZID=Europe/Berlin:{end:%Y%m%dT%H%M%S}"]
    if draw.random() < 0.7:
        lines.append("DESCRIPTION:" + text.replace(" report", r" report\, and\nmore"))
    if draw.random() < 0.5:
        lines.append(f"LOCATION:Room {draw.randrange(900)}")
    lines += ["CLASS:PUBLIC", "TRANSP:OPAQUE", "STATUS:CONFIRMED", f"X-MOZ-GENERATION:{draw.randrange(9)}"]
    if draw.random() < 0.08:
        until = (start + datetime.timedelta(days=400)).strftime("%Y%m%d")
        rule = draw.choice(RULES).replace("20190301", until)
        lines.append("RRULE:" + (rule.replace("T000000Z", "") if all_day else rule))
    if draw.random() < 0.25:
        lines.append('ORGANIZER;CN="Doe, Jane":mailto:jane@example.org')
        for guest in range(draw.randrange(1, 5)):
            who = f"CN=Person {guest};PARTSTAT=ACCEPTED;ROLE=REQ-PARTICIPANT;RSVP=TRUE"
            lines.append(f"ATTENDEE;{who}:mailto:p{guest}@example.org")
    if draw.random() < 0.3:
        lines += ["BEGIN:VALARM", "ACTION:DISPLAY", "TRIGGER:-PT15M", "DESCRIPTION:Reminder", "END:VALARM"]
    return lines + ["END:VEVENT"]


with open(path, "w", newline="", encoding="utf-8") as out:
    head = ["BEGIN:VCALENDAR", "VERSION:2.0", "PRODID:-//synthetic//bench//EN", "CALSCALE:GREGORIAN", "X-WR-CALNAME:Bench"]
    for line in head + ZONE.split("\n"):
        out.write(folded(line))
    for _ in range(count):
        for line in event():
            out.write(folded(line))
    out.write("END:VCALENDAR\r\n")
