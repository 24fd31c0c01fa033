import { IDBFactory } from "fake-indexeddb";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Problem } from "../src/client.js";
import { Heartbeats, type Media } from "../src/heartbeats.js";
import { History, type Mark, type Taken } from "../src/history.js";
import { type KeptMark, MemoryQueue, openQueue, type Queue } from "../src/queue.js";
import { type Reply, Script, settle } from "./server.js";

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "Date"],
  });
  vi.setSystemTime(1_796_000_000_000);
});
afterEach(() => void vi.useRealTimers());

const mark = { kind: "video", id: "7", position_ms: 1000 };
const kept = (n: number): KeptMark => ({ ...mark, event_id: `e${n}`, event_ms: n });

function beats(replies: Reply[], queue: Queue = new MemoryQueue()) {
  const server = new Script(replies);
  let names = 0;
  const history = new History(server.client());
  const heartbeats = new Heartbeats(history, queue, { name: () => `e${++names}` });
  return { server, queue, heartbeats };
}

const ids = async (queue: Queue, user = "ann") =>
  (await queue.first(user, 99)).map(({ mark }) => mark.event_id);

/** Waits of the code under test that real input and output end. */
async function pass(ms: number): Promise<void> {
  await vi.advanceTimersByTimeAsync(ms);
  await settle();
}

it("names and dates a mark, and says when the device thinks it is", async () => {
  const { server, heartbeats } = beats([{ body: { accepted: 1 } }]);
  expect(await heartbeats.beat(mark)).toEqual({ accepted: 1 });
  expect(server.asked[0]).toMatchObject({
    method: "POST",
    path: "/v1/users/ann/history",
    body: [{ ...mark, event_id: "e1", event_ms: 1_796_000_000_000 }],
    headers: { "x-client-now-ms": "1796000000000" },
  });
});

it("keeps a mark that was lost, and sends the same mark again", async () => {
  const { server, queue, heartbeats } = beats(["lost", {}]);
  await heartbeats.beat(mark);
  expect(await ids(queue)).toEqual(["e1"]);
  await pass(4_999);
  expect(server.asked).toHaveLength(1);
  await pass(1);
  expect(server.asked[1]?.path).toBe("/v1/users/ann/history:merge");
  expect(server.asked[1]?.body).toEqual(server.asked[0]?.body);
  expect(await ids(queue)).toEqual([]);
  await pass(1_000_000);
  expect(server.asked).toHaveLength(2);
});

it("waits longer after each failure, and not for ever", async () => {
  const { server, heartbeats } = beats([{ status: 503 }]);
  await heartbeats.beat(mark);
  const began = Date.now();
  const at: number[] = [];
  while (at.length < 9) {
    await vi.advanceTimersToNextTimerAsync();
    await settle();
    at.push((Date.now() - began) / 1000);
  }
  expect(server.asked).toHaveLength(10);
  expect(at).toEqual([5, 15, 35, 75, 155, 315, 615, 915, 1215]);
});

it("sends what waits as soon as the server answers again", async () => {
  const { server, queue, heartbeats } = beats(["lost", {}, {}]);
  await heartbeats.beat(mark);
  await heartbeats.beat({ ...mark, position_ms: 2000 });
  await pass(0);
  expect(server.asked.map(({ path }) => path.split("/").at(-1))).toEqual([
    "history",
    "history",
    "history:merge",
  ]);
  expect(await ids(queue)).toEqual([]);
});

it("drops what is refused for good, and keeps what another token may send", async () => {
  const { queue, heartbeats } = beats([
    { status: 400, body: { code: "invalid_argument", detail: "id" } },
    { status: 400 },
    { status: 401 },
  ]);
  await expect(heartbeats.beat(mark)).rejects.toMatchObject({ code: "invalid_argument" });
  expect(await ids(queue)).toEqual([]);
  await queue.push("ann", kept(1));
  expect(await heartbeats.flush()).toBe(1);
  await queue.push("ann", kept(2));
  expect(await heartbeats.flush()).toBe(0);
  expect(await ids(queue)).toEqual(["e2"]);
  heartbeats.close();
});

it("goes by the live connection while it is open, and loses nothing with it", async () => {
  const server = new Script([{}]);
  const queue = new MemoryQueue();
  const said: unknown[] = [];
  const answers: (() => Promise<Taken> | undefined)[] = [
    async () => ({ accepted: 1 }) as Taken,
    () => Promise.reject(new Problem("offline", "connection lost", 0)),
    () => new Promise<Taken>(() => {}),
    () => undefined,
  ];
  const live = {
    progress: (marks: readonly Mark[]) => {
      said.push(...marks);
      return answers.shift()?.();
    },
  };
  let names = 0;
  const heartbeats = new Heartbeats(new History(server.client()), queue, {
    live,
    name: () => `e${++names}`,
  });
  expect(await heartbeats.beat(mark)).toEqual({ accepted: 1 });
  expect(server.asked).toEqual([]);
  await heartbeats.beat(mark);
  expect(await ids(queue)).toEqual(["e2"]);
  const silent = heartbeats.beat(mark);
  await pass(10_000);
  await silent;
  expect(server.asked.map(({ path }) => path.split("/").at(-1))).toEqual(["history:merge"]);
  expect(server.asked[0]?.body).toMatchObject([{ event_id: "e2" }, { event_id: "e3" }]);
  await heartbeats.beat(mark);
  expect(said).toHaveLength(4);
  expect(server.asked[1]?.body).toMatchObject([{ event_id: "e4" }]);
  expect(await ids(queue)).toEqual([]);
});

it("sends the marks of this user alone", async () => {
  const { server, queue, heartbeats } = beats([{}]);
  await queue.push("ben", kept(1));
  await queue.push("ann", kept(2));
  expect(await heartbeats.flush()).toBe(1);
  expect(server.asked[0]?.body).toEqual([kept(2)]);
  expect(await ids(queue, "ben")).toEqual(["e1"]);
});

it("keeps the last mark of a page until it is known to have arrived", async () => {
  const { server, queue, heartbeats } = beats(["lost", {}]);
  heartbeats.leave(mark);
  expect(server.asked[0]?.keepalive).toBe(true);
  await settle();
  expect(await ids(queue)).toEqual(["e1"]);
  heartbeats.leave(mark);
  await settle();
  expect(await ids(queue)).toEqual(["e1"]);
});

it("sends what came while a call was under way as soon as it ends", async () => {
  const { server, queue, heartbeats } = beats([{}]);
  const first = heartbeats.beat(mark);
  await heartbeats.beat({ ...mark, position_ms: 2000 });
  expect(await ids(queue)).toEqual(["e2"]);
  await first;
  await pass(0);
  expect(server.asked[1]?.body).toMatchObject([{ event_id: "e2", position_ms: 2000 }]);
  expect(await ids(queue)).toEqual([]);
});

it("marks a player while it plays, where it stops and at its end", async () => {
  const { server, heartbeats } = beats([{}]);
  const media = Object.assign(new EventTarget(), {
    currentTime: 0,
    duration: 60,
    paused: true,
    ended: false,
  });
  const stop = heartbeats.watch(media as unknown as Media, { kind: "video", id: "7" });
  const say = async (name: string, at: number) => {
    media.currentTime = at;
    media.dispatchEvent(new Event(name));
    await settle();
  };
  await pass(60_000);
  expect(server.asked).toEqual([]);
  await say("play", 0);
  media.currentTime = 15;
  await pass(15_000);
  await say("pause", 20);
  await pass(60_000);
  await say("seeked", 20);
  media.ended = true;
  await say("ended", 60);
  stop();
  await say("play", 1);
  await pass(60_000);
  const sent = server.asked.map(({ body }) => (body as KeptMark[])[0]!);
  expect(sent.map(({ position_ms, finished }) => [position_ms, finished])).toEqual([
    [15_000, undefined],
    [20_000, undefined],
    [60_000, true],
  ]);
  expect(sent[0]?.duration_ms).toBe(60_000);
});

const QUEUES: [string, (max: number) => Promise<Queue>][] = [
  ["in the browser's store", (max) => openQueue("t", max, new IDBFactory())],
  ["without a store", (max) => openQueue("t", max, undefined)],
  [
    "with a store that refuses",
    (max) =>
      openQueue("t", max, {
        open() {
          throw new Error("SecurityError");
        },
      } as unknown as IDBFactory),
  ],
];

it.each(QUEUES)("is bounded, oldest first, %s", async (_, open) => {
  const queue = await open(3);
  for (let n = 1; n <= 5; n++) await queue.push(n === 4 ? "ben" : "ann", kept(n));
  expect(await ids(queue)).toEqual(["e3", "e5"]);
  expect(await ids(queue, "ben")).toEqual(["e4"]);
  const [first] = await queue.first("ann", 1);
  expect(first?.mark).toEqual(kept(3));
  await queue.drop([first!.key]);
  expect(await ids(queue)).toEqual(["e5"]);
});

it("has what was kept after the page is opened again", async () => {
  const factory = new IDBFactory();
  await (await openQueue("t", 9, factory)).push("ann", kept(1));
  expect(await ids(await openQueue("t", 9, factory))).toEqual(["e1"]);
});
