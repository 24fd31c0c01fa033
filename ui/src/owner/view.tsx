// For the owner of a video: find comments, also those that are hidden, protect,
// hide and show them again, and undo it, on a later visit as well.

import {
  ATTR,
  type Change,
  type Comment,
  compareIds,
  Danmaku,
  Problem,
  type View,
} from "@tideline/web";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { Icon } from "../parts/icon.js";
import { density } from "../video/rules.js";
import { place, timeOfDay } from "../words.js";
import { Density } from "./density.js";
import { type Deed, type Done, keepDone, loadDone } from "./done.js";

/** Bars of the plot. */
const BARS = 60;
const ROWS_MAX = 300;
/** Why a comment may be hidden, but for want of room. */
const REASONS = ["hidden", "blocked", "reported", "waiting", "recalled"] as const;
type Reason = (typeof REASONS)[number];
const isReason = (text: string | undefined): text is Reason =>
  REASONS.some((reason) => reason === text);

export function OwnerView({ video }: { video: string }) {
  const { words, language, client, say } = useShared();
  const danmaku = useMemo(() => new Danmaku(client, video), [client, video]);
  const [comments, setComments] = useState<Comment[]>([]);
  const [view, setView] = useState<View | null>(null);
  const [hidden, setHidden] = useState<ReadonlyMap<string, string>>(new Map());
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set());
  const [done, setDone] = useState<readonly Done[]>([]);
  const doneNow = useRef<readonly Done[]>([]);
  const turn = useRef(Promise.resolve());
  const [search, setSearch] = useState("");
  const [state, setState] = useState<"all" | "shown" | Reason>("all");
  const [part, setPart] = useState<number | null>(null);
  const failed = (error: Error) => say(tell(words, error));

  useEffect(() => {
    doneNow.current = loadDone(video);
    setDone(doneNow.current);
    const found = Promise.all([danmaku.all(true), danmaku.hidden(), danmaku.view()]);
    found.then(([all, hidden, view]) => {
      // One may have been hidden between the two.
      const gone = new Set(hidden.map(({ id }) => id));
      const both = [...all.filter(({ id }) => !gone.has(id)), ...hidden];
      setComments(both.sort((a, b) => a.progress_ms - b.progress_ms || compareIds(a.id, b.id)));
      setHidden(new Map(hidden.map(({ id, reason }) => [id, reason ?? "hidden"])));
      setView(view);
      setKept(new Set(both.filter(({ attr }) => attr & ATTR.protected).map(({ id }) => id)));
    }, failed);
  }, [danmaku]);

  const last = Math.max(1, ...comments.map(({ progress_ms }) => progress_ms + 1));
  const length = view?.duration_ms ?? last;
  const bars = density(comments, length, BARS);
  const word = search.toLowerCase();
  const found = comments.filter(
    ({ id, text, sender, progress_ms }) =>
      (text.toLowerCase().includes(word) || sender === word) &&
      (state === "all" || (hidden.get(id) ?? "shown") === state) &&
      (part === null || Math.min(BARS - 1, Math.floor((progress_ms / length) * BARS)) === part),
  );

  // What is not named stays as it is.
  const mark = (id: string, { reason, isKept }: { reason?: string | null; isKept?: boolean }) => {
    if (reason !== undefined)
      setHidden((now) => {
        const next = new Map(now);
        if (reason === null) next.delete(id);
        else next.set(id, reason);
        return next;
      });
    if (isKept !== undefined)
      setKept((now) => {
        const next = new Set(now);
        if (isKept) next.add(id);
        else next.delete(id);
        return next;
      });
  };
  const remember = (next: readonly Done[]) => {
    doneNow.current = next;
    setDone(next);
    keepDone(video, next);
  };
  // One after the other, however fast they are asked for: each sees what the one before did.
  const inTurn = (deed: () => Promise<void>) => {
    turn.current = turn.current.then(deed).catch(failed);
  };
  const act = async ({ id, text }: Comment, did: Deed) => {
    const before = hidden.get(id);
    const { reason, rank, audit } = await danmaku.change(id, CHANGES[did]);
    mark(id, { reason: reason ?? null, isKept: rank === "protected" });
    const one = { id, text, did, ...(before && { reason: before }) };
    if (audit) remember([...doneNow.current, { ...one, place: audit }]);
    say(`${words[did]}: ${text}`);
  };
  const undo = async () => {
    const last = doneNow.current.at(-1);
    if (!last) return;
    const { id, did, reason, place } = last;
    try {
      await danmaku.undo(place);
    } catch (error) {
      // What was changed again since, or is told no more, cannot be undone.
      const status = error instanceof Problem ? error.status : 0;
      if (status === 404 || status === 409) remember(doneNow.current.slice(0, -1));
      throw error;
    }
    const ranked = did === "protect" || did === "unprotect";
    mark(id, ranked ? { isKept: did === "unprotect" } : { reason: reason ?? null });
    remember(doneNow.current.slice(0, -1));
    say(`${words.undone}: ${words[did]}`);
  };

  return (
    <>
      <div class="title-line">
        <h1>
          {words.owner}{" "}
          <small>
            <a href={`#/video/${encodeURIComponent(video)}`}>{video}</a>
          </small>
        </h1>
        <button type="button" disabled={done.length === 0} onClick={() => inTurn(undo)}>
          <Icon name="undo" />
          {words.undo}
        </button>
      </div>
      {view && <p class="note">{words.shownOf(view.shown, view.total)}</p>}
      <Density counts={bars} length={length} part={part} choose={setPart} />
      <select
        class="search"
        aria-label={words.which}
        value={state}
        onInput={(event) => setState(event.currentTarget.value as typeof state)}
      >
        <option value="all">{words.all}</option>
        <option value="shown">{words.shown}</option>
        {REASONS.map((reason) => (
          <option key={reason} value={reason}>
            {words.reasons[reason]} ({[...hidden.values()].filter((one) => one === reason).length})
          </option>
        ))}
      </select>
      <input
        type="search"
        class="search"
        placeholder={words.search}
        aria-label={words.search}
        value={search}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      <ul class="rows">
        {found.slice(0, ROWS_MAX).map((comment) => {
          const { id } = comment;
          const isKept = kept.has(id);
          const reason = hidden.get(id);
          return (
            <li key={id} class={reason ? "row owned hidden" : "row owned"}>
              <span class="at">{place(comment.progress_ms)}</span>
              <div class="row-text">
                <span class="row-title">{comment.text}</span>
                <span class="row-facts">
                  {isReason(reason) && <strong>{words.reasons[reason]} · </strong>}
                  {comment.sender} · {timeOfDay(comment.sent_ms, language)} · {comment.likes} ♥
                </span>
              </div>
              <div class="row-do">
                <button
                  type="button"
                  class="quiet"
                  aria-pressed={isKept}
                  onClick={() => inTurn(() => act(comment, isKept ? "unprotect" : "protect"))}
                >
                  <Icon name="shield" />
                  {isKept ? words.unprotect : words.protect}
                </button>
                {/* What its writer took back is theirs. */}
                {reason !== "recalled" && (
                  <button
                    type="button"
                    class="quiet"
                    onClick={() => inTurn(() => act(comment, reason ? "restore" : "hide"))}
                  >
                    <Icon name={reason ? "undo" : "hide"} />
                    {reason ? words.restore : words.hide}
                  </button>
                )}
              </div>
            </li>
          );
        })}
      </ul>
      {found.length === 0 && <p class="empty">{words.empty}</p>}
    </>
  );
}

const CHANGES: Record<Deed, Change> = {
  protect: { rank: "protected" },
  unprotect: { rank: "plain" },
  hide: { state: "hidden" },
  restore: { state: "shown" },
};
