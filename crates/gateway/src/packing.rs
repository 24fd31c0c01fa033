//! How bodies of comments are compressed: whole, or piece by piece as they are
//! written.
//!
//! Always: the same bytes in the same pieces come to the same bytes.

use std::io::Write as _;

/// Of brotli, 0 to 11: about as fast as gzip, and smaller.
const BROTLI_QUALITY: u32 = 5;
/// Of gzip, 0 to 9.
const GZIP_LEVEL: u32 = 6;
/// Of zstd, 1 to 22.
const ZSTD_LEVEL: i32 = 6;

/// How bytes are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Packing {
    Identity,
    Gzip,
    Zstd,
    Brotli,
}

impl Packing {
    /// The name in `Content-Encoding`.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
            Self::Brotli => Some("br"),
        }
    }

    /// The one that `accepted` (a header `Accept-Encoding`) allows and that
    /// makes the fewest bytes.
    pub(crate) fn of(accepted: &str) -> Self {
        let allows = |name: &str| {
            accepted.split(',').any(|one| {
                let mut parts = one.split(';').map(str::trim);
                let named = parts.next().is_some_and(|own| own.eq_ignore_ascii_case(name));
                named && !parts.any(|q| matches!(q, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
            })
        };
        let best_first = [Self::Brotli, Self::Zstd, Self::Gzip];
        let allowed = |packing: &Self| packing.name().is_some_and(allows);
        best_first.into_iter().find(allowed).unwrap_or(Self::Identity)
    }

    /// What tells its tags from those of the others.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Identity => "",
            Self::Gzip => "-g",
            Self::Zstd => "-z",
            Self::Brotli => "-b",
        }
    }

    pub(crate) fn pack(self, bytes: &[u8]) -> Vec<u8> {
        Packer::new(self).end(bytes)
    }
}

/// Compresses as it goes.
pub(crate) enum Packer {
    Plain,
    Gzip(flate2::write::GzEncoder<Vec<u8>>),
    Zstd(Box<zstd::stream::write::Encoder<'static, Vec<u8>>>),
    Brotli(Box<brotli::CompressorWriter<Vec<u8>>>),
}

const WHOLE: &str = "a Vec takes all bytes";

impl Packer {
    pub(crate) fn new(packing: Packing) -> Self {
        match packing {
            Packing::Identity => Self::Plain,
            Packing::Gzip => Self::Gzip(flate2::write::GzEncoder::new(
                Vec::new(),
                flate2::Compression::new(GZIP_LEVEL),
            )),
            Packing::Zstd => Self::Zstd(Box::new(
                zstd::stream::write::Encoder::new(Vec::new(), ZSTD_LEVEL)
                    .expect("the level is one of its own"),
            )),
            Packing::Brotli => Self::Brotli(Box::new(brotli::CompressorWriter::new(
                Vec::new(),
                4096,
                BROTLI_QUALITY,
                22,
            ))),
        }
    }

    /// Takes bytes; gives those that are ready.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip(encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                std::mem::take(encoder.get_mut())
            }
            Self::Zstd(encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                std::mem::take(encoder.get_mut())
            }
            Self::Brotli(encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                std::mem::take(encoder.get_mut())
            }
        }
    }

    /// Takes the last bytes; gives all that is left.
    pub(crate) fn end(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Gzip(mut encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                encoder.finish().expect(WHOLE)
            }
            Self::Zstd(mut encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                encoder.finish().expect(WHOLE)
            }
            Self::Brotli(mut encoder) => {
                encoder.write_all(bytes).expect(WHOLE);
                encoder.into_inner()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_smallest_encoding_that_is_accepted_is_taken() {
        for (accepted, packing) in [
            ("", Packing::Identity),
            ("gzip", Packing::Gzip),
            ("gzip, deflate, br, zstd", Packing::Brotli),
            ("gzip, zstd", Packing::Zstd),
            ("br;q=0, GZIP;q=0.5", Packing::Gzip),
            ("gzip;q=0", Packing::Identity),
            ("brx", Packing::Identity),
        ] {
            assert_eq!(Packing::of(accepted), packing, "{accepted}");
        }
    }

    #[test]
    fn what_is_packed_in_pieces_unpacks_to_the_whole() {
        let bytes = b"many comments, many comments, many comments ".repeat(200);
        for packing in [Packing::Identity, Packing::Gzip, Packing::Zstd, Packing::Brotli] {
            let mut packer = Packer::new(packing);
            let mut packed = Vec::new();
            let (first, last) = bytes.split_at(5_000);
            for piece in first.chunks(1_000) {
                packed.extend(packer.take(piece));
            }
            packed.extend(packer.end(last));
            for packed in [packed, packing.pack(&bytes)] {
                let mut out = Vec::new();
                match packing {
                    Packing::Identity => out.clone_from(&packed),
                    Packing::Gzip => {
                        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut out).unwrap();
                    }
                    Packing::Zstd => out = zstd::stream::decode_all(&*packed).unwrap(),
                    Packing::Brotli => {
                        brotli::Decompressor::new(&*packed, 4096).read_to_end(&mut out).unwrap();
                    }
                }
                assert_eq!(out, bytes, "{packing:?}");
            }
        }
    }
}
