// Calls to a Tideline server: addresses, tokens, tickets, problems.
//
// Knows nothing of what is called: see `history.ts` and `danmaku.ts`.

/** Where the server is, and who calls. */
export interface Options {
  /** Such as `https://history.example`; default: where the page came from. */
  server?: string;
  /** Whose history it is; default `me`, the user of the token. */
  user?: string;
  /** A bearer token, or what gives one (asked before each call); none where the server asks for none. */
  token?: string | (() => string | undefined | Promise<string | undefined>);
  /** Default: the browser's. */
  fetch?: typeof fetch;
  /** Default: the browser's. */
  now?: () => number;
}

/** What the server refused, or did not answer. */
export class Problem extends Error {
  override readonly name = "Problem";
  constructor(
    /** The stable code, such as `rate_limited`; `offline` where there was no answer. */
    readonly code: string,
    /** Which field, which limit. */
    detail: string,
    /** Of HTTP; 0 where there was no answer. */
    readonly status: number,
    /** When to come back, in ms, if the server said so. */
    readonly retryAfterMs?: number,
  ) {
    super(detail);
  }

  /** Whether the same call may work later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

/** How a call is made. */
export interface CallOptions {
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: unknown;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Not from the browser's own store without asking. */
  fresh?: boolean;
  /** The call goes on when the page is left; its body may have 64 KiB. */
  keepalive?: boolean;
}

/** An answer with what its headers say. */
export interface Answer<T> {
  status: number;
  headers: Headers;
  body: T;
}

/** Calls to one server, as one caller. */
export class Client {
  readonly user: string;
  readonly now: () => number;
  readonly #server: string;
  readonly #token: Options["token"];
  readonly #fetch: typeof fetch;

  constructor(options: Options = {}) {
    const here = typeof location === "undefined" ? "" : location.origin;
    this.#server = (options.server ?? here).replace(/\/+$/, "");
    this.user = options.user ?? "me";
    this.#token = options.token;
    this.#fetch = options.fetch ?? ((...call) => fetch(...call));
    this.now = options.now ?? Date.now;
  }

  /** The path of something of this user. */
  ofUser(rest: string): string {
    return `/v1/users/${encodeURIComponent(this.user)}${rest}`;
  }

  /** The whole address of a path. */
  address(path: string, query: CallOptions["query"] = {}): string {
    const pairs = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [value].flat().map((one) => [name, String(one)]),
    );
    const search = new URLSearchParams(pairs).toString();
    return `${this.#server}${path}${search && `?${search}`}`;
  }

  /** Calls, and reads the JSON of the answer; throws a `Problem`. */
  async json<T>(method: string, path: string, options: CallOptions = {}): Promise<T> {
    return (await this.call<T>(method, path, options)).body;
  }

  /** The same with status and headers. 304 has no body. */
  async call<T>(method: string, path: string, options: CallOptions = {}): Promise<Answer<T>> {
    const response = await this.raw(method, path, options);
    const body =
      response.status === 204 || response.status === 304 ? null : await readJson(response);
    return { status: response.status, headers: response.headers, body: body as T };
  }

  /** The same for what is no JSON. */
  async raw(method: string, path: string, options: CallOptions = {}): Promise<Response> {
    const headers: Record<string, string> = { ...options.headers };
    const token = typeof this.#token === "function" ? await this.#token() : this.#token;
    if (token) headers.authorization = `Bearer ${token}`;
    const init: RequestInit = { method, headers };
    if (options.body !== undefined) {
      headers["content-type"] = "application/json";
      init.body = JSON.stringify(options.body);
    }
    if (options.signal) init.signal = options.signal;
    if (options.keepalive) init.keepalive = true;
    if (options.fresh) init.cache = "no-cache";
    let response: Response;
    try {
      response = await this.#fetch(this.address(path, options.query), init);
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Problem("offline", String(error), 0);
    }
    if (response.status >= 400) throw await problemOf(response);
    return response;
  }

  /** Whether calls carry a token. */
  get isNamed(): boolean {
    return this.#token !== undefined;
  }

  /** A ticket: one handshake within a minute, for what cannot carry a header. */
  async ticket(): Promise<string> {
    return (await this.json<{ ticket: string }>("POST", "/v1/tickets")).ticket;
  }

  /** The address of the live connection, with a ticket where one is needed. */
  async liveAddress(): Promise<string> {
    const ticket = this.isNamed ? await this.ticket() : undefined;
    return this.address("/v1/live", { ticket }).replace(/^http/, "ws");
  }
}

async function readJson(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    // Cut short on its way: as good as no answer.
    throw new Problem("offline", "the answer is no JSON", 0);
  }
}

async function problemOf(response: Response): Promise<Problem> {
  let told: { code?: unknown; detail?: unknown } = {};
  try {
    told = (await response.json()) ?? {};
  } catch {
    // Something between us and the server answered in its own words.
  }
  const code = typeof told.code === "string" ? told.code : "internal";
  const detail = typeof told.detail === "string" ? told.detail : `status ${response.status}`;
  const seconds = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  const retryAfterMs = Number.isNaN(seconds) ? undefined : seconds * 1000;
  return new Problem(code, detail, response.status, retryAfterMs);
}
