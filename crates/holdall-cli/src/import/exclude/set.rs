//! Sets of characters in patterns: `[a-z]`, `[!a-z]`, `[[:digit:]_]`.
//!
//! Owns: [`Set`]. Inside a set `\` takes the meaning from the next character, and `]` stands for itself
//! as the first one. What has no meaning that everybody would expect is refused: a class that is
//! not known or stands outside of a set, a range that ends at a class, a slash.

use super::SLASH;

/// Which characters a set stands for.
pub struct Set {
    items: Vec<Item>,
    /// All others instead.
    others: bool,
}

type Class = fn(char) -> bool;

enum Item {
    Range(u32, u32),
    Class(Class),
}

/// The classes of POSIX, letters those of Unicode.
const CLASSES: [(&str, Class); 12] = [
    ("alnum", char::is_alphanumeric),
    ("alpha", char::is_alphabetic),
    ("blank", |c| c == ' ' || c == '\t'),
    ("cntrl", char::is_control),
    ("digit", |c| c.is_ascii_digit()),
    ("graph", |c| !c.is_control() && !c.is_whitespace()),
    ("lower", char::is_lowercase),
    ("print", |c| !c.is_control()),
    ("punct", |c| c.is_ascii_punctuation()),
    ("space", char::is_whitespace),
    ("upper", char::is_uppercase),
    ("xdigit", |c| c.is_ascii_hexdigit()),
];

const OPEN: &str = "its [ has no ]";
const CLASS: &str = "a class is written [[:digit:]], and one of alnum, alpha, blank, cntrl, digit, graph, \
                     lower, print, punct, space, upper, xdigit";

fn is(unit: u32, c: u8) -> bool {
    unit == u32::from(c)
}

impl Set {
    /// Reads the set that begins behind a `[`; gives what follows it too.
    pub fn parse(text: &[u32]) -> Result<(Self, &[u32]), &'static str> {
        let (others, mut rest) = match text.split_first() {
            Some((&first, rest)) if is(first, b'!') || is(first, b'^') => (true, rest),
            _ => (false, text),
        };
        let start = rest;
        let mut items = Vec::new();
        loop {
            if let [first, after @ ..] = rest
                && is(*first, b']')
                && !items.is_empty()
            {
                let inside = start.get(..start.len() - rest.len()).unwrap_or_default();
                // `[:digit:]` is what others take for a class.
                if let [one, .., last] = inside
                    && inside.len() > 2
                    && is(*one, b':')
                    && is(*last, b':')
                {
                    return Err(CLASS);
                }
                return Ok((Self { items, others }, after));
            }
            let (item, after) = item(rest)?;
            rest = after;
            items.push(item);
        }
    }

    /// Whether it stands for a character, or a byte that belongs to none.
    pub fn has(&self, unit: u32) -> bool {
        let found = self.items.iter().any(|item| match item {
            Item::Range(first, last) => (*first..=*last).contains(&unit),
            Item::Class(class) => char::from_u32(unit).is_some_and(class),
        });
        unit != SLASH && found != self.others
    }
}

fn item(text: &[u32]) -> Result<(Item, &[u32]), &'static str> {
    if let [open, kind, ..] = text
        && is(*open, b'[')
        && [b':', b'.', b'='].iter().any(|c| is(*kind, *c))
    {
        return class(text);
    }
    let (first, rest) = character(text)?;
    match rest {
        [dash, next, ..] if is(*dash, b'-') && !is(*next, b']') => {
            let after = rest.get(1..).unwrap_or_default();
            if let [open, kind, ..] = after
                && is(*open, b'[')
                && [b':', b'.', b'='].iter().any(|c| is(*kind, *c))
            {
                return Err("a range of its [ ] ends at a class");
            }
            let (last, after) = character(after)?;
            if last < first {
                return Err("a range of its [ ] goes backwards");
            }
            Ok((Item::Range(first, last), after))
        }
        _ => Ok((Item::Range(first, first), rest)),
    }
}

/// One character of a set, behind a `\` or not.
fn character(text: &[u32]) -> Result<(u32, &[u32]), &'static str> {
    let (&unit, after) = text.split_first().ok_or(OPEN)?;
    let (unit, after) = match after.split_first() {
        Some((&next, after)) if is(unit, b'\\') => (next, after),
        None if is(unit, b'\\') => return Err(OPEN),
        _ => (unit, after),
    };
    if unit == SLASH {
        return Err("its [ ] holds a slash, which no name has");
    }
    Ok((unit, after))
}

fn class(text: &[u32]) -> Result<(Item, &[u32]), &'static str> {
    let inside = text.get(2..).unwrap_or_default();
    let end = inside.windows(2).position(|pair| pair == [u32::from(b':'), u32::from(b']')]);
    let end = end.ok_or(CLASS)?;
    let name: String =
        inside.get(..end).unwrap_or_default().iter().filter_map(|c| char::from_u32(*c)).collect();
    let is_class = text.get(1).is_some_and(|kind| is(*kind, b':'));
    let found = CLASSES.iter().find(|(known, _)| is_class && *known == name);
    let (_, class) = found.ok_or(CLASS)?;
    let after = inside.get(end + 2..).unwrap_or_default();
    if let [dash, next, ..] = after
        && is(*dash, b'-')
        && !is(*next, b']')
    {
        return Err("a range of its [ ] begins at a class");
    }
    Ok((Item::Class(*class), after))
}
