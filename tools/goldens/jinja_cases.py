"""What the golden cases of the Jinja engine try: CONTEXT, EXPRESSIONS (one a line, each printed alone) and TEMPLATES."""

CONTEXT = {
    "name": "Ada",
    "empty": "",
    "text": "  Hello, World!\n",
    "accents": "Łódź é ß 日本 🎉",
    "lines": "one\ntwo\n\nthree\n",
    "csv": "a,b,,c",
    "html": "<b>\"x\" & 'y'</b>",
    "yes": True,
    "no": False,
    "nothing": None,
    "zero": 0,
    "seven": 7,
    "minus": -7,
    "big": 12345678901234567890,
    "half": 0.5,
    "third": 0.3333333333333333,
    "tiny": 1e-7,
    "huge": 1e22,
    "numbers": [3, 1, 2],
    "mixed": [1, "a", None, True, 2.5, [1, 2], {"k": "v"}],
    "words": ["pear", "Apple", "fig", "apple"],
    "none_list": [],
    "user": {"name": "Bob", "age": 41, "tags": ["x", "y"], "items": "shadow", "nested": {"deep": {"er": "!"}}},
    "empty_dict": {},
    "people": [
        {"name": "Zoe", "age": 30, "city": "Rome", "active": True},
        {"name": "adam", "age": 25, "city": "Oslo", "active": False},
        {"name": "Bea", "age": 30, "city": "Rome"},
    ],
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "<think>\nhm\n</think>\n\nHello"},
        {"role": "tool", "content": "{\"t\": 3}"},
    ],
}

EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2, -7 // 2, 7 // -2, -7 // -2
7 % 3, -7 % 3, 7 % -3, -7 % -3
7.5 // 2, -7.5 // 2, 7.5 % 2, -7.5 % 2, 7.5 % -2
-0.5 // 1, 0.0 // -1, 6.0 % 3.0, -6.0 % 3.0
2 ** 10, 2 ** -1, 2 ** 0.5, 2 ** 3 ** 2, -2 ** 2, (-8) ** 2
2 ** 100, 10 ** 30, -(2 ** 90)
0 ** 0, 0.0 ** 0, 1 ** -5
0 ** -1
1 / 3, 10 / 5, 4 / 2, 7 / 7.0
1 / 0
1 // 0
1 % 0
1.0 / 0
1.0 // 0
1e308 * 10, -1e308 * 10
10.0 ** 400
true + true, true * 3, -true, +true, not true
1 + 1.0, 1 - 1.0, 2 * 1.5
"a" + "b", "ab" * 3, 3 * "ab", "ab" * 0, "ab" * -1
"a" + 1
1 + "a"
"a" - "b"
[1] + [2], [1, 2] * 2, (1,) + (2, 3), 2 * (1,)
[1] + (2,)
{} + {}
none + 1
-"a"
+"a"
-none
"a" ~ 1 ~ none ~ true ~ 2.0 ~ [1, "b"] ~ missing
1 < 2 < 3, 1 < 2 > 3, 1 == 1 == 1, 3 > 2 >= 2
1 == 1.0, 1 == true, 0 == false, "1" == 1, none == none, none == false
missing == missing, missing == none, missing != other, missing == ""
[1, 2] == [1, 2], [1, 2] == (1, 2), {"a": 1} == {"a": 1.0}, {"a": 1} != {"a": 2}
{"a": 1, "b": 2} == {"b": 2, "a": 1}
"a" < "b", "a" < "B", "é" > "z", "ab" < "abc", [1, 2] < [1, 3], (1,) < (1, 0)
1 < "a"
none < 1
[1] < (1,)
{} < {}
missing < 1
1 > missing
true < 2, false <= 0.0, 1.5 > 1
12345678901234567890 > 1.2345678901234567e19, 9007199254740993 == 9007199254740992.0
"a" in "abc", "" in "abc", "d" in "abc", "a" not in "abc"
1 in "abc"
1 in [1, 2], "1" in [1, 2], 1.0 in [1], true in [1], [1] in [[1]], none in [none]
"name" in user, "zzz" in user, "zzz" not in user, 1 in {1: 2}, 1.0 in {1: 2}
[1] in user
2 in (1, 2), 2 in range(3), 3 in range(3)
"a" in missing, "a" not in missing
"a" in none
"a" in 5
1 in [1] == true
yes and no, yes or no, no or "x", "" or none, 0 and 1, "a" and "b", not yes, not not 1
no or no or "last", yes and "mid" and "end"
not 1 == 2, not (1 == 1) or true
"x" if yes else "y", "x" if no else "y", "x" if no, ("x" if no) is undefined
1 if no else 2 if no else 3, (1 if yes) + 1
("x" if no) + "y"
true, false, none, True, False, None
name, missing
missing.attr
missing["attr"]
missing()
missing + 1
missing * 2
-missing
missing | int
missing | list, missing | join(","), missing | length, missing | first, missing | string, missing | upper
missing | float
missing[0:1]
user.name, user["name"], user.age, user.tags[0], user.tags[-1], user.nested.deep.er, user["nested"]["deep"]["er"]
user.zzz, user["zzz"], user.tags[9], user.tags[-9], user.zzz is defined
user.zzz.yyy
user.items is callable, user["items"], user.items() | list | length
nothing.x, nothing["x"], nothing.x is undefined, seven.x, name.x, yes["x"], half.zzz is undefined
nothing.x.y
name[0], name[-1], name[1:], name[:2], name[::-1], name[::2], name[5], name[0:9], name[-2:], name[:-1], name[2:1]
accents[0], accents[1], accents[-1], accents[::-1], accents[2:6], accents[::3], accents | length
numbers[0], numbers[-1], numbers[::-1], numbers[1:], numbers[:1], numbers[-2:], numbers[::2], numbers[5:], numbers[::-2]
numbers[::0]
numbers["a"], numbers[1.0] is undefined, numbers[true], numbers[none] is undefined
numbers.0, numbers.2, numbers.9 is undefined, user.tags.0
numbers[1:"a"]
user[1:2]
nothing[1:2]
seven[0:1]
(1, 2, 3)[1], (1, 2, 3)[::-1], (1, 2, 3)[:2], ()
range(5)[1], range(5)[-1], range(5)[9] is undefined, range(5)[1:3], range(10)[::3] | list, range(5)[::-1]
range(3), range(1, 4), range(5, 0, -2), range(0), range(3) | list, range(5, 0, -1) | list, range(5) | length
range(1, 2, 0)
range(200000)
range("a")
range(1.5)
[], [1], [1, "a", 2.0, none, true], [[1], [2]], ["it's", 'say "x"', "both ' and \""]
(), (1,), (1, 2), ((1,), [2]), {}, {"a": 1}, {"a": {"b": [1]}}, {1: "x", none: "y", true: "z", 2.5: 1, (1, 2): 3}
{1: "a", 1.0: "b", true: "c"}
{[1]: 2}
{"a": 1, "a": 2}
["\n\t\r\\", "\x00\x1b\x7f", "é", "\u200b", "\u00a0", "🎉", "\u0301"]
"\n|\t|\\|\'|\"|\x41|\u00e9|\U0001F600|\101|\q|\0"
'single' "double" 'joined'
1_000, 0x1F, 0b101, 0o17, 1e3, 1.5e-3, 1E5, 0.1, 100.0, 1_0.5
1e15, 1e16, 123456789012345.0, 1234567890123456789.0, 1e-4, 1e-5, 0.0001, 0.00001, 1.0e100, 5e-324, -0.0
third, tiny, huge, half, big, big + 1, 0.1 + 0.2, 1e22 + 1, 2.0 * 3
mixed
people[0]
user
[1.0, 2.50, 1e50], {"f": 0.1}
[missing], {"a": missing}, (missing,)
name is defined, missing is defined, missing is undefined, missing is not defined, user.zzz is not defined
nothing is none, name is none, missing is none, nothing is not none
name is string, 1 is string, nothing is string, missing is string, (name | safe) is string
1 is number, 1.5 is number, true is number, "1" is number, 1 is integer, true is integer, 1.0 is integer, 1.0 is float
true is boolean, 1 is boolean, true is true, 1 is true, false is false, 0 is false, none is false, yes is sameas true
[] is iterable, "a" is iterable, {} is iterable, 1 is iterable, none is iterable, missing is iterable, range(2) is iterable
[] is sequence, "a" is sequence, {} is sequence, 1 is sequence, none is sequence, missing is sequence, () is sequence
range(2) is sequence, user.items() is sequence, (numbers | map("string")) is sequence, (numbers | reverse) is iterable
{} is mapping, [] is mapping, "a" is mapping, missing is mapping
range is callable, name is callable, user.get is callable, missing is callable, namespace is callable
3 is odd, 4 is even, 3 is even, -3 is odd, 9 is divisibleby 3, 9 is divisibleby(4), 2.0 is even
"a" is odd
"abc" is lower, "ABC" is upper, "aBc" is lower, "123" is lower, "É" is upper, "é" is lower
1 is eq 1, 1 is ne 2, 1 is lt 2, 2 is gt 1, 1 is le 1, 1 is ge 2, 1 is equalto 1, 1 is lessthan 0, 2 is greaterthan 1
1 is in [1, 2], "a" is in "abc", 3 is not in [1, 2], "x" is in user
"upper" is filter, "nope" is filter, "defined" is test, "nope" is test
1 is sameas 1, none is sameas none, [] is sameas []
"<" is escaped, ("<" | safe) is escaped
1 is nope
name is defined and name == "Ada" or missing
not name is defined, name is not string, not missing
1 is string or 2 is number
"x" if name is string else "y"
1 is defined is string
text | trim, text | trim | length, "xxaxx" | trim("x"), "  a" | trim, 5 | trim
name | upper, name | lower, "hello wORLD foo-bar (baz)" | title, "hELLO wORLD" | capitalize, 5 | upper, none | lower
"they're bill's-friends [from] {the} <UK>" | title, "hello" | title | lower
accents | upper, accents | lower, accents | title, accents | capitalize, "ǆ" | capitalize, "ΑΣ ΑΣΑ" | lower, "ﬁx" | upper
"aXbXc" | replace("X", "-"), "aXbXc" | replace("X", "-", 1), "abc" | replace("", "-"), 121 | replace(1, "x"), "aaa" | replace("a", "b", count=2)
"abc" | replace("b")
csv.split(","), csv.split(",", 1), csv.split(",", maxsplit=2), csv.rsplit(",", 1), " a  b c ".split(), " a  b c ".split(none, 1), " a  b c ".rsplit(none, 1)
"".split(), "".split(","), "abc".split("x"), "a\nb".split("\n")
"abc".split("")
"abc".split(1)
text.strip(), "xxaxx".strip("x"), "xyaxy".lstrip("xy"), "xyaxy".rstrip("xy"), "\n\na\n".strip("\n"), "  a ".lstrip(), " a  ".rstrip(), "a".strip(none)
"a".strip(1)
"\u2003a\u00a0\u3000".strip(), "\u200ba".strip() | length
name.startswith("A"), name.startswith("d"), name.endswith("a"), name.endswith(("x", "a")), name.startswith(("A", "B")), name.startswith("d", 1), "".startswith("")
name.startswith(1)
name.startswith()
name.upper(), name.lower(), "a b".title(), "they're".title(), "hELLO".capitalize(), "aBc".swapcase(), "ß".upper(), "İ".lower() | length
"abcabc".find("c"), "abc".find("z"), "abcabc".rfind("c"), "abcabc".index("b"), "abcabc".count("bc"), "abc".count(""), "日本日".find("日", 1), "abc".find("", 3), "abc".find("", 4)
"abc".index("z")
"abc".replace("b", "B"), "aaa".replace("a", "b", 2), "abc".replace("", "."), "abc".replace("", ".", 2)
",".join(["a", "b"]), "".join("abc"), ",".join(user), ", ".join([])
",".join([1])
"a{}b{}".format(1, "x"), "{1}{0}".format("a", "b"), "{x}-{y}".format(x=1, y=[2]), "{{}}".format(), "{0.name} {0[age]}".format(user), "{:>5}|{:<5}|{:^5}".format("a", "b", "c")
"{:05.1f}|{:+d}|{:x}|{:,}|{:.2%}|{:e}|{!r}|{:*^9}".format(3.14159, 5, 255, 1234567, 0.1234, 12345.678, "q", "mid")
"{:d}|{:5}|{:<5}|{:05}|{:b}|{:#x}|{:g}|{:.3}|{:.3g}".format(5, 42, 42, -42, 5, 255, 1e10, "abcdef", 1234.5)
"{}".format()
"{a}".format(1)
"{".format()
"{:z}".format("a")
"{0.__class__}".format("a")
"%s and %s" % ("a", 1), "%d%%" % 5, "%5.2f|%-5d|%05d|%x|%e|%r" % (3.14159, 42, 42, 255, 1234.5, "q"), "%s" % none, "%s" % [1], "%(a)s" % {"a": 1}, "%s" % user.tags
"%s %s" % "a"
"%d" % "a"
"%s" % (1, 2)
"%s %d" | format("a", 3), "%(x)s" | format(x=1), "%.3s|%5s|%-5s|" | format("abcdef", "ab", "cd"), "%+d % d" | format(3, 4), "%c" | default("c")
"abc".isalpha(), "ab1".isalnum(), "123".isdigit(), "1.5".isdigit(), " ".isspace(), "Ab".istitle(), "AB".isupper(), "ab".islower(), "".isalpha(), "é".isalpha(), "²".isdigit(), "½".isnumeric(), "١".isdecimal(), "abc".isascii(), "é".isascii()
"ab".center(6, "*"), "abc".center(6), "ab".ljust(4, "."), "ab".rjust(4), "42".zfill(5), "-42".zfill(5), "abc".center(2), "a" | center(5) | length
"abc".removeprefix("a"), "abc".removesuffix("c"), "abc".removeprefix("x"), "a-b-c".partition("-"), "a-b-c".rpartition("-"), "abc".partition("x"), "a\tb".expandtabs(4)
lines.splitlines(), lines.splitlines(true), "a\r\nb\rc".splitlines(), "".splitlines(), "a\u2028b".splitlines()
"abc".encode is callable, "abc".nope is undefined
"abc".nope()
numbers.append(4)
numbers.append is undefined, user.update is undefined, user.pop is undefined, numbers.index(2), numbers.count(3), (1, 2).index(2), numbers.copy()
user.update({"a": 1})
numbers.sort()
numbers.index(9)
user.get("name"), user.get("zzz"), user.get("zzz", "dflt"), user.get("age", 0)
user.get()
user.get([1])
user.keys(), user.keys() | list, empty_dict.values(), {"a": 1}.values(), {"a": 1}.items(), {"a": 1}.items() | list, user.keys() | length
"name" in user.keys(), ("a", 1) in {"a": 1}.items(), 1 in {"a": 1}.values()
{"a": 1}.items()[0] is undefined, {"a": 1}.keys() == {"a": 2}.keys(), {"a": 1}.copy()
name._private is undefined, name.__class__ is undefined, name.__class__
name.__class__.__mro__
numbers | length, user | length, name | length, accents | count, "" | length, none_list | length, {} | count
5 | length
none | length
numbers | first, numbers | last, none_list | first, none_list | last, name | first, name | last, user | first, range(3) | last, none_list | first is undefined
5 | first
numbers | join, numbers | join(", "), words | join("|"), people | join(", ", attribute="name"), name | join("-"), mixed | join(";"), user | join(","), (1, 2) | join(0)
5 | join
numbers | sort, numbers | sort(reverse=true), words | sort, words | sort(case_sensitive=true), numbers | sort(true), people | sort(attribute="name") | map(attribute="name") | list, people | sort(attribute="age,name") | map(attribute="name") | list, people | sort(attribute="age", reverse=true) | map(attribute="name") | list
mixed | sort
user | sort
words | unique | list, words | unique(case_sensitive=true) | list, [1, 1.0, true, 2] | unique | list, people | unique(attribute="age") | map(attribute="name") | list
[[1], [1]] | unique | list
numbers | min, numbers | max, words | min, words | max, none_list | max, people | max(attribute="age"), people | min(attribute="age") | string, ["b", "A"] | min(case_sensitive=true)
mixed | max
numbers | sum, numbers | sum(start=10), [0.1, 0.2] | sum, people | sum(attribute="age"), none_list | sum, [[1], [2]] | sum(start=[])
words | sum
numbers | reverse | list, name | reverse, (1, 2) | reverse | list, user | reverse | list | length
5 | reverse
name | list, user | list, numbers | list, (1, 2) | list, range(3) | list, none_list | list
5 | list
none | list
user | items | list | first, {"a": 1} | items | list, missing | items | list
numbers | items | list
{"b": 1, "A": 2, "c": 0} | dictsort, {"b": 1, "A": 2} | dictsort(true), {"b": 1, "A": 2} | dictsort(false, "value"), {"b": 1, "a": 2} | dictsort(reverse=true), {"b": 1, "A": 2} | dictsort(by="value")
{} | dictsort(by="nope")
numbers | map("string") | list, words | map("upper") | list, people | map(attribute="name") | join(","), people | map(attribute="active", default="?") | list, words | map("replace", "p", "q") | list, [[1, 2], [3]] | map("length") | list, [[1, 2], [3, 4]] | map(attribute=1) | list, people | map(attribute="zzz") | list, numbers | map("float") | list
numbers | map | list
numbers | map("nope") | list
words | map("default") | first, user | map("upper") | list
[{"a": {"b": [5, 6]}}] | map(attribute="a.b.1") | list
[1, 0, "", "a", none] | select | list, [1, 2, 3] | select("odd") | list, [1, 2, 3] | reject("odd") | list, [1, none, 2] | reject("none") | list, words | select("in", ["fig"]) | list, numbers | select("gt", 1) | list, numbers | select(">", 2) | list, ["a", 1] | select("string") | list
people | selectattr("active") | map(attribute="name") | list, people | selectattr("age", "equalto", 30) | map(attribute="name") | list, people | rejectattr("age", "gt", 26) | map(attribute="name") | list, people | selectattr("active", "defined") | list | length, people | rejectattr("active") | map(attribute="name") | list, people | selectattr("city", "in", ["Oslo"]) | map(attribute="name") | list
people | selectattr | list
numbers | select("nope") | list
numbers | select("odd") | length
(numbers | select("odd")) is true, "t" if numbers | select("gt", 99) else "f", numbers | select("gt", 99) | list
messages | selectattr("role", "equalto", "system") | list | length, (messages | selectattr("role", "eq", "user") | first).content
people | groupby("city") | map(attribute=0) | list, people | groupby("age") | list | length, people | groupby("active", default=false) | map("first") | list
numbers | batch(2) | list, numbers | batch(2, 0) | list, numbers | slice(2) | list, range(7) | batch(3) | list, range(7) | slice(3, "x") | list
5 | string, 5.0 | string, none | string, true | string, [1, "a"] | string, user.tags | string, missing | string
"5" | int, "5.9" | int, "x" | int, "x" | int(7), 5.9 | int, -5.9 | int, true | int, none | int, "0x1f" | int(base=16), "1f" | int(0, 16), "0b11" | int(0, 0), " 12 " | int, "1_000" | int, "1e3" | int, "" | int, [] | int, "-7" | int, "٣" | default("x")
"1.5" | float, "x" | float, "x" | float(2.5), 3 | float, "1e3" | float, "inf" | float, "nan" | float, none | float, true | float, " 2.5 " | float, "1_0.5" | float, "-0" | float, ".5" | float, "5." | float
1e400 | int
-5 | abs, 5.5 | abs, -5.5 | abs, true | abs, -0.0 | abs
"a" | abs
2.5 | round, 3.5 | round, -2.5 | round, 2.567 | round(2), 2.675 | round(2), 1234.5 | round(-2), 2.4 | round(method="ceil"), 2.6 | round(0, "floor"), 2.345 | round(2, "ceil"), 5 | round, 15 | round(-1), 25 | round(-1), 5 | round(2), 1e20 | round, 0.5 | round, 1.005 | round(2), -7.25 | round(1)
42 | round(method="nope")
"a" | round
name | default("x"), missing | default("x"), empty | default("x"), empty | default("x", true), nothing | default("x"), nothing | default("x", boolean=true), missing | d, missing | d("y"), user.zzz | default([]) | length, 0 | default(5, true)
missing.attr | default("x")
lines | indent, lines | indent(2), lines | indent(2, true), lines | indent(2, blank=true), lines | indent(">>"), "one" | indent(3, first=true), "" | indent, "\n" | indent(first=true)
5 | indent
html | e, html | escape, (html | safe), (html | safe) ~ "<", ("a" | safe) + "<", "<" + ("a" | safe), ("<" | e) | e, "<" | forceescape, ("x" | safe) * 2, ("a<" | safe).upper() + "<", [("a" | safe)]
("%s" | safe) % "<", ("," | safe).join(["<", "a"]), ("{}" | safe) | string
"hello world foo" | truncate(9), "hello world" | truncate(8, true), "hello" | truncate(5), "hello world foo bar" | truncate(12, false, "!"), "hello world" | truncate(5, true, "", 0)
"one two  three" | wordcount, "a" | attr("upper") is callable, user | attr("name") is undefined, "a-b_c d" | wordcount
user | tojson, mixed | tojson, name | tojson, none | tojson, true | tojson, 1.0 | tojson, html | tojson, accents | tojson, big | tojson, [] | tojson, {} | tojson, (1, 2) | tojson, ("x" | safe) | tojson
accents | tojson(ensure_ascii=true), user | tojson(indent=2), user | tojson(indent=2, sort_keys=true), [[], {}, [1]] | tojson(indent=4), user.tags | tojson(separators=(",", ":")), {"b": 1, "a": 2} | tojson(sort_keys=true), [1, {"a": 2}] | tojson(indent=0), [1] | tojson(indent="--"), [1, 2] | tojson(indent=1, separators=("; ", "="))
"\"\\/\b\f\n\r\t\x01\x1f\x7f\u2028" | tojson, {1: 2, none: 3, true: 4, 1.5: 5, "é": 6} | tojson, [1e22, 1e-7, 0.1, 1e16, -0.0, 100.0] | tojson, ("inf" | float) | tojson, ("nan" | float) | tojson
missing | tojson
range(2) | tojson
{(1, 2): 3} | tojson
numbers | map("string") | tojson
{"b": 1, 1: 2} | tojson(sort_keys=true)
[missing] | tojson
namespace(a=1).a, namespace({"b": 2}).b, namespace().zzz is undefined, namespace(a=1)["a"], namespace(a=1), namespace({"a": 1}, b=2).a
dict(a=1, b=2), dict({"a": 1}, b=2), dict([("x", 1)]), dict()
dict(1)
raise_exception("boom")
nope("x")
name()
5 | nope
[1, 2, 3] | first + 1
-numbers | first
-5 | abs
2 * 3 | string
"a" ~ 5 | string ~ "b", 1 + 2 | string | length
(1 + 2) | string, 1.5 | int + 2
user.name | upper ~ "!" if user else "none"
numbers | length - 1, (numbers | length) - 1, numbers | length > 2, numbers | length == 3 and true
messages[-1].role, messages[0]["role"] == "system", messages[1:][0].content, messages | length
messages[2].content.split("</think>")[-1].lstrip("\n"), messages[2].content.split("</think>")[0].rstrip("\n").split("<think>")[-1].lstrip("\n"), "</think>" in messages[2].content
joiner("|")() ~ "x", cycler(1, 2).next()
[1, 2,], (1, 2,), {"a": 1,}, range(3,)
[1 2]
(1
1 +
{"a" 1}
{"a": }
1 if
a b
@
"unclosed
name.
name[
name |
name is
name.1x
range(*[1, 4]) | list, dict(**{"a": 1}), range(*(3,)) | list
dict(a=1, a=2)
"x".join(*[["a", "b"]]), dict(**none)
"é" * 3, "日本" ~ "語", "日本"[::-1], "日本" | length, "日本" | reverse | list
caller, loop, varargs is defined
1 in 5
"abc" | map("upper") | join, "abc" | select("in", "ab") | list, "cab" | sort, "aab" | unique | list, "abc" | batch(2) | list
(true, false) | select | list, [true, 1, 1.0] | unique | list, {true: "a", 1: "b"}
"a" == "a" is true, 1 + 1 is eq 2, not 1 is eq 2
1 ~ 2 + 3 ~ 4, 1 + 2 ~ 3 * 4
[1,2,3][1:][0], "abc"[1:].upper(), {"a": [1,2]}["a"][1], (numbers | sort)[0], ("a,b" | string).split(",")[1]
5 .real is undefined or true
""" + "\n"

TEMPLATES = [
    # white space
    "a\n{% if true %}\nb\n{% endif %}\nc\n",
    "a\n  {% if true %}  \n  b\n  {% endif %}\nc\n\n",
    "a  {%- if true -%}  b  {%- endif -%}  c",
    "a\n\n{%- if true %}\n\nb{% endif -%}\n\n c",
    "  {%+ if true %}x{% endif %}",
    "{% if true +%}\nx{% endif %}\n",
    "a {{- 'b' -}} c\n{{ 'd' }}\n{{ 'e' }}",
    "  {{ 'x' }}\n  {{- 'y' }}",
    "a\n  {# comment #}\nb",
    "a {#- comment -#} b",
    "a\n{#+ c +#}\nb",
    "a {# multi\nline {{ x }} {% y %} #} b",
    "{##}x{#-#} y",
    "line\r\nnext\rlast\r\n",
    "x\n\n",
    "\n",
    "",
    "   {% set x = 1 %}   y",
    "text {% set x = 1 %}   \n  y",
    "\t{% if 1 %}\tz\t{% endif %}\n\tw",
    "{% if 1 %}a{% endif %}\n{% if 1 %}b{% endif %}\n",
    "a\u00a0{%- if 1 %}b{% endif %}",
    "a\u2003\n {% if 1 %}b{% endif %}",
    "{% raw %}{{ x }} {% y %} {# z #}{% endraw %}",
    "a\n  {% raw %}\n  {{ x }}\n  {% endraw %}\nb",
    "a {%- raw -%}  {{ x }}  {%- endraw -%} b",
    "{% raw +%} x {% endraw %}",
    "{% raw %}\n{% endraw +%}\nq",
    "{% raw %}never closed",
    "{# never closed",
    "{{ never closed",
    "{% if true %}never closed",
    "{{ '}}' }}{{ '%}' }}{{ \"{{\" }}",
    "{{ {'a': {'b': 1}} }}{{ {'a':{}}}}",
    "{ { x } } {x} %} }} #}",
    "{{ 1 }}{{ 2 }}{{3}}{{-4}}{{ -5 }}",
    "{{-5}}",
    "a{{+5}}b",
    "{{ 'multi \\\nline' }}",
    # if
    "{% if no %}a{% elif seven > 5 %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% else %}c{% endif %}",
    "{% if 1, 2 %}t{% endif %}{% if () %}f{% endif %}",
    "{% if missing %}a{% else %}b{% endif %}{% if not missing.x is defined %}{% endif %}",
    "{% if none_list %}a{% endif %}{% if numbers %}b{% endif %}{% if '' %}c{% endif %}{% if ' ' %}d{% endif %}",
    "{% if x = 1 %}{% endif %}",
    "{% if true: %}x{% endif %}",
    # set
    "{% set x = 1 %}{{ x }}{% set x = x + 1 %}{{ x }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set (c, d) = [3, 4] %}{{ c }}{{ d }}",
    "{% set a, b = 1, 2, 3 %}",
    "{% set a, b = 'xy' %}{{ b }}{{ a }}",
    "{% set a, b = 5 %}",
    "{% set (a, (b, c)) = (1, (2, 3)) %}{{ a }}{{ b }}{{ c }}",
    "{% set x = 1, %}{{ x }}",
    "{% set x %}block {{ name }}{% endset %}[{{ x }}]",
    "{% set x | upper | replace('A', '*') %}banana{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}",
    "{% set 1 = 2 %}",
    "{% set none = 2 %}",
    "{% set x.y = 2 %}",
    "{% set ns = namespace(a=1) %}{% set ns.a = ns.a + 1 %}{% set ns.b = 'new' %}{{ ns.a }}{{ ns.b }}",
    "{% set user.name = 'x' %}",
    "{% set ns = namespace() %}{% set ns.x, ns.y = 1, 2 %}{{ ns.x }}{{ ns.y }}",
    "{% set ns = namespace() %}{% set ns.me = ns %}{{ ns }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(3) %}{% set ns.x = ns.x + [i] %}{% endfor %}{{ ns.x }}",
    "{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }},{% endfor %}{{ x }}",
    "{% set x = 1 %}{% if true %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% for i in [1, 2] %}{% if i == 1 %}{% set y = i %}{% endif %}{{ y }},{% endfor %}",
    "{% for i in [1] %}{% set z = 5 %}{% endfor %}{{ z is defined }}",
    "{{ x is defined }}{% set x = 1 %}{{ x is defined }}",
    "{% if false %}{% set name = 'changed' %}{% endif %}{{ name }}",
    "{% set name = name ~ '!' %}{{ name }}",
    "{% for name in ['x'] %}{{ name }}{% endfor %}{{ name }}",
    # for
    "{% for x in numbers %}{{ x }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "{% for x in numbers %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in numbers %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in numbers %}{{ loop.previtem is defined }}{{ loop.nextitem is defined }} {% endfor %}",
    "{% for x in numbers %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x > 1) }} {% endfor %}",
    "{% for x in numbers %}{{ loop.depth }}{{ loop.depth0 }}{{ loop.zzz is defined }}{% endfor %}",
    "{% for x in [] %}a{% else %}empty{% endfor %}{% for x in [1] %}a{% else %}empty{% endfor %}",
    "{% for x in missing %}a{% else %}none{% endfor %}",
    "{% for x in none %}{% endfor %}",
    "{% for x in 5 %}{% endfor %}",
    "{% for k, v in user.items() %}{{ k }}={{ v }};{% endfor %}",
    "{% for k, v in user | items %}{{ k }};{% endfor %}",
    "{% for k in user %}{{ k }};{% endfor %}",
    "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }};{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% for (a, b), c in [[[1, 2], 3]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for c in 'héy' %}{{ c }}.{% endfor %}",
    "{% for x in range(10) if x % 3 == 0 %}{{ x }}:{{ loop.index }}/{{ loop.length }} {% endfor %}",
    "{% for x in numbers if x > 99 %}{{ x }}{% else %}nothing{% endfor %}",
    "{% for x in numbers if x > 1 %}{{ x }}{{ loop.last }}{{ loop.first }}{{ loop.previtem }}{{ loop.nextitem }};{% endfor %}",
    "{% for p in people if p.active %}{{ p.name }}{% endfor %}",
    "{% set ns = namespace(on=true) %}{% for x in range(5) if ns.on %}{{ x }}{% if x == 2 %}{% set ns.on = false %}{% endif %}{% endfor %}",
    "{% for x in numbers %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }};{% endfor %}",
    "{% for x in numbers %}{% set outer = loop %}{% for y in [1, 2] %}{{ outer.index }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in range(5) %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(3) %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% for x in range(2) %}{% break %}{% else %}never{% endfor %}",
    "{% break %}",
    "{% for x in [1, 2, 'a'] if x + 1 %}{% break %}{% endfor %}ok",
    "{% set ns = namespace() %}{% for x in [1, 2, 3, 'a'] if x + 1 %}{% set ns.l = loop %}{% break %}{% endfor %}{{ ns.l.index }}",
    "{% set ns = namespace() %}{% for x in [1, 2, 3] %}{% set ns.l = loop %}{% break %}{% endfor %}{{ ns.l.length }}",
    "{% for x in messages[::-1] %}{{ (messages | length - 1) - loop.index0 }}{{ x.role }} {% endfor %}",
    "{% for x in numbers | sort | reverse %}{{ x }}{% endfor %}",
    "{% for x in (1, 2) %}{{ x }}{% endfor %}{% for x in 1, 2 %}{{ x }}{% endfor %}",
    "{% for x in [1] recursive %}{{ x }}{% endfor %}",
    "{% for n in [{'v': 1, 'c': [{'v': 2, 'c': [{'v': 3}]}, {'v': 4}]}] recursive %}{{ n.v }}{{ loop.depth }}{% if n.c %}({{ loop(n.c) }}){% endif %}{% endfor %}",
    "{% for x in numbers %}{{ loop(numbers) }}{% endfor %}",
    "{{ loop.index }}",
    "{% for x in numbers %}{{ loop }}{{ loop | length }}{% endfor %}",
    "{% for x in numbers %}{{ x }}",
    "{% for x of numbers %}{% endfor %}",
    "{% for x in %}{% endfor %}",
    "{% for 1 in numbers %}{% endfor %}",
    "{% for x in numbers %}{% endif %}",
    "{% for x in [3, 4] %}{{ numbers[loop.index0] }}{{ loop.index0 - 1 }}{{ messages[loop.index0 - 1].role }};{% endfor %}",
    "{% for m in messages %}{% if loop.first or messages[loop.index0 - 1].role != 'tool' %}<{% endif %}{{ m.role }}{% if loop.last or loop.nextitem.role != 'tool' %}>{% endif %}{% endfor %}",
    "{% for x in numbers -%} {{ x }} {%- endfor %}",
    "{%- for x in numbers %}\n    {{- x }}\n{%- endfor %}\n",
    "{% set g = numbers | map('string') %}{% for x in g %}{{ x }}{% endfor %}{% for x in g %}{{ x }}{% endfor %}{{ g | list }}",
    "{% set g = numbers | select('odd') %}{{ g | first }}{{ g | first }}{{ g | first }}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{{ i is defined }}",
    # macros
    "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=5, a=4) }}{{ f() }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(b=2) }}",
    "{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, x=3) }}",
    "{% macro f(a=1, b) %}{% endmacro %}",
    "{% macro f() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ f() }}",
    "{% macro f() %}{% set q = 1 %}{{ q }}{% endmacro %}{{ f() }}{{ q is defined }}",
    "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}",
    "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}",
    "{% macro f() %}{{ loop.index }}{% endmacro %}{% for i in [1] %}{{ f() }}{% endfor %}",
    "{% macro f(x) %}  {{- x -}}  {% endmacro %}[{{ f('a') }}]",
    "{% macro f(x) %}\n{{ x }}\n{% endmacro %}\n[{{ f('a') }}]\n",
    "{{ f is defined }}{% macro f() %}{% endmacro %}{{ f is defined }}{{ f is callable }}{{ f.name }}{{ f }}",
    "{% macro f(x) %}<{{ caller() }}{{ x }}>{% endmacro %}{% call f(1) %}body {{ name }}{% endcall %}",
    "{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=9) f() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}",
    "{% macro f() %}x{% endmacro %}{% call f() %}{% endcall %}",
    "{% call 5 %}{% endcall %}",
    "{% set m = namespace() %}{% macro f(x) %}{{ x * 2 }}{% endmacro %}{% set m.f = f %}{{ m.f(4) }}",
    "{% macro render(v, d=0) %}{% if v is mapping %}{% for k, w in v.items() %}{{ '  ' * d }}{{ k }}:{{ render(w, d + 1) }}{% endfor %}{% elif v is iterable and v is not string %}{% for w in v %}{{ render(w, d) }},{% endfor %}{% else %}{{ v }};{% endif %}{% endmacro %}{{ render(user) }}",
    "{%- macro dump(param) -%}{{ param | tojson if param is mapping else param }}{%- endmacro -%}{{ dump({'a': 1}) }}{{ dump(2) }}",
    "{% set x = 'out' %}{% macro f(x) %}{{ x }}{% endmacro %}{{ f('in') }}{{ x }}{{ f() }}",
    # others
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% set a = 5 %}{% with a = a + 1 %}{{ a }}{% endwith %}{{ a }}",
    "{% with %}{% set q = 1 %}{{ q }}{% endwith %}{{ q is defined }}",
    "{% filter upper %}abc {{ name }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}",
    "{% generation %}abc{% endgeneration %}",
    "{% generation %}{% set q = 1 %}{{ q }}{% endgeneration %}{{ q is defined }}",
    "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% endgeneration %}{% endif %}{% endfor %}",
    "{% for i in [1, 2] %}\n{% generation %}\n{{ i }}\n{% endgeneration %}\n{% endfor %}\n",
    "{% print 1, 'a' %}",
    "{% nope %}",
    "{% endif %}",
    "{% if 1 %}{% endfor %}",
    "{% %}",
    "{{ }}",
    "{% set %}",
    "{% for %}",
    "{% macro %}{% endmacro %}",
    "{% do numbers.append(1) %}",
    "{{ raise_exception('line ' ~ 1) }}",
    "{% if messages[0].role != 'user' %}{{ raise_exception('no user') }}{% endif %}",
    "{{ numbers[0] if numbers else 'x' }}{{ (numbers | last) ~ (words | first) }}",
    "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    "{% set j = joiner(', ') %}{% for x in numbers %}{{ j() }}{{ x }}{% endfor %}",
    "{{ 'a' 'b' }}{{ 1.0 }}{{ [1, 2.0] }}{{ none }}{{ true }}",
    "{%- set sys = messages[0].content if messages[0].role == 'system' else '' -%}{{ sys }}",
    "{% set content = messages[2].content %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1].lstrip('\\n') %}{% endif %}{{ content }}",
    "{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}{%- endfor %}",
    "{{ messages | map(attribute='role') | join(' ') }}{{ messages | selectattr('role', 'in', ['user', 'tool']) | map(attribute='content') | list }}",
    "{% set loop_messages = messages[1:] if messages[0]['role'] == 'system' else messages %}{{ loop_messages | length }}",
    "{{- bos_token }}{% if (messages[0]['role'] == 'user') != (0 % 2 == 0) %}x{% endif %}",
    "{% if not date_string is defined %}{% set date_string = '26 Jul 2024' %}{% endif %}{{ date_string }}",
    "{% if tools is defined and tools is not none %}t{% else %}n{% endif %}",
    "{%- if custom_tools is defined %}{% set tools = custom_tools %}{% endif %}{%- if not tools is defined %}{%- set tools = none %}{% endif %}{{ tools }}",
    "{{ (messages | last)['role'] }}{{ messages[-1]['content'] | trim }}",
    "{% set ns = namespace(found=false) %}{% for m in messages %}{% if m['role'] == 'user' and not ns.found %}{{ m.content }}{% set ns.found = true %}{% endif %}{% endfor %}{{ ns.found }}",
    "{{ 'x' if user['nested'].get('deep', {}).get('er') is not none else 'y' }}",
    "{{ '<' ~ {'type': 'object', 'n': 1.5, 'l': [true, none]} | tojson(indent=4) ~ '>' }}",
    "{% for k, v in {'b': 1, 'a': {'z': []}} | dictsort %}{{ k }}={{ v }} {% endfor %}",
    "{{ name\n}}\n{{\n'a'\n~\n'b'\n}}",
    "{% set x = {\n  'a': 1,\n  'b': [1,\n 2]\n} %}{{ x.b }}",
    "{{ 1 }}{# a #}{{ 2 }}{# b -#}   {{ 3 }}",
]
