//! Colours as pages and commands write them.

/// Names that players and commands use, besides hex.
const NAMES: [(&str, u32); 31] = [
    ("white", 0xFFFFFF),
    ("red", 0xFF0000),
    ("pink", 0xFF8080),
    ("orange", 0xFFC000),
    ("yellow", 0xFFFF00),
    ("green", 0x00FF00),
    ("cyan", 0x00FFFF),
    ("blue", 0x0000FF),
    ("purple", 0xC000FF),
    ("black", 0x000000),
    ("white2", 0xCCCC99),
    ("niconicowhite", 0xCCCC99),
    ("red2", 0xCC0033),
    ("truered", 0xCC0033),
    ("pink2", 0xFF33CC),
    ("orange2", 0xFF6600),
    ("passionorange", 0xFF6600),
    ("yellow2", 0x999900),
    ("madyellow", 0x999900),
    ("green2", 0x00CC66),
    ("elementalgreen", 0x00CC66),
    ("cyan2", 0x00CCCC),
    ("blue2", 0x3399FF),
    ("marineblue", 0x3399FF),
    ("purple2", 0x6633CC),
    ("nobleviolet", 0x6633CC),
    ("black2", 0x666666),
    ("lime", 0x00FF00),
    ("aqua", 0x00FFFF),
    ("magenta", 0xFF00FF),
    ("gray", 0x808080),
];

/// Reads `#rgb`, `#rrggbb`, `#rrggbbaa` (without its opacity), `rgb(r,g,b)` or
/// a name, of either case.
pub fn parse_color(text: &str) -> Option<u32> {
    let text = text.trim();
    if let Some(hex) = text.strip_prefix('#') {
        return parse_hex(hex);
    }
    let lower = text.to_ascii_lowercase();
    if let Some(rest) = lower.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) {
        let mut parts = rest.split(',').map(|part| part.trim().parse::<u8>().ok());
        let mut part = || parts.next().flatten().map(u32::from);
        let color = (part()? << 16) | (part()? << 8) | part()?;
        return parts.next().is_none().then_some(color);
    }
    NAMES.iter().find(|(name, _)| *name == lower).map(|(_, color)| *color)
}

fn parse_hex(hex: &str) -> Option<u32> {
    if !hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let number = u32::from_str_radix(hex, 16).ok()?;
    match hex.len() {
        3 => {
            let digit = |shift: u32| (number >> shift & 0xF) * 0x11;
            Some((digit(8) << 16) | (digit(4) << 8) | digit(0))
        }
        6 => Some(number),
        8 => Some(number >> 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_read_in_every_way_that_pages_write_them() {
        for (text, color) in [
            ("#fff", 0xFFFFFF),
            ("#A0b", 0xAA00BB),
            ("#0000ff", 0xFF),
            ("#12345678", 0x0012_3456),
            (" RGB(1, 2,255) ", 0x0001_02FF),
            ("Red", 0xFF0000),
            ("niconicowhite", 0xCCCC99),
        ] {
            assert_eq!(parse_color(text), Some(color), "{text}");
        }
        for bad in [
            "",
            "#",
            "#ff",
            "#ffff",
            "#gggggg",
            "#+fffff",
            "rgb(1,2)",
            "rgb(1,2,256)",
            "rgb(1,2,3,4)",
            "x",
        ] {
            assert_eq!(parse_color(bad), None, "{bad}");
        }
    }
}
