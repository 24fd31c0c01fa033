import { expect, it } from "vitest";
import { Problem } from "../src/client.js";
import { History } from "../src/history.js";
import { Script } from "./server.js";

const caught = (call: Promise<unknown>) =>
  call.then(
    () => undefined,
    (error) => error as Problem,
  );

it("writes names of users and filters into addresses as they are", async () => {
  const server = new Script();
  const history = new History(server.client({ user: "a/b ü" }));
  await history.list({ kind: ["video", "live"], limit: 5, unfinished: true });
  expect(server.asked[0]?.path).toBe(
    "/v1/users/a%2Fb%20%C3%BC/history?kind=video&kind=live&limit=5&unfinished=true",
  );
  await history.progress("video", "a&b/c");
  expect(server.asked[1]?.path).toBe("/v1/users/a%2Fb%20%C3%BC/progress?kind=video&id=a%26b%2Fc");
});

it("asks for a token before each call, for it may have changed", async () => {
  const server = new Script();
  const tokens = ["one", "two"];
  const client = server.client({ token: async () => tokens.shift() });
  await client.json("GET", "/x");
  await client.json("GET", "/x");
  await client.json("GET", "/x");
  expect(server.asked.map(({ headers }) => headers.authorization)).toEqual([
    "Bearer one",
    "Bearer two",
    undefined,
  ]);
});

it("takes a ticket for a live connection only where there is a token", async () => {
  const server = new Script([{ status: 201, body: { ticket: "t1", good_ms: 60000 } }]);
  expect(await server.client().liveAddress()).toBe("ws://t/v1/live");
  expect(server.asked).toEqual([]);
  expect(await server.client({ token: "x" }).liveAddress()).toBe("ws://t/v1/live?ticket=t1");
  expect(server.asked[0]).toMatchObject({ method: "POST", path: "/v1/tickets" });
});

it("tells what a server refuses, and whether to come back", async () => {
  const server = new Script([
    {
      status: 429,
      body: { code: "rate_limited", detail: "user_writes_per_second" },
      headers: { "retry-after": "3" },
    },
    { status: 400, body: { code: "invalid_argument", detail: "limit" } },
    { status: 502, body: null },
    "lost",
  ]);
  const client = server.client();
  const said = [];
  for (let call = 0; call < 4; call++) said.push(await caught(client.json("GET", "/x")));
  expect(said.map((p) => [p?.code, p?.message, p?.isTransient, p?.retryAfterMs])).toEqual([
    ["rate_limited", "user_writes_per_second", true, 3000],
    ["invalid_argument", "limit", false, undefined],
    ["internal", "status 502", true, undefined],
    ["offline", "TypeError: no network", true, undefined],
  ]);
  expect(said[0]).toBeInstanceOf(Problem);
});
