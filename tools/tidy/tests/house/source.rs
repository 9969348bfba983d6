//! A source file, split for the rules: its lines, the same lines with only the code, the comments or the literals left, the
//! lines that belong to tests, its functions, and the paths that its `use` items import.
//!
//! Not a parser: a scanner of comments, literals, words and brackets. It expects text that rustfmt accepts.

/// One file of the tree. Every `Vec` has one element a line; line numbers count from 1.
pub(crate) struct File {
    /// Relative to the workspace root, with `/`.
    pub(crate) path: String,
    pub(crate) lines: Vec<String>,
    /// The lines with comments and literals blanked (Rust only; other files: all blank).
    pub(crate) code: Vec<String>,
    /// The lines with all but the comments blanked (Rust only).
    pub(crate) comments: Vec<String>,
    /// The lines with all but the literals blanked (Rust only).
    pub(crate) literals: Vec<String>,
    /// Whether the line is compiled for tests alone.
    pub(crate) in_test: Vec<bool>,
    pub(crate) functions: Vec<Function>,
    pub(crate) imports: Vec<Import>,
    /// First and last line of each module with its body in the file.
    pub(crate) inline_modules: Vec<(usize, usize)>,
}

/// A function with a body or, in a trait, without one. `first` holds the word `fn`, `last` the closing brace.
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) signature: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// One path that a `use` item imports, braces multiplied out, and the lines of the item.
#[derive(Debug, PartialEq)]
pub(crate) struct Import {
    pub(crate) path: String,
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        let lines: Vec<String> = text.lines().map(String::from).collect();
        let is_rust = path.ends_with(".rs");
        let Pieces { code, comments, literals } = if is_rust { split(text) } else { Pieces::blank(text) };
        let owned = |text: &str| text.lines().map(String::from).collect();
        Self {
            path: path.into(),
            in_test: test_lines(path, &code, lines.len()),
            functions: functions(&code),
            imports: imports(&code),
            inline_modules: inline_modules(&code),
            code: owned(&code),
            comments: owned(&comments),
            literals: owned(&literals),
            lines,
        }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// The name of the crate's directory (`vfs`, `eras`), if the file lies in that crate's `src`.
    pub(crate) fn crate_of_src(&self) -> Option<&str> {
        let (dir, _) = self.path.split_once("/src/")?;
        dir.rsplit('/').next()
    }

    /// The file that holds a crate's inner attributes.
    pub(crate) fn is_crate_root(&self) -> bool {
        self.crate_of_src().is_some() && (self.path.ends_with("/src/lib.rs") || self.path.ends_with("/src/main.rs"))
    }

    /// Code with line numbers, tests included.
    pub(crate) fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code.iter().enumerate().map(|(i, line)| (i + 1, line.as_str()))
    }

    /// Whether a line has more than comments and space.
    pub(crate) fn has_code(&self, line: usize) -> bool {
        !self.code[line - 1].trim().is_empty() || !self.literals[line - 1].trim().is_empty()
    }

    /// Code with line numbers, tests left out.
    pub(crate) fn product_code(&self) -> impl Iterator<Item = (usize, &str)> {
        self.code().filter(|&(line, _)| !self.in_test[line - 1])
    }

    pub(crate) fn is_import(&self, line: usize) -> bool {
        self.imports.iter().any(|import| (import.first..=import.last).contains(&line))
    }

    /// Whether a comment holds `tag` on `line`, in the comment block above the statement that `line` is part of, or
    /// within `reach` lines above, but not on the far side of a function's end.
    pub(crate) fn is_tagged(&self, line: usize, tag: &str, reach: usize) -> bool {
        let floor = self.functions.iter().map(|f| f.last).filter(|&last| last < line).max().unwrap_or(0);
        let near = line.saturating_sub(reach).max(floor + 1);
        (near..=line).any(|l| self.comments[l - 1].contains(tag)) || self.comment_above(line).contains(tag)
    }

    /// The comments and attributes that stand directly above the statement or item that `line` is part of.
    pub(crate) fn comment_above(&self, line: usize) -> String {
        let is_code = |l: usize| !self.code[l - 1].trim().is_empty();
        let is_attribute = |l: usize| self.code[l - 1].trim_start().starts_with("#[");
        let ends_statement = |l: usize| self.code[l - 1].trim_end().ends_with([';', '{', '}', ',']);
        let mut first = line;
        while first > 1 && is_code(first - 1) && !is_attribute(first - 1) && !ends_statement(first - 1) {
            first -= 1;
        }
        let mut above = String::new();
        while first > 1 && (is_attribute(first - 1) || !self.comments[first - 2].trim().is_empty()) {
            first -= 1;
            if is_code(first) && !is_attribute(first) {
                break;
            }
            above.insert_str(0, &format!("{}\n", self.comments[first - 1]));
        }
        above
    }
}

/// The offsets at which `word` stands in `text` with no identifier character on either side. A `word` that does not
/// begin or end with one is not bounded on that side.
pub(crate) fn find_word(text: &str, word: &str) -> Vec<usize> {
    let bounded =
        |edge: Option<char>, outer: Option<char>| !(edge.is_some_and(is_ident) && outer.is_some_and(is_ident));
    text.match_indices(word)
        .filter(|(at, _)| bounded(word.chars().next(), text[..*at].chars().next_back()))
        .filter(|(at, _)| bounded(word.chars().next_back(), text[at + word.len()..].chars().next()))
        .map(|(at, _)| at)
        .collect()
}

pub(crate) fn has_word(text: &str, word: &str) -> bool {
    !find_word(text, word).is_empty()
}

/// The identifiers and keywords of a line.
pub(crate) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_ident(c)).filter(|word| !word.is_empty())
}

pub(crate) fn is_ident(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn blank(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect()
}

/// The line, from 1, that holds byte `at`.
fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

// ---------------------------------------------------------------------------------------- comments and literals

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Code,
    Comment,
    Literal,
}

/// The text three times, each time with one kind of it left and the rest blanked.
#[derive(Default)]
struct Pieces {
    code: String,
    comments: String,
    literals: String,
}

impl Pieces {
    fn blank(text: &str) -> Self {
        Self { code: blank(text), comments: blank(text), literals: blank(text) }
    }
}

fn split(text: &str) -> Pieces {
    let mut pieces = Pieces::default();
    let mut rest = text;
    while !rest.is_empty() {
        let before = &text[..text.len() - rest.len()];
        let (kind, len) = next_piece(before, rest);
        let (piece, after) = rest.split_at(len);
        let only = |wanted: Kind| if kind == wanted { piece.to_string() } else { blank(piece) };
        pieces.code.push_str(&only(Kind::Code));
        pieces.comments.push_str(&only(Kind::Comment));
        pieces.literals.push_str(&only(Kind::Literal));
        rest = after;
    }
    pieces
}

/// The kind and length in bytes of the piece that `rest` begins with.
fn next_piece(before: &str, rest: &str) -> (Kind, usize) {
    let first = rest.chars().next().map_or(1, char::len_utf8);
    if rest.starts_with("//") {
        return (Kind::Comment, rest.find('\n').unwrap_or(rest.len()));
    }
    if rest.starts_with("/*") {
        return (Kind::Comment, block_comment_len(rest));
    }
    if let Some(body) = rest.strip_prefix('"') {
        return (Kind::Literal, 1 + quoted_len(body, '"'));
    }
    let after_ident = before.chars().next_back().is_some_and(is_ident);
    if let Some(len) = raw_string_len(rest).filter(|_| !after_ident) {
        return (Kind::Literal, len);
    }
    if let Some(body) = rest.strip_prefix('\'') {
        let is_char = body.starts_with('\\') || body.chars().nth(1) == Some('\'');
        return if is_char { (Kind::Literal, 1 + quoted_len(body, '\'')) } else { (Kind::Code, 1) };
    }
    (Kind::Code, first)
}

fn block_comment_len(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        match &text.as_bytes()[at..text.len().min(at + 2)] {
            b"/*" => (depth, at) = (depth + 1, at + 2),
            b"*/" => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    text.len()
}

/// The length of a literal's body with the closing quote.
fn quoted_len(body: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in body.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + 1,
            _ => {}
        }
    }
    body.len()
}

fn raw_string_len(text: &str) -> Option<usize> {
    let start = ["r", "br", "cr"].iter().find_map(|prefix| {
        let after = text.strip_prefix(prefix)?;
        after.trim_start_matches('#').starts_with('"').then_some(prefix.len())
    })?;
    let hashes = text[start..].len() - text[start..].trim_start_matches('#').len();
    let body = start + hashes + 1;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()))
}

// -------------------------------------------------------------------------------------------------- structure

/// The offset of the bracket that closes the one at `open`, or of the text's last byte.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0usize;
    for (at, c) in code[open..].char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return open + at;
        }
    }
    code.len() - 1
}

/// Where the head of the item at `start` ends: at the `{` of its body, at its `;`, or where what encloses it ends.
fn head_end(code: &str, start: usize) -> usize {
    let mut at = start;
    while at < code.len() {
        match code.as_bytes()[at] {
            b'(' | b'[' => at = closing(code, at),
            b'{' if code[..at].trim_end().ends_with('<') => at = closing(code, at),
            b'{' | b'}' | b';' => return at,
            _ => {}
        }
        at += 1;
    }
    code.len()
}

fn item_end(code: &str, start: usize) -> usize {
    let head = head_end(code, start);
    if code[head..].starts_with('{') { closing(code, head) } else { head }
}

fn functions(code: &str) -> Vec<Function> {
    let mut found = Vec::new();
    for start in find_word(code, "fn") {
        let after = code[start + 2..].trim_start();
        let name: String = after.chars().take_while(|&c| is_ident(c) || c == '$' || c == '#').collect();
        if name.is_empty() {
            continue; // A function pointer's type.
        }
        found.push(Function {
            name,
            signature: code[start..head_end(code, start)].into(),
            first: line_of(code, start),
            last: line_of(code, item_end(code, start)),
        });
    }
    found
}

fn inline_modules(code: &str) -> Vec<(usize, usize)> {
    let has_body = |&start: &usize| code[head_end(code, start)..].starts_with('{');
    let span = |start| (line_of(code, start), line_of(code, item_end(code, start)));
    find_word(code, "mod").into_iter().filter(has_body).map(span).collect()
}

fn test_lines(path: &str, code: &str, count: usize) -> Vec<bool> {
    let is_test_file = ["/tests/", "/benches/"].iter().any(|dir| path.contains(dir)) || path.ends_with("/tests.rs");
    let mut in_test = vec![is_test_file; count];
    for (start, _) in code.match_indices("#[cfg(").chain(code.match_indices("#![cfg(")) {
        let open = start + code[start..].find('[').unwrap_or(0);
        let end = closing(code, open);
        if !is_test_condition(&code[open..end]) {
            continue;
        }
        let is_inner = code[start..].starts_with("#!");
        let last = if is_inner { count } else { line_of(code, item_end(code, after_attributes(code, end + 1))) };
        in_test[line_of(code, start) - 1..last.min(count)].fill(true);
    }
    in_test
}

/// `cfg(test)`, or `cfg(all(.., test, ..))`: conditions that no production build can meet.
fn is_test_condition(attribute: &str) -> bool {
    let flat: String = attribute.chars().filter(|c| !c.is_whitespace()).collect();
    let is_alone = flat == "[cfg(test)";
    let is_among_all = flat.starts_with("[cfg(all(") && !flat.contains("any(") && !flat.contains("not(test");
    is_alone || is_among_all && has_word(&flat, "test")
}

fn after_attributes(code: &str, start: usize) -> usize {
    let mut at = start;
    loop {
        at += code[at..].len() - code[at..].trim_start().len();
        if !code[at..].starts_with("#[") {
            return at;
        }
        at = closing(code, at + 1) + 1;
    }
}

fn imports(code: &str) -> Vec<Import> {
    let mut found = Vec::new();
    for start in find_word(code, "use") {
        let Some(len) = code[start..].find(';') else { continue };
        let is_capture = code[start + 3..].trim_start().starts_with('<'); // `impl Trait + use<'a>`
        if is_capture {
            continue;
        }
        let (first, last) = (line_of(code, start), line_of(code, start + len));
        let tree: String = code[start + 3..start + len].split_whitespace().collect::<Vec<_>>().join(" ");
        found.extend(flatten(&tree).into_iter().map(|path| Import { path, first, last }));
    }
    found
}

/// `a::{b, c::{d, e}}` as `a::b`, `a::c::d`, `a::c::e`.
fn flatten(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some(open) = tree.find('{') else {
        return if tree.is_empty() { Vec::new() } else { vec![tree.into()] };
    };
    let inner = &tree[open + 1..closing(tree, open)];
    let mut branches = vec![String::new()];
    let mut depth = 0usize;
    for c in inner.chars() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        match branches.last_mut() {
            Some(branch) if c != ',' || depth > 0 => branch.push(c),
            _ => branches.push(String::new()),
        }
    }
    let prefix = tree[..open].trim();
    branches.iter().flat_map(|branch| flatten(branch)).map(|branch| format!("{prefix}{branch}")).collect()
}

#[test]
fn comments_and_literals_are_not_code() {
    let check = |text: &str, code: &str, comments: &str| {
        let squeeze = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
        let got = split(text);
        assert_eq!((squeeze(&got.code).as_str(), squeeze(&got.comments).as_str()), (code, comments), "{text}");
        assert_eq!(got.code.lines().count(), text.lines().count(), "{text}");
    };
    check("a // b \" '\nc", "a c", "// b \" '");
    check("a /* b /* c */ d */ e", "a e", "/* b /* c */ d */");
    check(r#"f("// \" not", x) // yes"#, "f( , x)", "// yes");
    check(r##"f(r#"a " // b"#, r"\", br"{") // c"##, "f( , , )", "// c");
    check(r"m('{', '\'', '\\', b'}', '\u{7d}', 'é') + 'a: &'static T", "m( , , , b , , ) + 'a: &'static T", "");
    check("r#type.r \"x\"", "r#type.r", "");
    check("for \"a\nb\" x", "for x", "");
}

#[test]
fn functions_end_at_their_own_brace() {
    let spans = |text: &str| -> Vec<(String, usize, usize)> {
        File::new("x.rs", text).functions.iter().map(|f| (f.name.clone(), f.first, f.last)).collect()
    };
    assert_eq!(
        spans("fn a(x: fn(u8) -> [u8; 2]) {\n '}'; \"}\" // }\n}\nfn b() {}"),
        [("a".into(), 1, 3), ("b".into(), 4, 4)]
    );
    assert_eq!(
        spans("trait T {\n    fn a(&self);\n    fn b() -> A<{ 1 + 1 }> {\n    }\n}"),
        [("a".into(), 2, 2), ("b".into(), 3, 4)]
    );
}

#[test]
fn test_modules_are_told_from_production() {
    let check = |attribute: &str, expected: bool| {
        let text = format!("fn a() {{}}\n{attribute}\n#[allow(x)]\nmod tests {{\n    fn b() {{}}\n}}\nfn c() {{}}\n");
        let file = File::new("crates/vfs/src/x.rs", &text);
        assert_eq!(file.in_test, [false, expected, expected, expected, expected, expected, false], "{attribute}");
    };
    check("#[cfg(test)]", true);
    check("#[cfg(all(test, not(loom)))]", true);
    check("#[cfg(all(loom, test))]", true);
    check("#[cfg(not(test))]", false);
    check("#[cfg(all(not(test), loom))]", false);
    check("#[cfg(any(test, loom))]", false);
    check("#[cfg(loom)]", false);
    assert_eq!(File::new("crates/vfs/src/x.rs", "#[cfg(test)]\nmod tests;\nfn a() {}").in_test, [true, true, false]);
    assert_eq!(File::new("crates/vfs/src/x/tests.rs", "fn a() {}").in_test, [true]);
}

#[test]
fn imports_are_multiplied_out() {
    let paths = |text: &str| -> Vec<String> { imports(text).into_iter().map(|import| import.path).collect() };
    assert_eq!(paths("use a::{self, b::{c, d as e}, f::*};"), ["a::self", "a::b::c", "a::b::d as e", "a::f::*"]);
    assert_eq!(paths("pub use a;\nfn f() -> impl A + use<'a> {}"), ["a"]);
    assert_eq!(
        imports("x\nuse {\n a,\n b};"),
        [Import { path: "a".into(), first: 2, last: 4 }, Import { path: "b".into(), first: 2, last: 4 }]
    );
}
