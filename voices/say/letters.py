"""Abbreviations, Roman numerals, capitals: letters that stand for other words or for their own names."""

from __future__ import annotations

import re

from roman_numerals import InvalidRomanNumeralError, RomanNumeral

from voices.language import Language
from voices.say.rule import Part, Rule, Spoken

# With the full stop; what is said, whether or not a name follows.
_ABBREVIATIONS = {
    "Dr": "Doctor", "Mr": "Mister", "Mrs": "Missus", "Ms": "Miz", "Mx": "Mix", "Prof": "Professor", "Jr": "Junior",
    "Sr": "Senior", "Rev": "Reverend", "Hon": "Honorable", "Gov": "Governor", "Pres": "President", "Sen": "Senator",
    "Rep": "Representative", "Gen": "General", "Col": "Colonel", "Maj": "Major", "Capt": "Captain", "Cpt": "Captain",
    "Lt": "Lieutenant", "Sgt": "Sergeant", "Cmdr": "Commander", "Adm": "Admiral", "Supt": "Superintendent",
    "vs": "versus", "etc": "et cetera", "approx": "approximately", "ca": "about", "cf": "compare", "viz": "namely",
    "Inc": "Incorporated", "Ltd": "Limited", "Co": "Company", "Corp": "Corporation", "Assn": "Association",
    "Dept": "Department", "dept": "department", "Univ": "University", "Ave": "Avenue", "Blvd": "Boulevard",
    "Rd": "Road", "Ln": "Lane", "Hwy": "Highway", "Apt": "Apartment", "apt": "apartment", "Mt": "Mount", "Ft": "Fort",
    "Fig": "Figure", "fig": "figure", "Figs": "Figures", "Eq": "Equation", "Vol": "Volume", "vol": "volume",
    "Ch": "Chapter", "ch": "chapter", "Sec": "Section", "pp": "pages", "est": "established", "Est": "Established",
    "misc": "miscellaneous", "temp": "temperature", "tel": "telephone", "Tel": "Telephone", "ext": "extension",
    "max": "maximum", "min": "minimum", "avg": "average", "hrs": "hours", "lbs": "pounds", "ed": "edition",
    "et al": "and others", "Messrs": "Messieurs", "Vs": "Versus", "Approx": "Approximately",
}  # fmt: skip
_DOTTED = {
    "e.g": "for example", "i.e": "that is", "a.k.a": "also known as", "p.s": "P.S", "w.r.t": "with respect to",
    "n.b": "note", "r.i.p": "R.I.P",
}  # fmt: skip
_SLASHED = {"w/": "with", "w/o": "without", "b/c": "because", "n/a": "not applicable", "c/o": "care of",
            "and/or": "and or", "a/c": "A.C", "i/o": "I.O"}  # fmt: skip
_DEGREES = {"PhD": "P.H.D", "Ph.D": "P.H.D", "MSc": "M.S.C", "BSc": "B.S.C", "M.Sc": "M.S.C", "B.Sc": "B.S.C",
            "kWh": "kilowatt hours", "WiFi": "Wi-Fi", "iOS": "I.O.S", "macOS": "Mac O.S", "LaTeX": "Lay-tech",
            "SQLite": "S.Q.L. lite", "MySQL": "my S.Q.L", "PyTorch": "pie torch", "NumPy": "num pie",
            "AT&T": "A.T and T", "GitHub": "git hub", "YouTube": "you tube"}  # fmt: skip

_NUMBERED = (
    "chapter part act section volume book phase type war class level stage grade appendix article title scene tier "
    "category world bowl episode season unit lesson module mark world olympiad game king queen pope century"
).split()
_REIGNING = frozenset(
    "henry louis elizabeth charles george edward richard james william mary john paul napoleon pius benedict philip "
    "ferdinand catherine nicholas alexander leo frederick ramses ramesses wilhelm otto gregory innocent clement "
    "urban ptolemy cleopatra darius xerxes cyrus gustav christian harald haakon olaf margrethe beatrix juliana "
    "victoria peter ivan francis joseph leopold albert baldwin alfonso carlos juan isabella pedro umberto victor "
    "emmanuel mehmed selim murad suleiman theodosius constantine justinian malcolm robert david stephen franz "
    "friedrich ludwig karl felipe harold".split()
)  # fmt: skip

# Capitals that are read as a word, and short words that are only shouted.
_READ = frozenset(
    "NASA NATO UNESCO UNICEF OPEC RAM ROM PIN SIM JPEG GIF AIDS SWAT LEGO IKEA RADAR LASER SCUBA NAFTA FIFA UEFA "
    "ASCII BASIC COBOL FORTRAN JSON YAML TOML CUDA NUMA SATA RAID BIOS DOS GNU LAMP REST SOAP AJAX CAPTCHA COVID SARS "
    "MERS EBITDA NAND NOR YOLO TED NIMBY ASAP LAN WAN MIDI DRAM SRAM CRUD SOTA OK".split()
)
_SHOUTED = frozenset(
    "A I AM AN AND ANY ARE AS AT BE BUT BY CAN DID DO DONE DONT EACH END EVEN EVER FOR FREE FROM FULL GET GO GOOD GOT "
    "HAD HAS HAVE HE HER HERE HEY HI HIM HIS HOT HOW IF IN INTO IS IT ITS JUST KEEP KEY LESS LET LIKE LONG LOOK LOT "
    "LOVE MAN MANY MAY ME MORE MOST MUCH MUST MY NAME NEED NEVER NEW NEXT NO NONE NOT NOTE NOW OF OFF OH OLD ON ONCE "
    "ONE ONLY OPEN OR OUR OUT OVER OWN PAY PER PLUS PUT READ REAL RED RUN SAID SAME SAY SEE SHE SO SOME SOON STAY STOP "
    "SUCH SURE TAKE TELL TEN TEST THAN THAT THE THEM THEN THEY THIS TIME TIP TO TODO TOO TOP TRUE TRY TWO UP USE USED "
    "VERY WAIT WANT WAR WARN WAS WAY WE WELL WENT WERE WHAT WHEN WHO WHY WILL WITH WON WOW YES YET YOU YOUR ALL ALSO "
    "ALWAYS BIG BEST BOTH CALL DAY DOES EASY FACT FAST FIRST FIVE FOUR GREAT HELP HIGH HOME HUGE KNOW LAST LATE LEFT "
    "LIVE LOW MAKE MIND MINE NICE OFTEN PLAN PLEASE RIGHT SAFE SAD SIX STEP STILL THANK THANKS THREE YEAH FALSE NULL "
    "DANGER HELLO HAPPY SORRY START AGAIN ABOUT AFTER WHERE WHICH WHILE WOULD COULD SHOULD THERE THEIR THESE THOSE "
    "WORLD WATER WRONG YEAR YEARS DON'T CAN'T WON'T ISN'T IT'S I'M".split()
)


def spelled(letters: str) -> str:
    """Letters to be said by their names, as the phonemiser wants them: "USA" -> "U.S.A", "A" -> "A." (no article)."""
    return "A." if letters in ("A", "a") else ".".join(letters.upper())


def _abbreviation(match: re.Match[str], lang: Language) -> Spoken:
    return _ABBREVIATIONS[match["a"]]


def _dotted(match: re.Match[str], lang: Language) -> Spoken:
    return _DOTTED[match["a"].lower()] + ("," if match["a"].lower() in ("e.g", "i.e") else "")


def _street(match: re.Match[str], lang: Language) -> Spoken:
    """ "St." and "Dr." behind a name are a street, before one a person: "St. John", "Main St."."""
    before = re.search(r"([A-Z][a-z]+|\d(?:st|nd|rd|th)) $", match.string[: match.start()])
    after = re.match(r"\s*[A-Z]", match.string[match.end() :])
    street = {"St": "Street", "Dr": "Drive"}[match["a"]]
    person = {"St": "Saint", "Dr": "Doctor"}[match["a"]]
    if before and not after:
        return street
    numbered = re.search(r"\d+ (?:[A-Z][a-z]+ )+$", match.string[: match.start()])
    return street if numbered else person


def _initials(match: re.Match[str], lang: Language) -> Spoken:
    return spelled(re.sub(r"\W", "", match[0]))


def _initial(match: re.Match[str], lang: Language) -> Spoken:
    return match["a"]


def _slashed(match: re.Match[str], lang: Language) -> Spoken:
    return _SLASHED[match[0].lower()]


def _degree(match: re.Match[str], lang: Language) -> Spoken:
    return _DEGREES[match["a"]] + ("s" if match["s"] else "")


def _roman(match: re.Match[str], lang: Language) -> Spoken:
    numeral = match["n"]
    try:
        value = int(RomanNumeral.from_string(numeral))
    except InvalidRomanNumeralError:
        return None
    name = match["name"].lower().removesuffix("'s")
    small = set(numeral) <= set("IVX")
    keyword = name in _NUMBERED
    if (len(numeral) == 1 or not small) and not (keyword or (name in _REIGNING and numeral != "I")):
        return None
    if numeral == "I" and re.match(r"\s+(?:am|was|have|had|will|do|did|think|can|could|would|know|'|’)", _after(match)):
        return None
    at = match.start("n") - match.start()
    said = f"the {lang.ordinal(value)}" if name in _REIGNING else lang.whole(value)
    return [Part(match["name"], 0, at), Part(said, at, len(match[0]))]


def _roman_century(match: re.Match[str], lang: Language) -> Spoken:
    try:
        return lang.ordinal(int(RomanNumeral.from_string(match["n"])))
    except InvalidRomanNumeralError:
        return None


def _after(match: re.Match[str]) -> str:
    return match.string[match.end() :]


def _capitals(match: re.Match[str], lang: Language) -> Spoken:
    word, plural = match["w"], match["s"] or ""
    if word in _READ:
        return (word if word == "OK" else word.capitalize()) + plural.replace("’", "'")
    if word in _SHOUTED or len(word) > 5 or "'" in word or "’" in word or _shouting(match):
        return word.lower() + plural
    return spelled(word) + ("'s" if plural else "")


def _shouting(match: re.Match[str]) -> bool:
    """The word stands in a run of three and more in capitals: somebody shouts, nobody abbreviates."""
    before = re.search(r"(?:\b[A-Z']{1,}\s+)*$", match.string[: match.start()])
    after = re.match(r"(?:\s+[A-Z']{1,}\b)*", match.string[match.end() :])
    around = (before[0] if before else "").split() + (after[0] if after else "").split()
    return len(around) >= 2 and any(w in _SHOUTED and len(w) > 1 for w in around)


def _mixed(match: re.Match[str], lang: Language) -> Spoken:
    """ "GPT-4", "H2O", "MP3", "4K", "COVID-19": runs of letters and of figures in turn."""
    said = []
    for run in re.findall(r"[A-Za-z]+|\d+", match[0]):
        if run.isdigit():
            said.append(lang.digits(run) if run.startswith("0") or len(run) > 4 else lang.number(run))
        elif run in _READ or (len(run) > 3 and not run.isupper()) or len(run) > 5:
            said.append(run.capitalize())
        elif run.isupper() or len(run) == 1 or run[:2].isupper():
            said.append(spelled(run))
        else:
            said.append(run)
    return " ".join(said)


_STATES = dict(
    pair.split(":")
    for pair in (
        "AL:Alabama AK:Alaska AZ:Arizona AR:Arkansas CA:California CO:Colorado CT:Connecticut DE:Delaware FL:Florida "
        "GA:Georgia HI:Hawaii ID:Idaho IL:Illinois IN:Indiana IA:Iowa KS:Kansas KY:Kentucky LA:Louisiana ME:Maine "
        "MD:Maryland MA:Massachusetts MI:Michigan MN:Minnesota MS:Mississippi MO:Missouri MT:Montana NE:Nebraska "
        "NV:Nevada NH:New-Hampshire NJ:New-Jersey NM:New-Mexico NY:New-York NC:North-Carolina ND:North-Dakota OH:Ohio "
        "OK:Oklahoma OR:Oregon PA:Pennsylvania RI:Rhode-Island SC:South-Carolina SD:South-Dakota TN:Tennessee TX:Texas "
        "UT:Utah VT:Vermont VA:Virginia WA:Washington WV:West-Virginia WI:Wisconsin WY:Wyoming DC:D.C"
    ).split()
)


def _state(match: re.Match[str], lang: Language) -> Spoken:
    """ "Atlanta, GA"."""
    return _STATES[match["a"]].replace("-", " ")


def _letter_a(match: re.Match[str], lang: Language) -> Spoken:
    return spelled("A")


def _alternatives(match: re.Match[str], lang: Language) -> Spoken:
    at = match.start("b") - match.start()
    return [Part(f"{match['a']} or", 0, at), Part(match["b"], at, len(match[0]))]


def english() -> tuple[Rule, ...]:
    plain = [a for a in _ABBREVIATIONS if a not in ("Dr",)]
    # Without a full stop only those that are no words of their own.
    bare = "Dr Mr Mrs Ms Prof Jr Sr vs Vs etc approx Blvd Ltd Inc".split()
    alternation = "|".join(sorted((re.escape(a) for a in plain), key=len, reverse=True))
    return (
        Rule(
            re.compile(rf"(?<![\w.])(?P<a>{'|'.join(re.escape(a) for a in _DEGREES)})(?P<s>s)?(?!\w)\.?"),
            _degree,
        ),
        Rule(re.compile(rf"(?<![\w/])(?:{'|'.join(re.escape(a) for a in _SLASHED)})(?![\w/])", re.I), _slashed),
        Rule(
            re.compile(rf"(?<![\w.])(?P<a>{'|'.join(re.escape(a) for a in _DOTTED)})\.?,?(?!\w)", re.I),
            _dotted,
        ),
        Rule(
            re.compile(r"(?<![\w.])(?P<a>eg|ie)(?=\.)\.,?", re.I),
            lambda m, _: _DOTTED[f"{m[1][0]}.{m[1][1]}".lower()] + ",",
        ),
        Rule(re.compile(r"(?<![\w.'’-])(?P<a>St|Dr)\.(?!\w)"), _street),
        Rule(re.compile(r"(?<![\w.])(?P<a>p)\.\s?(?=\d)"), lambda m, _: "page"),
        Rule(re.compile(r"(?<= )v\.(?= [A-Z])"), lambda m, _: "versus"),
        Rule(re.compile(rf"(?<=[a-z], )(?P<a>{'|'.join(_STATES)})\b(?=[.,;!?)]| \d{{5}}| \(|$)"), _state),
        Rule(re.compile(rf"(?<![\w.'’-])(?P<a>{alternation})\.(?!\w)"), _abbreviation),
        Rule(re.compile(rf"(?<![\w.'’-])(?P<a>{'|'.join(bare)})(?![\w.'’-])"), _abbreviation),
        Rule(re.compile(r"(?<![\w.])(?:[A-Za-z]\.){2,}(?:[A-Z](?!\w))?(?!\w)"), _initials),
        Rule(re.compile(r"(?<![\w.])(?P<a>[A-Z])\.(?=\s?[A-Z][a-z.])"), _initial),
        Rule(
            re.compile(r"\b(?P<n>[XVI]+)(?=(?:th|st|nd|rd)? [cC]entur)(?:th|st|nd|rd)?"),
            _roman_century,
        ),
        Rule(
            re.compile(r"\b(?P<name>[A-Z][a-z]+(?:['’]s)?)\s(?P<n>[IVXLCDM]+)\b(?!['’]|\.\w)(?!-)"),
            _roman,
        ),
        Rule(
            re.compile(
                r"(?<![\w'’])(?P<w>[A-Z]+['’](?:S|T|RE|LL|VE|M|D)\b|[A-Z]{2,})(?P<s>(?:['’]?s)?)(?![\w'’-]*\d|\w)"
            ),
            _capitals,
        ),
        Rule(
            re.compile(r"(?<![\w.])(?:[A-Z]+[a-z]*-?\d+[A-Za-z]{0,3}\d*|\d+[A-Za-z]{1,2}\d*)(?![\w])(?!-\d)"),
            _mixed,
        ),
        Rule(re.compile(r"(?:(?<=[a-z] )|(?<=&\s))A(?=[\s.,;:!?)]|$)|(?<=&)A\b"), _letter_a),
        Rule(re.compile(r"(?<![\w/])(?P<a>[A-Za-z]{2,})/(?P<b>[A-Za-z]{2,})(?![\w/])"), _alternatives),
    )
