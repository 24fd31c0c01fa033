import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { artplayer, type Danmu } from "../src/artplayer.js";
import type { Comment } from "../src/danmaku.js";
import { readFlags } from "../src/danmaku.js";
import { colorOf, type Dan, dplayer, escaped } from "../src/dplayer.js";
import { Live, read } from "../src/live.js";
import { Viewer } from "../src/viewer.js";
import { comment } from "./comments.js";
import { settle } from "./server.js";

/** A video's comments as a server has them, with its sockets. */
class Room {
  items: Comment[] = [];
  seq = 0;
  bodySeq: number | undefined;
  sockets: FakeSocket[] = [];
  posted: Record<string, unknown>[] = [];
  /** Answers to posts wait for it. */
  gate: Promise<void> = Promise.resolve();
  lose = 0;
  segments = 1;

  readonly fetch = (async (address: string, init: RequestInit) => {
    const path = new URL(address).pathname;
    if (path.endsWith("/view")) {
      return Response.json({
        segments: this.segments,
        segment_ms: 360_000,
        total: 9,
        shown: 9,
        limit: 300,
      });
    }
    if (path.includes("/segments/")) {
      const headers = { "x-tideline-seq": String(this.bodySeq ?? this.seq) };
      return Response.json({ items: this.items }, { headers });
    }
    if (init.method !== "POST") return Response.json({}, { status: 404 });
    const draft = JSON.parse(init.body as string);
    this.posted.push(draft);
    const seq = this.seq + 1;
    const id = String(900 + seq);
    if (this.lose-- > 0) throw new TypeError("no network");
    if (draft.text === "bad") {
      return Response.json({ code: "forbidden_text", detail: "text" }, { status: 400 });
    }
    const { client_id: _, user: __, ...rest } = draft;
    const made = comment(id, draft.progress_ms, rest);
    this.seq = seq;
    this.items.push(made);
    this.tell({ seq, segment: 1, comment: made });
    await this.gate;
    return Response.json({ ...made, seq }, { status: 201 });
  }) as typeof fetch;

  tell(...items: object[]): void {
    for (const socket of this.sockets) {
      socket.down({ type: "danmaku", room: "video:v", seq: this.seq, items });
    }
  }

  /** Somebody else's comment. */
  say(id: string, progress_ms: number, more: Partial<Comment> = {}): void {
    const made = comment(id, progress_ms, more);
    this.items.push(made);
    this.seq++;
    this.tell({ seq: this.seq, segment: 1, comment: made });
  }

  live(client: Viewer["danmaku"]["client"]): Live {
    return new Live(client, {
      random: () => 1,
      socket: (address) => {
        const socket = new FakeSocket(address);
        this.sockets.push(socket);
        return socket as unknown as WebSocket;
      },
    });
  }
}

class FakeSocket {
  readyState = 0;
  said: Record<string, unknown>[] = [];
  onopen?: () => void;
  onclose?: () => void;
  onmessage?: (event: { data: string }) => void;
  constructor(readonly address: string) {}
  open() {
    this.readyState = 1;
    this.onopen?.();
  }
  send(text: string) {
    this.said.push(JSON.parse(text));
  }
  down(frame: object) {
    if (this.readyState === 1) this.onmessage?.({ data: JSON.stringify(frame) });
  }
  close() {
    this.readyState = 3;
    this.onclose?.();
  }
}

import { Client } from "../src/client.js";

function stage() {
  const room = new Room();
  const client = new Client({ server: "http://t", user: "ann", fetch: room.fetch });
  const viewer = new Viewer(client, "v", room.live(client));
  return { room, client, viewer };
}

beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
afterEach(() => void vi.useRealTimers());

describe("a live connection", () => {
  it("joins from what was loaded, and after a loss from what was pushed", async () => {
    const { room, viewer } = stage();
    room.seq = 5;
    await viewer.open();
    await settle();
    expect(room.sockets[0]?.address).toBe("ws://t/v1/live");
    room.sockets[0]?.open();
    expect(room.sockets[0]?.said).toEqual([{ type: "join", room: "video:v", from_seq: 5 }]);
    room.say("1", 0);
    room.sockets[0]?.close();
    await vi.advanceTimersByTimeAsync(999);
    expect(room.sockets).toHaveLength(1);
    await vi.advanceTimersByTimeAsync(1);
    await settle();
    room.sockets[1]?.open();
    expect(room.sockets[1]?.said).toEqual([{ type: "join", room: "video:v", from_seq: 6 }]);
    viewer.close();
    expect(room.sockets[1]?.said[1]).toEqual({ type: "leave", room: "video:v" });
    await vi.advanceTimersByTimeAsync(100_000);
    expect(room.sockets).toHaveLength(2);
  });

  it("waits longer between tries, up to thirty seconds", async () => {
    const { room, viewer } = stage();
    await viewer.open();
    const waits: number[] = [];
    for (let n = 1; n <= 7; n++) {
      await settle();
      room.sockets.at(-1)?.close();
      let waited = 0;
      for (; room.sockets.length === n; waited += 1000) {
        await vi.advanceTimersByTimeAsync(1000);
        await settle();
      }
      waits.push(waited / 1000);
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 30, 30]);
    viewer.close();
  });

  it("loads again what pushes were left out of", async () => {
    const { room, viewer } = stage();
    await viewer.open();
    await settle();
    room.sockets[0]?.open();
    const told: string[] = [];
    viewer.listen(({ shown }) => told.push(...shown.map(({ id }) => id)));
    room.items.push(comment("7"));
    room.seq = 40;
    room.sockets[0]?.down({ type: "lagged", room: "video:v", seq: 40 });
    await vi.advanceTimersByTimeAsync(1000);
    await settle();
    expect(told).toEqual(["7"]);
    expect(viewer.room.seq).toBe(40);
    viewer.close();
  });

  it("takes marks up, and gives each the answer to it", async () => {
    const { room, client } = stage();
    const live = room.live(client);
    expect(live.progress([])).toBeUndefined();
    live.connect();
    await settle();
    const socket = room.sockets[0]!;
    socket.open();
    const [one, two, three] = [1, 2, 3].map((n) =>
      live.progress([{ kind: "video", id: String(n) }])!.catch((problem) => problem),
    );
    expect(socket.said[0]).toMatchObject({
      type: "progress",
      id: 1,
      marks: [{ kind: "video", id: "1", user: "ann" }],
    });
    socket.down({ type: "error", id: 2, code: "rate_limited", detail: "x", retry_after_ms: 9 });
    socket.down({ type: "ack", id: 1, accepted: 1 });
    expect(await one).toEqual({ accepted: 1 });
    expect(await two).toMatchObject({ code: "rate_limited", isTransient: true, retryAfterMs: 9 });
    socket.close();
    expect(await three).toMatchObject({ code: "offline", isTransient: true });
    live.close();
  });

  it("takes no more marks than the server has under way", async () => {
    const { room, client } = stage();
    const live = room.live(client);
    live.connect();
    await settle();
    room.sockets[0]?.open();
    const sent = Array.from({ length: 17 }, () => live.progress([])?.catch(() => undefined));
    expect(sent.map((one) => one !== undefined)).toEqual([...Array(16).fill(true), false]);
    live.close();
  });

  it("reads no frame that is not of a room, and no push without a place", () => {
    for (const bad of ["", "null", "[]", '{"type":"ack"}', '{"type":"danmaku"}']) {
      expect(read(bad)).toBeUndefined();
    }
    const frame = {
      type: "danmaku",
      room: "r",
      seq: "7",
      items: [null, {}, { seq: 1, segment: 1 }],
    };
    expect(read(JSON.stringify(frame))).toEqual({ room: "r", pushes: [], seq: 7 });
    const gone = { type: "danmaku", room: "r", items: [{ seq: 3, segment: 2, gone: "5" }] };
    expect(read(JSON.stringify(gone))?.pushes).toEqual([{ seq: 3, segment: 2, id: "5" }]);
  });
});

describe("a viewer", () => {
  it.each([
    ["the answer", false],
    ["the push", true],
  ])("is told of its own comment once when %s is first", async (_, pushFirst) => {
    const { room, viewer } = stage();
    await viewer.open();
    await settle();
    room.sockets[0]?.open();
    const told: [string, boolean][] = [];
    viewer.listen(({ shown, own }) =>
      told.push(...shown.map(({ text }) => [text, own] as [string, boolean])),
    );
    let answer = () => {};
    if (pushFirst) room.gate = new Promise((go) => (answer = go));
    const post = viewer.post({ text: "mine", progress_ms: 1000 });
    await settle();
    room.say("1", 0);
    answer();
    await post;
    expect(told).toEqual([
      ["mine", true],
      ["text 1", false],
    ]);
    expect(viewer.room.comments()).toHaveLength(2);
    viewer.close();
  });

  it("shows comments of a segment that was not there when it opened, each once", async () => {
    const { room, viewer } = stage();
    room.segments = 0;
    expect(await viewer.open()).toEqual([]);
    await settle();
    room.sockets[0]?.open();
    const told: string[] = [];
    viewer.listen(({ shown }) => told.push(...shown.map(({ id }) => id)));
    // One that was not pushed: posted between the view and the join.
    room.items.push(comment("5", 1));
    room.say("6", 2);
    await settle();
    await viewer.post({ text: "mine", progress_ms: 3 });
    await settle();
    expect(told).toEqual(["6", "5", "902"]);
    expect(viewer.room.comments().map(({ id }) => id)).toEqual(["5", "6", "902"]);
    expect([0, 359_999, 360_000].map((ms) => viewer.segmentOf(ms))).toEqual([1, 1, 2]);
    viewer.close();
  });

  it("tries a lost post once more under the same name", async () => {
    const { room, viewer } = stage();
    room.lose = 1;
    await viewer.post({ text: "mine", progress_ms: 1000 });
    expect(room.posted).toHaveLength(2);
    expect(room.posted[0]?.client_id).toBe(room.posted[1]?.client_id);
    await expect(viewer.post({ text: "bad", progress_ms: 0 })).rejects.toMatchObject({
      code: "forbidden_text",
    });
    expect(room.posted).toHaveLength(3);
  });
});

describe("DPlayer's connector", () => {
  const XSS = `<img src=x onerror=alert(1)>"'/&`;

  async function open() {
    const { room, client, viewer } = stage();
    room.items = [
      comment("1", 1000, { text: XSS }),
      comment("2", 2000, { mode: "top", color: "#000000" }),
      comment("3", 3000, { mode: "positioned", text: "[0,0]" }),
      comment("4", 30_000, { mode: "bottom" }),
    ];
    const tideline = dplayer(client, "v", viewer);
    const drawn: Dan[] = [];
    const dan = await new Promise<Dan[]>((success, error) =>
      tideline.options.apiBackend.read({ success, error }),
    );
    const dp = {
      video: { currentTime: 10 },
      danmaku: { dan, danIndex: 2, draw: (one: Dan) => void drawn.push(one) },
      on: () => {},
    };
    tideline.attach(dp);
    await settle();
    room.sockets[0]?.open();
    return { room, tideline, dp, drawn };
  }

  it("gives what DPlayer can show, as text, in colours that it does not take for none", async () => {
    const { dp } = await open();
    expect(dp.danmaku.dan.map(({ id, time, type, color }) => [id, time, type, color])).toEqual([
      ["1", 1, 0, "#ffffff"],
      ["2", 2, 1, "#000000"],
      ["4", 30, 2, "#ffffff"],
    ]);
    expect(dp.danmaku.dan[0]?.text).not.toMatch(/[<>"']/);
    expect(escaped(XSS)).toBe("&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;&#x2f;&amp;");
    expect([0, 255, 16_777_215, "#ABCDEF", "red"].map(colorOf)).toEqual([
      "#000000",
      "#0000ff",
      "#ffffff",
      "#abcdef",
      "#ffffff",
    ]);
  });

  it("puts a new comment where its time is, and draws it if that has just been", async () => {
    const { room, dp, drawn } = await open();
    room.say("5", 20_000);
    room.say("6", 9_000, { text: XSS });
    room.say("7", 1_000);
    expect(dp.danmaku.dan.map(({ id }) => id)).toEqual(["1", "2", "6", "7", "5", "4"]);
    expect(dp.danmaku.danIndex).toBe(4);
    expect(drawn.map(({ id }) => id)).toEqual(["6"]);
    expect(drawn[0]?.text).toBe(escaped(XSS));
    room.seq++;
    room.tell({ seq: room.seq, segment: 1, gone: "1" });
    expect(dp.danmaku.dan.map(({ id }) => id)).toEqual(["2", "6", "7", "5", "4"]);
    expect(dp.danmaku.danIndex).toBe(3);
  });

  it("sends what DPlayer has drawn already, and draws no echo of it", async () => {
    const { room, tideline, dp, drawn } = await open();
    const send = (data: Dan) =>
      new Promise<string | undefined>((ended) => {
        tideline.options.apiBackend.send({ data, success: () => ended(undefined), error: ended });
        // As DPlayer does, once it has passed it on.
        dp.danmaku.dan.splice(dp.danmaku.danIndex++, 0, data);
      });
    const data = { text: XSS, color: 255, type: 2, time: 10.5, author: "ann" };
    expect(await send(data)).toBeUndefined();
    expect(room.posted[0]).toMatchObject({
      text: XSS,
      progress_ms: 10_500,
      mode: "bottom",
      color: "#0000ff",
    });
    expect(drawn).toEqual([]);
    // It is drawn again after a seek.
    expect(data).toMatchObject({ id: "901", text: escaped(XSS) });
    expect(await send({ ...data, text: "bad" })).toBe("text");
    expect(dp.danmaku.dan.map(({ id }) => id)).toEqual(["1", "2", "901", "4"]);
    expect(dp.danmaku.danIndex).toBe(3);
  });
});

describe("ArtPlayer's connector", () => {
  async function open(shows?: (comment: Comment) => boolean) {
    const { room, client, viewer } = stage();
    room.items = [
      comment("1", 0),
      comment("2", 5000, { mode: "bas" }),
      comment("3", 9000, { mode: "top" }),
    ];
    const tideline = artplayer(client, "v", shows ? { shows } : {}, viewer);
    const drawn: Danmu[] = [];
    const player = {
      currentTime: 10,
      notice: { show: undefined as unknown },
      plugins: { artplayerPluginDanmuku: { emit: (danmu: Danmu) => void drawn.push(danmu) } },
      on: () => {},
    };
    tideline.attach(player);
    const first = await tideline.options.danmuku();
    await settle();
    room.sockets[0]?.open();
    return { room, tideline, player, first, drawn };
  }

  it("gives what the plugin can show; what is at the very start is not taken for now", async () => {
    const { first, drawn } = await open();
    expect(first.map(({ id, mode, time }) => [id, mode, time])).toEqual([
      ["1", 0, 0.001],
      ["3", 1, 9],
    ]);
    expect(drawn).toEqual([]);
  });

  it("draws others' comments once, and one's own not again", async () => {
    const { room, tideline, drawn } = await open();
    room.say("4", 9_500);
    room.say("5", 50_000, { color: "#0000ff" });
    const danmu: Danmu = { text: "mine", mode: 0, color: "#FFFFFF", time: 10 };
    expect(await tideline.options.beforeEmit(danmu)).toBe(true);
    expect(danmu.id).toBeDefined();
    expect(tideline.options.beforeVisible(danmu)).toBe(true);
    expect(drawn.map(({ id, time }) => [id, time])).toEqual([
      ["4", undefined],
      ["5", 50],
    ]);
    expect(drawn[1]?.color).toBe("#0000ff");
  });

  it("says why a comment was refused, and does not draw it", async () => {
    const { tideline, player } = await open();
    expect(await tideline.options.beforeEmit({ text: "bad", time: 1 })).toBe(false);
    expect(player.notice.show).toBe("text");
  });

  it("does not show what is hidden, and what the viewer does not want", async () => {
    const { room, tideline, first } = await open(({ id }) => id !== "3");
    expect(first.map((danmu) => tideline.options.beforeVisible(danmu))).toEqual([true, false]);
    room.seq++;
    room.tell({ seq: room.seq, segment: 1, gone: "1" });
    expect(tideline.options.beforeVisible(first[0]!)).toBe(false);
  });
});

it("reads flags before a segment's bytes, ids beyond what numbers hold among them", () => {
  const head = new TextEncoder().encode(
    '{"default":5,"flags":[["9007199254740993",11],[1886117449095932416, 0]]}',
  );
  const bytes = new Uint8Array(4 + head.length + 3);
  new DataView(bytes.buffer).setUint32(0, head.length);
  bytes.set(head, 4);
  const { default: common, flags } = readFlags(bytes);
  expect(common).toBe(5);
  expect([...flags]).toEqual([
    ["9007199254740993", 11],
    ["1886117449095932416", 0],
  ]);
  expect(() => readFlags(bytes.subarray(0, 9))).toThrow("cut short");
  expect(() => readFlags(new Uint8Array(2))).toThrow("cut short");
});
