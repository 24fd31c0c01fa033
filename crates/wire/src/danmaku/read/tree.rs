//! A JSON value as a whole, for comments whose fields lie within each other.

use crate::json::{Reader, Syntax, Value};

/// A JSON value. Numbers stay as they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::danmaku) enum Tree {
    /// `null`, `true` or `false`.
    Word,
    Number(String),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    /// Reads a whole text, and whether a half of a character stood in it.
    pub(in crate::danmaku) fn parse(text: &str) -> Result<(Self, bool), Syntax> {
        let mut reader = Reader::new(text.as_bytes())?;
        let mut broken = false;
        let tree = Self::read(&mut reader, &mut broken)?;
        reader.end()?;
        Ok((tree, broken))
    }

    fn read(reader: &mut Reader<'_>, broken: &mut bool) -> Result<Self, Syntax> {
        match reader.peek() {
            Some(b'[') => {
                let mut values = Vec::new();
                reader.array(|reader| {
                    values.push(Self::read(reader, broken)?);
                    Ok(())
                })?;
                Ok(Self::Array(values))
            }
            Some(b'{') => {
                let mut fields = Vec::new();
                reader.object(|name, reader| {
                    fields.push((name.text.into_owned(), Self::read(reader, broken)?));
                    Ok(())
                })?;
                Ok(Self::Object(fields))
            }
            _ => Ok(match reader.value()? {
                Value::Number(digits) => Self::Number(digits.to_owned()),
                Value::String(text) => {
                    *broken |= text.broken;
                    Self::Text(text.text.into_owned())
                }
                _ => Self::Word,
            }),
        }
    }

    /// A field of an object.
    pub(in crate::danmaku) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(fields) => {
                fields.iter().find(|(field, _)| field == name).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// A string, or a number as it is written.
    pub(in crate::danmaku) fn text(&self) -> Option<&str> {
        match self {
            Self::Number(text) | Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The text of a field.
    pub(in crate::danmaku) fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Self::text)
    }

    /// The values of an array; none of anything else.
    pub(in crate::danmaku) fn values(&self) -> &[Self] {
        match self {
            Self::Array(values) => values,
            _ => &[],
        }
    }

    /// The names of an object's fields; none of anything else.
    pub(in crate::danmaku) fn names(&self) -> impl Iterator<Item = &str> {
        let fields = match self {
            Self::Object(fields) => fields.as_slice(),
            _ => &[],
        };
        fields.iter().map(|(name, _)| name.as_str())
    }
}
