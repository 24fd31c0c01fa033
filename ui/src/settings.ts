// What a person chose: kept in the browser, the token only until the tab is
// closed. Storage may be refused; then the choice holds for the page.

import type { Rule } from "@tideline/web";
import { type Language, preferred } from "./words.js";

export type Theme = "auto" | "light" | "dark";

/** Who looks, and how. */
export interface Settings {
  language: Language;
  theme: Theme;
  user: string;
  token: string;
}

const KEY = "tideline";
const RULES = "tideline-rules";
/** Whom `--demo` has data of. */
export const DEMO_USER = "demo";

export function load(): Settings {
  const kept = read(() => JSON.parse(localStorage.getItem(KEY) ?? "{}")) as Partial<Settings>;
  const token = read(() => sessionStorage.getItem(KEY)) ?? "";
  return {
    language:
      kept.language === "zh" || kept.language === "en"
        ? kept.language
        : preferred(navigator.languages),
    theme: kept.theme === "light" || kept.theme === "dark" ? kept.theme : "auto",
    user: typeof kept.user === "string" && kept.user ? kept.user : DEMO_USER,
    token: typeof token === "string" ? token : "",
  };
}

export function keep(settings: Settings): void {
  const { token, ...rest } = settings;
  read(() => localStorage.setItem(KEY, JSON.stringify(rest)));
  read(() => sessionStorage.setItem(KEY, token));
}

/** Rules of a viewer that this browser keeps, where the server does not. */
export function loadRules(): Rule[] {
  const kept = read(() => JSON.parse(localStorage.getItem(RULES) ?? "[]"));
  return Array.isArray(kept) ? kept.filter((rule) => typeof rule?.filter === "string") : [];
}

export function keepRules(rules: readonly Rule[]): void {
  read(() => localStorage.setItem(RULES, JSON.stringify(rules)));
}

/** Makes the document look as chosen. */
export function show({ language, theme }: Settings): void {
  const root = document.documentElement;
  root.lang = language === "zh" ? "zh-CN" : "en";
  root.dataset.theme = theme;
}

function read<T>(what: () => T): T | undefined {
  try {
    return what();
  } catch {
    return undefined;
  }
}
