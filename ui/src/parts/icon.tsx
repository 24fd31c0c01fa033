// Small pictures, drawn with strokes in the colour of the text around them.

const PATHS: Record<string, string> = {
  video: "M4 5h16v14H4z M10 9l5 3-5 3z",
  live: "M12 12h.01 M8 8a6 6 0 0 0 0 8 M16 8a6 6 0 0 1 0 8 M5 5a10 10 0 0 0 0 14 M19 5a10 10 0 0 1 0 14",
  audio: "M4 14v-2a8 8 0 0 1 16 0v2 M4 14h3v6H4z M17 14h3v6h-3z",
  course: "M2 9l10-5 10 5-10 5z M6 11v5c3 3 9 3 12 0v-5",
  article: "M6 3h9l4 4v14H6z M9 11h7 M9 15h7",
  comic: "M4 4h16v12h-7l-5 4v-4H4z M8 9h8 M8 12h5",
  product: "M5 8h14l1 13H4z M9 8a3 3 0 0 1 6 0",
  shop: "M4 10v11h16V10 M3 10l2-6h14l2 6z M10 21v-6h4v6",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14 M16 5v14",
  remove: "M4 7h16 M10 4h4 M6 7l1 14h10l1-14 M10 11v6 M14 11v6",
  clear: "M5 5l14 14 M19 5L5 19",
  user: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8z M4 21c1-8 15-8 16 0",
  auto: "M12 3a9 9 0 1 0 0 18z M12 3a9 9 0 0 1 0 18",
  light:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8z M12 2v2 M12 20v2 M2 12h2 M20 12h2 M5 5l1 1 M18 18l1 1 M19 5l-1 1 M6 18l-1 1",
  dark: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
  send: "M4 12l16-8-6 16-3-7z",
  like: "M7 11v10H3V11z M7 11l4-8c2 0 3 1 2 4l-1 3h7l-1 11H7z",
  shield: "M12 3l8 3v6c0 5-4 8-8 9-4-1-8-4-8-9V6z",
  hide: "M3 3l18 18 M2 12c5-9 15-9 20 0-1 2-3 4-5 5 M7 17c-2-1-4-3-5-5",
  undo: "M9 7L4 12l5 5 M4 12h10a6 6 0 0 1 0 12h-2",
};

export function Icon({ name }: { name: string }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d={PATHS[name] ?? PATHS.article} />
    </svg>
  );
}
