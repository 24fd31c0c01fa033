// Tideline in a browser. Read in this order: `client` (calls, tokens), `history`
// (lists, resume points), `heartbeats` over `queue` (a player's marks, which
// survive a lost network), `danmaku` (comments at rest), `live` (as they come),
// `room` (each of them once), `viewer` (all three for one video). Connectors for
// players are modules of their own: `@tideline/web/dplayer` and `/artplayer`.

export * from "./client.js";
export * from "./danmaku.js";
export * from "./heartbeats.js";
export * from "./history.js";
export * from "./live.js";
export * from "./queue.js";
export * from "./room.js";
export * from "./viewer.js";
