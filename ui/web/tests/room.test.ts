import { describe, expect, it } from "vitest";
import type { Comment } from "../src/danmaku.js";
import { compareIds, type Push, Room } from "../src/room.js";
import { comment, hides, shows } from "./comments.js";

const body = (seq: number, ...ids: string[]) => ({
  segment: 1,
  seq,
  items: ids.map((id) => comment(id)),
});
const ids = (room: Room) => room.comments().map(({ id }) => id);

describe("a room", () => {
  it("shows what bodies hold, in the order of the video, then of numbers", () => {
    const room = new Room();
    room.load({ segment: 2, seq: 1, items: [comment("5", 400_000)] });
    room.load({ segment: 1, seq: 1, items: [comment("10", 7), comment("9", 7), comment("11", 3)] });
    expect(ids(room)).toEqual(["11", "9", "10", "5"]);
    expect(compareIds("9007199254740993", "9007199254740992")).toBe(1);
  });

  it("passes over a push that the body holds", () => {
    const room = new Room();
    room.load(body(10, "1"));
    expect(room.push(shows(10, "2"))).toEqual({ shown: [], changed: [], gone: [] });
    expect(room.push(shows(11, "3")).shown.map(({ id }) => id)).toEqual(["3"]);
    expect(room.push(shows(11, "3")).shown).toEqual([]);
    expect(ids(room)).toEqual(["1", "3"]);
  });

  it("keeps pushes for a segment whose body comes later", () => {
    const room = new Room();
    expect(room.push(shows(5, "1")).shown).toEqual([]);
    room.push(shows(7, "2"));
    room.push(hides(8, "3"));
    expect(room.load(body(6, "1", "3")).shown.map(({ id }) => id)).toEqual(["1", "2"]);
    expect(ids(room)).toEqual(["1", "2"]);
  });

  it("tells what a newer body brings, and passes over an older one", () => {
    const room = new Room();
    room.load(body(1, "1", "2"));
    room.push(shows(3, "3"));
    const news = room.load({
      segment: 1,
      seq: 4,
      items: [comment("2", 0, { likes: 1 }), comment("4")],
    });
    expect(news.shown.map(({ id }) => id)).toEqual(["4"]);
    expect(news.changed.map(({ id }) => id)).toEqual(["2"]);
    expect(news.gone).toEqual(["1", "3"]);
    room.load(body(2, "9"));
    expect(ids(room)).toEqual(["2", "4"]);
  });

  it("does not bring back by a late push what a newer one hid", () => {
    const room = new Room();
    room.load(body(1));
    room.push(hides(5, "1"));
    room.push(shows(4, "1"));
    expect(ids(room)).toEqual([]);
  });

  it("goes on from the oldest of what it holds, then from what was pushed", () => {
    const room = new Room();
    expect(room.seq).toBeUndefined();
    room.load({ segment: 1, seq: 9, items: [] });
    room.load({ segment: 2, seq: 7, items: [] });
    expect(room.seq).toBe(7);
    room.covered(12);
    expect(room.seq).toBe(12);
    // Pushes since 7 were kept for it.
    room.load({ segment: 3, seq: 8, items: [] });
    expect(room.seq).toBe(12);
    // Those before were not: they are asked for.
    room.load({ segment: 4, seq: 6, items: [] });
    expect(room.seq).toBe(6);
  });

  it("says which bodies are too old after pushes were left out", () => {
    const room = new Room();
    room.load({ segment: 1, seq: 5, items: [] });
    room.load({ segment: 2, seq: 9, items: [] });
    room.push({ ...shows(6, "1"), segment: 3 });
    expect(room.missed(9)).toEqual([1]);
    expect(room.seq).toBe(9);
  });
});

/** Numbers that look drawn, the same each time. */
function* numbers(seed: number): Generator<number, never> {
  let state = seed;
  for (;;) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    yield state / 2 ** 32;
  }
}

it("ends with what is true, however bodies and pushes come (500 seeds)", () => {
  for (let seed = 1; seed <= 500; seed++) {
    const draw = numbers(seed);
    const below = (n: number) => Math.floor(draw.next().value * n);
    // What happened, and the state after each of it.
    const states: Map<string, Comment>[] = [new Map()];
    const pushes: Push[] = [];
    for (let seq = 1; seq <= 30; seq++) {
      const id = String(below(8));
      const push = below(3) === 0 ? hides(seq, id) : shows(seq, id, { likes: seq });
      const next = new Map(states.at(-1));
      if (push.comment) next.set(id, push.comment);
      else next.delete(id);
      states.push(next);
      pushes.push(push);
    }
    const room = new Room();
    const seen = new Map<string, Comment>();
    const apply = ({ shown, changed, gone }: ReturnType<Room["push"]>) => {
      for (const comment of shown) {
        expect(seen.has(comment.id), `seed ${seed}: shown twice`).toBe(false);
        seen.set(comment.id, comment);
      }
      for (const comment of changed) seen.set(comment.id, comment);
      for (const id of gone) expect(seen.delete(id), `seed ${seed}: gone twice`).toBe(true);
    };
    const load = (seq: number) =>
      apply(room.load({ segment: 1, seq, items: [...states[seq]!.values()] }));
    const first = below(20);
    load(first);
    // The live connection: what came since, some of it twice, bodies in between.
    for (let at = first; at < 30; at++) {
      apply(room.push(pushes[at]!));
      if (below(4) === 0) apply(room.push(pushes[Math.max(first, at - below(5))]!));
      if (below(6) === 0) load(below(at + 1));
    }
    const wanted = [...states[30]!.keys()].sort(compareIds);
    expect(ids(room), `seed ${seed}`).toEqual(wanted);
    expect([...seen.keys()].sort(compareIds), `seed ${seed}`).toEqual(wanted);
  }
});
