// Everything that the pages say, in each language, and how they write times.

const en = {
  history: "History",
  video: "Video",
  owner: "Moderation",
  skip: "Skip to content",
  language: "中文",
  languageLabel: "切换到中文",
  theme: { auto: "Theme: as the system", light: "Theme: light", dark: "Theme: dark" },
  who: "Account",
  user: "User",
  token: "Token",
  tokenHint: "Leave empty where the server asks for none. Kept until this tab is closed.",
  save: "Save",
  cancel: "Cancel",
  close: "Close",
  all: "All",
  kinds: {
    video: "Videos",
    live: "Live",
    audio: "Audio",
    course: "Courses",
    article: "Articles",
    comic: "Comics",
    product: "Products",
    shop: "Shops",
  } as Record<string, string>,
  kindLabel: "Kind",
  unfinished: "Unfinished",
  recordingOn: "Recording is on",
  recordingOff: "Recording is paused: what you watch now is not kept.",
  pause: "Pause",
  resumeRecording: "Record again",
  clear: "Clear…",
  clearTitle: "Clear history",
  clearFinished: "What is finished",
  clearOld: "What is older than 30 days",
  clearKind: (kind: string) => `All of: ${kind}`,
  clearAll: "Everything",
  clearWarning: "This cannot be undone.",
  clearDo: "Clear",
  cleared: (n: number) => (n === 1 ? "1 entry removed" : `${n} entries removed`),
  removed: (title: string) => `Removed: ${title}`,
  remove: "Remove",
  removeLabel: (title: string) => `Remove ${title}`,
  resumeAt: (time: string) => `Resume at ${time}`,
  resume: "Resume",
  again: "Watch again",
  open: "Open",
  finished: "Finished",
  plays: (n: number) => `${n} plays`,
  progress: (percent: number) => `${percent} % watched`,
  today: "Today",
  yesterday: "Yesterday",
  entries: (n: number) => (n === 1 ? "1 entry" : `${n} entries`),
  more: "Show more",
  loading: "Loading…",
  empty: "Nothing here yet.",
  emptyHint: "What you watch, read and look at appears here.",
  keys: "↑ ↓ move, Enter resumes, Delete removes",
  failed: "That did not work",
  offline: "The server does not answer.",
  needToken: "This server asks for a token.",
  retry: "Try again",
  partial: "Some titles did not come in time.",
  clipTitle: "Tide: a clip of one minute",
  standIn: "A clip stands in for this video; its minute is stretched over the whole length.",
  resumedAt: (time: string) => `Goes on at ${time}`,
  player: "Video player. Space plays and stops, arrows move in it.",
  comments: "Comments",
  shownOf: (shown: number, total: number) => `${shown} of ${total} shown`,
  watching: (n: number) => `${n} watching`,
  like: "Like",
  hideSender: "Hide this sender",
  say: "Say something",
  send: "Send",
  mode: "How it moves",
  modes: ["Scroll", "Top", "Bottom"],
  color: "Colour",
  taste: "What I want to see",
  level: (n: number) => (n === 0 ? "Level: everything" : `Level: ${n} and above`),
  ruleType: "Kind of rule",
  ruleTypes: ["Word", "Pattern", "Sender"],
  rule: "Hide what has…",
  add: "Add",
  search: "Search text or sender",
  density: "Comments along the video",
  protect: "Protect",
  unprotect: "Protect no more",
  hide: "Hide",
  restore: "Show again",
  undo: "Undo",
  undone: "Undone",
  console: "Console",
  topic: "Topic",
  origin: "Computed from",
  own: "itself",
  partitions: "Partitions",
  partition: "Partition",
  records: "Positions",
  behind: "View is behind",
  epoch: "Epoch",
  start: "First",
  head: "Last",
};

/** The words of a language: all of them, or it does not compile. */
export type Words = typeof en;

const zh: Words = {
  history: "历史记录",
  video: "视频",
  owner: "弹幕管理",
  skip: "跳到内容",
  language: "English",
  languageLabel: "Switch to English",
  theme: { auto: "主题：跟随系统", light: "主题：浅色", dark: "主题：深色" },
  who: "账号",
  user: "用户",
  token: "令牌",
  tokenHint: "服务器不要求时留空。关闭此标签页后不再保留。",
  save: "保存",
  cancel: "取消",
  close: "关闭",
  all: "全部",
  kinds: {
    video: "视频",
    live: "直播",
    audio: "音频",
    course: "课程",
    article: "文章",
    comic: "漫画",
    product: "商品",
    shop: "店铺",
  },
  kindLabel: "类型",
  unfinished: "未看完",
  recordingOn: "正在记录",
  recordingOff: "已暂停记录：现在观看的内容不会保留。",
  pause: "暂停记录",
  resumeRecording: "继续记录",
  clear: "清空…",
  clearTitle: "清空历史记录",
  clearFinished: "已看完的",
  clearOld: "30 天以前的",
  clearKind: (kind) => `全部${kind}`,
  clearAll: "全部记录",
  clearWarning: "此操作无法撤销。",
  clearDo: "清空",
  cleared: (n) => `已删除 ${n} 条`,
  removed: (title) => `已删除：${title}`,
  remove: "删除",
  removeLabel: (title) => `删除 ${title}`,
  resumeAt: (time) => `从 ${time} 继续`,
  resume: "继续",
  again: "重新观看",
  open: "打开",
  finished: "已看完",
  plays: (n) => `看过 ${n} 次`,
  progress: (percent) => `已看 ${percent}%`,
  today: "今天",
  yesterday: "昨天",
  entries: (n) => `${n} 条`,
  more: "显示更多",
  loading: "加载中…",
  empty: "这里还没有内容。",
  emptyHint: "看过、读过和浏览过的内容会出现在这里。",
  keys: "↑ ↓ 移动，回车继续，Delete 删除",
  failed: "操作失败",
  offline: "服务器没有响应。",
  needToken: "此服务器要求令牌。",
  retry: "重试",
  partial: "部分标题未能及时取得。",
  clipTitle: "潮汐：一分钟短片",
  standIn: "这里用一段短片代替该视频；短片的一分钟对应整部视频的时长。",
  resumedAt: (time) => `从 ${time} 继续播放`,
  player: "视频播放器：空格键播放或暂停，方向键移动。",
  comments: "弹幕",
  shownOf: (shown, total) => `显示 ${shown} / ${total} 条`,
  watching: (n) => `${n} 人正在看`,
  like: "点赞",
  hideSender: "屏蔽此发送者",
  say: "发个弹幕",
  send: "发送",
  mode: "移动方式",
  modes: ["滚动", "顶部", "底部"],
  color: "颜色",
  taste: "屏蔽设定",
  level: (n) => (n === 0 ? "等级：全部" : `等级：${n} 及以上`),
  ruleType: "规则类型",
  ruleTypes: ["关键词", "正则", "发送者"],
  rule: "屏蔽包含…",
  add: "添加",
  search: "搜索内容或发送者",
  density: "弹幕分布",
  protect: "保护",
  unprotect: "取消保护",
  hide: "隐藏",
  restore: "恢复显示",
  undo: "撤销",
  undone: "已撤销",
  console: "控制台",
  topic: "主题",
  origin: "来源",
  own: "自身",
  partitions: "分区数",
  partition: "分区",
  records: "位置数",
  behind: "视图落后",
  epoch: "纪元",
  start: "最早",
  head: "最新",
};

/** The languages there are. */
export const LANGUAGES = { en, zh } satisfies Record<string, Words>;
export type Language = keyof typeof LANGUAGES;

const LOCALES: Record<Language, string> = { en: "en-GB", zh: "zh-CN" };

/** `1:01:05`, `27:00`: a place in a video. */
export function place(ms: number): string {
  const seconds = Math.floor(ms / 1000);
  const two = (n: number) => String(n).padStart(2, "0");
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const rest = two(seconds % 60);
  return hours > 0 ? `${hours}:${two(minutes)}:${rest}` : `${minutes}:${rest}`;
}

/** A day of a list, as people say it. */
export function dayName(day: string, now: Date, language: Language): string {
  const words = LANGUAGES[language];
  const [year = 0, month = 1, date = 1] = day.split("-").map(Number);
  const that = Date.UTC(year, month - 1, date);
  const today = Date.UTC(now.getFullYear(), now.getMonth(), now.getDate());
  const ago = Math.round((today - that) / 86_400_000);
  if (ago === 0) return words.today;
  if (ago === 1) return words.yesterday;
  const sameYear = year === now.getFullYear();
  return new Intl.DateTimeFormat(LOCALES[language], {
    weekday: "long",
    day: "numeric",
    month: "long",
    ...(sameYear ? {} : { year: "numeric" }),
    timeZone: "UTC",
  }).format(that);
}

/** The time of the day at which something happened. */
export function timeOfDay(ms: number, language: Language): string {
  return new Intl.DateTimeFormat(LOCALES[language], {
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
  }).format(ms);
}

/** The language to begin with. */
export function preferred(languages: readonly string[]): Language {
  return languages[0]?.toLowerCase().startsWith("zh") ? "zh" : "en";
}
