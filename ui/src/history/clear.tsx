// What to clear: asked before it is done, for it cannot be undone.

import type { Clear } from "@tideline/web";
import { useState } from "preact/hooks";
import { useShared } from "../context.js";
import { Dialog } from "../parts/dialog.js";

const OLD_MS = 30 * 86_400_000;

type Choice = "finished" | "old" | "kind" | "all";

/** The filter of a choice. */
export function clearOf(choice: Choice, kind: string, now: number): Clear {
  switch (choice) {
    case "finished":
      return { finished: true };
    case "old":
      return { before_ms: now - OLD_MS };
    case "kind":
      return { kind };
    case "all":
      return { all: true };
  }
}

interface Props {
  kind: string;
  close: () => void;
  clear: (what: Clear) => void;
}

export function ClearDialog({ kind, close, clear }: Props) {
  const { words, client } = useShared();
  const [choice, setChoice] = useState<Choice>(kind ? "kind" : "finished");
  const choices: [Choice, string][] = [
    ["finished", words.clearFinished],
    ["old", words.clearOld],
    ...(kind ? ([["kind", words.clearKind(words.kinds[kind] ?? kind)]] as [Choice, string][]) : []),
    ["all", words.clearAll],
  ];
  return (
    <Dialog
      title={words.clearTitle}
      close={close}
      submit={() => clear(clearOf(choice, kind, client.now()))}
    >
      {choices.map(([value, text]) => (
        <label key={value} class="choice">
          <input
            type="radio"
            name="what"
            value={value}
            checked={choice === value}
            onChange={() => setChoice(value)}
          />
          {text}
        </label>
      ))}
      <p class="warning">{words.clearWarning}</p>
      <div class="dialog-do">
        <button type="button" class="quiet" onClick={close}>
          {words.cancel}
        </button>
        <button type="submit" class="button danger">
          {words.clearDo}
        </button>
      </div>
    </Dialog>
  );
}
