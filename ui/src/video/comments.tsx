// Beside the player: the comments as a list, sending, what one wants to see.

import type { Comment, Rule } from "@tideline/web";
import type Artplayer from "artplayer";
import { useEffect, useState } from "preact/hooks";
import { tell, useShared } from "../context.js";
import { Icon } from "../parts/icon.js";
import { keepRules, loadRules } from "../settings.js";
import { place } from "../words.js";
import { LEVEL_MAX, shower, type Taste } from "./rules.js";
import type { Connector } from "./view.js";

/** Rows of the list at once, around the place where the video is. */
const ROWS_MAX = 200;
const TEXT_MAX = 300;

interface Props {
  video: string;
  art: Artplayer;
  connector: Connector;
  taste: { current: Taste };
}

export function Comments({ video, art, connector, taste }: Props) {
  const { words, say, settings, features } = useShared();
  const { viewer } = connector;
  const [, again] = useState(0);
  const [rules, setRules] = useState<readonly Rule[]>([]);
  const [level, setLevel] = useState(0);
  const failed = (error: Error) => say(tell(words, error));

  useEffect(() => {
    const changed = () => again((n) => n + 1);
    const stop = viewer.listen(changed);
    art.on("artplayerPluginDanmuku:loaded" as "ready", changed);
    if (features.rules) viewer.danmaku.filters().then(setRules, failed);
    else setRules(loadRules());
    return stop;
  }, [viewer, art]);

  // Asked for once somebody wants less: most want all.
  useEffect(() => {
    if (level === 0 || taste.current.flags.size > 0) return;
    const segments = Array.from({ length: viewer.view?.segments ?? 1 }, (_, at) => at + 1);
    Promise.all(segments.map(async (n) => [n, await viewer.danmaku.flags(n)] as const)).then(
      (flags) => {
        taste.current = { ...taste.current, flags: new Map(flags) };
        again((n) => n + 1);
      },
      failed,
    );
  }, [level, viewer]);

  taste.current = { ...taste.current, rules, level };
  const shows = shower(taste.current, (ms) => viewer.segmentOf(ms));
  const shown = viewer.room.comments().filter(shows);

  const change = async (next: readonly Rule[]) => {
    if (features.rules) await viewer.danmaku.setFilters(next);
    else keepRules(next);
    setRules(next);
  };

  return (
    <aside class="comments" aria-label={words.comments}>
      <h2>
        {words.comments}
        <small>
          {words.shownOf(shown.length, viewer.view?.total ?? shown.length)}
          {viewer.viewers === undefined ? "" : ` · ${words.watching(viewer.viewers)}`}
        </small>
      </h2>
      <ol class="comment-list" aria-label={words.comments}>
        {shown.slice(0, ROWS_MAX).map((comment) => (
          <Line
            key={comment.id}
            comment={comment}
            seek={() => {
              art.seek = comment.progress_ms / 1000;
            }}
            like={() => void viewer.danmaku.like(comment.id).catch(failed)}
            hide={() =>
              void change([...rules, { type: 2, filter: comment.sender, opened: true }]).catch(
                failed,
              )
            }
          />
        ))}
      </ol>
      <Send send={(text, mode, color) => connector.send({ text, mode, color })} failed={failed} />
      <details>
        <summary>{words.taste}</summary>
        {features.flags && (
          <label class="level">
            {words.level(level)}
            <input
              type="range"
              min={0}
              max={LEVEL_MAX}
              value={level}
              onInput={(event) => setLevel(Number(event.currentTarget.value))}
            />
          </label>
        )}
        <Rules rules={rules} change={(next) => void change(next).catch(failed)} />
      </details>
      <p class="note">
        <a href={`#/owner/${encodeURIComponent(video)}`}>{words.owner}</a> · {settings.user}
      </p>
    </aside>
  );
}

interface LineProps {
  comment: Comment;
  seek: () => void;
  like: () => void;
  hide: () => void;
}

function Line({ comment, seek, like, hide }: LineProps) {
  const { words } = useShared();
  return (
    <li>
      <button type="button" class="quiet at" onClick={seek}>
        {place(comment.progress_ms)}
      </button>
      <span class="comment-text">{comment.text}</span>
      <button
        type="button"
        class="quiet"
        aria-label={`${words.like}: ${comment.text}`}
        onClick={like}
      >
        <Icon name="like" />
        {comment.likes > 0 && comment.likes}
      </button>
      <button
        type="button"
        class="quiet"
        aria-label={`${words.hideSender}: ${comment.text}`}
        onClick={hide}
      >
        <Icon name="hide" />
      </button>
    </li>
  );
}

interface SendProps {
  send: (text: string, mode: 0 | 1 | 2, color: string) => Promise<void>;
  failed: (error: Error) => void;
}

function Send({ send, failed }: SendProps) {
  const { words } = useShared();
  const [text, setText] = useState("");
  const [mode, setMode] = useState<0 | 1 | 2>(0);
  const [color, setColor] = useState("#ffffff");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    try {
      await send(text, mode, color);
      setText("");
    } finally {
      setBusy(false);
    }
  };
  return (
    <form
      class="send"
      onSubmit={(event) => {
        event.preventDefault();
        void submit().catch(failed);
      }}
    >
      <input
        required
        maxLength={TEXT_MAX}
        placeholder={words.say}
        aria-label={words.say}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <select
        aria-label={words.mode}
        value={mode}
        onChange={(event) => setMode(Number(event.currentTarget.value) as 0 | 1 | 2)}
      >
        {words.modes.map((name, at) => (
          <option key={name} value={at}>
            {name}
          </option>
        ))}
      </select>
      <input
        type="color"
        aria-label={words.color}
        value={color}
        onInput={(event) => setColor(event.currentTarget.value)}
      />
      <button type="submit" class="button" disabled={busy}>
        <Icon name="send" />
        {words.send}
      </button>
    </form>
  );
}

function Rules({
  rules,
  change,
}: {
  rules: readonly Rule[];
  change: (rules: readonly Rule[]) => void;
}) {
  const { words } = useShared();
  const [type, setType] = useState<Rule["type"]>(0);
  const [filter, setFilter] = useState("");
  return (
    <>
      <ul class="rules">
        {rules.map((rule) => (
          <li key={`${rule.type} ${rule.filter}`}>
            <span>
              {words.ruleTypes[rule.type]}: {rule.filter}
            </span>
            <button
              type="button"
              class="quiet"
              aria-label={words.removeLabel(rule.filter)}
              onClick={() => change(rules.filter((one) => one !== rule))}
            >
              <Icon name="remove" />
            </button>
          </li>
        ))}
      </ul>
      <form
        class="send"
        onSubmit={(event) => {
          event.preventDefault();
          change([...rules, { type, filter, opened: true }]);
          setFilter("");
        }}
      >
        <select
          aria-label={words.ruleType}
          value={type}
          onChange={(event) => setType(Number(event.currentTarget.value) as Rule["type"])}
        >
          {words.ruleTypes.map((name, at) => (
            <option key={name} value={at}>
              {name}
            </option>
          ))}
        </select>
        <input
          required
          aria-label={words.rule}
          placeholder={words.rule}
          value={filter}
          onInput={(event) => setFilter(event.currentTarget.value)}
        />
        <button type="submit">{words.add}</button>
      </form>
    </>
  );
}
