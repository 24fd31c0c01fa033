//! Comments as subtitles (ASS), for players of files.
//!
//! A subtitle has a place on the screen, so comments have to be put in the
//! order of their times, by one [`Script`] that remembers which rows are free;
//! bytes in the middle cannot be exchanged. A comment that finds no free row
//! is drawn over the oldest. Lines end in CR LF behind a byte order mark, as
//! players of this format expect.
//!
//! Scripts and BAS are left out; of positioned comments place, straight
//! movement, opacity and rotation are kept, paths are not.

mod rows;
mod tags;

use std::io::Write as _;

use unicode_width::UnicodeWidthChar as _;

use self::rows::Rows;
use super::{Item, Mode, clean, positioned};
use crate::json::push_str;

/// How the screen is used.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// Width of the screen, in pixels, 100 to 10,000. Default 1920.
    pub width: u32,
    /// Height of the screen, in pixels, 100 to 10,000. Default 1080.
    pub height: u32,
    /// The name of a font. Default `sans-serif`.
    pub font: String,
    /// How long a comment takes to cross the screen, in ms. Default 5,000.
    pub scroll_ms: u32,
    /// How long a comment stands still, in ms. Default 5,000.
    pub still_ms: u32,
    /// 0 to 1, where 1 lets nothing through. Default 1.
    pub opacity: f32,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            width: 1920,
            height: 1080,
            font: "sans-serif".to_owned(),
            scroll_ms: 5_000,
            still_ms: 5_000,
            opacity: 1.0,
        }
    }
}

/// A file of subtitles that is being written.
#[derive(Clone, Debug)]
pub struct Script {
    options: Options,
    forwards: Rows,
    backwards: Rows,
    top: Rows,
    bottom: Rows,
}

impl Script {
    /// With all rows free.
    pub fn new(options: Options) -> Self {
        let width = options.width.clamp(100, 10_000);
        let height = options.height.clamp(100, 10_000);
        let options = Options { width, height, ..options };
        let count = (height / letter(&options, Item::SIZE)).max(1) as usize;
        let moving = Rows::moving(count, width, options.scroll_ms);
        let still = Rows::still(count, options.still_ms);
        Self {
            forwards: moving.clone(),
            backwards: moving,
            top: still.clone(),
            bottom: still,
            options,
        }
    }

    /// Begins a file.
    pub fn put_head(&self, out: &mut Vec<u8>) {
        let Options { width, height, font, opacity, .. } = &self.options;
        let font: String = font.chars().filter(|c| !c.is_control() && *c != ',').collect();
        let size = letter(&self.options, Item::SIZE);
        let alpha = tags::alpha(*opacity);
        let lines = format!(
            "[Script Info]\nScriptType: v4.00+\nPlayResX: {width}\nPlayResY: {height}\n\
             WrapStyle: 2\nScaledBorderAndShadow: yes\n\n[V4+ Styles]\n\
             Format: Name, Fontname, Fontsize, PrimaryColour, SecondaryColour, OutlineColour, \
             BackColour, Bold, Italic, Underline, StrikeOut, ScaleX, ScaleY, Spacing, Angle, \
             BorderStyle, Outline, Shadow, Alignment, MarginL, MarginR, MarginV, Encoding\n\
             Style: Danmaku,{font},{size},&H{alpha:02X}FFFFFF,&H{alpha:02X}FFFFFF,\
             &H{alpha:02X}000000,&H{alpha:02X}000000,0,0,0,0,100,100,0,0,1,2,0,7,0,0,0,0\n\n\
             [Events]\n\
             Format: Layer, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text\n"
        );
        push_str(out, "\u{feff}");
        push_str(out, &lines.replace('\n', "\r\n"));
    }

    /// Adds one comment, or nothing and `false` where a subtitle cannot show
    /// it.
    pub fn put_item(&mut self, out: &mut Vec<u8>, item: &Item<'_>) -> bool {
        let cleaned = clean(&item.text);
        if item.mode == Mode::Positioned {
            return match positioned::parse(&cleaned) {
                Some(positioned) => self.put_positioned(out, item, &positioned),
                None => false,
            };
        }
        let lines = tags::lines(&cleaned);
        let size = letter(&self.options, item.size);
        let (width, height) = extent(&lines, size);
        let row = self.height_of_row();
        let rows = height.div_ceil(row).max(1) as usize;
        let Options { width: screen, height: screen_height, scroll_ms, still_ms, .. } =
            self.options;
        let at = item.progress_ms;
        let (life, place) = match item.mode {
            Mode::Scroll => {
                let y = self.forwards.take(at, width, rows) * row;
                (scroll_ms, format!("\\move({screen},{y},{},{y})", -i64::from(width)))
            }
            Mode::Reverse => {
                let y = self.backwards.take(at, width, rows) * row;
                (scroll_ms, format!("\\move({},{y},{screen},{y})", -i64::from(width)))
            }
            Mode::Top => {
                let y = self.top.take(at, width, rows) * row;
                (still_ms, format!("\\an8\\pos({},{y})", screen / 2))
            }
            Mode::Bottom => {
                let y =
                    screen_height - (self.bottom.take(at, width, rows) * row).min(screen_height);
                (still_ms, format!("\\an2\\pos({},{y})", screen / 2))
            }
            Mode::Positioned | Mode::Script | Mode::Bas => return false,
        };
        self.begin_line(out, 2, at, life);
        push_str(out, &place);
        if item.size != Item::SIZE {
            write!(out, "\\fs{size}").expect(WRITTEN);
        }
        tags::put_color(out, item.color);
        out.push(b'}');
        tags::put_lines(out, &lines);
        true
    }

    fn put_positioned(
        &self,
        out: &mut Vec<u8>,
        item: &Item<'_>,
        positioned: &positioned::Positioned<'_>,
    ) -> bool {
        let stage = (self.options.width, self.options.height);
        self.begin_line(out, 3, item.progress_ms, positioned.life_ms);
        tags::put_positioned(out, positioned, stage, item.size);
        tags::put_color(out, item.color);
        out.push(b'}');
        tags::put_lines(out, &tags::lines(&positioned.text));
        true
    }

    /// A line up to the opening brace of its tags.
    fn begin_line(&self, out: &mut Vec<u8>, layer: u8, from_ms: u32, life_ms: u32) {
        write!(out, "Dialogue: {layer},").expect(WRITTEN);
        tags::put_time(out, from_ms.into());
        out.push(b',');
        tags::put_time(out, u64::from(from_ms) + u64::from(life_ms));
        push_str(out, ",Danmaku,,0,0,0,,{");
    }

    fn height_of_row(&self) -> u32 {
        letter(&self.options, Item::SIZE)
    }
}

const WRITTEN: &str = "a Vec takes all bytes";

/// Pixels of a letter: 25 is a 22nd of the height.
fn letter(options: &Options, size: u8) -> u32 {
    (u32::from(size.max(1)) * options.height * 2 / 1125).max(1)
}

/// Width and height of lines whose letters have `size` pixels.
fn extent(lines: &[&str], size: u32) -> (u32, u32) {
    let width = |line: &&str| line.chars().map(|c| c.width().unwrap_or(0)).sum::<usize>();
    let halves = lines.iter().map(width).max().unwrap_or(0);
    let bounded = |n: usize| u32::try_from(n).unwrap_or(u32::MAX).min(1_000_000);
    (bounded(halves) * size / 2, bounded(lines.len()).saturating_mul(size).max(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::danmaku::samples::{an_item, positioned};

    fn shown(items: &[Item<'_>]) -> Vec<String> {
        let mut script = Script::new(Options::default());
        let mut out = Vec::new();
        items.iter().for_each(|item| {
            script.put_item(&mut out, item);
        });
        String::from_utf8(out).unwrap().split_terminator("\r\n").map(str::to_owned).collect()
    }

    fn item(progress_ms: u32, mode: Mode, text: &'static str) -> Item<'static> {
        Item { progress_ms, mode, text: text.into(), ..Item::default() }
    }

    #[test]
    fn a_file_begins_with_a_mark_and_has_crlf_everywhere() {
        let mut out = Vec::new();
        let options = Options { font: "a,b\nc".into(), opacity: 0.8, ..Options::default() };
        Script::new(options).put_head(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with("\u{feff}[Script Info]\r\nScriptType: v4.00+\r\nPlayResX: 1920\r\n")
        );
        assert!(text.contains("\r\nStyle: Danmaku,abc,48,&H33FFFFFF,"));
        assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
    }

    #[test]
    fn each_mode_has_its_movement() {
        let lines = shown(&[
            item(359_999, Mode::Scroll, "ab"),
            item(359_999, Mode::Reverse, "哈"),
            item(0, Mode::Top, "t"),
            Item { color: 0x0012_34AB, size: 50, ..item(0, Mode::Bottom, "b") },
        ]);
        assert_eq!(
            lines,
            [
                "Dialogue: 2,0:05:59.99,0:06:04.99,Danmaku,,0,0,0,,{\\move(1920,0,-48,0)}ab",
                "Dialogue: 2,0:05:59.99,0:06:04.99,Danmaku,,0,0,0,,{\\move(-48,0,1920,0)}哈",
                "Dialogue: 2,0:00:00.00,0:00:05.00,Danmaku,,0,0,0,,{\\an8\\pos(960,0)}t",
                "Dialogue: 2,0:00:00.00,0:00:05.00,Danmaku,,0,0,0,,{\\an2\\pos(960,1080)\\fs96\\c&HAB3412&}b",
            ]
        );
    }

    #[test]
    fn comments_of_one_moment_stand_below_each_other() {
        let rows = |mode| -> Vec<String> {
            let lines = shown(&[item(0, mode, "a"), item(0, mode, "b"), item(5_000, mode, "c")]);
            lines.iter().map(|line| line.split(',').nth(10).unwrap().to_owned()).collect()
        };
        assert_eq!(rows(Mode::Scroll), ["0", "48", "0"]);
        assert_eq!(rows(Mode::Top), ["0)}a", "48)}b", "0)}c"]);
        assert_eq!(rows(Mode::Bottom), ["1080)}a", "1032)}b", "1080)}c"]);
    }

    #[test]
    fn a_positioned_comment_moves_as_its_array_says() {
        let text = r#"[0,219,"1-0.5",4.5,"x\ny",90,0,1.0,438,1000,500,"false"]"#;
        let line = shown(&[Item { color: 0, ..item(1_000, Mode::Positioned, text) }]);
        let tags = "{\\move(0,540,1920,1080,500,1500)\\alpha&H00&\\t(0,4500,\\alpha&H7F&)\\frz-90\\fs62\\bord0\\c&H000000&\\3c&HFFFFFF&}";
        assert_eq!(
            line,
            [format!("Dialogue: 3,0:00:01.00,0:00:05.50,Danmaku,,0,0,0,,{tags}x\\Ny")]
        );
    }

    #[test]
    fn scripts_and_broken_arrays_are_left_out() {
        let left_out =
            [item(0, Mode::Script, "x"), item(0, Mode::Bas, "x"), item(0, Mode::Positioned, "[")];
        assert!(shown(&left_out).is_empty());
    }

    proptest! {
        #[test]
        fn every_comment_that_is_shown_is_one_line(items in prop::collection::vec(an_item(), 0..9)) {
            let expected = items.iter().filter(|item| match item.mode {
                Mode::Script | Mode::Bas => false,
                Mode::Positioned => positioned::parse(&item.text).is_some(),
                _ => true,
            });
            let lines = shown(&items);
            prop_assert_eq!(lines.len(), expected.count());
            for line in lines {
                prop_assert!(line.starts_with("Dialogue: ") && !line.contains('\n'), "{}", line);
                prop_assert_eq!(line.matches(",Danmaku,,0,0,0,,{").count(), 1);
            }
        }

        #[test]
        fn no_text_opens_a_tag(text in r"[{}\\a-cN/n]{1,12}") {
            let said = Item { text: text.clone().into(), ..Item::default() };
            let at = Item {
                mode: Mode::Positioned, text: positioned(&text).into(), ..Item::default()
            };
            for line in shown(&[said, at]) {
                let (_, text) = line.split_once('}').unwrap();
                let bare = text.replace("\\{", "").replace("\\}", "").replace("\\N", "");
                prop_assert!(!bare.contains(['{', '}']), "{}", line);
                let followed = bare.split('\\').skip(1).all(|rest| rest.starts_with('\u{200b}'));
                prop_assert!(followed, "{}", line);
            }
        }
    }
}
