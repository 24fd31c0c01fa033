// What every part of a page may ask for: words, the caller, a way to tell.

import { Client, type History, type Problem } from "@tideline/web";
import { createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Settings } from "./settings.js";
import type { Language, Words } from "./words.js";

/** What the server can do beyond history. */
export interface Features {
  /** Comments across videos. */
  danmaku: boolean;
  /** It keeps what a viewer does not want to see; else the browser does. */
  rules: boolean;
  /** It knows how much a viewer would like each comment. */
  flags: boolean;
}

/** No comments at all. */
export const NOTHING: Features = { danmaku: false, rules: false, flags: false };

/** Asks the server, by its description of itself; less is taken for what does not answer. */
export async function featuresOf(client: Client): Promise<Features> {
  const asked = client.json<{ paths?: object }>("GET", "/openapi.json");
  const { paths = {} } = await asked.catch(() => ({ paths: {} }));
  return {
    danmaku: "/v1/videos/{video}/danmaku/view" in paths,
    rules: "/v1/users/{user}/danmaku/filters" in paths,
    flags: "/v1/users/{user}/danmaku/flags" in paths,
  };
}

export interface Context {
  words: Words;
  language: Language;
  settings: Settings;
  client: Client;
  history: History;
  features: Features;
  /** Says something to people, and to those who listen rather than look. */
  say: (text: string) => void;
  /** Asks who it is. */
  askWho: () => void;
}

export const Shared = createContext<Context | null>(null);

export function useShared(): Context {
  const shared = useContext(Shared);
  if (!shared) throw new Error("outside of the page");
  return shared;
}

/** The caller that the settings name. */
export function clientOf({ user, token }: Settings): Client {
  return new Client(token ? { user, token } : { user });
}

/** What a problem means to people. */
export function tell(words: Words, problem: Problem | Error): string {
  if ("code" in problem && problem.code === "offline") return words.offline;
  if ("code" in problem && problem.code === "unauthenticated") return words.needToken;
  return `${words.failed}: ${problem.message}`;
}
