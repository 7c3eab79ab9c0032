"""What is said for what is written. Each table is one kind of text; a case is (written, said)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from voices import speakable

MARKUP = [
    ("**Important:** use `pip install`!", "Important: use pip install!"),  # speech-to-speech#338
    ("# Heading", "Heading."),
    ("### **Step 1: Do it**", "Step one: Do it."),
    ("See [the docs](https://a.b/c) now.", "See the docs now."),
    ("![A cat](cat.png) sleeps.", "A cat sleeps."),
    ("**bold**, *italic*, ***both***, ~~gone~~, __under__, _em_", "bold, italic, both, gone, under, em."),
    ("**Cut in the middle, and", "Cut in the middle, and."),
    ("it ends** here", "it ends here."),
    ("- bullet *item*", "bullet item."),
    ("* star bullet", "star bullet."),
    ("1. First item", "one, First item."),
    ("10) tenth", "ten, tenth."),
    ("- [x] done", "done."),
    ("    - nested", "nested."),
    ("> a quote", "a quote."),
    ("| Name | Age |", "Name, Age."),
    ("|------|-----|", ""),
    ("---", ""),
    ("Use `snake_case_name` and `--verbose`.", "Use snake case name and dash dash verbose."),
    ("Call `getUserName()` from `utils/helpers.js`.", "Call get User Name from utils slash helpers dot js."),
    ("`x == y`", "x equals y."),
    ("```python\nprint(1)\n```", "Python code block."),
    ("```\nls\n```", "code block."),
    ("<b>bold</b> and a &amp; b", "bold and a and b."),
    ("2*3*4 is 24", "two times three times four is twenty-four."),
    ("a snake_case word", "a snake case word."),
    ("First line\nSecond line", "First line Second line."),
]
ADDRESSES = [
    ("Go to https://example.com/x?y=1.", "Go to example dot com."),
    ("Visit www.example.co.uk today.", "Visit example dot co dot uk today."),
    ("or <https://a.com>", "or a dot com."),
    ("http://localhost:8080/", "localhost."),
    ("Mail jane.doe42@example.com today.", "Mail jane dot doe forty-two at example dot com today."),
    ("Open README.md", "Open readme dot M.D."),
    ("Ask @john_doe", "Ask at john doe."),
    ("#ThrowbackThursday", "hashtag Throwback Thursday."),
    ("Call (555) 123-4400 now", "Call five five five, one two three, four four zero zero now."),  # piper#363
    ("+44 20 7946 0958", "plus four four, two zero, seven nine four six, zero nine five eight."),
    ("1-800-555-0199", "one eight zero zero, five five five, zero one nine nine."),
    ("Dial 555-1234", "Dial five five five, one two three four."),
    ("Call 911", "Call nine one one."),
    ("192.168.0.1", "one hundred and ninety-two dot one hundred and sixty-eight dot zero dot one."),
]
NUMBERS = [
    ("in 1999", "in nineteen ninety-nine."),  # piper#363
    ("in 2005", "in two thousand five."),
    ("in 2024, we", "in twenty twenty-four, we."),
    ("1905", "nineteen oh-five."),
    ("2048 bits", "two thousand and forty-eight bits."),
    ("in 1066", "in ten sixty-six."),
    ("1914–1918", "nineteen fourteen to nineteen eighteen."),
    ("2024-25", "twenty twenty-four to twenty-five."),
    ("the 1990s and the '80s", "the nineteen nineties and the eighties."),
    ("his 30s", "his thirties."),
    ("44 BC", "forty-four B.C."),
    ("1,234,567", "one million two hundred and thirty-four thousand five hundred and sixty-seven."),
    ("3.14", "three point one four."),
    ("0.50", "zero point five zero."),
    (".5", "point five."),
    ("-5 degrees", "minus five degrees."),
    ("007", "zero zero seven."),
    ("12345678901234567890", "one two three four five six seven eight nine zero " * 2),
    ("1st, 2nd and 21st", "first, second and twenty-first."),
    ("pages 5-10", "pages five to ten."),
    ("3-4-5", "three four five."),
    ("1/2, 3/4 and 2/3", "one half, three quarters and two thirds."),
    ("2½ cups", "two and a half cups."),
    ("8/10 and 24/7", "eight out of ten and twenty-four seven."),
    ("16:9", "sixteen to nine."),
    ("v2.0.1", "version two point zero point one."),
    ("Python 3.11", "Python three point one one."),
    ("6.02e23", "six point zero two times ten to the twenty-three."),
    ("#1 and No. 5", "number one and number five."),
    ("Room 1205", "Room twelve oh five."),
    ("10k users, a 10K run", "ten thousand users, a ten K run."),
    ("3 vs. 4", "three versus four."),  # piper#363
]
QUANTITIES = [
    ("$500", "five hundred dollars."),  # piper#363
    ("$3.50", "three dollars and fifty cents."),
    ("$0.99, $.50 and 99¢", "ninety-nine cents, fifty cents and ninety-nine cents."),
    ("$1", "one dollar."),
    ("$1,234.56", "one thousand two hundred and thirty-four dollars and fifty-six cents."),
    ("$5M and $3.5 billion", "five million dollars and three point five billion dollars."),
    ("$5-10", "five to ten dollars."),
    ("$20/hour", "twenty dollars per hour."),
    ("€20 or 20 €", "twenty euros or twenty euros."),
    ("£5.99", "five pounds and ninety-nine pence."),
    ("USD 20", "twenty dollars."),
    ("10%", "ten percent."),
    ("3.5–4%", "three point five to four percent."),
    ("5 km at 60 mph", "five kilometers at sixty miles per hour."),
    ("1 km", "one kilometer."),
    ("a 5-km run", "a five kilometer run."),
    ("5-10 kg", "five to ten kilograms."),
    ("20°C (68°F)", "twenty degrees Celsius, sixty-eight degrees Fahrenheit."),
    ("16 GB at 3.2 GHz", "sixteen gigabytes at three point two gigahertz."),
    ("5'11\" tall", "five feet eleven tall."),
    ("1/2 kg and 1 1/2 tsp", "one half kilogram and one and a half teaspoons."),
    ("5 min. or so", "five minutes or so."),
    ("mass in kg", "mass in kilograms."),
    ("a 4x100m relay", "a four by one hundred meters relay."),
    ("10+ people", "ten plus people."),
    ("3x faster", "three times faster."),
    ("1920x1080", "one thousand nine hundred and twenty by one thousand and eighty."),
]
DATES = [
    ("On Nov 5, 2024.", "On November fifth, twenty twenty-four."),
    ("2024-11-05", "November fifth, twenty twenty-four."),
    ("11/05/2024", "November fifth, twenty twenty-four."),
    ("25/12/2023", "December twenty-fifth, twenty twenty-three."),
    ("the 5th of May", "the fifth of May."),
    ("25 December 2023", "the twenty-fifth of December twenty twenty-three."),
    ("June 3–5", "June third to fifth."),
    ("Jan 2024", "January twenty twenty-four."),
    ("It may 5 times", "It may five times."),
    ("on Mon., Nov. 3", "on Monday, November third."),
    ("Mon-Fri", "Monday to Friday."),
    ("on Mon, at ten", "on Monday, at ten."),
    ("at 9:30 a.m.", "at nine thirty A.M."),
    ("9:00 or 14:05", "nine o'clock or fourteen oh five."),
    ("5 p.m. and 10am", "five P.M and ten A.M."),
    ("12:00 p.m. - 1:30 p.m.", "twelve P.M to one thirty P.M."),
    ("10:30:15", "ten thirty and fifteen seconds."),
]
LETTERS = [
    ("World War II", "World War two."),  # piper#363
    ("Martin Luther King Jr.", "Martin Luther King Junior."),  # piper#363
    ("King Jr. spoke", "King Junior spoke."),
    ("Henry VIII and Louis XIV", "Henry the eighth and Louis the fourteenth."),
    ("Chapter IV of Rocky III", "Chapter four of Rocky three."),
    ("the XIX century", "the nineteenth century."),
    ("I think I am right", "I think I am right."),
    ("Part I is easy", "Part one is easy."),
    ("Dr. and Mrs. Smith", "Doctor and Missus Smith."),
    ("St. John on Main St.", "Saint John on Main Street."),
    ("5th Ave. near Mt. Rainier", "fifth Avenue near Mount Rainier."),
    ("tea, e.g. green", "tea, for example, green."),
    ("apples etc.", "apples et cetera."),
    ("the U.S. capital", "the U.S capital."),
    ("J. K. Rowling", "J K Rowling."),
    ("a Ph.D. student", "a P.H.D student."),
    ("NASA and the FBI", "Nasa and the F.B.I."),
    ("GPT-4, H2O and MP3", "G.P.T four, H two O and M.P three."),
    ("the CEO's GPUs", "the C.E.O's G.P.U's."),
    ("COVID-19", "Covid nineteen."),
    ("DO NOT PANIC", "do not panic."),
    ("IT'S a WARNING", "it's a warning."),
    ("AT&T, Q&A", "A.T and T, Q and A.."),
    ("and/or, he/she", "and or, he or she."),
    ("C++ and C#", "C plus plus and C sharp."),
    ("Roe v. Wade", "Roe versus Wade."),
    ("Atlanta, GA.", "Atlanta, Georgia."),
    ("IPv6", "I.P.V six."),
]
SIGNS = [
    ("Great! 😊👍 Go :)", "Great! Go."),
    ("👨‍👩‍👧 family 🇺🇸", "family."),
    ("2 + 2 = 4", "two plus two equals four."),
    ("5 - 3 and 10 / 2", "five minus three and ten divided by two."),
    ("x² and 2^10", "x squared and two to the power of ten."),
    ("y >= 3", "y is at least three."),
    ("H₂O, ~5 and a → b", "H two O, about five and a to b."),
    ("Tom & Jerry", "Tom and Jerry."),
    ("well--you know", "well, you know."),
    ('Hello ("world") — he said… and left', "Hello, world, he said, and left."),
    ("“It’s” what?!", "It's what?"),
    (r"\frac{a}{b} \times 2", "a over b times two."),
    ("What!!!", "What!"),
    ("Sure, here it is", "Sure, here it is."),
]
UNSPEAKABLE = [
    "",
    " ",
    "...",
    "—",
    "…",
    "?!",
    "*",
    "**",
    "```",
    "🙂",
    "😀 😀",
    ":)",
    "---",
    "()",
    "\n\n",
    "&nbsp;",
    "“”",
]
TABLE = MARKUP + ADDRESSES + NUMBERS + QUANTITIES + DATES + LETTERS + SIGNS


@pytest.mark.parametrize(("written", "said"), TABLE, ids=[w for w, _ in TABLE])
def test_said_as_a_person_says_it(written: str, said: str) -> None:
    expected = said if said.endswith((".", "!", "?")) or not said else said.strip() + "."
    assert speakable(written).text == expected


def test_the_reported_sentence() -> None:
    said = speakable("Dr. Sharma paid $3.50 at 9:30 a.m. in the U.S. capital.").text
    assert said == ("Doctor Sharma paid three dollars and fifty cents at nine thirty A.M in the U.S capital.")


@pytest.mark.parametrize("text", UNSPEAKABLE)
def test_nothing_to_say(text: str) -> None:
    assert speakable(text).words == ()
    assert speakable(text).text == ""


def test_emoji_by_name_where_wanted() -> None:
    assert speakable("Great 👍", name_emoji=True).text == "Great thumbs up."


def test_a_clause_that_goes_on_does_not_fall() -> None:
    assert speakable("Sure", continues=True).text == "Sure,"
    assert speakable("Sure,", continues=True).text == "Sure,"
    assert speakable("Sure,").text == "Sure."


def test_words_point_at_the_letters_they_stand_for() -> None:
    text = "**Dr. Sharma** paid $3.50, see [docs](http://a.b) at 9:30 a.m.!"
    ranges = [(w.spoken, text[w.start : w.end]) for w in speakable(text).words]
    assert ranges == [
        ("Doctor", "**Dr."),
        ("Sharma", "Sharma**"),
        ("paid", "paid"),
        *((w, "$3.50,") for w in ("three", "dollars", "and", "fifty", "cents")),
        ("see", "see"),
        ("docs", "[docs](http://a.b)"),
        ("at", "at"),
        ("nine", "9:30"),
        ("thirty", "9:30"),
        ("A.M", "a.m.!"),
    ]


@pytest.mark.parametrize(
    ("language", "written", "said"),
    [
        (
            "de",
            "Es kostet 3,50 € und ist 5 km weit.",
            "Es kostet drei Euro und fünfzig Cent und ist fünf Kilometer weit.",
        ),
        ("de", "Am 3. März 2024", "Am drei März zweitausendvierundzwanzig."),
        ("fr", "Il y a 21 % et **1 234** amis.", "Il y a vingt et un pour cent et mille deux cent trente-quatre amis."),
        ("es", "Son 1.000 metros.", "Son mil metros."),
        ("it", "Vedi https://esempio.it ora", "Vedi esempio punto it ora."),
        ("xx", "abc 12 **def**", "abc 12 def."),
        ("hi", "नमस्ते दुनिया।", "नमस्ते दुनिया."),
        ("fr", "cafe\u0301 noir", "cafe\u0301 noir."),
    ],
)
def test_other_languages_have_their_numbers_and_no_english_rules(language: str, written: str, said: str) -> None:
    assert speakable(written, language).text == said


FRAGMENTS = st.lists(
    st.sampled_from(
        [w for w, _ in TABLE]
        + UNSPEAKABLE
        + [
            " ",
            "\n",
            "*",
            "_",
            "`",
            "[",
            "](",
            ")",
            "$",
            "1",
            "\t- ",
            "\r",
            "\x0c",
            "\u2028",
            "> ",
            ".",
            ",",
            "é",
            "中",
            "<",
            "&",
        ]
    ),
    max_size=6,
).map("".join)


@given(FRAGMENTS | st.text(max_size=60), st.sampled_from(["en", "de", "ja"]))
def test_ranges_follow_each_other_and_hold_for_any_text(text: str, language: str) -> None:
    spoken = speakable(text, language)
    reached, last = 0, None
    for word in spoken.words:
        assert word.spoken == word.spoken.strip() != ""
        assert not set(word.spoken) & set("*`[]\n")
        assert 0 <= word.start < word.end <= len(text)
        assert text[word.start : word.end].strip() == text[word.start : word.end]
        if (word.start, word.end) != last:
            assert word.start >= reached
        reached, last = word.end, (word.start, word.end)
    if spoken.words:
        assert spoken.text[-1] in ".!?:,;"


@given(st.text("abcdefghij ", min_size=1, max_size=40))
def test_plain_words_stay_as_they_are(text: str) -> None:
    assert [w.spoken for w in speakable(text).words] == text.split()


@pytest.mark.slow
@pytest.mark.bench
def test_a_clause_takes_less_than_five_milliseconds() -> None:
    for written, _ in TABLE:
        speakable(written)
    begin = time.process_time()
    for written, _ in TABLE:
        speakable(written)
    assert (time.process_time() - begin) / len(TABLE) < 0.005
