// A server that tests script: answers in turn, and what it was asked.

import { Client, type Options } from "../src/client.js";

export interface Asked {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: unknown;
  keepalive: boolean;
}

/** A status with a body, or no answer at all. */
export type Reply = { status?: number; body?: unknown; headers?: Record<string, string> } | "lost";

export class Script {
  readonly asked: Asked[] = [];
  constructor(
    /** Answers in turn; the last one goes on. */
    readonly replies: Reply[] = [{}],
  ) {}

  readonly fetch = (async (address: string, init: RequestInit) => {
    this.asked.push({
      method: init.method ?? "GET",
      path: address.replace(/^https?:\/\/[^/]*/, ""),
      headers: init.headers as Record<string, string>,
      body: init.body === undefined ? undefined : JSON.parse(init.body as string),
      keepalive: init.keepalive ?? false,
    });
    const reply = (this.replies.length > 1 ? this.replies.shift() : this.replies[0]) ?? {};
    if (reply === "lost") throw new TypeError("no network");
    const { status = 200, body = {}, headers = {} } = reply;
    return new Response(status === 204 || status === 304 ? null : JSON.stringify(body), {
      status,
      headers,
    });
  }) as unknown as typeof fetch;

  client(options: Options = {}): Client {
    return new Client({ server: "http://t", user: "ann", fetch: this.fetch, ...options });
  }
}

/** Lets everything go on that needs no time. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((next) => setImmediate(next));
}
