// One row: what it is, how far, go on, remove.

import type { Row } from "@tideline/web";
import { useShared } from "../context.js";
import { Icon } from "../parts/icon.js";
import { place, timeOfDay } from "../words.js";
import { resumeOf, titleOf } from "./days.js";

export function HistoryRow({ row, remove }: { row: Row; remove: (row: Row) => void }) {
  const { words, language } = useShared();
  const title = titleOf(row);
  const href = resumeOf(row);
  const facts = [
    timeOfDay(row.event_ms, language),
    words.kinds[row.kind] ?? row.kind,
    row.part,
    row.device,
    row.plays > 1 ? words.plays(row.plays) : undefined,
  ].filter(Boolean);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== event.currentTarget) return;
    const here = event.currentTarget as HTMLElement;
    if (event.key === "Delete" || event.key === "Backspace") remove(row);
    else if (event.key === "Enter") here.querySelector<HTMLElement>("a")?.click();
    else return;
    event.preventDefault();
  };
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: rows take keys, see `keys` in the words
    <li class="row" data-row tabIndex={0} onKeyDown={onKeyDown} aria-label={title}>
      <span class={`tile tile-${row.kind}`} aria-hidden="true">
        {row.cover && /^https:/.test(row.cover) ? (
          <img src={row.cover} alt="" loading="lazy" />
        ) : (
          <Icon name={row.kind} />
        )}
      </span>
      <div class="row-text">
        <span class="row-title">{title}</span>
        <span class="row-facts">{facts.join(" · ")}</span>
        {row.percent !== null && (
          <progress max={100} value={row.percent} aria-label={words.progress(row.percent)} />
        )}
      </div>
      <div class="row-do">
        {row.finished && <span class="done">{words.finished}</span>}
        {href && (
          <a class="button" href={href}>
            <Icon name="play" />
            {resumeWords(row)}
          </a>
        )}
        <button
          type="button"
          class="quiet"
          title={words.remove}
          aria-label={words.removeLabel(title)}
          onClick={() => remove(row)}
        >
          <Icon name="remove" />
        </button>
      </div>
    </li>
  );

  function resumeWords(row: Row): string {
    if (row.position_ms === undefined) return words.open;
    if (row.finished && (row.percent ?? 0) >= 95) return words.again;
    return row.kind === "article" || row.kind === "comic"
      ? words.resume
      : words.resumeAt(place(row.position_ms));
  }
}
