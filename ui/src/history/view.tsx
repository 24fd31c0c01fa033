// The user's history, by day.

import { type Clear, type Day, Problem, type Row } from "@tideline/web";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { Icon } from "../parts/icon.js";
import { dayName } from "../words.js";
import { ClearDialog } from "./clear.js";
import { byDay, titleOf, without } from "./days.js";
import { HistoryRow } from "./row.js";

const ROWS = 50;

/** What is there of the list. */
interface Loaded {
  days: Day[];
  rows: Row[];
  cursor: string | null;
  partial: boolean;
}

export function HistoryView() {
  const { words, language, history, client, say } = useShared();
  const [kind, setKind] = useState("");
  const [unfinished, setUnfinished] = useState(false);
  const [loaded, setLoaded] = useState<Loaded | null>(null);
  const [problem, setProblem] = useState<Error | null>(null);
  const [clearing, setClearing] = useState(false);
  const [tries, setTries] = useState(0);
  const list = useRef<HTMLDivElement>(null);

  const filter = useMemo(
    () => ({ ...(kind ? { kind: [kind] } : {}), ...(unfinished ? { unfinished } : {}) }),
    [kind, unfinished],
  );

  useEffect(() => {
    const stop = new AbortController();
    const load = async () => {
      const [page, days] = await Promise.all([
        history.list({ ...filter, limit: ROWS, enrich: true }, stop.signal),
        history.days(filter, stop.signal),
      ]);
      setLoaded({
        days,
        rows: page.items,
        cursor: page.next_cursor,
        partial: page.partial ?? false,
      });
      setProblem(null);
    };
    load().catch((error) => {
      if (!stop.signal.aborted) setProblem(error);
    });
    return () => stop.abort();
  }, [history, filter, tries]);

  const failed = useCallback((error: Error) => say(tell(words, error)), [say, words]);

  const more = async () => {
    if (!loaded?.cursor) return;
    const page = await history.list({
      ...filter,
      limit: ROWS,
      enrich: true,
      cursor: loaded.cursor,
    });
    setLoaded({
      days: loaded.days,
      rows: [...loaded.rows, ...page.items],
      cursor: page.next_cursor,
      partial: loaded.partial || (page.partial ?? false),
    });
  };

  const shown = useMemo(() => (loaded ? byDay(loaded.days, loaded.rows) : []), [loaded]);

  const remove = async (row: Row) => {
    const at = loaded?.rows.indexOf(row) ?? -1;
    await history.remove([row]);
    setLoaded(
      (now) =>
        now && {
          ...now,
          days: without(byDay(now.days, now.rows), row),
          rows: now.rows.filter((one) => one !== row),
        },
    );
    say(words.removed(titleOf(row)));
    // Whoever goes by keys goes on where the row was.
    requestAnimationFrame(() => focusRow(list.current, at));
  };

  const clear = async (what: Clear) => {
    setClearing(false);
    say(words.cleared(await history.clear(what)));
    setTries((n) => n + 1);
  };

  return (
    <>
      <div class="title-line">
        <h1>{words.history}</h1>
        <button type="button" class="quiet" onClick={() => setClearing(true)}>
          <Icon name="clear" />
          {words.clear}
        </button>
      </div>
      <Recording failed={failed} />
      <div class="filters">
        {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot scroll sideways */}
        <div class="chips" role="group" aria-label={words.kindLabel}>
          {["", ...Object.keys(words.kinds)].map((one) => (
            <button
              key={one}
              type="button"
              class="chip"
              aria-pressed={kind === one}
              onClick={() => setKind(one)}
            >
              {one ? words.kinds[one] : words.all}
            </button>
          ))}
        </div>
        <label class="switch">
          <input
            type="checkbox"
            checked={unfinished}
            onChange={(event) => setUnfinished(event.currentTarget.checked)}
          />
          {words.unfinished}
        </label>
      </div>
      {problem && <Failure problem={problem} again={() => setTries((n) => n + 1)} />}
      {!problem && !loaded && <p class="wait">{words.loading}</p>}
      {!problem && loaded?.rows.length === 0 && (
        <div class="empty">
          <p>{words.empty}</p>
          <p>{words.emptyHint}</p>
        </div>
      )}
      {loaded?.partial && <p class="note">{words.partial}</p>}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: arrow keys move between its rows */}
      <div ref={list} onKeyDown={(event) => moveFocus(event, list.current)}>
        {!problem &&
          shown.map(({ day, count, rows }) => (
            <section key={day} aria-labelledby={`day-${day}`}>
              <h2 id={`day-${day}`} class="day">
                {dayName(day, new Date(client.now()), language)}
                <small>{words.entries(count)}</small>
              </h2>
              <ul class="rows">
                {rows.map((row) => (
                  <HistoryRow
                    key={`${row.kind}/${row.id}`}
                    row={row}
                    remove={(row) => void remove(row).catch(failed)}
                  />
                ))}
              </ul>
            </section>
          ))}
      </div>
      {!problem && loaded?.cursor && (
        <button type="button" class="more" onClick={() => void more().catch(failed)}>
          {words.more}
        </button>
      )}
      {shown.length > 0 && <p class="keys">{words.keys}</p>}
      {clearing && (
        <ClearDialog
          kind={kind}
          close={() => setClearing(false)}
          clear={(what) => void clear(what).catch(failed)}
        />
      )}
    </>
  );
}

/** The switch: whether what is watched is kept. */
function Recording({ failed }: { failed: (error: Error) => void }) {
  const { words, history } = useShared();
  const [recording, setRecording] = useState<boolean | null>(null);
  useEffect(() => {
    let here = true;
    // A failure shows in the list, which asks the same server.
    history.recording().then(
      (on) => here && setRecording(on),
      () => undefined,
    );
    return () => {
      here = false;
    };
  }, [history]);
  if (recording === null) return null;
  const turn = async () => {
    await history.setRecording(!recording);
    setRecording(!recording);
  };
  return (
    <div class={recording ? "recording" : "recording off"} role="status">
      <span>{recording ? words.recordingOn : words.recordingOff}</span>
      <button type="button" class="quiet" onClick={() => void turn().catch(failed)}>
        <Icon name={recording ? "pause" : "play"} />
        {recording ? words.pause : words.resumeRecording}
      </button>
    </div>
  );
}

function Failure({ problem, again }: { problem: Error; again: () => void }) {
  const { words, askWho } = useShared();
  const stranger = problem instanceof Problem && (problem.status === 401 || problem.status === 403);
  return (
    <div class="empty" role="alert">
      <p>{tell(words, problem)}</p>
      <button type="button" class="button" onClick={stranger ? askWho : again}>
        {stranger ? words.who : words.retry}
      </button>
    </div>
  );
}

function rowsOf(list: HTMLElement | null): HTMLElement[] {
  return [...(list?.querySelectorAll<HTMLElement>("[data-row]") ?? [])];
}

function focusRow(list: HTMLElement | null, at: number): void {
  const rows = rowsOf(list);
  rows[Math.min(at, rows.length - 1)]?.focus();
}

function moveFocus(event: KeyboardEvent, list: HTMLElement | null): void {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const here = (event.target as HTMLElement).closest<HTMLElement>("[data-row]");
  if (step === undefined || !here) return;
  const rows = rowsOf(list);
  rows[rows.indexOf(here) + step]?.focus();
  event.preventDefault();
}
