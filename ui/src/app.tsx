// The frame around every page: where to go, who looks, language, theme.

import { History } from "@tideline/web";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { ConsoleView, type Place } from "./console/view.js";
import { type Context, clientOf, type Features, featuresOf, NOTHING, Shared } from "./context.js";
import { HistoryView } from "./history/view.js";
import { OwnerView } from "./owner/view.js";
import { Icon } from "./parts/icon.js";
import { Who } from "./parts/who.js";
import { keep, load, type Settings, show, type Theme } from "./settings.js";
import { CLIP_ID } from "./video/clip.js";
import { VideoView } from "./video/view.js";
import { LANGUAGES } from "./words.js";

const NEXT: Record<Theme, Theme> = { auto: "light", light: "dark", dark: "auto" };
/** How long what was said is shown, in ms. */
const SAID_MS = 4000;

export function App() {
  const [settings, setSettings] = useState(load);
  const [asking, setAsking] = useState(false);
  const [said, say] = useSaid();
  const words = LANGUAGES[settings.language];
  const change = (some: Partial<Settings>) => setSettings((now) => ({ ...now, ...some }));

  // Not after the next picture: who reloads at once has chosen too.
  useLayoutEffect(() => {
    keep(settings);
    show(settings);
  }, [settings]);

  const { user, token } = settings;
  const client = useMemo(() => clientOf({ user, token } as Settings), [user, token]);
  const history = useMemo(() => new History(client), [client]);
  const [features, setFeatures] = useState<Features | null>(null);
  useEffect(() => void featuresOf(client).then(setFeatures), [client]);
  const route = useRoute(features);
  const shared: Context = {
    words,
    language: settings.language,
    settings,
    client,
    history,
    features: features ?? NOTHING,
    say,
    askWho: () => setAsking(true),
  };

  useEffect(() => {
    document.title = `${words[route.page]} · Tideline`;
  }, [words, route.page]);

  return (
    <Shared.Provider value={shared}>
      <button type="button" class="skip" onClick={skip}>
        {words.skip}
      </button>
      <header class="bar">
        <a class="brand" href="#/">
          <img src="./icon.svg" alt="" width="28" height="28" />
          <span class="brand-name">Tideline</span>
        </a>
        <nav>
          <a href="#/" aria-current={route.page === "history" ? "page" : undefined}>
            {words.history}
          </a>
          <a href={`#/video/${CLIP_ID}`} aria-current={route.page === "video" ? "page" : undefined}>
            {words.video}
          </a>
          <a href="#/console" aria-current={route.page === "console" ? "page" : undefined}>
            {words.console}
          </a>
        </nav>
        <span class="space" />
        <button type="button" class="quiet" onClick={() => setAsking(true)} title={words.who}>
          <Icon name="user" />
          <span class="bar-user">{settings.user}</span>
        </button>
        <button
          type="button"
          class="quiet"
          lang={settings.language === "zh" ? "en" : "zh-CN"}
          aria-label={words.languageLabel}
          onClick={() => change({ language: settings.language === "zh" ? "en" : "zh" })}
        >
          {words.language}
        </button>
        <button
          type="button"
          class="quiet"
          title={words.theme[settings.theme]}
          aria-label={words.theme[settings.theme]}
          onClick={() => change({ theme: NEXT[settings.theme] })}
        >
          <Icon name={settings.theme} />
        </button>
      </header>
      <main id="content" tabIndex={-1}>
        {route.page === "history" && <HistoryView key={`${user} ${token}`} />}
        {route.page === "video" && features && <VideoView key={user} id={route.id} />}
        {route.page === "console" && <ConsoleView key={token} place={placeOf(route.id)} />}
        {route.page === "owner" && <OwnerView key={user} video={route.id} />}
      </main>
      <div class="said" role="status" aria-live="polite">
        {said && <span>{said}</span>}
      </div>
      {asking && (
        <Who
          words={words}
          settings={settings}
          close={() => setAsking(false)}
          save={(who) => {
            setAsking(false);
            change(who);
          }}
        />
      )}
    </Shared.Provider>
  );
}

interface Route {
  page: "history" | "video" | "owner" | "console";
  id: string;
}

/** The page that the address names; one that the server has nothing for is none. */
function useRoute(features: Features | null): Route {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const turn = () => setHash(location.hash);
    addEventListener("hashchange", turn);
    return () => removeEventListener("hashchange", turn);
  }, []);
  const [, page, id] = /^#\/(video|owner)\/([^/]+)$/.exec(hash) ?? [];
  const nothing: Route = { page: "history", id: "" };
  if (/^#\/console(\/|$)/.test(hash)) return { page: "console", id: hash.slice(10) };
  if (id === undefined || (page === "owner" && !features?.danmaku)) return nothing;
  try {
    return { page: page as Route["page"], id: decodeURIComponent(id) };
  } catch {
    return nothing;
  }
}

/** The part of the console that the rest of an address names. */
function placeOf(rest: string): Place {
  const [, part = "topics", of = ""] = /^(topics|tree)\/?(.*)$/.exec(rest) ?? [];
  try {
    return { part, of: decodeURIComponent(of) };
  } catch {
    return { part, of: "" };
  }
}

/** Goes to the content; the address stays that of the page. */
function skip(): void {
  document.getElementById("content")?.focus();
}

/** What was said last, for a while. */
function useSaid(): [string, (text: string) => void] {
  const [said, setSaid] = useState("");
  const timer = useRef<number | undefined>(undefined);
  const say = useMemo(
    () => (text: string) => {
      setSaid(text);
      clearTimeout(timer.current);
      timer.current = window.setTimeout(() => setSaid(""), SAID_MS);
    },
    [],
  );
  return [said, say];
}
