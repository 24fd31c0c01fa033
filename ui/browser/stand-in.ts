// Comments of one video, for pages in a browser: what the API says of danmaku,
// in memory. It stands in for a server that has no such calls; of one that has
// them, nothing is stood in for.

import type { BrowserContext, Route, WebSocketRoute } from "playwright-core";

interface Item {
  id: string;
  progress_ms: number;
  text: string;
  [field: string]: unknown;
}

/** The calls that the pages look for. */
const PATHS = [
  "/v1/videos/{video}/danmaku/view",
  "/v1/users/{user}/danmaku/filters",
  "/v1/users/{user}/danmaku/flags",
];

export class StandIn {
  items: Item[] = [];
  hidden: Item[] = [];
  rules: unknown[] = [];
  changes: unknown[] = [];
  #seq = 0;
  readonly #sockets = new Set<WebSocketRoute>();

  constructor(readonly video: string) {}

  /** A comment that somebody sends, elsewhere. */
  add(text: string, progress_ms: number, more: object = {}): Item {
    const seq = ++this.#seq;
    const item: Item = {
      id: String(1_886_117_449_095_932_416n + BigInt(seq)),
      progress_ms,
      mode: "scroll",
      size: 25,
      color: "#ffffff",
      sent_ms: 1_796_000_000_000 + seq * 60_000,
      pool: "normal",
      sender: ["a6216d9", "12d20a", "a3efe724"][seq % 3],
      weight: 5,
      attr: 0,
      likes: (seq * 7) % 5,
      text,
      ...more,
    };
    this.items.push(item);
    this.#tell({ seq, segment: 1, comment: item });
    return item;
  }

  /** Answers the calls of every page of a visitor. */
  async serve(context: BrowserContext): Promise<void> {
    await context.route("**/openapi.json", async (route) => {
      const response = await route.fetch();
      const document = await response.json();
      for (const path of PATHS) document.paths[path] ??= {};
      await route.fulfill({ response, json: document });
    });
    await context.route(/\/v1\/(videos|users\/[^/]+\/danmaku)/, (route) => this.#answer(route));
    await context.routeWebSocket(/\/v1\/live/, (socket) => {
      this.#sockets.add(socket);
      socket.onMessage((text) => this.#join(socket, JSON.parse(String(text))));
      socket.onClose(() => this.#sockets.delete(socket));
    });
  }

  async #answer(route: Route): Promise<void> {
    const request = route.request();
    const path = new URL(request.url()).pathname.replace(`/v1/videos/${this.video}/danmaku`, "");
    const body = request.postDataJSON();
    const json = (json: unknown, status = 200, headers = {}) =>
      route.fulfill({ json, status, headers });
    if (path.includes("/filters")) {
      if (request.method() === "PUT") this.rules = body;
      return json(this.rules);
    }
    if (path === "/view") {
      const total = this.items.length + this.hidden.length;
      const shown = this.items.length;
      return json({ segments: 1, segment_ms: 360_000, total, shown, limit: 300, state: "open" });
    }
    if (path === ".json") return json({ items: this.items });
    if (path === "/segments/1.json") {
      return json({ items: this.items }, 200, { "x-tideline-seq": String(this.#seq) });
    }
    if (path === "/segments/1.smart") {
      const flags = this.items.filter(({ likes }) => likes === 0).map(({ id }) => [id, 1]);
      const head = Buffer.from(JSON.stringify({ default: 6, flags }));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(head.length);
      return route.fulfill({ body: Buffer.concat([length, head]) });
    }
    if (path === "" && request.method() === "POST") {
      const { client_id: _, user: __, text, progress_ms, ...more } = body;
      const item = this.add(text, progress_ms, more);
      return json({ ...item, seq: this.#seq }, 201);
    }
    if (request.method() === "PATCH") return json(this.#change(path.slice(1), body));
    if (path.endsWith("/like")) return json({});
    return json({ code: "not_found", detail: path, status: 404 }, 404);
  }

  #change(id: string, change: { state?: string }): object {
    this.changes.push({ id, ...change });
    const move = (from: Item[], to: Item[]) => {
      const at = from.findIndex((item) => item.id === id);
      if (at >= 0) to.push(...from.splice(at, 1));
      return to.at(-1);
    };
    if (change.state === "hidden" && move(this.items, this.hidden)) {
      this.#tell({ seq: ++this.#seq, segment: 1, gone: id });
    } else if (change.state === "shown") {
      const comment = move(this.hidden, this.items);
      this.#tell({ seq: ++this.#seq, segment: 1, comment });
    }
    return {};
  }

  #join(socket: WebSocketRoute, frame: { type: string; from_seq?: number }): void {
    if (frame.type !== "join") return;
    const room = `video:${this.video}`;
    socket.send(
      JSON.stringify({
        type: "danmaku",
        room,
        seq: this.#seq,
        items: [],
        viewers: this.#sockets.size,
      }),
    );
  }

  #tell(item: object): void {
    const frame = { type: "danmaku", room: `video:${this.video}`, seq: this.#seq, items: [item] };
    for (const socket of this.#sockets) socket.send(JSON.stringify(frame));
  }
}
