// For the owner of a video: find comments, protect and hide them, and undo it.

import { ATTR, type Change, type Comment, compareIds, Danmaku, type View } from "@tideline/web";
import { useEffect, useMemo, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { Icon } from "../parts/icon.js";
import { density } from "../video/rules.js";
import { place, timeOfDay } from "../words.js";
import { Density } from "./density.js";

/** Bars of the plot. */
const BARS = 60;
const ROWS_MAX = 300;

/** Something that was done, and how it is undone. */
interface Done {
  comment: Comment;
  did: string;
  back: Change;
}

export function OwnerView({ video }: { video: string }) {
  const { words, language, client, say } = useShared();
  const danmaku = useMemo(() => new Danmaku(client, video), [client, video]);
  const [comments, setComments] = useState<Comment[]>([]);
  const [view, setView] = useState<View | null>(null);
  const [hidden, setHidden] = useState<ReadonlySet<string>>(new Set());
  const [kept, setKept] = useState<ReadonlySet<string>>(new Set());
  const [done, setDone] = useState<readonly Done[]>([]);
  const [search, setSearch] = useState("");
  const [part, setPart] = useState<number | null>(null);
  const failed = (error: Error) => say(tell(words, error));

  useEffect(() => {
    Promise.all([danmaku.all(), danmaku.view()]).then(([all, view]) => {
      setComments(all.sort((a, b) => a.progress_ms - b.progress_ms || compareIds(a.id, b.id)));
      setView(view);
      setKept(new Set(all.filter(({ attr }) => attr & ATTR.protected).map(({ id }) => id)));
    }, failed);
  }, [danmaku]);

  const last = Math.max(1, ...comments.map(({ progress_ms }) => progress_ms + 1));
  const length = view?.duration_ms ?? last;
  const bars = density(comments, length, BARS);
  const word = search.toLowerCase();
  const found = comments.filter(
    ({ text, sender, progress_ms }) =>
      (text.toLowerCase().includes(word) || sender === word) &&
      (part === null || Math.min(BARS - 1, Math.floor((progress_ms / length) * BARS)) === part),
  );

  const act = async (comment: Comment, change: Change, did: string, back: Change) => {
    await danmaku.change(comment.id, change);
    setHidden((now) => withOr(now, comment.id, change.state, "hidden"));
    setKept((now) => withOr(now, comment.id, change.rank, "protected"));
    setDone((now) => [...now, { comment, did, back }]);
    say(`${did}: ${comment.text}`);
  };
  const undo = async () => {
    const last = done.at(-1);
    if (!last) return;
    await danmaku.change(last.comment.id, last.back);
    setHidden((now) => withOr(now, last.comment.id, last.back.state, "hidden"));
    setKept((now) => withOr(now, last.comment.id, last.back.rank, "protected"));
    setDone((now) => now.slice(0, -1));
    say(`${words.undone}: ${last.did}`);
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
        <button
          type="button"
          disabled={done.length === 0}
          onClick={() => void undo().catch(failed)}
        >
          <Icon name="undo" />
          {words.undo}
        </button>
      </div>
      {view && <p class="note">{words.shownOf(view.shown, view.total)}</p>}
      <Density counts={bars} length={length} part={part} choose={setPart} />
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
          const isHidden = hidden.has(id);
          return (
            <li key={id} class={isHidden ? "row owned hidden" : "row owned"}>
              <span class="at">{place(comment.progress_ms)}</span>
              <div class="row-text">
                <span class="row-title">{comment.text}</span>
                <span class="row-facts">
                  {comment.sender} · {timeOfDay(comment.sent_ms, language)} · {comment.likes} ♥
                </span>
              </div>
              <div class="row-do">
                <button
                  type="button"
                  class="quiet"
                  aria-pressed={isKept}
                  onClick={() =>
                    void act(
                      comment,
                      { rank: isKept ? "plain" : "protected" },
                      isKept ? words.unprotect : words.protect,
                      { rank: isKept ? "protected" : "plain" },
                    ).catch(failed)
                  }
                >
                  <Icon name="shield" />
                  {isKept ? words.unprotect : words.protect}
                </button>
                <button
                  type="button"
                  class="quiet"
                  onClick={() =>
                    void act(
                      comment,
                      { state: isHidden ? "shown" : "hidden" },
                      isHidden ? words.restore : words.hide,
                      { state: isHidden ? "hidden" : "shown" },
                    ).catch(failed)
                  }
                >
                  <Icon name={isHidden ? "undo" : "hide"} />
                  {isHidden ? words.restore : words.hide}
                </button>
              </div>
            </li>
          );
        })}
      </ul>
      {found.length === 0 && <p class="empty">{words.empty}</p>}
    </>
  );
}

/** The set with or without an id, if what changed is of this set. */
function withOr<T>(set: ReadonlySet<string>, id: string, now: T | undefined, inside: T) {
  if (now === undefined) return set;
  const next = new Set(set);
  if (now === inside) next.add(id);
  else next.delete(id);
  return next;
}
