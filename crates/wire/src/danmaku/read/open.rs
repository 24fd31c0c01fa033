//! Tells what a file is, unpacks it, and reads it.

use std::io::{self, BufRead, BufReader};

use flate2::bufread::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use super::{Entry, Limits, ReadError};
use crate::danmaku::{acfun, artplayer, dandanplay, dplayer, json, niconico, proto, xml};

/// The formats that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FileFormat {
    /// A list in XML, of players or recorders.
    Xml,
    /// A segment in protobuf.
    Protobuf,
    /// Our own JSON, one list.
    Json,
    /// Our own JSON, a comment a line.
    Ndjson,
    /// A list of DPlayer, of either interface.
    Dplayer,
    /// A list of artplayer-plugin-danmuku.
    Artplayer,
    /// A list of dandanplay's clients.
    Dandanplay,
    /// A packet of Niconico in XML.
    NiconicoXml,
    /// A list of Niconico in JSON.
    NiconicoJson,
    /// A list of AcFun.
    Acfun,
}

impl FileFormat {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Xml,
        Self::Protobuf,
        Self::Json,
        Self::Ndjson,
        Self::Dplayer,
        Self::Artplayer,
        Self::Dandanplay,
        Self::NiconicoXml,
        Self::NiconicoJson,
        Self::Acfun,
    ];

    /// Its name on the command line and in requests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Xml => "xml",
            Self::Protobuf => "protobuf",
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Dplayer => "dplayer",
            Self::Artplayer => "artplayer",
            Self::Dandanplay => "dandanplay",
            Self::NiconicoXml => "niconico-xml",
            Self::NiconicoJson => "niconico-json",
            Self::Acfun => "acfun",
        }
    }

    /// The format of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }
}

/// What a file is, by its first bytes (4 KiB are enough), unpacked. `None`
/// where it is nothing known.
pub fn sniff(head: &[u8]) -> Option<FileFormat> {
    let bytes = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
    let text = String::from_utf8_lossy(bytes);
    let has = |part: &str| text.contains(part);
    Some(match bytes.first()? {
        b'<' if has("<packet") => FileFormat::NiconicoXml,
        b'<' if has("<i>") || has("<i ") || has("<i/>") => FileFormat::Xml,
        b'{' | b'[' if has("\"progress_ms\"") => {
            let list = bytes[0] == b'[' || bytes[1..].trim_ascii_start().starts_with(b"\"items\"");
            if list { FileFormat::Json } else { FileFormat::Ndjson }
        }
        b'{' if has("\"items\"") => FileFormat::Json,
        b'{' | b'[' if has("\"chat\"") || has("\"vpos\"") || has("\"vposMs\"") => {
            FileFormat::NiconicoJson
        }
        b'{' | b'[' if has("\"cid\"") || (has("\"p\"") && has("\"m\"")) => FileFormat::Dandanplay,
        b'{' if has("\"comments\"") && has("\"count\"") => FileFormat::Dandanplay,
        b'[' if has("\"c\"") && has("\"m\"") => FileFormat::Acfun,
        b'{' if has("\"data\"") || has("\"danmaku\"") => FileFormat::Dplayer,
        b'[' if bytes[1..].trim_ascii_start().starts_with(b"[") => FileFormat::Dplayer,
        b'[' if has("\"text\"") && has("\"time\"") => FileFormat::Artplayer,
        // The keys of elements, of a state and of flags.
        _ if matches!(head.first(), Some(0x0A | 0x10 | 0x1A)) => FileFormat::Protobuf,
        _ => return None,
    })
}

/// `input` unpacked, where it is packed by gzip, zlib or raw deflate (as old
/// servers sent it). How large it becomes is for the caller to bound.
pub fn inflated<'a>(mut input: impl BufRead + 'a) -> io::Result<Box<dyn BufRead + 'a>> {
    let head = input.fill_buf()?;
    Ok(match *head {
        [0x1F, 0x8B, ..] => Box::new(BufReader::new(MultiGzDecoder::new(input))),
        // CINFO up to 7, method 8, and a sum that 31 divides.
        [first, second, ..]
            if first & 0x8F == 0x08 && u16::from_be_bytes([first, second]).is_multiple_of(31) =>
        {
            Box::new(BufReader::new(ZlibDecoder::new(input)))
        }
        // No file of a known format begins otherwise, unpacked.
        [] | [b'<' | b'{' | b'[' | 0xEF | b' ' | b'\n' | b'\r' | b'\t' | 0x10 | 0x1A, ..] => {
            Box::new(input)
        }
        [..] => Box::new(BufReader::new(DeflateDecoder::new(input))),
    })
}

/// Reads `input`, which is unpacked, as `format`.
pub fn open<'a>(
    format: FileFormat,
    input: impl BufRead + 'a,
    limits: Limits,
) -> Box<dyn Iterator<Item = Result<Entry, ReadError>> + 'a> {
    match format {
        FileFormat::Xml => Box::new(xml::read_list(input, limits)),
        FileFormat::Protobuf => Box::new(proto::read_segment(input, limits)),
        FileFormat::Json => Box::new(json::read_list(input, limits)),
        FileFormat::Ndjson => Box::new(json::read_lines(input, limits)),
        FileFormat::Dplayer => Box::new(dplayer::read_list(input, limits)),
        FileFormat::Artplayer => Box::new(artplayer::read_list(input, limits)),
        FileFormat::Dandanplay => Box::new(dandanplay::read_list(input, limits)),
        FileFormat::NiconicoXml => Box::new(niconico::read_packet(input, limits)),
        FileFormat::NiconicoJson => Box::new(niconico::read_list(input, limits)),
        FileFormat::Acfun => Box::new(acfun::read_list(input, limits)),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};

    use super::*;

    #[test]
    fn every_format_is_told_by_its_beginning() {
        for (head, format) in [
            ("\u{feff}\n<?xml version=\"1.0\" encoding=\"UTF-8\"?><i><d p=\"", FileFormat::Xml),
            ("<?xml version='1.0'?>\n<packet><chat", FileFormat::NiconicoXml),
            ("\n\u{1}", FileFormat::Protobuf),
            ("\u{10}\u{1}", FileFormat::Protobuf),
            ("{\"items\":[]}", FileFormat::Json),
            ("{ \"items\":[{\"id\":\"1\",\"progress_ms\":1", FileFormat::Json),
            ("{\"id\":\"1\",\"progress_ms\":1", FileFormat::Ndjson),
            ("{\"code\":0,\"data\":[[1,", FileFormat::Dplayer),
            ("{\"code\":0,\"version\":2,\"danmaku\":[", FileFormat::Dplayer),
            ("[[1.5,0,1,\"a\",\"b\"]]", FileFormat::Dplayer),
            ("[{\"text\":\"a\",\"time\":1}]", FileFormat::Artplayer),
            ("{\"count\":0,\"comments\":[]}", FileFormat::Dandanplay),
            ("{\"comments\":[{\"cid\":1,\"p\":\"\"", FileFormat::Dandanplay),
            ("[{\"chat\":{", FileFormat::NiconicoJson),
            ("{\"data\":{\"threads\":[{\"comments\":[{\"vposMs\":1", FileFormat::NiconicoJson),
            ("[[],[],[{\"c\":\"1,2\",\"m\":\"\"", FileFormat::Acfun),
        ] {
            assert_eq!(sniff(head.as_bytes()), Some(format), "{head}");
        }
        for unknown in ["", "hello", "<html>", "{}", "[]", "{\"a\":1}", "\u{1}"] {
            assert_eq!(sniff(unknown.as_bytes()), None, "{unknown}");
        }
    }

    #[test]
    fn a_list_of_nothing_is_a_file_of_every_format() {
        let put = |put: &dyn Fn(&mut Vec<u8>)| {
            let mut out = Vec::new();
            put(&mut out);
            out
        };
        for (format, file) in [
            (
                FileFormat::Xml,
                put(&|out| {
                    xml::put_head(out, &xml::Head::default());
                    xml::put_tail(out);
                }),
            ),
            (
                FileFormat::Json,
                put(&|out| {
                    json::put_head(out);
                    json::put_tail(out);
                }),
            ),
            (
                FileFormat::Dplayer,
                put(&|out| {
                    dplayer::put_head(out, dplayer::Version::V3);
                    dplayer::put_tail(out);
                }),
            ),
            (
                FileFormat::Artplayer,
                put(&|out| {
                    artplayer::put_head(out);
                    artplayer::put_tail(out);
                }),
            ),
            (
                FileFormat::Dandanplay,
                put(&|out| {
                    dandanplay::put_head(out, 0);
                    dandanplay::put_tail(out);
                }),
            ),
            (FileFormat::Protobuf, Vec::new()),
            (FileFormat::Ndjson, Vec::new()),
        ] {
            assert_eq!(open(format, &file[..], Limits::default()).count(), 0, "{}", format.name());
        }
    }

    #[test]
    fn names_lead_back_to_formats() {
        for format in FileFormat::ALL {
            assert_eq!(FileFormat::from_name(format.name()), Some(format));
        }
        assert_eq!(FileFormat::from_name("mp4"), None);
    }

    #[test]
    fn files_are_unpacked_however_they_are_packed() {
        let file = b"<i><d p=\"1,1,25,0,0,0,0,1\">packed</d></i>";
        let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
        let mut raw = DeflateEncoder::new(Vec::new(), Compression::default());
        gzip.write_all(file).unwrap();
        zlib.write_all(file).unwrap();
        raw.write_all(file).unwrap();
        let packed =
            [file.to_vec(), gzip.finish().unwrap(), zlib.finish().unwrap(), raw.finish().unwrap()];
        for bytes in packed {
            let mut unpacked = Vec::new();
            inflated(&bytes[..]).unwrap().read_to_end(&mut unpacked).unwrap();
            assert_eq!(unpacked, file);
        }
        let mut nothing = Vec::new();
        inflated(&b""[..]).unwrap().read_to_end(&mut nothing).unwrap();
        assert!(nothing.is_empty());
        let cut = inflated(&b"\x1f\x8b\x08"[..]).unwrap().read_to_end(&mut nothing);
        assert!(cut.is_err());
    }

    #[test]
    fn a_packed_file_that_is_broken_is_an_error_of_reading() {
        let input = inflated(&b"\x1f\x8b\x08nonsense"[..]).unwrap();
        let last = open(FileFormat::Xml, input, Limits::default()).last();
        assert!(matches!(last, Some(Err(ReadError::Io(_)))));
    }
}
