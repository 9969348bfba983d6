//! The ratchet of words: how often the prose of comments, messages and documents uses phrases that make a reader stop.
//! The counts are committed in `words.txt`, for each package, and may only fall.
//!
//! Not counted: code, also in backticks and in fenced blocks; the table of bad phrases in the style guide; the literals of
//! this crate, which are examples.

use crate::source::File;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Where the counts are committed, relative to the workspace root.
pub(crate) const COUNTS: &str = "tools/tidy/words.txt";

/// How to lower the committed counts.
pub(crate) const LOWER: &str = "TIDY_LOWER=1 cargo test -p lightfoot-tidy";

/// Files whose tables quote what should not be written.
const STYLE_GUIDE: &str = "CONTRIBUTING.md";

/// How many occurrences a report lists for one phrase in one place.
const LISTED: usize = 20;

/// A phrase that is counted: its name in `words.txt`, what to write instead, and whether it begins at a word.
struct Phrase {
    name: &'static str,
    instead: &'static str,
    is_at: fn(&[Word], usize) -> bool,
}

const PHRASES: [Phrase; 11] = [
    Phrase { name: "who-subject", instead: "name the actor: the thread, the walk, the caller, the kernel", is_at: who },
    Phrase {
        name: "is-told",
        instead: "use a verb of the field: is notified, receives, gets, fails with",
        is_at: told,
    },
    Phrase { name: "is-no", instead: "write `is not a`", is_at: is_no },
    Phrase { name: "in-doubt", instead: "write `stale`", is_at: in_doubt },
    Phrase { name: "of-its-own", instead: "write `its own X`, or leave it out", is_at: of_its_own },
    Phrase { name: "what-subject", instead: "name the thing that does it", is_at: what },
    Phrase { name: "that-of", instead: "repeat the noun", is_at: that_of },
    Phrase { name: "goes", instead: "write what happens: is removed, is freed, ends", is_at: goes },
    Phrase { name: "the-same", instead: "write what it does", is_at: the_same },
    Phrase { name: "of-then", instead: "name the moment: at the lookup, before the call", is_at: of_then },
    Phrase { name: "asks", instead: "use a verb of the field: requests, has, receives, reports", is_at: asks },
];

/// After these words, `who` speaks of people.
const PEOPLE: &str =
    "people person reader readers everybody everyone somebody someone anyone user users developer developers";

/// Before these words, `who` is an object or the start of a question: "who the caller is".
const NOT_VERBS: &str = "the a an this that these those it they we you i he she and or to each";

/// A word of prose, in lower case and without punctuation; empty where a stretch of prose begins.
#[derive(Debug)]
struct Word {
    line: usize,
    text: String,
    is_capital: bool,
    /// Whether punctuation follows, so that no phrase goes on behind it.
    is_last: bool,
}

/// Name of the phrase and place, and the lines `path:line` on which it stands.
type Uses = BTreeMap<(&'static str, String), Vec<String>>;

/// Name of the phrase and place, and how often it stands there.
type Counts = BTreeMap<(String, String), usize>;

/// The result of a comparison with the committed counts.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// As committed.
    Same,
    /// Lower than committed, in some place: the text that should be committed instead.
    Lower(String),
    /// Higher than committed: the report.
    Higher(String),
}

/// Compares the prose of `files` with `committed`, the text of `words.txt`.
pub(crate) fn compare(files: &[File], committed: &str) -> Verdict {
    let uses = uses(files);
    let (head, limits) = parse(committed);
    let counts: Counts = uses.iter().map(|((name, place), at)| ((name.to_string(), place.clone()), at.len())).collect();
    let risen = risen(&uses, &limits);
    if !risen.is_empty() {
        return Verdict::Higher(risen);
    }
    if counts == limits { Verdict::Same } else { Verdict::Lower(head + &rows(&counts)) }
}

fn uses(files: &[File]) -> Uses {
    let mut uses = Uses::new();
    for file in files {
        let words = words_of(file);
        for phrase in &PHRASES {
            for at in (0..words.len()).filter(|&at| (phrase.is_at)(&words, at)) {
                let key = (phrase.name, place(&file.path));
                uses.entry(key).or_default().push(format!("{}:{}", file.path, words[at].line));
            }
        }
    }
    uses
}

/// The lines that report what rose above `limits`.
fn risen(uses: &Uses, limits: &Counts) -> String {
    let mut report = String::new();
    for phrase in &PHRASES {
        for ((_, place), at) in uses.iter().filter(|((name, _), _)| *name == phrase.name) {
            let limit = limits.get(&(phrase.name.to_string(), place.clone())).copied().unwrap_or(0);
            if at.len() > limit {
                let listed = at[..at.len().min(LISTED)].join("\n  ");
                let (name, instead, count) = (phrase.name, phrase.instead, at.len());
                let _ = writeln!(report, "{place}: {name} {count} times, the limit is {limit}; {instead}\n  {listed}");
            }
        }
    }
    report
}

/// The comment at the head of the committed counts, and the counts.
fn parse(committed: &str) -> (String, Counts) {
    let is_comment = |line: &&str| line.starts_with('#');
    let head = committed.lines().take_while(is_comment).map(|line| format!("{line}\n")).collect();
    let row = |line: &str| {
        let mut parts = line.split_whitespace().map(String::from);
        Some(((parts.next()?, parts.next()?), parts.next()?.parse().ok()?))
    };
    (head, committed.lines().filter(|line| !is_comment(line)).filter_map(row).collect())
}

fn rows(counts: &Counts) -> String {
    counts.iter().map(|((name, place), count)| format!("{name:<12} {place:<20} {count:>4}\n")).collect()
}

/// The package that a file belongs to, or else its top directory.
fn place(path: &str) -> String {
    let dirs: Vec<&str> = path.split('/').collect();
    match dirs.as_slice() {
        [street @ ("crates" | "lab" | "tools"), package, _, ..] => format!("{street}/{package}"),
        [dir, _, ..] => dir.to_string(),
        _ => ".".into(),
    }
}

// ------------------------------------------------------------------------------------------------------- phrases

/// The word `by` places after the one at `at`, if no punctuation lies between.
fn after(words: &[Word], at: usize, by: usize) -> Option<&str> {
    let is_joined = words[at..].iter().take(by).all(|word| !word.is_last);
    words.get(at + by).filter(|_| is_joined).map(|word| word.text.as_str())
}

fn before(words: &[Word], at: usize) -> &str {
    words[..at].last().filter(|word| !word.is_last).map_or("", |word| word.text.as_str())
}

fn is_among(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// `who holds it`, `whoever asks`: the subject of a clause, but `people who`.
fn who(words: &[Word], at: usize) -> bool {
    is_among("who whoever", &words[at].text)
        && !is_among(PEOPLE, before(words, at))
        && after(words, at, 1).is_some_and(|next| next.starts_with(char::is_alphabetic) && !is_among(NOT_VERBS, next))
}

fn told(words: &[Word], at: usize) -> bool {
    is_among("is are was were be been", &words[at].text) && after(words, at, 1) == Some("told")
}

/// `is no directory`, but `there is no directory` and `is no longer`.
fn is_no(words: &[Word], at: usize) -> bool {
    is_among("is are", &words[at].text)
        && before(words, at) != "there"
        && after(words, at, 1) == Some("no")
        && after(words, at, 2)
            .is_some_and(|what| what.starts_with(char::is_alphabetic) && !is_among("longer more less later", what))
}

fn in_doubt(words: &[Word], at: usize) -> bool {
    words[at].text == "in" && after(words, at, 1) == Some("doubt")
}

fn of_its_own(words: &[Word], at: usize) -> bool {
    words[at].text == "of"
        && after(words, at, 1).is_some_and(|whose| is_among("its their one's his", whose))
        && after(words, at, 2) == Some("own")
}

/// `What the thread holds is ...`: a clause as the subject of a sentence, but not the heading `What it is`.
fn what(words: &[Word], at: usize) -> bool {
    words[at].text == "what"
        && words[at].is_capital
        && !(after(words, at, 1) == Some("it") && after(words, at, 2) == Some("is"))
}

/// `the lock is that of the directory`, but `knows that of all ...` is rare enough.
fn that_of(words: &[Word], at: usize) -> bool {
    is_among("that those", &words[at].text) && after(words, at, 1) == Some("of")
}

fn goes(words: &[Word], at: usize) -> bool {
    is_among("goes gone went", &words[at].text)
}

/// At the beginning of a sentence. The cell of a table may be `the same`.
fn the_same(words: &[Word], at: usize) -> bool {
    words[at].text == "the" && words[at].is_capital && after(words, at, 1) == Some("same")
}

fn of_then(words: &[Word], at: usize) -> bool {
    is_among("of by until from since", &words[at].text)
        && after(words, at, 1).is_some_and(|when| is_among("then now", when))
}

fn asks(words: &[Word], at: usize) -> bool {
    is_among("asks asked knows believes doubts", &words[at].text)
}

// --------------------------------------------------------------------------------------------------------- prose

/// The words of a file's prose, in order, with an empty one before each stretch.
fn words_of(file: &File) -> Vec<Word> {
    let mut words = Vec::new();
    let has_examples = file.path.starts_with("tools/tidy/");
    let kinds = match file.path.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "rs" if has_examples => vec![file.comments.clone()],
        "rs" => vec![file.comments.clone(), file.literals.clone()],
        "md" => vec![document(file)],
        "toml" | "py" | "sh" => vec![hash_comments(file)],
        "c" | "h" => vec![File::new("c.rs", &file.lines.join("\n")).comments],
        _ if file.lines.first().is_some_and(|line| line.starts_with("#!")) => vec![hash_comments(file)],
        _ => Vec::new(),
    };
    for lines in kinds {
        for (i, line) in lines.iter().enumerate() {
            add_words(i + 1, line, &mut words);
        }
        add_words(lines.len(), "", &mut words);
    }
    words
}

/// The lines of a document outside fenced blocks and, in a style guide, outside tables.
fn document(file: &File) -> Vec<String> {
    let is_guide = STYLE_GUIDE == file.path;
    let mut is_fenced = false;
    let prose = file.lines.iter().map(|line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        let is_quoted = is_fenced || is_fence || is_guide && line.starts_with('|');
        if is_quoted { String::new() } else { line.clone() }
    });
    prose.collect()
}

/// What follows a `#` that begins a line or stands after a space.
fn hash_comments(file: &File) -> Vec<String> {
    let comment = |line: &String| {
        let is_comment = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
        let start = line.match_indices('#').map(|(at, _)| at).find(is_comment);
        start.map_or(String::new(), |at| line[at..].to_string())
    };
    file.lines.iter().map(comment).collect()
}

/// Adds the words of one line of prose. A blank line, a bullet and a cell's border end a stretch.
fn add_words(line: usize, text: &str, words: &mut Vec<Word>) {
    let stop = |words: &mut Vec<Word>| {
        if words.last().is_none_or(|word| !word.text.is_empty()) {
            words.push(Word { line, text: String::new(), is_capital: false, is_last: true });
        }
    };
    if text.trim().is_empty() {
        return stop(words);
    }
    for piece in without_code(text).split_whitespace() {
        let is_letter = |c: char| c.is_alphanumeric() || c == '_';
        let core = piece.trim_matches(|c| !is_letter(c));
        let is_comment_mark = ["//", "///", "//!", "#", "/*", "*/"].contains(&piece);
        if core.is_empty() && !is_comment_mark {
            stop(words);
        } else if !core.is_empty() {
            let is_last = piece.ends_with(['.', ',', ';', ':', '!', '?', ')']);
            let is_capital = core.starts_with(char::is_uppercase);
            words.push(Word { line, text: core.to_lowercase(), is_capital, is_last });
        }
    }
}

/// The line with each span in backticks replaced by one word that is part of no phrase.
fn without_code(line: &str) -> String {
    let pieces: Vec<&str> = line.split('`').collect();
    let has_open_span = pieces.len().is_multiple_of(2);
    let spans = pieces.iter().enumerate().map(|(i, piece)| {
        let is_code = i % 2 == 1 && !(has_open_span && i + 1 == pieces.len());
        if is_code { "_" } else { piece }
    });
    spans.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often the `N` phrases from the one at `first` stand in a file, in the order of [`PHRASES`].
    fn counts_from<const N: usize>(first: usize, path: &str, text: &str) -> [usize; N] {
        let uses = uses(&[File::new(path, text)]);
        std::array::from_fn(|i| uses.get(&(PHRASES[first + i].name, place(path))).map_or(0, Vec::len))
    }

    fn counts(path: &str, text: &str) -> [usize; 5] {
        counts_from(0, path, text)
    }

    #[test]
    fn phrases_of_the_second_ratchet_are_found() {
        let check = |text, expected: [usize; 6]| assert_eq!(counts_from(5, "docs/a.md", text), expected, "{text}");
        check("What the walk holds stays. So is what it has.\n", [1, 0, 0, 0, 0, 0]);
        check("# What it is\n\nThat of a lock, and those of names.\n", [0, 2, 0, 0, 0, 0]);
        check("An entry goes. The same for a name; the same again.\n", [0, 0, 1, 1, 0, 0]);
        check("The value of then, until now. The kernel knows and asked.\n", [0, 0, 0, 0, 2, 2]);
    }

    #[test]
    fn phrases_are_found_in_comments_messages_and_documents() {
        let check = |path, text, expected| assert_eq!(counts(path, text), expected, "{path}: {text}");
        check(
            "crates/vfs/src/a.rs",
            "//! Who holds it\n//! is told so; whoever\n//! waits is no\n//! lock.\n",
            [2, 1, 1, 0, 0],
        );
        check(
            "crates/vfs/src/a.rs",
            "f(); // an entry in\n     // doubt, of its own\ng(\"x are told\");\n",
            [0, 1, 0, 1, 1],
        );
        check("docs/a.md", "- one who asks\n- (in doubt)\n", [1, 0, 0, 1, 0]);
        check("tools/a", "#!/bin/sh\n# The disk is no mount.\necho is no mount # of their own\n", [0, 0, 1, 0, 1]);
        check("fuzz/Cargo.toml", "# is told\nx = \"is told\"\n", [0, 1, 0, 0, 0]);
        check("tools/a.c", "/* who is there */ int who;\n", [1, 0, 0, 0, 0]);
    }

    #[test]
    fn plain_english_code_and_quoted_examples_are_not_counted() {
        let check = |path, text| assert_eq!(counts(path, text), [0; 5], "{path}: {text}");
        check(
            "crates/vfs/src/a.rs",
            "// People who run it; there is no lock; it is no longer held; who the caller is.\nfn is_told() {}\n",
        );
        check("crates/vfs/src/a.rs", "// It is. Told so, in\nf();\n// doubt. `is no lock`\n");
        check("docs/a.md", "is\n\ntold\n```\nis told\n```\n| is | told |\n");
        check("CONTRIBUTING.md", "| it is told | it is notified |\n");
        check("tools/tidy/tests/house/a.rs", "const A: &str = \"is told\";\n");
    }

    #[test]
    fn a_count_that_rises_is_reported_and_one_that_falls_is_rewritten() {
        let file = |text: &str| File::new("crates/vfs/src/a.rs", text);
        let committed = "# Head.\nin-doubt crates/vfs 1\n";
        assert_eq!(compare(&[file("// in doubt\n")], committed), Verdict::Same);
        assert_eq!(compare(&[file("// sure\n")], committed), Verdict::Lower("# Head.\n".into()));
        let Verdict::Higher(report) = compare(&[file("// in doubt, in doubt\n")], committed) else {
            panic!("two are more than one");
        };
        assert!(report.starts_with("crates/vfs: in-doubt 2 times, the limit is 1; "), "{report}");
        assert!(report.contains("crates/vfs/src/a.rs:1"), "{report}");
    }
}
